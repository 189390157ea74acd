#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/sim/canonical_batch.h"

/// Dominance (core/dominance.h) among many profiles at once. cuda/support/dominance.h has the same on a GPU.
namespace cairn::sim {

/// Some rows of the matrix of all pairs of a set.
struct DominanceBand {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;              ///< size of the set
  std::int64_t words_of_row = 0;         ///< columns / 64, rounded up
  std::span<const std::uint64_t> words;  ///< rows * words_of_row; bits beyond the last column are 0

  /// Does profile `row`, one of this band's, dominate profile `column`?
  bool dominates(std::int64_t row, std::int64_t column) const {
    return (words[(row - first_row) * words_of_row + column / 64] >> (column % 64) & 1U) != 0;
  }
};

/// A population of canonical profiles, prepared for comparisons: about 16 bytes a segment and 72 a profile, and as much
/// again while it is made. All answers are exact and do not depend on the number of threads. For one thread at a time,
/// which its own threads help.
///
/// A schedule that begins and ends with nothing in memory has a single segment, so that its peak alone decides; more
/// segments are in profiles of parts of a graph (core::internal_profile), of node sums, and where much is kept.
class DominanceSet {
 public:
  virtual ~DominanceSet() = default;

  virtual std::int64_t size() const = 0;

  /// For each profile of the set, 1 if `one` dominates it, else 0; `one` need not be in the set. O(1) a profile where
  /// 16 rounded values decide, O(segments of both) where not.
  virtual std::vector<std::uint8_t> dominated_by(const core::CanonicalView& one) const = 0;
  /// For each profile of the set, 1 if it dominates `one`, else 0. As fast.
  virtual std::vector<std::uint8_t> dominators_of(const core::CanonicalView& one) const = 0;

  /// All pairs: visit(band) for bands of the matrix from its first row to its last, each as high as fits into
  /// `most_bytes`; memory for two of them is taken, on a GPU one of them there. A band is valid until visit returns.
  /// size()^2 comparisons as above. Throws InputError where not even one row fits: size() / 8 bytes.
  virtual void for_each_band(std::int64_t most_bytes, const std::function<void(const DominanceBand&)>& visit) const = 0;

  /// The profiles that no other one dominates, as rising places in the set; of those that dominate each other the first
  /// one stays. With r results among n profiles O(n log n) and at most O(n * (r + block)) comparisons as above, for
  /// blocks of 4096 profiles, or twice the warps that a GPU runs at once: far fewer where few dominate most, n^2 / 2
  /// where none dominates another. Takes about 130 bytes a profile more.
  virtual std::vector<std::int64_t> non_dominated() const = 0;
};

/// O(segments), over so many threads (0: core::thread_count()). Throws InputError above 2^31 - 1 profiles.
std::unique_ptr<DominanceSet> dominance_set(const CanonicalBatch& profiles, int threads = 0);

/// dominance_set(profiles, threads)->non_dominated().
std::vector<std::int64_t> non_dominated(const CanonicalBatch& profiles, int threads = 0);

}  // namespace cairn::sim
