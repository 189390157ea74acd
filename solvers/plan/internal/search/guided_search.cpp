// Searches for a plan by guided local search (explained in guided_search.h). A block is a group of buffers that share
// one offset. Blocks may share bytes during the search; two blocks that are live at the same time form a pair, whose
// shared bytes count with the weight of the pair.

#include "cairn/solvers/plan/internal/search/guided_search.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

namespace cairn::solvers::plan {
namespace {

// Largest number of pairs, each counted twice; they take 100 MB, and 32 MB more for each search.
constexpr std::int64_t kMostPairs = 8'000'000;
constexpr std::int32_t kNoPlace = -1;

/// Visits the blocks in the order of their first steps. Calls visit(a, b, steps) for each pair of blocks that are live
/// at the same time, for `steps` steps. Ends early if visit() returns false.
template <class Visit>
void for_each_pair(const Instance& instance, const Visit& visit) {
  std::vector<Rectangle> bounds;
  for (const Block& block : instance.blocks) bounds.push_back(instance.bounds(block));
  std::vector<std::int32_t> order(bounds.size()), live;
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::int32_t b) { return bounds[b].first; });
  for (const std::int32_t b : order) {
    if (bounds[b].size == 0) continue;
    std::erase_if(live, [&](std::int32_t a) { return bounds[a].last < bounds[b].first; });
    for (const std::int32_t a : live) {
      if (!visit(a, b, std::min(bounds[a].last, bounds[b].last) - bounds[b].first + 1)) return;
    }
    live.push_back(b);
  }
}

/// Returns the greatest common divisor of all sizes and fixed offsets.
std::int64_t unit_of(const Instance& instance) {
  std::int64_t unit = 0;
  for (const Rectangle& rectangle : instance.rectangles) unit = std::gcd(unit, rectangle.size);
  for (const Block& block : instance.blocks) unit = std::gcd(unit, block.fixed.value_or(0));
  return std::max<std::int64_t>(unit, 1);
}

}  // namespace

bool GuidedSearch::takes(const Instance& instance) {
  if (!instance.forbidden.empty()) return false;
  const std::int64_t unit = unit_of(instance);
  for (const Block& block : instance.blocks) {
    if (unit % block.alignment != 0) return false;
  }
  const auto fixed_share = [&](const Block& a, const Block& b) {
    return a.fixed && b.fixed && *a.fixed < *b.fixed + instance.bounds(b).size &&
           *b.fixed < *a.fixed + instance.bounds(a).size;
  };
  std::int64_t count = 0;
  bool possible = true;
  for_each_pair(instance, [&](std::int32_t a, std::int32_t b, std::int64_t) {
    possible = (count += 2) <= kMostPairs && !fixed_share(instance.blocks[a], instance.blocks[b]);
    return possible;
  });
  return possible;
}

GuidedSearch::Problem::Problem(const Instance& instance)
    : unit(unit_of(instance)), fixed(instance.blocks.size(), 0), begins(instance.blocks.size() + 1, 0) {
  for (std::size_t b = 0; b < instance.blocks.size(); ++b) {
    sizes.push_back(instance.bounds(instance.blocks[b]).size);
    fixed[b] = instance.blocks[b].fixed.has_value() ? 1 : 0;
  }
  for_each_pair(instance, [&](std::int32_t a, std::int32_t b, std::int64_t) {
    ++begins[a + 1];
    ++begins[b + 1];
    return true;
  });
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  pairs.resize(static_cast<std::size_t>(begins.back()));
  std::vector<std::int32_t> next(begins.begin(), begins.end() - 1);
  for_each_pair(instance, [&](std::int32_t a, std::int32_t b, std::int64_t steps) {
    pairs[next[a]] = {b, next[b], static_cast<float>(steps)};
    pairs[next[b]] = {a, next[a], static_cast<float>(steps)};
    ++next[a];
    ++next[b];
    return true;
  });
}

