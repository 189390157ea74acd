// Searches for a plan by guided local search (explained in guided_search.h). A block is a group of buffers that share
// one offset. Blocks may share bytes during the search; two blocks that are live at the same time form a pair, whose
// shared bytes count with the weight of the pair.

#include "cairn/solvers/plan/internal/search/guided_search.h"

#include <algorithm>
#include <array>
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

/// Sorts bends_ by offset; `top` is above all offsets. First distributes the bends over ranges of addresses of equal
/// length, most of which get few bends. This takes less than half the time of std::sort.
void GuidedSearch::sort_bends(std::int64_t top) {
  constexpr std::size_t kRanges = 256;  // about the number of bends of a block
  constexpr std::size_t kFew = 24;      // up to this number of bends, insertion sort is faster than std::sort
  std::array<std::uint32_t, kRanges + 1> ends{};
  const auto scale = static_cast<double>(kRanges) / static_cast<double>(top);
  const auto range = [&](const Bend& bend) {  // the minimum matters only if a large offset is rounded up to `top`
    return std::min(static_cast<std::size_t>(static_cast<double>(bend.offset) * scale), kRanges - 1);
  };
  for (const Bend& bend : bends_) ++ends[range(bend) + 1];
  for (std::size_t i = 1; i <= kRanges; ++i) ends[i] += ends[i - 1];
  sorted_.resize(bends_.size());
  for (const Bend& bend : bends_) sorted_[ends[range(bend)]++] = bend;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < kRanges; ++i) {
    const std::size_t end = ends[i];
    if (end - begin > kFew) {
      std::ranges::stable_sort(sorted_.begin() + begin, sorted_.begin() + end, {}, &Bend::offset);
    } else {
      for (std::size_t k = begin + 1; k < end; ++k) {
        const Bend bend = sorted_[k];
        std::size_t at = k;
        for (; at > begin && sorted_[at - 1].offset > bend.offset; --at) sorted_[at] = sorted_[at - 1];
        sorted_[at] = bend;
      }
    }
    begin = end;
  }
  bends_.swap(sorted_);
}

/// Returns an offset of block b at which sum() is least. If there are several, returns a random one of them.
std::int64_t GuidedSearch::best_offset(std::int32_t b) {
  const std::int64_t size = problem_.sizes[b], top = capacity_ - size;
  bends_.resize(4 * pairs(b).size() + 1);
  Bend* bends = bends_.data();
  double slope = 0, value = 0;
  const auto bend = [&](std::int64_t offset, double change) {
    slope += offset <= 0 ? change : 0;
    *bends = {offset, change};
    bends += offset > 0 && offset < top ? 1 : 0;
  };
  // As its offset rises, block b shares more and more bytes with the other block, then all bytes of the smaller of the
  // two, then fewer and fewer, and none when its lower end is at the other block's upper end.
  for (std::int32_t p = problem_.begins[b]; p < problem_.begins[b + 1]; ++p) {
    const std::int32_t other = problem_.pairs[p].other;
    const std::int64_t low = offsets_[other], high = low + problem_.sizes[other];
    const auto weight = static_cast<double>(weights_[p]);
    value += weight * static_cast<double>(std::max<std::int64_t>(0, std::min(size, high) - low));
    bend(low - size, weight);
    bend(low, -weight);
    bend(high - size, -weight);
    bend(high, weight);
  }
  bends_.resize(static_cast<std::size_t>(bends - bends_.data()));
  if (top > 0) sort_bends(top);
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
  constexpr std::int64_t kOfPair = 1, kOfBend = 2;  // times measured in comparison with the exact search
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
  constexpr double kNear = 0.25;     // a weight rises if the ratio of its pair is at least this fraction of the largest
  constexpr double kForgets = 0.02;  // probability that all weights return towards their first values
  constexpr float kRemembered = 0.8F;  // fraction of the difference to the first value that then remains
  if (random_.uniform() < kForgets) {
    for (std::size_t p = 0; p < weights_.size(); ++p) {
      const float first = problem_.pairs[p].steps;
      weights_[p] = first + kRemembered * (weights_[p] - first);
    }
    work_ += std::ssize(weights_) / 4;
  }
  float largest = 0;
  shared_.clear();
  for (const std::int32_t b : overlapping_) {
    for (std::int32_t p = problem_.begins[b]; p < problem_.begins[b + 1]; ++p) {
      const std::int32_t other = problem_.pairs[p].other;
      const std::int64_t bytes = other < b ? 0 : shared(b, offsets_[b], other);
      if (bytes == 0) continue;
      const float ratio = static_cast<float>(bytes) / weights_[p];
      largest = std::max(largest, ratio);
      shared_.push_back({ratio, b, p});
    }
    work_ += std::ssize(pairs(b)) / 4;
  }
  for (const auto& [ratio, b, p] : shared_) {
    if (ratio < kNear * largest) continue;
    const Problem::Pair& pair = problem_.pairs[p];
    weights_[pair.twin] = weights_[p] += pair.steps;
    visit(b);
    visit(pair.other);
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
