#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cairn/solvers/plan/planner.h"

/// Holds a PlanProblem in the form that the planning algorithms use. A block is a group of buffers that must share one
/// offset. It consists of rectangles, each a range of steps and a range of addresses.
namespace cairn::solvers::plan {

/// A range of steps, and the number of bytes that a block uses during these steps, counted from the block's offset.
struct Rectangle {
  std::int64_t first = 0, last = 0;  ///< closed range of steps
  std::int64_t size = 0;             ///< aligned; guard bytes included
};

/// Calls `change(step, bytes)` for each change of the memory that the rectangles of a block use; `bytes` is negative if
/// the memory falls. At a step that two consecutive rectangles share, only the larger one counts, because both have the
/// same offset.
template <class Change>
void for_each_change(std::span<const Rectangle> rectangles, const Change& change) {
  const Rectangle* before = nullptr;
  for (const Rectangle& rectangle : rectangles) {
    change(rectangle.first, rectangle.size);
    change(rectangle.last + 1, -rectangle.size);
    if (before != nullptr && before->last == rectangle.first) {
      const std::int64_t shared = std::min(before->size, rectangle.size);
      change(rectangle.first, -shared);
      change(rectangle.first + 1, shared);
    }
    before = &rectangle;
  }
}

/// Describes a group of buffers that share one offset. Usually a block is a single buffer, with one rectangle, or
/// several rectangles if the buffer has gaps. A buffer that takes over the storage of another buffer belongs to the
/// same block. The rectangles of a block are consecutive in Instance::rectangles and ordered by time. Consecutive
/// rectangles share at most one step, the one at which the later buffer takes over.
struct Block {
  std::int32_t first_rectangle = 0;
  std::int32_t count = 0;
  std::int64_t alignment = 1;         ///< the offset is a multiple of this number of bytes
  std::optional<std::int64_t> fixed;  ///< the only offset allowed; a multiple of the alignment
  std::optional<std::int64_t> hint;
};

/// Returns the problem's buffers with the times that the planner uses. These times are steps or, if the buffers of the
/// problem have transfers, moments (core::Buffer::first_moment).
std::vector<core::Buffer> timed_buffers(const PlanProblem& problem);

struct Instance {
  std::vector<Rectangle> rectangles;
  std::vector<Block> blocks;
  std::vector<std::int32_t> block_of;
  /// Addresses that no block may use: disjoint ranges in ascending order, which do not touch each other.
  std::vector<core::AddressRange> forbidden;
  std::int64_t steps = 0;
  std::int64_t overlap_steps = 0;  ///< PlanOptions::overlap_steps, by which the rectangles are longer than the buffers

  /// Builds the instance. Throws InputError on a problem that is malformed according to planner.h. Takes O(b log b)
  /// time for b buffers.
  Instance(const PlanProblem& problem, const PlanOptions& options);

  std::span<const Rectangle> of(const Block& b) const {
    return {rectangles.data() + b.first_rectangle, static_cast<std::size_t>(b.count)};
  }
  /// Returns the smallest rectangle that contains all rectangles of a block.
  Rectangle bounds(const Block& b) const;

  /// Returns for each step the bytes in use.
  std::vector<std::int64_t> load() const;
};

}  // namespace cairn::solvers::plan
