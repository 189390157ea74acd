#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/sim/canonical_batch.h"

/// Dominance among many memory profiles at once; core/dominance.h defines it. cuda/support/dominance.h declares the
/// same functions for a GPU.
namespace cairn::sim {

/// Some rows of the matrix that says, for every pair of profiles of a set, whether the first dominates the second.
struct DominanceBand {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;              ///< number of profiles in the set
  std::int64_t words_of_row = 0;         ///< words that one row takes: columns / 64, rounded up
  std::span<const std::uint64_t> words;  ///< the bits, rows * words_of_row words; bits beyond the last column are 0

  /// Whether profile `row`, which must be a row of this band, dominates profile `column`.
  bool dominates(std::int64_t row, std::int64_t column) const {
    return (words[(row - first_row) * words_of_row + column / 64] >> (column % 64) & 1U) != 0;
  }
};

/// A set of canonical profiles, prepared for comparisons. Takes about 16 bytes per segment and 72 per profile, and
/// twice as much while it is made. All answers are exact and do not depend on the number of threads. Only one thread
/// may use the set at a time; the set's own threads help that thread.
///
/// A schedule that begins and ends with nothing in memory has a single segment, so its peak alone decides. More
/// segments occur in profiles of parts of a graph (core::internal_profile), in profiles of node sums (core/node_sum.h),
/// and if much is kept to the end.
class DominanceSet {
 public:
  virtual ~DominanceSet() = default;

  virtual std::int64_t size() const = 0;

  /// Returns, for each profile of the set, 1 if `one` dominates it, else 0; `one` need not be in the set. Takes O(1)
  /// per profile if 16 rounded values per profile decide the comparison, else O(segments of both).
  virtual std::vector<std::uint8_t> dominated_by(const core::CanonicalView& one) const = 0;
  /// Returns, for each profile of the set, 1 if it dominates `one`, else 0. Takes as long as dominated_by().
  virtual std::vector<std::uint8_t> dominators_of(const core::CanonicalView& one) const = 0;

  /// Compares all pairs. Calls visit(band) for bands of the matrix from its first row to its last, each as high as fits
  /// into `most_bytes`; a band is valid until visit returns. Takes memory for two bands, one of them on the GPU if
  /// there is one. Makes size()^2 comparisons as fast as those of dominated_by(). Throws InputError if not even one
  /// row, of size() / 8 bytes, fits.
  virtual void for_each_band(std::int64_t most_bytes, const std::function<void(const DominanceBand&)>& visit) const = 0;

  /// Returns the profiles that no other profile dominates, as ascending indices into the set. Of profiles that dominate
  /// each other, the first one stays. With r results among n profiles, takes O(n log n) and at most O(n * (r + block))
  /// comparisons as fast as those of dominated_by(). A block is 4096 profiles or, on a GPU, twice the number of warps
  /// that run at once. If few profiles dominate most others, far fewer comparisons are made; if none dominates another,
  /// n^2 / 2. Takes about 130 bytes per profile beside the set.
  virtual std::vector<std::int64_t> non_dominated() const = 0;
};

/// Makes a DominanceSet on the host, with `threads` threads (0: core::thread_count()). O(segments). Throws InputError
/// for more than 2^31 - 1 profiles.
std::unique_ptr<DominanceSet> dominance_set(const CanonicalBatch& profiles, int threads = 0);

/// Returns dominance_set(profiles, threads)->non_dominated().
std::vector<std::int64_t> non_dominated(const CanonicalBatch& profiles, int threads = 0);

}  // namespace cairn::sim
