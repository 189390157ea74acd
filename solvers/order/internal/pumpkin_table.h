#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/common/accelerator.h"
#include "cairn/solvers/order/device/pumpkin.h"
#include "cairn/solvers/order/internal/chain.h"

namespace cairn::solvers {

/// A chain between a source and a sink. The first step, called the key, reads the source. The rest is a path that does
/// not read the source.
struct PumpkinBranch {
  ChainSegment key;
  Chain rest;
};

/// The dynamic program of Theorem 8.2 (device/pumpkin.h) over sets of parallel chains, here called branches. Branches
/// with equal profiles are of one kind. There is one state for each multiset of kinds. If all d branches differ, there
/// are 2^d states.
class PumpkinTable {
 public:
  /// Builds the problem. The source's `released` bytes are freed once the first steps of all branches have run.
  PumpkinTable(std::span<const PumpkinBranch> branches, std::int64_t released);

  /// Returns whether the table is so large that a device solves it faster than the host.
  bool is_large() const { return states_ >= std::int64_t{1} << 16; }
  /// Returns an upper bound on the bytes that solve() needs on the host. Returns the largest int64 if the bound does
  /// not fit into an int64.
  std::int64_t needed_bytes() const { return needed_bytes_; }

  /// Solves the table. Returns false if the watch expired before the end. `tick`, if given, is called now and then.
  bool solve(core::Stopwatch& watch, int threads, const std::function<void()>& tick = {});
  /// Solves the table on a device. Returns PumpkinAnswer::End::too_large if the device's memory is too small for the
  /// table. Throws DeviceError if the device fails.
  PumpkinAnswer::End solve_on(Accelerator& device, core::Stopwatch& watch, const std::function<void()>& tick = {});
  /// Returns the dominant schedule of the part between source and sink. Requires that the table is solved.
  Chain chain(Ropes& ropes) const;

 private:
  using Solve = std::function<PumpkinAnswer(const PumpkinProblem&, const PumpkinOptions&)>;
  PumpkinAnswer::End solve(core::Stopwatch& watch, const std::function<void()>& tick, std::int64_t chunk,
                           const Solve& solve);

  std::span<const PumpkinBranch> branches_;
  PumpkinProblem problem_;
  std::vector<std::vector<std::int32_t>> branches_of_kind_;
  std::int64_t states_ = 0, needed_bytes_ = 0;
  std::vector<std::uint8_t> order_;  ///< kinds in the order in which their branches start
};

}  // namespace cairn::solvers
