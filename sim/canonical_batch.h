#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/dominance.h"

namespace cairn::sim {

/// Canonical memory profiles (core/dominance.h) of many candidates, which are schedules of one graph. The batch
/// consists of three arrays: the value in bytes with which each profile starts, the index of each profile's first
/// segment, and all segments.
class CanonicalBatch {
 public:
  CanonicalBatch() = default;
  /// Creates a batch in which profile i has the segments [begins[i], begins[i + 1]). `begins` must have one entry more
  /// than `starts`. The entries of `begins` must not descend; the first must be 0, and the last must be
  /// segments.size(). Otherwise throws InputError.
  CanonicalBatch(std::vector<std::int64_t> starts, std::vector<std::int64_t> begins,
                 std::vector<core::Segment> segments);

  std::int64_t size() const { return static_cast<std::int64_t>(starts_.size()); }
  /// Returns profile i. The view is valid until the batch changes.
  core::CanonicalView operator[](std::int64_t i) const {
    const auto begin = static_cast<std::size_t>(begins_[i]), end = static_cast<std::size_t>(begins_[i + 1]);
    return {starts_[i], std::span(segments_).subspan(begin, end - begin)};
  }
  core::CanonicalProfile profile(std::int64_t i) const;
  /// Appends a profile, which must not be a view into this batch. Takes amortised O(segments of the profile) time.
  void add(const core::CanonicalView& profile);

  std::span<const std::int64_t> starts() const { return starts_; }  ///< first values of the profiles
  std::span<const std::int64_t> begins() const { return begins_; }  ///< size() + 1 indices into segments()
  std::span<const core::Segment> segments() const { return segments_; }

  bool operator==(const CanonicalBatch&) const = default;

 private:
  std::vector<std::int64_t> starts_;
  std::vector<std::int64_t> begins_{0};
  std::vector<core::Segment> segments_;
};

CanonicalBatch canonical_batch(std::span<const core::CanonicalProfile> profiles);

/// Runs core::canonical on many profiles. Profile i consists of values[offsets[i]] to values[offsets[i + 1] - 1]. Takes
/// O(values) time, divided among `threads` threads (0: core::thread_count()). Throws InputError if a profile is empty,
/// or if `offsets` does not begin with 0 and end with values.size().
CanonicalBatch canonical_batch(std::span<const std::int64_t> values, std::span<const std::int64_t> offsets,
                               int threads = 0);

/// Runs core::merge_segments on many sets of chains. A chain is a sequence of nodes, given by the canonical profile of
/// its memory; the chains of a set run in parallel. Set i consists of the chains [sets[i], sets[i + 1]). Profile i of
/// the result is the profile of set i if the segments of the set's chains run in the order of core::sorts_before. This
/// profile dominates the profile of every other order of these segments (Jin et al., Theorem 6.8). It starts with the
/// sum of the values with which the profiles of the set's chains start. Takes O(s log k) time for s segments in sets of
/// at most k chains, divided among `threads` threads (0: core::thread_count()). `sets` must ascend, begin with 0, and
/// end with chains.size(); otherwise throws InputError.
CanonicalBatch merge_segments(const CanonicalBatch& chains, std::span<const std::int64_t> sets, int threads = 0);

}  // namespace cairn::sim
