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

/// One rectangle of the plan: `size` bytes at `offset` during the closed range of steps [first, last]. It holds an
/// output of a node, or a node's scratch.
struct Buffer {
  NodeId node = kNoNode;
  std::int64_t first = 0;
  std::int64_t last = 0;  ///< inclusive; the number of steps for what is kept
  std::int64_t size = 0;  ///< rounded up to the alignment
  std::int64_t offset = 0;
  bool scratch = false;     ///< the node's scratch while it runs, not an output
  OutputRef alias_of;       ///< shares the storage of this output's buffer, which it overwrites at `first`
  std::int32_t output = 0;  ///< which one of the node's outputs; 0 for scratch
  bool operator==(const Buffer&) const = default;
};

/// Where every tensor of one schedule lives.
struct Plan {
  std::int64_t bytes = 0;        ///< height of the arena: max over buffers of offset + size
  std::int64_t lower_bound = 0;  ///< max-live: bytes live at once at the worst step, rounding and guards included
  std::int64_t alignment = 1;
  std::vector<Buffer> buffers;  ///< of a schedule: in the order of `first`, none for zero-sized outputs
};

/// Addresses in bytes, [lower, upper).
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

/// A buffer of a free-standing allocation problem (MiniMalloc's): half-open lifetimes, sizes in bytes.
struct BufferSpec {
  std::string id;
  std::int64_t lower = 0;  ///< inclusive
  std::int64_t upper = 0;  ///< exclusive
  std::int64_t size = 0;
  std::int64_t alignment = 1;          ///< its offset is a multiple of this
  std::optional<std::int64_t> offset;  ///< it lies there and nowhere else
  std::optional<std::int64_t> hint;    ///< an offset to try first
  /// Half-open times [first, second) strictly inside its lifetime, ascending, during which its bytes are free for
  /// others.
  std::vector<std::pair<std::int64_t, std::int64_t>> gaps;
  bool operator==(const BufferSpec&) const = default;
};

/// What is wrong with a plan, or empty: buffers are the schedule's lifetimes and scratch, aligned, inside the arena,
/// and no two that are live at once overlap, but for in-place pairs. Shares no code with the planner. O(b log b +
/// overlaps).
std::string check_plan(const Graph& graph, const Schedule& schedule, const Plan& plan);
/// The geometric part alone.
std::string check_overlaps(const Plan& plan);

/// What is wrong with a plan of a free-standing problem, or empty: every buffer is there once (`node` is its place in
/// `specs`, `last` is upper - 1), at its fixed offset where it has one, aligned, off the forbidden addresses and off
/// those of every buffer that holds bytes at the same time, and the plan is as high as they are. An empty forbidden
/// range is a wall not to lie across; behind every buffer, `guard_bytes` belong to it. Shares no code with the planner.
/// O((b + gaps + forbidden) log).
std::string check_specs(const std::vector<BufferSpec>& specs, std::span<const AddressRange> forbidden, const Plan& plan,
                        std::int64_t guard_bytes = 0);
/// What contradicts itself in the fixed offsets, or empty: two buffers that overlap, one on forbidden addresses, not
/// aligned, or above the capacity. Sizes are rounded up to the alignment, which is every buffer's. Names the buffers.
std::string check_fixed_offsets(const std::vector<BufferSpec>& specs, std::span<const AddressRange> forbidden,
                                std::int64_t alignment = 1, std::optional<std::int64_t> capacity = std::nullopt);

}  // namespace cairn::core