GuidedSearch::GuidedSearch(const Problem& problem, std::int64_t capacity, int seed)
    : problem_(problem),
      capacity_(capacity),
      random_(static_cast<std::uint64_t>(seed) + 1),
      offsets_(problem.start),
      overlaps_(problem.sizes.size(), 0),
      places_(problem.sizes.size(), kNoPlace),
      is_open_(problem.sizes.size(), 0) {
  const auto blocks = static_cast<std::int32_t>(problem.sizes.size());
  for (std::int32_t b = 0; b < blocks; ++b) {
    if (problem.fixed[b] == 0)
      offsets_[b] = std::min(offsets_[b] / problem.unit * problem.unit, capacity - problem.sizes[b]);
  }
  for (const Problem::Pair& pair : problem.pairs) weights_.push_back(pair.steps);
  for (std::int32_t b = 0; b < blocks; ++b) {
    for (const Problem::Pair& pair : pairs(b)) {
      if (shared(b, offsets_[b], pair.other) > 0) add_overlaps(b, 1);
    }
    if (overlaps_[b] > 0) visit(b);
  }
}

/// Returns how many bytes block b, if it is placed at `offset`, shares with the block `other`.
std::int64_t GuidedSearch::shared(std::int32_t b, std::int64_t offset, std::int32_t other) const {
  const std::int64_t low = std::max(offset, offsets_[other]);
  const std::int64_t high = std::min(offset + problem_.sizes[b], offsets_[other] + problem_.sizes[other]);
  return std::max<std::int64_t>(0, high - low);
}

/// Returns the weighted sum of the bytes that block b, if it is placed at `offset`, shares with other blocks.
double GuidedSearch::sum(std::int32_t b, std::int64_t offset) const {
  double sum = 0;
  for (std::int32_t p = problem_.begins[b]; p < problem_.begins[b + 1]; ++p)
    sum += static_cast<double>(weights_[p]) * static_cast<double>(shared(b, offset, problem_.pairs[p].other));
  return sum;
}

/// Returns an offset of block b at which sum() is least. If there are several, returns a random one of them.
std::int64_t GuidedSearch::best_offset(std::int32_t b) {
  const std::int64_t size = problem_.sizes[b], top = capacity_ - size;
  bends_.clear();
  double slope = 0, value = sum(b, 0);
  const auto bend = [&](std::int64_t offset, double change) {
    if (offset <= 0) {
      slope += change;
    } else if (offset < top) {
      bends_.push_back({offset, change});
    }
  };
  // As its offset rises above `first`, block b shares more and more bytes with the other block, then all bytes of the
  // smaller of the two, then fewer and fewer, and none from `last` on.
  for (std::int32_t p = problem_.begins[b]; p < problem_.begins[b + 1]; ++p) {
    const std::int32_t other = problem_.pairs[p].other;
    const std::int64_t first = offsets_[other] - size, last = offsets_[other] + problem_.sizes[other];
    if (last <= 0 || first >= top) continue;
    const std::int64_t smaller = std::min(size, problem_.sizes[other]);
    const auto weight = static_cast<double>(weights_[p]);
    bend(first, weight);
    bend(first + smaller, -weight);
    bend(last - smaller, -weight);
    bend(last, weight);
  }
  std::ranges::sort(bends_);
  bends_.push_back({top, 0});
  std::int64_t at = 0, best = 0;
  double least = value;
  std::uint64_t equal = 1;
  for (const Bend& next : bends_) {
    if (next.offset > at) {
      value += slope * static_cast<double>(next.offset - at);
      at = next.offset;
      if (value < least) {
        least = value;
        best = at;
        equal = 1;
      } else if (value == least && random_.next() % ++equal == 0) {
        best = at;
      }
    }
    slope += next.change;
  }
  constexpr std::int64_t kOfPair = 2, kOfBend = 5;  // times measured in comparison with the exact search
  work_ += 4 + kOfPair * std::ssize(pairs(b)) + kOfBend * std::ssize(bends_);
  return best;
}

void GuidedSearch::add_overlaps(std::int32_t b, std::int32_t change) {
  const bool before = overlaps_[b] > 0;
  overlaps_[b] += change;
  if (before == (overlaps_[b] > 0)) return;
  if (!before) {
    places_[b] = static_cast<std::int32_t>(overlapping_.size());
    overlapping_.push_back(b);
    return;
  }
  overlapping_[places_[b]] = overlapping_.back();
  places_[overlapping_.back()] = places_[b];
  overlapping_.pop_back();
  places_[b] = kNoPlace;
}

void GuidedSearch::visit(std::int32_t b) {
  if (problem_.fixed[b] == 0 && std::exchange(is_open_[b], 1) == 0) open_.push_back(b);
}

