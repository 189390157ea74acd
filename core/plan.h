#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

namespace cairn::core {

/// One rectangle of the plan: `size` bytes at `offset` during the closed range of steps [first, last].
struct Buffer {
  NodeId node = kNoNode;
  std::int64_t first = 0;
  std::int64_t last = 0;  ///< inclusive; the number of steps for what is kept
  std::int64_t size = 0;  ///< rounded up to the alignment
  std::int64_t offset = 0;
  bool scratch = false;       ///< the node's scratch while it runs, not its output
  NodeId alias_of = kNoNode;  ///< shares the storage of this node's buffer, which it overwrites at `first`
  bool operator==(const Buffer&) const = default;
};

/// Where every tensor of one schedule lives.
struct Plan {
  std::int64_t bytes = 0;        ///< height of the arena: max over buffers of offset + size
  std::int64_t lower_bound = 0;  ///< max-live: bytes live at once at the worst step, rounding and guards included
  std::int64_t alignment = 1;
  std::vector<Buffer> buffers;  ///< in the order of `first`; zero-sized outputs have none
};

struct PlanOptions {
  std::int64_t alignment =
      1;  ///< bytes, up to 2^30; offsets and sizes are multiples of it. 256 where it is to be executed
  std::int64_t guard_bytes = 0;  ///< unused bytes behind every buffer, for the arena's sentinels
  /// Comparisons of buffers after which no further order is tried, about a second's worth. The first greedy order is
  /// always placed whole; 0 asks for no more than that.
  std::int64_t work = 600'000'000;
};

/// Static memory planning: greedy best-fit over several orders (by size, lifetime, area, conflicts, start), the lowest
/// kept, then a local search over orders that moves the buffers at the top to the front. Occurrences of in-place nodes
/// share their input's storage where that input is not used again. O(orders * b * (conflicts + log b)). Deterministic.
/// Throws InputError on an invalid schedule, an alignment or guard out of range, or sizes that add up to over 2^62.
Plan plan_memory(const Graph& graph, const Schedule& schedule, const PlanOptions& options = {});

/// A free-standing allocation problem (MiniMalloc's): half-open lifetimes, sizes in bytes.
struct BufferSpec {
  std::string id;
  std::int64_t lower = 0;  ///< inclusive
  std::int64_t upper = 0;  ///< exclusive
  std::int64_t size = 0;
};
/// Throws InputError on lower >= upper, a negative size, or sizes that add up to over 2^62. Offsets in the order of
/// `specs`; `Plan::buffers[i].node` is i and `last` = upper - 1.
Plan plan_buffers(const std::vector<BufferSpec>& specs, const PlanOptions& options = {});

/// What is wrong with a plan, or empty: buffers are the schedule's lifetimes and scratch, aligned, inside the arena,
/// and no two that are live at once overlap, but for in-place pairs. Shares no code with the planner. O(b log b +
/// overlaps).
std::string check_plan(const Graph& graph, const Schedule& schedule, const Plan& plan);
/// The geometric part alone.
std::string check_overlaps(const Plan& plan);

}  // namespace cairn::core
