// Places blocks one by one (placer.h). A block is a group of buffers that share one offset. It consists of rectangles,
// each a range of steps and a range of addresses. A gap is a range of free addresses between placed rectangles.

#include "cairn/solvers/plan/internal/packing/placer.h"

#include <algorithm>
#include <limits>

namespace cairn::solvers::plan {

bool usable_hint(const Block& block) {
  // Larger hints are ignored, because a hint plus the sizes of all blocks must not overflow.
  constexpr std::int64_t kMost = std::int64_t{1} << 61;
  return block.hint && *block.hint >= 0 && *block.hint <= kMost && *block.hint % block.alignment == 0;
}

TimeIndex::TimeIndex(std::int64_t steps) : starting_(steps + 1) {
  while (width_ <= steps) width_ *= 2;
  covering_.resize(2 * width_);
}

void TimeIndex::clear() {
  for (auto& list : covering_) list.clear();
  for (auto& list : starting_) list.clear();
}

void TimeIndex::insert(const Rectangle& rectangle, std::int32_t id) {
  starting_[rectangle.first].push_back(id);
  for (std::int64_t l = rectangle.first + width_, r = rectangle.last + 1 + width_; l < r; l /= 2, r /= 2) {
    if (l & 1) covering_[l++].push_back(id);
    if (r & 1) covering_[--r].push_back(id);
  }
}

Placer::Placer(const Instance& instance, double conflicts, core::Stopwatch& watch)
    : instance_(instance), watch_(watch) {
  const auto rectangles = static_cast<double>(instance.rectangles.size());
  if (16 * conflicts < rectangles * rectangles) index_.emplace(instance.steps);
  for (const core::AddressRange& range : instance.forbidden)
    forbidden_.push_back({range.lower, range.upper, 0, instance.steps});
}

std::int64_t Placer::place(const std::vector<std::int32_t>& order, std::vector<std::int64_t>& offsets, Fit fit,
                           bool hints, bool may_stop) {
  fit_ = fit;
  if (index_) {
    index_->clear();
    placed_.resize(instance_.rectangles.size());
  } else {
    placed_ = forbidden_;
  }
  offsets.resize(instance_.blocks.size());
  std::int64_t height = 0;
  const auto put = [&](std::int32_t b, std::int64_t offset) {
    const Block& block = instance_.blocks[b];
    offsets[b] = offset;
    for (const Rectangle& p : instance_.of(block)) {
      insert(p, offset);
      height = std::max(height, offset + p.size);
    }
  };
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(instance_.blocks.size()); ++b) {
    if (instance_.blocks[b].fixed) put(b, *instance_.blocks[b].fixed);
  }
  for (const std::int32_t b : order) {
    if (may_stop && watch_.passed()) return kStopped;
    const Block& block = instance_.blocks[b];
    if (hints && usable_hint(block) && free_at(block, *block.hint)) {
      put(b, *block.hint);
    } else {
      put(b, block.count == 1 ? gap_for(instance_.of(block).front(), block.alignment) : lowest_for(block));
    }
  }
  return height;
}

/// Records a rectangle as placed. A rectangle without bytes conflicts with no other rectangle.
void Placer::insert(const Rectangle& rectangle, std::int64_t offset) {
  if (rectangle.size == 0) return;
  const Placed placed{offset, offset + rectangle.size, rectangle.first, rectangle.last};
  if (index_) {
    const auto id = static_cast<std::int32_t>(&rectangle - instance_.rectangles.data());
    placed_[id] = placed;
    index_->insert(rectangle, id);
    return;
  }
  const auto at = std::upper_bound(placed_.begin(), placed_.end(), offset,
                                   [](std::int64_t value, const Placed& p) { return value < p.offset; });
  placed_.insert(at, placed);
}

/// Calls visit() for the forbidden addresses, and for the placed rectangles that are live at some step of `rectangle`.
/// If `sorted` is true, the calls are in ascending order of offsets.
template <class Visit>
void Placer::conflicts(const Rectangle& rectangle, const Visit& visit, bool sorted) {
  if (!index_) {
    watch_.charge(static_cast<std::int64_t>(placed_.size()));
    for (const Placed& p : placed_) {
      if (p.first <= rectangle.last && p.last >= rectangle.first) visit(p);
    }
    return;
  }
  watch_.charge(rectangle.last - rectangle.first + 1);
  found_ = forbidden_;
  index_->visit(rectangle, [&](std::int32_t id) { found_.push_back(placed_[id]); });
  watch_.charge(kLookup * static_cast<std::int64_t>(found_.size()));
  if (sorted) {
    std::sort(found_.begin(), found_.end(), [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
  }
  for (const Placed& p : found_) visit(p);
}

bool Placer::free_at(const Block& block, std::int64_t offset) {
  bool free = true;
  for (const Rectangle& rectangle : instance_.of(block)) {
    if (rectangle.size == 0) continue;
    conflicts(
        rectangle, [&](const Placed& p) { free = free && (offset >= p.end || offset + rectangle.size <= p.offset); },
        false);
  }
  return free;
}

/// Returns the lowest offset in the smallest gap that is large enough for the rectangle, or in the lowest such gap
/// under Fit::lowest. If no gap is large enough, returns the lowest offset above all rectangles that are live at the
/// same time.
std::int64_t Placer::gap_for(const Rectangle& rectangle, std::int64_t alignment) {
  if (rectangle.size == 0) return 0;
  std::int64_t top = 0, best = -1, best_gap = std::numeric_limits<std::int64_t>::max();
  conflicts(
      rectangle,
      [&](const Placed& p) {
        const std::int64_t gap = p.offset - top;
        if (gap >= rectangle.size && (fit_ == Fit::best ? gap < best_gap : best < 0)) {
          best = top;
          best_gap = gap;
        }
        if (p.end > top) top = core::align_up(p.end, alignment);
      },
      true);
  return best >= 0 ? best : top;
}

std::int64_t Placer::lowest_for(const Block& block) {
  blocked_.clear();
  for (const Rectangle& rectangle : instance_.of(block)) {
    if (rectangle.size == 0) continue;
    conflicts(
        rectangle, [&](const Placed& p) { blocked_.emplace_back(p.offset - rectangle.size, p.end); }, false);
  }
  std::sort(blocked_.begin(), blocked_.end());
  std::int64_t offset = 0;
  for (const auto& [above, below] : blocked_) {
    if (above >= offset) break;
    if (below > offset) offset = core::align_up(below, block.alignment);
  }
  return offset;
}

}  // namespace cairn::solvers::plan
