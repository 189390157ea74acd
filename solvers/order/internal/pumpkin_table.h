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

/// A chain between a source and a sink. Its first step, the key, reads the source; the rest is a path of its own.
struct PumpkinBranch {
  ChainSegment key;
  Chain rest;
};

/// The dynamic program of Theorem 8.2 (device/pumpkin.h) over the sets of branches. Branches of equal profile are one
/// kind, so there is one state for each multiset: 2^d for d different branches.
class PumpkinTable {
 public:
  /// Builds the problem. The source's `released` bytes are freed once every branch's first step has run.
  PumpkinTable(std::span<const PumpkinBranch> branches, std::int64_t released);

  /// Whether the table is large enough to be worth a device.
  bool is_large() const { return states_ >= std::int64_t{1} << 16; }
  /// Most bytes that solve() can need on the host; the largest int64 if the number is too large to be computed.
  std::int64_t needed_bytes() const { return needed_bytes_; }

  /// Solves the table. Returns false if the watch expired first. Calls `tick`, if given, now and then.
  bool solve(core::Stopwatch& watch, int threads, const std::function<void()>& tick = {});
  /// Solves the table on a device, whose memory may be too small for it. Throws DeviceError if the device fails.
  PumpkinAnswer::End solve_on(Accelerator& device, core::Stopwatch& watch, const std::function<void()>& tick = {});
  /// Returns the dominant schedule of the part between source and sink, after solve().
  Chain chain(Ropes& ropes) const;

 private:
  using Solve = std::function<PumpkinAnswer(const PumpkinProblem&, const PumpkinOptions&)>;
  PumpkinAnswer::End solve(core::Stopwatch& watch, const std::function<void()>& tick, std::int64_t chunk,
                           const Solve& solve);

  std::span<const PumpkinBranch> branches_;
  PumpkinProblem problem_;
  std::vector<std::vector<std::int32_t>> branches_of_kind_;
  std::int64_t states_ = 0, needed_bytes_ = 0;
  std::vector<std::uint8_t> order_;  ///< kinds in the order in which they go first
};

}  // namespace cairn::solvers
