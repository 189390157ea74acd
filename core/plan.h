#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

namespace cairn::core {

/// One rectangle of the plan, which takes `size` bytes at `offset` during the closed range of steps [first, last].
/// Holds an output of a node, or a node's scratch.
struct Buffer {
  NodeId node = kNoNode;
  std::int64_t first = 0;
  std::int64_t last = 0;  ///< last step, inclusive; the number of steps for a kept output
  std::int64_t size = 0;  ///< bytes, rounded up to the alignment
  std::int64_t offset = 0;
  bool scratch = false;     ///< the node's scratch while it runs, not an output
  OutputRef alias_of;       ///< output whose buffer this one shares and overwrites at `first`
  std::int32_t output = 0;  ///< index among the node's outputs; 0 for scratch
  bool operator==(const Buffer&) const = default;
};

/// The place of every tensor of one schedule.
struct Plan {
  std::int64_t bytes = 0;        ///< height of the arena: max over buffers of offset + size
  std::int64_t lower_bound = 0;  ///< max-live: most bytes live at one step, rounding and guards included
  std::int64_t alignment = 1;
  std::vector<Buffer> buffers;  ///< the buffers; a schedule's are ordered by `first`, and outputs of size 0 have none
};

/// A half-open range of addresses in bytes, [lower, upper).
struct AddressRange {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  bool operator==(const AddressRange&) const = default;
};

/// A closed range of steps.
struct StepRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool operator==(const StepRange&) const = default;
};

/// A buffer of a free-standing allocation problem, as in MiniMalloc. The lifetime is half-open, sizes are in bytes.
struct BufferSpec {
  std::string id;
  std::int64_t lower = 0;  ///< begin of the lifetime, inclusive
  std::int64_t upper = 0;  ///< end of the lifetime, exclusive
  std::int64_t size = 0;
  std::int64_t alignment = 1;          ///< number of bytes of which the offset is a multiple
  std::optional<std::int64_t> offset;  ///< fixed offset: the buffer must lie there
  std::optional<std::int64_t> hint;    ///< an offset to try first
  /// Half-open times [first, second) strictly inside the lifetime, ascending, during which others may use the bytes.
  std::vector<std::pair<std::int64_t, std::int64_t>> gaps;
  bool operator==(const BufferSpec&) const = default;
};

/// Says what is wrong with a plan; empty if nothing is. Checks that the buffers are the schedule's lifetimes and
/// scratch, that they are aligned and inside the arena, and that no two that are live at once overlap, except in-place
/// pairs. Shares no code with the planner. O(b log b + overlaps).
std::string check_plan(const Graph& graph, const Schedule& schedule, const Plan& plan);
/// Runs only the geometric checks of check_plan.
std::string check_overlaps(const Plan& plan);

/// Says what is wrong with a plan of a free-standing problem; empty if nothing is. Checks that every buffer occurs once
/// (`node` is its place in `specs`, `last` is upper - 1), lies at its fixed offset if it has one, is aligned, and
/// avoids the forbidden addresses and every buffer that holds bytes at the same time; and that the plan is as high as
/// its buffers. An empty forbidden range is a wall that no buffer may cross. The `guard_bytes` behind every buffer
/// belong to it. Shares no code with the planner. O((b + gaps + forbidden) log).
std::string check_specs(const std::vector<BufferSpec>& specs, std::span<const AddressRange> forbidden, const Plan& plan,
                        std::int64_t guard_bytes = 0);
/// Says how the fixed offsets contradict each other or the limits; empty if they do not: two buffers overlap, or one
/// lies on forbidden addresses, is not aligned, or ends above the capacity. Sizes are rounded up to the alignment,
/// which applies to every buffer. Names the buffers.
std::string check_fixed_offsets(const std::vector<BufferSpec>& specs, std::span<const AddressRange> forbidden,
                                std::int64_t alignment = 1, std::optional<std::int64_t> capacity = std::nullopt);

}  // namespace cairn::core
