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
/// of both so that A's value is at most B's all the time (Definition 2.3). Dominance depends only on the start values
/// and the segments of the two profiles.
namespace cairn::core {

/// A stretch of a profile from a valley up to its highest point and down to the next valley (Definition 6.3). In bytes.
/// The alignment lets a device load a segment at once.
struct alignas(16) Segment {
  std::int64_t rise = 0;  ///< height of the peak above the left valley, >= 0
  std::int64_t drop = 0;  ///< height of the peak above the right valley, >= 0

  CAIRN_HD constexpr std::int64_t change() const { return rise - drop; }
  CAIRN_HD constexpr bool negative() const { return rise < drop; }
  constexpr bool operator==(const Segment&) const = default;
};

/// Whether `a` has the smaller sort value: the order of Definition 6.6 without its division. Segments of parallel
/// chains that run in this order dominate every other order of them (Theorem 6.8). Negative segments come first, by
/// rising rise; then the others, by falling drop.
CAIRN_HD constexpr bool sorts_before(const Segment& a, const Segment& b) {
  if (a.negative() != b.negative()) return a.negative();
  return a.negative() ? a.rise < b.rise : a.drop > b.drop;
}

/// Returns `a` followed by `b` as one segment.
CAIRN_HD constexpr Segment joined(const Segment& a, const Segment& b) {
  const std::int64_t second = a.change() + b.rise;
  const std::int64_t rise = a.rise > second ? a.rise : second;
  return {rise, rise - a.change() - b.change()};
}

/// Whether `a` followed by `b` is one Segment, or part of one, rather than two (Definition 6.3 of Jin et al.). If `a`
/// is negative, `b` must be negative and peak no higher than `a`; otherwise `b` must be negative, peak at least as high
/// as `a`, or end at the height at which it begins.
CAIRN_HD constexpr bool belong_together(const Segment& a, const Segment& b) {
  if (a.negative()) return b.negative() && b.rise <= a.drop;
  return b.negative() || b.rise >= a.drop || b.rise == b.drop;
}

/// Appends `next` to the segments of a profile, joining segments so that the result is again the segments of a profile.
/// `Chain` is vector-like, and its elements derive from Segment. absorb(a, b) replaces `a` by both joined. Amortised
/// O(1).
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

/// The part of a profile that dominance depends on: its start and its segments. Two profiles dominate each other
/// exactly if both are equal after hidden segments are left out. A segment is hidden if its change is 0 and its rise is
/// at most the drop of the segment before it (or 0, for the first segment).
struct CanonicalProfile {
  std::int64_t start = 0;  ///< bytes at the first moment
  std::vector<Segment> segments;

  std::int64_t peak() const;  ///< highest value
  std::int64_t end() const;   ///< last value
};

/// A canonical profile that does not own its segments.
struct CanonicalView {
  std::int64_t start = 0;
  std::span<const Segment> segments;

  CanonicalView(std::int64_t first, std::span<const Segment> rest) : start(first), segments(rest) {}
  CanonicalView(const CanonicalProfile& profile) : start(profile.start), segments(profile.segments) {}
};

/// Returns the canonical form of a profile, which must not be empty. O(length).
CanonicalProfile canonical(std::span<const std::int64_t> profile);

/// A segment and its position, in indices into the profile that count from 0.
struct PlacedSegment : Segment {
  std::int64_t begin = 0;  ///< index of the left valley; the segment begins after it
  std::int64_t peak = 0;
  std::int64_t end = 0;  ///< index of the right valley
};
/// Splits a profile into the segments of Definition 6.3 (the paper's path entries 1..k-1 are entries 0.. here).
/// O(length).
std::vector<PlacedSegment> place_segments(std::span<const std::int64_t> profile);

/// Whether `a` dominates `b`. Runs the loop of Lemma 2.5's proof from the minimum of `a` and the maximum of `b`
/// outwards. O(segments), O(length); neither profile may be empty.
bool dominates(const CanonicalView& a, const CanonicalView& b);
bool dominates(std::span<const std::int64_t> a, std::span<const std::int64_t> b);

/// Merges the segments of parallel chains into one chain in sort order (Theorem 6.8), by a k-way merge. Each part must
/// be canonical. O(total * log parts).
std::vector<Segment> merge_segments(std::span<const std::vector<Segment>> parts);

/// Returns profile* (Definition 5.2): memory from after the first step to the end of the last, with the last node's
/// output still in memory; 2n - 1 entries. The graph must have one source and one sink, and the schedule no
/// recomputation. Throws InputError if the schedule is invalid or empty.
std::vector<std::int64_t> internal_profile(const Graph& graph, const Schedule& schedule);
/// Appends the same entries to `entries`, made from the schedule's whole profile (Evaluator::profile) and its last
/// node. Holds for any graph, and with recomputation. O(length).
void append_internal_profile(const Graph& graph, std::span<const std::int64_t> whole, NodeId last,
                             std::vector<std::int64_t>& entries);

}  // namespace cairn::core
