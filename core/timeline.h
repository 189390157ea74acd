#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/link.h"
#include "cairn/core/schedule.h"

/// When the steps and the copies of a schedule run. Times are in the graph's unit of cost, from the begin of step 0.
namespace cairn::core {

/// A time span, half-open.
struct Span {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Span&) const = default;
};

/// The times of a schedule. The rules:
/// - Steps run one after another. A step begins when the step before it has ended and every transfer whose `finish` is
///   this step or an earlier one is over.
/// - A copy takes copy_cost(). It begins when its step `start` has ended, its link is free and, for a fetch, its evict
///   is over.
/// - Evicts and fetches have links of their own if the link is duplex, and share one link otherwise.
/// - A link carries its copies in the order of `start`. If several copies start after the same step, the order is that
///   of `finish`, then evicts before fetches, then that of their indices.
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
/// Returns the makespan of a valid schedule. As timeline().
std::int64_t makespan(const Graph& graph, const Schedule& schedule, const Link& link);

/// The bytes that the copies of a schedule hold on the host. The schedule must be valid.
struct HostCopy {
  std::int32_t evict = -1;  ///< index in Transfers::evicts
  std::int64_t first = 0;   ///< step after whose end the copy starts
  std::int64_t last = 0;    ///< the host's bytes are held until step last + 1 begins
  std::int64_t bytes = 0;
  bool operator==(const HostCopy&) const = default;
};
/// Returns one entry per evict, in their order. O(transfers).
std::vector<HostCopy> host_copies(const Graph& graph, const Schedule& schedule);
/// Returns the bytes on the host between steps i and i + 1, for every step i. O(steps + transfers).
std::vector<std::int64_t> host_profile(const Graph& graph, const Schedule& schedule);
/// Returns the largest number of host_profile(), or 0.
std::int64_t host_peak(const Graph& graph, const Schedule& schedule);
/// Returns the bytes that all copies move, of evicts and fetches together. O(transfers).
std::int64_t moved_bytes(const Graph& graph, const Schedule& schedule);

}  // namespace cairn::core
