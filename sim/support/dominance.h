#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cairn/core/dominance.h"
#include "cairn/sim/canonical_batch.h"

/// These classes compare many memory profiles at once by dominance, which core/dominance.h defines.
/// cuda/support/dominance.h declares the same functions for a GPU.
namespace cairn::sim {

/// Successive rows of a bit matrix. The bit in row i and column j says whether profile i of a DominanceSet dominates
/// profile j.
struct DominanceBand {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;              ///< number of profiles in the set
  std::int64_t words_of_row = 0;         ///< number of words that one row takes, columns / 64 rounded up
  std::span<const std::uint64_t> words;  ///< rows * words_of_row words; bits beyond the last column are 0

  /// Returns whether profile `row` dominates profile `column`. `row` must be a row of this band.
  bool dominates(std::int64_t row, std::int64_t column) const {
    return (words[(row - first_row) * words_of_row + column / 64] >> (column % 64) & 1U) != 0;
  }
};

/// A set of canonical profiles, prepared for comparisons. The set takes about 16 bytes per segment and 72 bytes per
/// profile, and twice as much while it is built. All answers are exact and do not depend on the number of threads. The
/// functions use several threads themselves, but only one thread may call them at a time.
///
/// If a schedule begins and ends with nothing in memory, its canonical profile has a single segment, so dominance among
/// such schedules only compares their peaks. Several segments occur in profiles of parts of a graph
/// (core::internal_profile), in profiles of node sums (solvers/order/internal/papers/node_sum.h), and in profiles of
/// graphs that keep many outputs.
class DominanceSet {
 public:
  virtual ~DominanceSet() = default;

  virtual std::int64_t size() const = 0;

  /// Returns, for each profile of the set, 1 if `one` dominates it, else 0. `one` need not be in the set. A comparison
  /// takes O(1) if the signatures of the two profiles (16 rounded values each) decide it, else O(segments of both).
  virtual std::vector<std::uint8_t> dominated_by(const core::CanonicalView& one) const = 0;
  /// Returns, for each profile of the set, 1 if it dominates `one`, else 0. Takes as long as dominated_by().
  virtual std::vector<std::uint8_t> dominators_of(const core::CanonicalView& one) const = 0;

  /// Compares all pairs of profiles. Calls visit(band) for successive bands of rows of the bit matrix (DominanceBand).
  /// A band has as many rows as fit into `most_bytes`, and is valid until visit() returns. Takes memory for two bands;
  /// with a GPU, one of these bands is in the GPU's memory. Makes size()^2 comparisons, each as fast as one in
  /// dominated_by(). Throws InputError if `most_bytes` is less than a single row, which takes size() / 8 bytes.
  virtual void for_each_band(std::int64_t most_bytes, const std::function<void(const DominanceBand&)>& visit) const = 0;

  /// Returns the ascending indices of the profiles that no other profile dominates. If several profiles dominate each
  /// other, only the first of these is returned. Sorts in O(n log n) time for n profiles. For r results, makes at most
  /// O(n * (r + block)) comparisons, each as fast as one in dominated_by(). Here, `block` is 4096 on the host, and on a
  /// GPU twice the number of warps that run at once, but at least 4096. If a few profiles dominate most of the others,
  /// far fewer comparisons are made. If no profile dominates another, n^2 / 2 are made. Takes about 130 bytes per
  /// profile in addition to the set.
  virtual std::vector<std::int64_t> non_dominated() const = 0;
};

/// Creates a DominanceSet on the host that uses `threads` threads (0: core::thread_count()). O(segments). Throws
/// InputError for more than 2^31 - 1 profiles.
std::unique_ptr<DominanceSet> dominance_set(const CanonicalBatch& profiles, int threads = 0);

/// Returns dominance_set(profiles, threads)->non_dominated().
std::vector<std::int64_t> non_dominated(const CanonicalBatch& profiles, int threads = 0);

}  // namespace cairn::sim
