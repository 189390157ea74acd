#include "cairn/solvers/plan/internal/packing/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/solvers/plan/internal/packing/address_set.h"

namespace cairn::solvers::plan {
namespace {

struct Fixed {
  const Rectangle* rectangle;
  std::int64_t offset;
  std::int32_t block;

  std::int64_t end() const { return offset + rectangle->size; }
};

std::int32_t buffer_of(const PlanProblem& problem, const Instance& instance, const Fixed& fixed) {
  std::int32_t found = -1;
  const std::vector<core::Buffer> buffers = timed_buffers(problem);
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const core::Buffer& buffer = buffers[b];
    if (instance.block_of[b] != fixed.block) continue;
    if (buffer.first > fixed.rectangle->first || buffer.last + instance.overlap_steps < fixed.rectangle->last) continue;
    if (found < 0 || buffer.first > buffers[found].first) found = static_cast<std::int32_t>(b);
  }
  return found;
}

}  // namespace

void check_fixed(const PlanProblem& problem, const Instance& instance) {
  std::vector<Fixed> by_start;
  for (std::size_t b = 0; b < instance.blocks.size(); ++b) {
    const Block& block = instance.blocks[b];
    if (!block.fixed) continue;
    for (const Rectangle& rectangle : instance.of(block)) {
      if (rectangle.size > 0) by_start.push_back({&rectangle, *block.fixed, static_cast<std::int32_t>(b)});
    }
  }
  for (const Fixed& fixed : by_start) {
    if (!overlap(instance.forbidden, fixed.offset, fixed.end())) continue;
    const auto range = first_above(instance.forbidden, fixed.offset);
    throw core::InputError(fmt::format("buffer {} is fixed at bytes {} to {}, but {} to {} are forbidden",
                                       buffer_of(problem, instance, fixed), fixed.offset, fixed.end(), range->lower,
                                       range->upper));
  }
  std::vector<Fixed> by_end = by_start;
  std::sort(by_start.begin(), by_start.end(),
            [](const Fixed& a, const Fixed& b) { return a.rectangle->first < b.rectangle->first; });
  std::sort(by_end.begin(), by_end.end(),
            [](const Fixed& a, const Fixed& b) { return a.rectangle->last < b.rectangle->last; });
  // Live rectangles at the current step, by offset. Live rectangles do not overlap, except for two rectangles of one
  // block at the step that they share.
  std::multimap<std::int64_t, const Fixed*> live;
  auto ended = by_end.begin();
  for (const Fixed& fixed : by_start) {
    for (; ended->rectangle->last < fixed.rectangle->first; ++ended) {
      const auto [from, to] = live.equal_range(ended->offset);
      live.erase(
          std::find_if(from, to, [&](const auto& entry) { return entry.second->rectangle == ended->rectangle; }));
    }
    auto near = live.lower_bound(fixed.offset);
    if (near != live.begin()) near = live.lower_bound(std::prev(near)->first);
    for (; near != live.end() && near->first < fixed.end(); ++near) {
      const Fixed& other = *near->second;
      if (other.end() <= fixed.offset || other.block == fixed.block) continue;
      const auto [low, high] = std::minmax({buffer_of(problem, instance, other), buffer_of(problem, instance, fixed)});
      throw core::InputError(fmt::format("buffers {} and {} are fixed at offsets that overlap", low, high));
    }
    live.emplace(fixed.offset, &fixed);
  }
}

std::int64_t height_bound(const Instance& instance, std::int64_t max_live) {
  std::int64_t height = max_live;
  for (const core::AddressRange& range : instance.forbidden) {
    if (range.lower < height) height += range.upper - range.lower;
  }
  for (const Block& block : instance.blocks) {
    if (block.fixed) height = std::max(height, *block.fixed + instance.bounds(block).size);
  }
  return height;
}

}  // namespace cairn::solvers::plan
