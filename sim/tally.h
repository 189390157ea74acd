#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/sim/schedule_batch.h"

namespace cairn::sim {

/// One candidate of a sweep. Entries compare by peak, then cost, then index.
struct Entry {
  std::int64_t peak = 0;  ///< bytes
  std::int64_t cost = 0;
  std::int64_t index = 0;
  auto operator<=>(const Entry&) const = default;
};

/// A sum of int64 that does not overflow for up to 2^64 terms.
__extension__ using WideSum = unsigned __int128;

struct TallyOptions {
  std::int32_t top = 10;     ///< best candidates to keep, >= 0
  std::int32_t invalid = 8;  ///< invalid candidates to name, >= 0
  /// Bin b of the histogram holds the peaks in [from + b * 2^shift, from + (b + 1) * 2^shift) bytes. Lower peaks go
  /// into the first bin and higher ones into the last.
  std::int64_t from = 0;
  std::int32_t shift = 0;  ///< 0 .. 62
  std::int32_t bins = 1;   ///< >= 1; all bins end below 2^63
  /// Candidates with a peak of at most this many bytes are counted (TallyCounts::within).
  std::int64_t budget = std::numeric_limits<std::int64_t>::max();

  std::int64_t width() const { return std::int64_t{1} << shift; }
  bool operator==(const TallyOptions&) const = default;
};

/// Returns options with at most 65,536 bins, from core::peak_lower_bound to the sum of all sizes plus the largest
/// scratch: no schedule of the graph has a peak outside. O(n + m).
TallyOptions tally_options(const core::Graph& graph);

/// Exact counts of a tally, apart from the histogram. Least and most are meaningful if valid > 0.
struct TallyCounts {
  std::int64_t valid = 0, invalid = 0;
  std::int64_t within = 0;   ///< valid candidates with a peak of at most the budget
  std::int64_t outside = 0;  ///< valid candidates with a peak below or above all bins
  std::int64_t least_peak = std::numeric_limits<std::int64_t>::max(), most_peak = 0;
  std::int64_t least_cost = std::numeric_limits<std::int64_t>::max(), most_cost = 0;
  WideSum peak_sum = 0, cost_sum = 0;

  void add(const TallyCounts& other);
  bool operator==(const TallyCounts&) const = default;
};

/// The results of a sweep. The tally does not depend on the order and the pieces in which candidates are added, each
/// once, nor on how tallies of the same options are merged. Only one thread may use it at a time.
class Tally {
 public:
  Tally() : Tally(TallyOptions{}) {}
  explicit Tally(const TallyOptions& options);

  /// Adds candidates first, first + 1, ... Takes some ns each: nearly all are dismissed by one comparison with the top
  /// and one with a table of the front.
  void add(std::int64_t first, const Outcomes& outcomes);
  /// Adds candidates with these numbers, one per outcome.
  void add(std::span<const std::int64_t> indices, const Outcomes& outcomes);
  /// Adds another tally. Throws InputError if the options differ.
  void merge(const Tally& other);

  /// The parts of add(), for a backend that counts on its device, in any order and pieces. Each valid candidate must be
  /// in the counts and in the histogram exactly once. An entry may be left out if it is not below worst_top() and
  /// another added candidate is better than it in both respects, or as good with a lower index.
  void add_counts(const TallyCounts& counts) { counts_.add(counts); }
  /// Adds to the histogram, one number per bin.
  void add_histogram(std::span<const std::int64_t> counts);
  void add_entry(const Entry& entry);
  void add_invalid(std::int64_t index);
  /// Returns the entry that another one must be below to be among the top. While the top has fewer than `top` entries,
  /// all are below it.
  Entry worst_top() const;

  const TallyOptions& options() const { return options_; }
  const TallyCounts& counts() const { return counts_; }
  std::int64_t candidates() const { return counts_.valid + counts_.invalid; }
  /// The best candidates, ascending.
  const std::vector<Entry>& top() const { return top_; }
  /// The Pareto front. No valid candidate is better than one of these in both respects, and of equal ones the least
  /// index is kept. Peaks ascend, costs descend.
  const std::vector<Entry>& front() const { return front_; }
  /// The least indices of invalid candidates, ascending.
  const std::vector<std::int64_t>& invalid() const { return invalid_; }
  const std::vector<std::int64_t>& histogram() const { return histogram_; }

  double mean_peak() const;  ///< mean of the peaks; 0 if nothing is valid
  double mean_cost() const;
  /// The least peak in bytes that at least `percent` of the valid candidates do not exceed. The true value is less than
  /// options().width() above the returned one. Exact for 0 and 100; 0 if nothing is valid.
  std::int64_t quantile(std::int32_t percent) const;

  bool operator==(const Tally&) const = default;

  /// Writes the whole tally as one line of JSON.
  std::string to_json() const;
  /// Reads what to_json() wrote; throws InputError, with `origin` as the file, on anything else.
  static Tally from_json(std::string_view text, const std::string& origin);

 private:
  template <class IndexOf>
  void add_all(const Outcomes& outcomes, const IndexOf& index_of);
  bool is_consistent() const;  ///< whether the entries agree with the counts
  std::int32_t bin(std::int64_t peak) const;
  void add_top(const Entry& entry);
  void add_front(const Entry& entry);

  TallyOptions options_;
  TallyCounts counts_;
  std::vector<Entry> top_, front_;
  std::vector<std::int64_t> invalid_;
  std::vector<std::int64_t> histogram_;
};

}  // namespace cairn::sim
