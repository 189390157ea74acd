#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/link.h"
#include "cairn/core/schedule.h"

/// These functions compute when the steps and the copies of a schedule run. Times are in the graph's unit of cost, from
/// the begin of step 0.
namespace cairn::core {

/// A time span, half-open.
struct Span {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Span&) const = default;
};

/// The times at which the steps and copies of a schedule run. They follow these rules:
/// - Steps run one after another. A step begins when the step before it has ended and every transfer whose `finish` is
///   this step or an earlier one is over.
/// - A copy takes copy_cost(). It begins when its step `start` has ended, its link is free and, for a fetch, its evict
///   is over.
/// - If the link is duplex, evicts and fetches each have a link of their own. Otherwise, all copies share one link.
/// - A link carries its copies in the order of `start`. Copies that start after the same step are ordered by `finish`,
///   then evicts before fetches, then by index.
/// - The makespan is the time at which the last step and all fetches are over. Without transfers, it is the cost.
struct Timeline {
  std::int64_t makespan = 0;
  std::int64_t compute = 0;  ///< the cost, which is the sum of the costs of all steps
  std::int64_t waiting = 0;  ///< time in which no step runs; makespan = compute + waiting
  std::vector<Span> steps;
  std::vector<Span> evicts;
  std::vector<Span> fetches;
};

/// Computes the times of a valid schedule. O(steps + k log k) for k transfers. Times saturate at the largest int64.
Timeline timeline(const Graph& graph, const Schedule& schedule, const Link& link);
/// Returns the makespan of a valid schedule, in the time of timeline().
std::int64_t makespan(const Graph& graph, const Schedule& schedule, const Link& link);

/// The bytes that the copy of one evict holds on the host.
struct HostCopy {
  std::int32_t evict = -1;  ///< index in Transfers::evicts
  std::int64_t first = 0;   ///< step after whose end the copy starts
  std::int64_t last = 0;    ///< the host's bytes are held until step last + 1 begins
  std::int64_t bytes = 0;
  bool operator==(const HostCopy&) const = default;
};
/// Returns one entry per evict of a valid schedule, in the order of the evicts. O(transfers).
std::vector<HostCopy> host_copies(const Graph& graph, const Schedule& schedule);
/// Returns, for every step i of a valid schedule, the bytes on the host between steps i and i + 1. O(steps +
/// transfers).
std::vector<std::int64_t> host_profile(const Graph& graph, const Schedule& schedule);
/// Returns the largest number of host_profile(), or 0 if the schedule has no transfers.
std::int64_t host_peak(const Graph& graph, const Schedule& schedule);

}  // namespace cairn::core
