#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cairn/solvers/plan/planner.h"

/// A PlanProblem in the form that the planning algorithms use.
namespace cairn::solvers::plan {

/// A range of steps, and the number of bytes that a block holds during these steps, from the block's offset on.
struct Rectangle {
  std::int64_t first = 0, last = 0;  ///< closed range of steps
  std::int64_t size = 0;             ///< aligned; guard bytes included
};

/// Calls `change(step, bytes)` for each rise or fall of the memory that a block's rectangles use, in order of time. At
/// the step at which a rectangle takes over from the previous one, both are live at the same address, so only the
/// larger one counts.
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

/// Buffers that share one offset. Usually a block is one buffer, which gaps may divide into several rectangles.
/// In-place buffers that take over from one another also form one block. The rectangles are consecutive in
/// Instance::rectangles and ordered by time. Two neighbouring rectangles share at most one step, at which the second
/// takes over.
struct Block {
  std::int32_t first_rectangle = 0;
  std::int32_t count = 0;
  std::int64_t alignment = 1;         ///< divides the offset
  std::optional<std::int64_t> fixed;  ///< the only offset allowed, if there is one; a multiple of the alignment
  std::optional<std::int64_t> hint;   ///< offset to try first
};

struct Instance {
  std::vector<Rectangle> rectangles;
  std::vector<Block> blocks;
  std::vector<std::int32_t> block_of;  ///< for each buffer, the block that contains it
  /// Addresses that no block may touch: disjoint ranges in ascending order. Ranges that touch each other are merged.
  std::vector<core::AddressRange> forbidden;
  std::int64_t steps = 0;  ///< upper bound of every `last`

  /// Builds the instance. Throws InputError on a problem that is malformed according to planner.h. O(b log b).
  Instance(const PlanProblem& problem, const PlanOptions& options);

  std::span<const Rectangle> of(const Block& b) const {
    return {rectangles.data() + b.first_rectangle, static_cast<std::size_t>(b.count)};
  }
  const Rectangle* begin(const Block& b) const { return rectangles.data() + b.first_rectangle; }
  const Rectangle* end(const Block& b) const { return begin(b) + b.count; }

  /// Returns the number of live bytes at each step.
  std::vector<std::int64_t> load() const;
};

}  // namespace cairn::solvers::plan
