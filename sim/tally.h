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

/// One candidate of a sweep. Entries are compared by peak, then by cost, then by index.
struct Entry {
  std::int64_t peak = 0;  ///< bytes
  std::int64_t cost = 0;
  std::int64_t index = 0;
  auto operator<=>(const Entry&) const = default;
};

/// An integer type that can hold the sum of 2^64 values of type int64.
__extension__ using WideSum = unsigned __int128;

struct TallyOptions {
  std::int32_t top = 10;     ///< number of best candidates to keep, >= 0
  std::int32_t invalid = 8;  ///< number of invalid candidates whose indices are kept, >= 0
  /// Bin b of the histogram counts the peaks in [from + b * 2^shift, from + (b + 1) * 2^shift) bytes. Lower peaks are
  /// counted in the first bin, higher ones in the last.
  std::int64_t from = 0;
  std::int32_t shift = 0;  ///< 0 .. 62
  std::int32_t bins = 1;   ///< >= 1; all bins end below 2^63
  /// Limit on the peak in bytes. Candidates whose peak is not above it are counted in TallyCounts::within.
  std::int64_t budget = std::numeric_limits<std::int64_t>::max();
  /// Limit on the bytes on the host (Outcomes::host_peak). Candidates above this limit are not counted in
  /// TallyCounts::within.
  std::int64_t host_budget = std::numeric_limits<std::int64_t>::max();

  std::int64_t width() const { return std::int64_t{1} << shift; }
  bool operator==(const TallyOptions&) const = default;
};

/// Returns options with at most 65,536 bins, which range from core::peak_lower_bound to the sum of all sizes plus the
/// largest scratch. No schedule of the graph has a peak outside this range. O(nodes + edges).
TallyOptions tally_options(const core::Graph& graph);

/// Collects the distribution of many numbers >= 0. Counts the numbers in bins. A bin that begins at x is at most x /
/// 1024 wide (but at least 1).
class Spread {
 public:
  void add(std::int64_t value);
  void merge(const Spread& other);

  std::int64_t count() const { return count_; }
  std::int64_t least() const { return count_ > 0 ? least_ : 0; }
  std::int64_t most() const { return most_; }
  double mean() const;  ///< 0 if there are no numbers
  /// Returns a lower bound on a percentile of the numbers, as Tally::quantile() does for peaks. The percentile exceeds
  /// the result by less than a 1024th.
  std::int64_t quantile(std::int32_t percent) const;

  bool operator==(const Spread&) const = default;

 private:
  friend struct SpreadFile;

  std::int64_t count_ = 0, least_ = std::numeric_limits<std::int64_t>::max(), most_ = 0;
  WideSum sum_ = 0;
  std::vector<std::int64_t> bins_;  ///< counts of the bins, up to the last bin that is not empty
};

/// Exact counts of a tally, without the histogram. The fields least_* and most_* have a meaning only if valid > 0.
struct TallyCounts {
  std::int64_t valid = 0, invalid = 0;
  std::int64_t within = 0;   ///< number of valid candidates within the budgets
  std::int64_t outside = 0;  ///< number of valid candidates whose peak lies below the first bin or above the last
  std::int64_t least_peak = std::numeric_limits<std::int64_t>::max(), most_peak = 0;
  std::int64_t least_cost = std::numeric_limits<std::int64_t>::max(), most_cost = 0;
  WideSum peak_sum = 0, cost_sum = 0;

  void add(const TallyCounts& other);
  bool operator==(const TallyCounts&) const = default;
};

/// The results of a sweep: counts, a histogram of peaks, the best candidates and the Pareto front. Candidates may be
/// added in any order and grouping, and tallies of the same options may be merged in any order. The result is the same
/// if each candidate is added exactly once. Only one thread may use a tally at a time.
class Tally {
 public:
  Tally() : Tally(TallyOptions{}) {}
  explicit Tally(const TallyOptions& options);

  /// Adds candidates first, first + 1, ... Takes a few ns per candidate. Nearly all candidates need only two
  /// comparisons: one with the worst entry of top(), and one with a table of the Pareto front.
  void add(std::int64_t first, const Outcomes& outcomes);
  /// Adds the candidates with these indices. There is one outcome for each index.
  void add(std::span<const std::int64_t> indices, const Outcomes& outcomes);
  /// Adds the results of another tally. Throws InputError if the options differ.
  void merge(const Tally& other);

  /// Adds the counts of some candidates. A backend that counts on a GPU calls add_counts(), add_histogram(),
  /// add_entry() and add_invalid() instead of add(). They can be called in any order and for any groups of candidates.
  /// Each valid candidate must be in the counts and in the histogram exactly once. The call of add_entry() for a
  /// candidate may be left out if both of the following are true:
  /// - The entry is not below worst_top().
  /// - Another added candidate is at least as good in both peak and cost. If that candidate is equal in both, it must
  ///   have a lower index.
  void add_counts(const TallyCounts& counts) { counts_.add(counts); }
  /// Adds to the histogram; `counts` has one number per bin.
  void add_histogram(std::span<const std::int64_t> counts);
  void add_entry(const Entry& entry);
  void add_invalid(std::int64_t index);
  /// Returns the worst entry of top(). Only entries below it can get into top(). While top() is not full, every entry
  /// is below the returned one.
  Entry worst_top() const;

  const TallyOptions& options() const { return options_; }
  const TallyCounts& counts() const { return counts_; }
  std::int64_t candidates() const { return counts_.valid + counts_.invalid; }
  /// Returns the best candidates, ascending.
  const std::vector<Entry>& top() const { return top_; }
  /// Returns the Pareto front of peak and cost, by ascending peak and descending cost. Each entry of the front,
  /// compared with any other valid candidate, has a lower peak or a lower cost, or is equal in both. Among candidates
  /// that are equal in both, the one with the least index is in the front.
  const std::vector<Entry>& front() const { return front_; }
  /// Returns the indices of the first TallyOptions::invalid invalid candidates, ascending.
  const std::vector<std::int64_t>& invalid() const { return invalid_; }
  const std::vector<std::int64_t>& histogram() const { return histogram_; }
  /// The costs and host peaks of the valid candidates that can have transfers (Outcomes::host_peak).
  const Spread& makespans() const { return makespans_; }
  const Spread& host_peaks() const { return host_peaks_; }

  double mean_peak() const;  ///< mean of the peaks; 0 if nothing is valid
  double mean_cost() const;
  /// Returns a lower bound on a percentile of the peaks. The percentile is the least peak, in bytes, that at least
  /// `percent` of the valid candidates do not exceed. The percentile exceeds the result by less than options().width().
  /// For 0 and 100 percent, the result is the percentile itself. Returns 0 if no candidate is valid.
  std::int64_t quantile(std::int32_t percent) const;

  bool operator==(const Tally&) const = default;

  /// Returns the whole tally as one line of JSON.
  std::string to_json() const;
  /// Reads what to_json() wrote. Throws InputError, which names `origin` as the file, on anything else.
  static Tally from_json(std::string_view text, const std::string& origin);

 private:
  template <class IndexOf>
  void add_all(const Outcomes& outcomes, const IndexOf& index_of);
  bool is_consistent() const;  ///< returns whether the entries of top() and front() agree with the counts
  std::int32_t bin(std::int64_t peak) const;
  void add_top(const Entry& entry);
  void add_front(const Entry& entry);

  TallyOptions options_;
  TallyCounts counts_;
  std::vector<Entry> top_, front_;
  std::vector<std::int64_t> invalid_;
  std::vector<std::int64_t> histogram_;
  Spread makespans_, host_peaks_;
};

}  // namespace cairn::sim