void GuidedSearch::move(std::int32_t b, std::int64_t offset) {
  for (const Problem::Pair& pair : pairs(b)) {
    const bool before = shared(b, offsets_[b], pair.other) > 0, after = shared(b, offset, pair.other) > 0;
    if (before == after) continue;
    add_overlaps(b, after ? 1 : -1);
    add_overlaps(pair.other, after ? 1 : -1);
  }
  offsets_[b] = offset;
}

/// Moves a block to its best offset. Other blocks with which it overlaps there are moved next.
void GuidedSearch::improve(std::int32_t b) {
  if (overlaps_[b] == 0 || problem_.fixed[b] != 0) return;
  const std::int64_t offset = best_offset(b);
  if (offset == offsets_[b]) return;
  const double before = sum(b, offsets_[b]), after = sum(b, offset);
  if (after > before || (after == before && random_.next() % 2 == 0)) return;
  move(b, offset);
  if (after == before) return;
  for (const Problem::Pair& pair : pairs(b)) {
    if (shared(b, offset, pair.other) > 0) visit(pair.other);
  }
  if (after > 0) visit(b);
}

/// Raises the weights of the pairs of blocks for which the ratio of shared bytes to weight is largest or nearly so.
void GuidedSearch::raise_weights() {
  constexpr double kNear = 0.5;  // a weight rises if the ratio of its pair is at least this fraction of the largest
  double largest = 0;
  for (const double near : {0.0, kNear}) {
    for (const std::int32_t b : overlapping_) {
      for (std::int32_t p = problem_.begins[b]; p < problem_.begins[b + 1]; ++p) {
        const Problem::Pair& pair = problem_.pairs[p];
        if (pair.other < b) continue;
        const double ratio = static_cast<double>(shared(b, offsets_[b], pair.other)) / static_cast<double>(weights_[p]);
        if (near == 0) {
          largest = std::max(largest, ratio);
        } else if (ratio >= near * largest) {
          weights_[pair.twin] = weights_[p] += pair.steps;
          visit(b);
          visit(pair.other);
        }
      }
      work_ += std::ssize(pairs(b)) / 2;
    }
  }
}

/// Moves every block down until it lies on another block or at offset 0, the lowest block first. Repeats this until no
/// block moves.
void GuidedSearch::push_down() {
  std::vector<std::int32_t> order(offsets_.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::pair<std::int64_t, std::int64_t>> used;
  for (bool moved = true; moved;) {
    moved = false;
    std::ranges::sort(order, {}, [&](std::int32_t b) { return std::pair(offsets_[b], b); });
    for (const std::int32_t b : order) {
      if (problem_.fixed[b] != 0) continue;
      used.clear();
      for (const Problem::Pair& pair : pairs(b))
        used.emplace_back(offsets_[pair.other], offsets_[pair.other] + problem_.sizes[pair.other]);
      std::ranges::sort(used);
      std::int64_t offset = 0;
      for (const auto& [low, high] : used) {
        if (low - offset >= problem_.sizes[b]) break;
        offset = std::max(offset, high);
      }
      moved = moved || offset < offsets_[b];
      offsets_[b] = std::min(offset, offsets_[b]);
    }
    work_ += 4 * std::ssize(problem_.pairs);
  }
}

Verdict GuidedSearch::run(std::int64_t work, const std::atomic<std::int64_t>& most, const core::Stopwatch& watch) {
  constexpr std::int64_t kBetweenChecks = 100'000;
  const std::int64_t end = work_ + work;
  std::int64_t next_check = work_;
  while (!overlapping_.empty()) {
    if (work_ >= next_check) {
      next_check = work_ + kBetweenChecks;
      if (watch.passed()) return Verdict::unknown;
    }
    if (work_ > end || work_ > most) return Verdict::unknown;
    if (open_.empty()) raise_weights();
    if (open_.empty()) return Verdict::unknown;  // only blocks with fixed offsets share bytes, so no move helps
    const std::size_t at = random_.next() % open_.size();
    const std::int32_t b = std::exchange(open_[at], open_.back());
    open_.pop_back();
    is_open_[b] = 0;
    ++work_;
    improve(b);
  }
  push_down();
  return Verdict::fits;
}

}  // namespace cairn::solvers::plan
