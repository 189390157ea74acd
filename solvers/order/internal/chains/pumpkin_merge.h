#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/common/support/accelerator.h"
#include "cairn/solvers/order/device/pumpkin.h"
#include "cairn/solvers/order/internal/chains/chain.h"

namespace cairn::solvers {

/// Describes a chain between a source and a sink. Its first step, the key, reads the source; its other steps (`rest`)
/// do not.
struct PumpkinBranch {
  ChainSegment key;
  Chain rest;
};

/// Runs the dynamic program of Theorem 8.2 of Jin et al. (device/pumpkin.h) for parallel chains, here called branches.
/// Branches with equal memory profiles are of one kind. A state is a multiset of branches, given by the number of
/// branches of each kind. If all d branches differ, there are 2^d states.
class PumpkinMerge {
 public:
  /// Builds the problem. `released` is the number of bytes of the source, which are freed after the keys of all
  /// branches have run. The branches must outlive the object.
  PumpkinMerge(std::span<const PumpkinBranch> branches, std::int64_t released);

  bool is_large() const { return states_ >= std::int64_t{1} << 16; }
  /// Returns an upper bound on the bytes that solve() needs on the host, or the largest int64 if there are too many
  /// states to be counted.
  std::int64_t needed_bytes() const { return needed_bytes_; }

  /// Solves the table on the host. Returns false if `watch` expired. `tick`, if given, is called several times, so that
  /// the caller can report progress.
  bool solve(core::Stopwatch& watch, int threads, const std::function<void()>& tick = {});
  /// Solves the table on a device. Returns PumpkinAnswer::End::too_large if the device has too little memory, and
  /// End::stopped if `watch` expired. Throws DeviceError if the device fails.
  PumpkinAnswer::End solve_on(Accelerator& device, core::Stopwatch& watch, const std::function<void()>& tick = {});
  /// Returns the branches merged into one chain, in their dominant order (the order whose memory profile dominates all
  /// others). The table must be solved.
  Chain chain(Ropes& ropes) const;

 private:
  using Solve = std::function<PumpkinAnswer(const PumpkinProblem&, const PumpkinOptions&)>;
  PumpkinAnswer::End solve(core::Stopwatch& watch, const std::function<void()>& tick, std::int64_t chunk,
                           const Solve& solve);

  std::span<const PumpkinBranch> branches_;
  PumpkinProblem problem_;
  std::vector<std::vector<std::int32_t>> branches_of_kind_;
  std::int64_t states_ = 0, needed_bytes_ = 0;
  std::vector<std::uint8_t> order_;
};

}  // namespace cairn::solvers
