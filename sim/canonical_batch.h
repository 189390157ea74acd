#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/dominance.h"

namespace cairn::sim {

/// Canonical profiles of many candidates (core/dominance.h) in three shared arrays, in bytes. The rise and drop of a
/// segment lie side by side, because whoever reads one reads the other.
class CanonicalBatch {
 public:
  CanonicalBatch() = default;
  /// Creates a batch in which profile i has the segments [begins[i], begins[i + 1]). Throws InputError unless `begins`
  /// has one entry more than `starts`, goes from 0 to segments.size() and never falls.
  CanonicalBatch(std::vector<std::int64_t> starts, std::vector<std::int64_t> begins,
                 std::vector<core::Segment> segments);

  std::int64_t size() const { return static_cast<std::int64_t>(starts_.size()); }
  /// Returns profile i, valid until the batch changes.
  core::CanonicalView operator[](std::int64_t i) const {
    const auto begin = static_cast<std::size_t>(begins_[i]), end = static_cast<std::size_t>(begins_[i + 1]);
    return {starts_[i], std::span(segments_).subspan(begin, end - begin)};
  }
  core::CanonicalProfile profile(std::int64_t i) const;
  /// Appends a profile, which must not be one of this batch itself. Amortised O(segments).
  void add(const core::CanonicalView& profile);

  std::span<const std::int64_t> starts() const { return starts_; }  ///< first values of the profiles
  std::span<const std::int64_t> begins() const { return begins_; }  ///< size() + 1 places in segments()
  std::span<const core::Segment> segments() const { return segments_; }

  bool operator==(const CanonicalBatch&) const = default;

 private:
  std::vector<std::int64_t> starts_;
  std::vector<std::int64_t> begins_{0};
  std::vector<core::Segment> segments_;
};

CanonicalBatch canonical_batch(std::span<const core::CanonicalProfile> profiles);

/// Runs core::canonical on many profiles: profile i is values[offsets[i], offsets[i + 1]). O(values), on `threads`
/// threads (0: core::thread_count()). Throws InputError if `offsets` does not go from 0 to values.size() or a profile
/// is empty.
CanonicalBatch canonical_batch(std::span<const std::int64_t> values, std::span<const std::int64_t> offsets,
                               int threads = 0);

/// Runs core::merge_segments on many sets of parallel chains: set i is the chains [sets[i], sets[i + 1]). Profile i of
/// the result is the memory of set i when its segments run in sort order, which dominates every other order (Theorem
/// 6.8); it starts at the sum of the chains' starts. O(segments * log(chains of the set)), on `threads` threads (0:
/// core::thread_count()). Throws InputError if `sets` does not go from 0 to chains.size() or falls.
CanonicalBatch merge_segments(const CanonicalBatch& chains, std::span<const std::int64_t> sets, int threads = 0);

}  // namespace cairn::sim
