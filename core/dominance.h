#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/host_device.h"
#include "cairn/core/schedule.h"

/// These functions compare memory profiles by dominance, as Jin et al. define it in "New Tools for Peak Memory
/// Scheduling". A profile is a sequence of numbers: the bytes in memory at successive moments. Let one pointer walk
/// through profile A and another one through profile B, each from the first entry to the last. A dominates B if the
/// pointers can be advanced in such a way that A's current entry is never above B's current entry (Definition 2.3). A
/// profile can be divided into segments (struct Segment). Whether A dominates B depends only on the first entries and
/// the segments of A and B.
namespace cairn::core {

/// A part of a profile that rises from a local minimum (a valley) to the part's highest point (its peak) and then drops
/// to the next valley (Jin et al., Definition 6.3). Rise and drop are in bytes. A Segment object is aligned to its size
/// of 16 bytes, so that a GPU can load it in one access.
struct alignas(16) Segment {
  std::int64_t rise = 0;  ///< height of the peak above the left valley, >= 0
  std::int64_t drop = 0;  ///< height of the peak above the right valley, >= 0

  CAIRN_HD constexpr std::int64_t change() const { return rise - drop; }
  CAIRN_HD constexpr bool negative() const { return rise < drop; }
  constexpr bool operator==(const Segment&) const = default;
};

/// Returns whether `a` goes before `b` in the order of Jin et al., Definition 6.6. Segments with a negative change()
/// come first, by ascending rise. The others follow, by descending drop. Unlike the paper's definition, this comparison
/// needs no division. Suppose that several chains of nodes run in parallel, and that their segments are interleaved in
/// this order. Then the resulting memory profile dominates the profile of every other order (Theorem 6.8).
CAIRN_HD constexpr bool sorts_before(const Segment& a, const Segment& b) {
  if (a.negative() != b.negative()) return a.negative();
  return a.negative() ? a.rise < b.rise : a.drop > b.drop;
}

/// Returns the one segment that consists of `a` and of the segment `b` that follows it.
CAIRN_HD constexpr Segment joined(const Segment& a, const Segment& b) {
  const std::int64_t second = a.change() + b.rise;
  const std::int64_t rise = a.rise > second ? a.rise : second;
  return {rise, rise - a.change() - b.change()};
}

/// Returns whether segment `a` and the segment `b` that follows it must be joined (Jin et al., Definition 6.3):
/// - If a.change() < 0, they are joined if b.change() < 0 and the peak of `b` is not higher than that of `a`.
/// - If a.change() >= 0, they are joined in three cases: b.change() < 0; the peak of `b` is at least as high as that of
///   `a`; or `b` ends at the height at which `b` begins.
CAIRN_HD constexpr bool belong_together(const Segment& a, const Segment& b) {
  if (a.negative()) return b.negative() && b.rise <= a.drop;
  return b.negative() || b.rise >= a.drop || b.rise == b.drop;
}

/// Appends `next` to `chain`, the segments of a profile. As long as belong_together() holds for the last two segments,
/// joins these two. `Chain` is like a vector, and its elements derive from Segment. absorb(a, b) must extend `a` by the
/// segment `b` that follows it. Takes amortised O(1) time.
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

/// Holds the part of a profile on which dominance depends: its start and its segments. A segment is called hidden here
/// if its change is 0 and its rise is at most the drop of the segment before it. The first segment is hidden if its
/// change and its rise are 0. Two profiles dominate each other exactly if they are equal once hidden segments are left
/// out.
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

/// Returns the canonical form of a profile: its start and its segments. The profile must not be empty. O(length).
CanonicalProfile canonical(std::span<const std::int64_t> profile);

/// A segment and its position in a profile. Indices into the profile count from 0.
struct PlacedSegment : Segment {
  std::int64_t begin = 0;  ///< index of the left valley; the segment begins after it
  std::int64_t peak = 0;
  std::int64_t end = 0;  ///< index of the right valley
};
/// Splits a profile into the segments of Jin et al., Definition 6.3. The paper counts begin, peak and end of a segment
/// from 1; this function counts them from 0. O(length).
std::vector<PlacedSegment> place_segments(std::span<const std::int64_t> profile);

/// Returns whether `a` dominates `b`. Runs the loop in the proof of Lemma 2.5 of Jin et al., which starts at the
/// minimum of `a` and the maximum of `b` and proceeds from there to both ends. O(segments).
bool dominates(const CanonicalView& a, const CanonicalView& b);
/// Returns whether profile `a` dominates profile `b`. Neither profile may be empty. O(length).
bool dominates(std::span<const std::int64_t> a, std::span<const std::int64_t> b);

/// Merges the segments of k chains that run in parallel into one chain, in the order of sorts_before() (Jin et al.,
/// Theorem 6.8). Each of `parts` must be the segments of a canonical profile. O(s log k) for s segments in all.
std::vector<Segment> merge_segments(std::span<const std::vector<Segment>> parts);

/// Returns the profile that Definition 5.2 of Jin et al. calls profile*. This is the memory from after the first step
/// to the end of the last step, with the last node's output still in memory. It has 2n - 1 entries for n nodes. The
/// graph must have one source and one sink, and the schedule must not recompute. Throws InputError if the schedule is
/// invalid or empty.
std::vector<std::int64_t> internal_profile(const Graph& graph, const Schedule& schedule);
/// Appends the entries of internal_profile() to `entries`. `whole` is the schedule's profile (Evaluator::profile), and
/// `last` is the schedule's last node. Works for every graph and for schedules that recompute. O(length).
void append_internal_profile(const Graph& graph, std::span<const std::int64_t> whole, NodeId last,
                             std::vector<std::int64_t>& entries);

}  // namespace cairn::core
