#include "cairn/solvers/plan/internal/occupancy.h"

#include <algorithm>

namespace cairn::solvers::plan {

Occupancy::Occupancy(const std::vector<std::int64_t>& times) {
  for (std::size_t i = kSectionTimes; i < times.size(); i += kSectionTimes) {
    if (starts_.empty() || starts_.back() < times[i]) starts_.push_back(times[i]);
  }
  while (width_ < starts_.size() + 1) width_ *= 2;
  nodes_.resize(2 * width_);
  partial_.resize(starts_.size() + 1);
}

std::size_t Occupancy::section_of(std::int64_t time) const {
  return static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), time) - starts_.begin());
}

template <class Visit>
void Occupancy::for_each_partial(const Rectangle& rectangle, const Visit& visit) const {
  const std::size_t first = section_of(rectangle.first), last = section_of(rectangle.last);
  for (const std::size_t section : {first, last}) {
    for (const Partial& p : partial_[section]) {
      if (p.first <= rectangle.last && p.last >= rectangle.first) visit(p);
    }
    if (first == last) break;
  }
}

template <class Between, class Above>
void Occupancy::climb(const Rectangle& rectangle, const Between& between, const Above& above) const {
  std::size_t l = width_ + section_of(rectangle.first), r = width_ + section_of(rectangle.last);
  while (true) {
    above(l);
    if (l != r) above(r);
    if (l == 1) return;
    if (l != r && l + 1 != r) {
      if (l % 2 == 0) between(l + 1);
      if (r % 2 == 1) between(r - 1);
    }
    l /= 2;
    r /= 2;
  }
}

void Occupancy::insert(const Rectangle& rectangle, std::int64_t offset) {
  if (rectangle.size == 0) return;
  const std::int64_t upper = offset + rectangle.size;
  const std::size_t first = section_of(rectangle.first), last = section_of(rectangle.last);
  const Partial partial{rectangle.first, rectangle.last, offset, upper};
  partial_[first].push_back(partial);
  if (last != first) partial_[last].push_back(partial);
  climb(
      rectangle,
      [&](std::size_t n) {
        nodes_[n].all_along.add(offset, upper);
        nodes_[n].used.add(offset, upper);
      },
      [&](std::size_t n) { nodes_[n].used.add(offset, upper); });
}

std::int64_t Occupancy::lowest_free(std::span<const Rectangle> rectangles, std::int64_t alignment,
                                    const std::vector<core::AddressRange>& forbidden, std::int64_t limit) const {
  struct Cursor {
    const core::AddressRange *at, *end;  // `at`: the first range that can end above the current offset
    std::int64_t size;
  };
  std::vector<Cursor> cursors;
  const auto look_at = [&](const std::vector<core::AddressRange>& ranges, std::int64_t size) {
    if (!ranges.empty()) cursors.push_back({ranges.data(), ranges.data() + ranges.size(), size});
  };
  std::int64_t size = 0;
  std::vector<AddressSet> partial(rectangles.size());
  for (std::size_t i = 0; i < rectangles.size(); ++i) {
    const Rectangle& rectangle = rectangles[i];
    if (rectangle.size == 0) continue;
    size = std::max(size, rectangle.size);
    for_each_partial(rectangle, [&](const Partial& p) { partial[i].add(p.lower, p.upper); });
    look_at(partial[i].ranges(), rectangle.size);
    climb(
        rectangle, [&](std::size_t n) { look_at(nodes_[n].used.ranges(), rectangle.size); },
        [&](std::size_t n) { look_at(nodes_[n].all_along.ranges(), rectangle.size); });
  }
  if (size > 0) look_at(forbidden, size);
  std::int64_t offset = 0;
  std::size_t in_a_row = 0;  // number of consecutive cursors that allow the current offset
  for (std::size_t i = 0; in_a_row < cursors.size(); i = i + 1 == cursors.size() ? 0 : i + 1) {
    Cursor& c = cursors[i];
    ++in_a_row;
    const auto above = [&](const core::AddressRange& r) { return r.upper <= offset; };
    if (c.at != c.end && above(*c.at)) c.at = std::partition_point(c.at + 1, c.end, above);
    while (c.at != c.end && c.at->lower < offset + c.size) {
      offset = core::align_up(std::max(offset, c.at->upper), alignment);
      if (offset > limit - size) return -1;
      while (c.at != c.end && above(*c.at)) ++c.at;
      in_a_row = 1;
    }
  }
  return offset <= limit - size ? offset : -1;
}

bool Occupancy::is_free(std::span<const Rectangle> rectangles, std::int64_t offset,
                        const std::vector<core::AddressRange>& forbidden) const {
  return std::all_of(rectangles.begin(), rectangles.end(), [&](const Rectangle& rectangle) {
    const std::int64_t end = offset + rectangle.size;
    return rectangle.size == 0 || (!overlap(forbidden, offset, end) && !meets(rectangle, offset));
  });
}

bool Occupancy::meets(const Rectangle& rectangle, std::int64_t offset) const {
  const std::int64_t end = offset + rectangle.size;
  bool met = false;
  for_each_partial(rectangle, [&](const Partial& p) { met = met || (p.lower < end && p.upper > offset); });
  climb(
      rectangle, [&](std::size_t n) { met = met || overlap(nodes_[n].used.ranges(), offset, end); },
      [&](std::size_t n) { met = met || overlap(nodes_[n].all_along.ranges(), offset, end); });
  return met;
}

}  // namespace cairn::solvers::plan
