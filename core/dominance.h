#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/host_device.h"
#include "cairn/core/schedule.h"

/// Dominance of memory profiles, after Jin et al., "New Tools for Peak Memory Scheduling". A profile is a sequence of
/// bytes in memory at successive moments. A dominates B if two pointers can be advanced from the beginnings to the ends
/// of both so that A's value is at most B's all the time (Definition 2.3). It depends on nothing but the segments.
namespace cairn::core {

/// A stretch of a profile from a valley up to its highest point and down to the next valley (Definition 6.3). Bytes.
/// Aligned so that a device loads it at once.
struct alignas(16) Segment {
  std::int64_t rise = 0;  ///< its peak above the left valley, >= 0
  std::int64_t drop = 0;  ///< its peak above the right valley, >= 0

  CAIRN_HD constexpr std::int64_t change() const { return rise - drop; }
  CAIRN_HD constexpr bool negative() const { return rise < drop; }
  constexpr bool operator==(const Segment&) const = default;
};

/// The order of Definition 6.6 without its division: does `a` have the smaller sort value? Segments of parallel chains,
/// run in this order, dominate every other order of them (Theorem 6.8): negative ones first, by rising rise; then the
/// others, by falling drop.
CAIRN_HD constexpr bool sorts_before(const Segment& a, const Segment& b) {
  if (a.negative() != b.negative()) return a.negative();
  return a.negative() ? a.rise < b.rise : a.drop > b.drop;
}

/// `a` and then `b` as one.
CAIRN_HD constexpr Segment joined(const Segment& a, const Segment& b) {
  const std::int64_t second = a.change() + b.rise;
  const std::int64_t rise = a.rise > second ? a.rise : second;
  return {rise, rise - a.change() - b.change()};
}

/// Are `a` and then `b` no two segments of Definition 6.3 but (part of) one?
CAIRN_HD constexpr bool belong_together(const Segment& a, const Segment& b) {
  if (a.negative()) return b.negative() && b.rise <= a.drop;
  return b.negative() || b.rise >= a.drop || b.rise == b.drop;
}

/// Appends `next` to segments that are those of a profile, so that they are again. `Chain` is a vector-like of types
/// that derive from Segment; absorb(a, b) makes `a` the two as one. Amortised O(1).
template <class Chain, class Absorb>
void append_segment(Chain& chain, typename Chain::value_type next, const Absorb& absorb) {
  while (!chain.empty() && belong_together(chain.back(), next)) {
    typename Chain::value_type last = chain.back();
    chain.pop_back();
    absorb(last, next);
    next = last;
  }
  chain.push_back(next);
}
void append_segment(std::vector<Segment>& segments, Segment next);

/// A profile but for what dominance does not see: where it starts, and its segments. Two profiles dominate each other
/// exactly if these are equal once a segment of no change is left out that the one before it hides: whose rise is at
/// most that one's drop (or 0 where it comes first).
struct CanonicalProfile {
  std::int64_t start = 0;  ///< bytes at the first moment
  std::vector<Segment> segments;

  std::int64_t peak() const;  ///< highest value
  std::int64_t end() const;   ///< last value
};

/// The same without owning the segments.
struct CanonicalView {
  std::int64_t start = 0;
  std::span<const Segment> segments;

  CanonicalView(std::int64_t first, std::span<const Segment> rest) : start(first), segments(rest) {}
  CanonicalView(const CanonicalProfile& profile) : start(profile.start), segments(profile.segments) {}
};

/// O(length). The profile must not be empty.
CanonicalProfile canonical(std::span<const std::int64_t> profile);

/// A segment and where it lies: entries of the profile, counted from 0.
struct PlacedSegment : Segment {
  std::int64_t begin = 0;  ///< left valley: the segment is what happens after it
  std::int64_t peak = 0;
  std::int64_t end = 0;  ///< right valley
};
/// Definition 6.3 on a profile (entries 1..k-1 of the paper's path are entries 0.. here). O(length).
std::vector<PlacedSegment> place_segments(std::span<const std::int64_t> profile);

/// Does `a` dominate `b`? The loop of Lemma 2.5's proof from the minimum of `a` and the maximum of `b` outwards.
/// O(segments), O(length); neither profile may be empty.
bool dominates(const CanonicalView& a, const CanonicalView& b);
bool dominates(std::span<const std::int64_t> a, std::span<const std::int64_t> b);

/// Theorem 6.8: the segments of parallel chains in sort order, as one chain; a k-way merge. Each part must be
/// canonical. O(total * log parts).
std::vector<Segment> merge_segments(std::span<const std::vector<Segment>> parts);

/// profile* (Definition 5.2): from after the first step to the end of the last, with the last node's output still in
/// memory. For a schedule without recomputation of a graph with one source and one sink; 2n - 1 entries. Throws
/// InputError if the schedule is invalid or empty.
std::vector<std::int64_t> internal_profile(const Graph& graph, const Schedule& schedule);

}  // namespace cairn::core
