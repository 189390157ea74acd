#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

namespace cairn::core {

/// One rectangle of a plan: `size` bytes at `offset` during the closed range of steps [first, last]. It holds an output
/// of a node, or a node's scratch.
struct Buffer {
  NodeId node = kNoNode;
  std::int64_t first = 0;
  std::int64_t last = 0;  ///< last step, inclusive; for the last occurrence of a kept output, the number of steps
  std::int64_t size = 0;  ///< bytes, rounded up to the alignment
  std::int64_t offset = 0;
  bool scratch = false;     ///< whether the buffer is the node's scratch while the node runs, and not an output
  OutputRef alias_of;       ///< output whose buffer this one takes over and overwrites at step `first`
  std::int32_t output = 0;  ///< index among the node's outputs; 0 for scratch
  /// Index of the evict that copies this buffer to the host, and of the fetch that fills this buffer from the host; -1
  /// if there is none. With an evict, the buffer stays in memory until step `last` + 1 begins, because the copy takes
  /// time; with a fetch, it is in memory from the end of step `first` on.
  std::int32_t evict = -1;
  std::int32_t fetch = -1;

  /// First and last moment at which the buffer is in memory. Moment 2i is step i, and moment 2i + 1 lies between steps
  /// i and i + 1. Two buffers that share a moment must not overlap.
  std::int64_t first_moment() const { return 2 * first + (fetch >= 0 ? 1 : 0); }
  std::int64_t last_moment() const { return 2 * last + (evict >= 0 ? 1 : 0); }
  bool operator==(const Buffer&) const = default;
};

/// The memory plan of one schedule: the position of every tensor in the arena, which is the one block of memory that
/// holds all scheduled tensors. A plan may leave a gap behind every buffer, called a guard, in which writes beyond the
/// buffer can be detected.
struct Plan {
  std::int64_t bytes = 0;  ///< height of the arena, which is the maximum of offset + size over the buffers
  /// Largest number of bytes that live buffers take at one step, with rounding and guards. `bytes` cannot be less.
  std::int64_t lower_bound = 0;
  std::int64_t alignment = 1;
  /// In the plan of a schedule, the buffers are ordered by `first`, but buffers that fetches fill come last. Outputs of
  /// size 0 have no buffer.
  std::vector<Buffer> buffers;
  /// The last three fields plan the values that the schedule copies to the host, in an arena in host memory. Buffer i
  /// of host_buffers holds the copy that evict i makes, from the end of step `first` until step `last` + 1 begins.
  std::int64_t host_bytes = 0;
  std::int64_t host_lower_bound = 0;
  std::vector<Buffer> host_buffers;
};

/// Returns the offset of each of the plan's buffers. A schedule and these offsets determine a plan without guards.
inline std::vector<std::int64_t> offsets_of(const Plan& plan) {
  std::vector<std::int64_t> offsets;
  offsets.reserve(plan.buffers.size());
  for (const Buffer& buffer : plan.buffers) offsets.push_back(buffer.offset);
  return offsets;
}

/// A half-open range of addresses in bytes, [lower, upper).
struct AddressRange {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  auto operator<=>(const AddressRange&) const = default;
};

/// A closed range of steps.
struct StepRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool operator==(const StepRange&) const = default;
};

/// A buffer of an allocation problem that is given without a graph, as in MiniMalloc's problems. The lifetime is
/// half-open; sizes are in bytes.
struct BufferSpec {
  std::string id;
  std::int64_t lower = 0;  ///< begin of the lifetime, inclusive
  std::int64_t upper = 0;  ///< end of the lifetime, exclusive
  std::int64_t size = 0;
  std::int64_t alignment = 1;          ///< the offset must be a multiple of this number of bytes
  std::optional<std::int64_t> offset;  ///< fixed offset, at which the buffer must lie
  std::optional<std::int64_t> hint;    ///< offset that the planner tries first
  /// Half-open ranges of time [first, second) in which other buffers may use this buffer's bytes. The ranges ascend and
  /// lie strictly inside the lifetime.
  std::vector<std::pair<std::int64_t, std::int64_t>> gaps;
  bool operator==(const BufferSpec&) const = default;
};

/// Returns what is wrong with a plan, or an empty text if nothing is wrong. Checks that the buffers match the
/// schedule's lifetimes, scratch and copies on the host. Also checks that the buffers are aligned and inside the arena,
/// and that no two buffers that are live at the same step overlap. Only an in-place output and the input that it
/// overwrites may overlap. Shares no code with the planner, so that no error in shared code can hide an error of the
/// planner. Takes O(b log b) time for b buffers, and the time of lifetimes().
std::string check_plan(const Graph& graph, const Schedule& schedule, const Plan& plan);
/// Works like check_plan(), but runs only the checks that need no graph: those of offsets, sizes and times.
std::string check_overlaps(const Plan& plan);

/// Returns what is wrong with a plan for `specs`, or an empty text if nothing is wrong. In such a plan, `node` of a
/// buffer is its index in `specs`, and `last` is upper - 1. Checks that
/// - every buffer occurs once, is aligned, and lies at its fixed offset if it has one;
/// - no buffer lies on forbidden addresses, or overlaps another buffer that holds bytes at the same time;
/// - the plan's `bytes` are the end of its highest buffer.
/// An empty forbidden range is a wall, an address that no buffer may cross. A buffer includes the `guard_bytes` behind
/// it. Shares no code with the planner. O(n log n) for n buffers, gaps and forbidden ranges together.
std::string check_specs(const std::vector<BufferSpec>& specs, std::span<const AddressRange> forbidden, const Plan& plan,
                        std::int64_t guard_bytes = 0);
/// Returns a text that says why no plan can use all fixed offsets, and that names the buffers. Returns an empty text if
/// there is no such reason. The reason is one of these:
/// - two buffers overlap;
/// - a buffer lies on forbidden addresses, is not aligned, or ends above the capacity.
/// Sizes are rounded up to `alignment`, which applies to every buffer.
std::string check_fixed_offsets(const std::vector<BufferSpec>& specs, std::span<const AddressRange> forbidden,
                                std::int64_t alignment = 1, std::optional<std::int64_t> capacity = std::nullopt);

}  // namespace cairn::core
