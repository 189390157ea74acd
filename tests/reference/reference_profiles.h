#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cairn/core/dominance.h"

/// This is a literal implementation of those definitions of Jin et al., "New Tools for Peak Memory Scheduling", that
/// are about sequences of bytes: dominance and segments. Like reference_order.h, it has no regard to speed, and shares
/// no code with the code that it tests. Numbers in parentheses are those of the paper.
namespace cairn::core::reference {

// The following functions are about dominance of sequences (section 2.1). The sequences must not be empty.

/// Returns whether a dominates b by Definition 2.3. Two pointers go from the beginnings of a and b to their ends, and
/// each move advances one pointer by one entry. There must be a sequence of moves during which a's entry is never above
/// b's entry. O(|a| * |b|).
inline bool dominates_by_pointers(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  std::vector<std::vector<bool>> reachable(a.size(), std::vector<bool>(b.size(), false));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      const bool arrives = (i == 0 && j == 0) || (i > 0 && reachable[i - 1][j]) || (j > 0 && reachable[i][j - 1]);
      reachable[i][j] = arrives && a[i] <= b[j];
    }
  }
  return reachable.back().back();
}

/// Returns whether a dominates b by Definition 2.4: for each place in a, there is a place in b such that four values of
/// a are at most those of b. The four values are the highest and the lowest value up to the place, and the highest and
/// the lowest value from the place on. O(|a| * |b| * (|a| + |b|)).
inline bool dominates_by_extremes(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  const auto highest = [](std::span<const std::int64_t> values) {
    return *std::max_element(values.begin(), values.end());
  };
  const auto lowest = [](std::span<const std::int64_t> values) {
    return *std::min_element(values.begin(), values.end());
  };
  const auto matches = [&](std::size_t i, std::size_t j) {
    return highest(a.subspan(i)) <= highest(b.subspan(j)) && lowest(a.subspan(i)) <= lowest(b.subspan(j)) &&
           highest(a.first(i + 1)) <= highest(b.first(j + 1)) && lowest(a.first(i + 1)) <= lowest(b.first(j + 1));
  };
  for (std::size_t i = 0; i < a.size(); ++i) {
    bool matched = false;
    for (std::size_t j = 0; j < b.size() && !matched; ++j) matched = matches(i, j);
    if (!matched) return false;
  }
  return true;
}

// The following functions are about segments (section 6). The paper numbers the nodes 1..k of a path and considers the
// memory after nodes 1..k-1. Entry e of `values` is the memory after node e + 1. Ranges [left, right] are closed, as in
// the paper.

template <class TakesPlace>
std::int64_t place_of(std::span<const std::int64_t> values, std::int64_t left, std::int64_t right, TakesPlace takes) {
  std::int64_t place = left;
  for (std::int64_t i = left; i <= right; ++i) place = takes(values[i], values[place]) ? i : place;
  return place;
}
/// Each of these functions returns a place in [left, right]: the first one (left) or last one (right) of the highest
/// value (peak) or of the lowest value (valley).
inline std::int64_t left_peak(std::span<const std::int64_t> values, std::int64_t left, std::int64_t right) {
  return place_of(values, left, right, std::greater<>());
}
inline std::int64_t right_peak(std::span<const std::int64_t> values, std::int64_t left, std::int64_t right) {
  return place_of(values, left, right, std::greater_equal<>());
}
inline std::int64_t left_valley(std::span<const std::int64_t> values, std::int64_t left, std::int64_t right) {
  return place_of(values, left, right, std::less<>());
}
inline std::int64_t right_valley(std::span<const std::int64_t> values, std::int64_t left, std::int64_t right) {
  return place_of(values, left, right, std::less_equal<>());
}

inline PlacedSegment placed_segment(std::span<const std::int64_t> values, std::int64_t begin, std::int64_t peak,
                                    std::int64_t end) {
  PlacedSegment segment;
  segment.rise = values[peak] - values[begin];
  segment.drop = values[peak] - values[end];
  segment.begin = begin;
  segment.peak = peak;
  segment.end = end;
  return segment;
}

/// Returns the negative segments (Definition 6.3) that end at or before the place `valley`, from left to right.
inline std::vector<PlacedSegment> negative_segments(std::span<const std::int64_t> values, std::int64_t valley) {
  if (valley == 0) return {};
  const std::int64_t peak = left_peak(values, 0, valley), before = left_valley(values, 0, peak);
  std::vector<PlacedSegment> segments = negative_segments(values, before);
  segments.push_back(placed_segment(values, before, peak, valley));
  return segments;
}

/// Returns the segments of Definition 6.3: the negative ones up to the first place of least memory, then the
/// nonnegative ones.
inline std::vector<PlacedSegment> segments(std::span<const std::int64_t> values) {
  const auto last = static_cast<std::int64_t>(values.size()) - 1;
  std::int64_t valley = left_valley(values, 0, last);
  std::vector<PlacedSegment> all = negative_segments(values, valley);
  while (valley != last) {
    const std::int64_t peak = right_peak(values, valley, last);
    const std::int64_t next = right_valley(values, peak, last);
    all.push_back(placed_segment(values, valley, peak, next));
    valley = next;
  }
  return all;
}

/// Returns the inverse of the sort value of Definition 6.6. It is an integer and never 0.
inline std::int64_t inverse_sort_value(const Segment& segment) {
  return segment.rise >= segment.drop ? 1 + segment.drop : -1 - segment.rise;
}

/// Returns whether a's sort value is below b's sort value. For x and y of the same sign, 1 / x < 1 / y exactly if y <
/// x.
inline bool sort_value_below(const Segment& a, const Segment& b) {
  const std::int64_t x = inverse_sort_value(a), y = inverse_sort_value(b);
  return (x < 0) == (y < 0) ? y < x : x < 0;
}

}  // namespace cairn::core::reference
