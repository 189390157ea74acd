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

/// One candidate of a sweep. They compare by peak, then cost, then index.
struct Entry {
  std::int64_t peak = 0;  ///< bytes
  std::int64_t cost = 0;
  std::int64_t index = 0;
  auto operator<=>(const Entry&) const = default;
};

/// Sums of int64 that never overflow: 2^64 terms fit.
__extension__ using WideSum = unsigned __int128;

struct TallyOptions {
  std::int32_t top = 10;     ///< best candidates to keep, >= 0
  std::int32_t invalid = 8;  ///< invalid candidates to name, >= 0
  /// Bin b of the histogram holds the peaks in [from + b * 2^shift, from + (b + 1) * 2^shift) bytes. Lower ones are put
  /// into the first bin and higher ones into the last.
  std::int64_t from = 0;
  std::int32_t shift = 0;  ///< 0 .. 62
  std::int32_t bins = 1;   ///< >= 1; all bins end below 2^63
  /// Candidates with this peak or less are counted. Bytes.
  std::int64_t budget = std::numeric_limits<std::int64_t>::max();

  std::int64_t width() const { return std::int64_t{1} << shift; }
  bool operator==(const TallyOptions&) const = default;
};

/// At most 65,536 bins, from core::peak_lower_bound to the sum of all sizes and the largest scratch: no schedule of the
/// graph has a peak outside. O(n + m).
TallyOptions tally_options(const core::Graph& graph);

/// What a tally counts exactly, beside the histogram. Least and most are meaningful where valid > 0.
struct TallyCounts {
  std::int64_t valid = 0, invalid = 0;
  std::int64_t within = 0;   ///< valid with a peak of at most the budget
  std::int64_t outside = 0;  ///< valid with a peak below or above all bins
  std::int64_t least_peak = std::numeric_limits<std::int64_t>::max(), most_peak = 0;
  std::int64_t least_cost = std::numeric_limits<std::int64_t>::max(), most_cost = 0;
  WideSum peak_sum = 0, cost_sum = 0;

  void add(const TallyCounts& other);
  bool operator==(const TallyCounts&) const = default;
};

/// What a sweep keeps. Adding candidates in any order and in any pieces, each once, and merging tallies of the same
/// options gives the same tally. For one thread at a time.
class Tally {
 public:
  Tally() : Tally(TallyOptions{}) {}
  explicit Tally(const TallyOptions& options);

  /// Candidates first, first + 1, ... Some ns each: nearly all are refused by one comparison with the top and one with
  /// a table of the front.
  void add(std::int64_t first, const Outcomes& outcomes);
  /// The same for candidates with these numbers, one an outcome.
  void add(std::span<const std::int64_t> indices, const Outcomes& outcomes);
  /// Throws InputError where the options differ.
  void merge(const Tally& other);

  /// The parts of add(), for a backend that counts on its device. Whatever order and pieces they come in, each valid
  /// candidate must have been in the counts and in the histogram once; of the entries, those may be left out that are
  /// not below worst_top() and, for the front, that another candidate added is better than in both respects, or as good
  /// with a lower index.
  void add_counts(const TallyCounts& counts) { counts_.add(counts); }
  /// One number a bin.
  void add_histogram(std::span<const std::int64_t> counts);
  void add_entry(const Entry& entry);
  void add_invalid(std::int64_t index);
  /// What an entry must be below to be among the top; all are while there are less than `top`.
  Entry worst_top() const;

  const TallyOptions& options() const { return options_; }
  const TallyCounts& counts() const { return counts_; }
  std::int64_t candidates() const { return counts_.valid + counts_.invalid; }
  /// Ascending.
  const std::vector<Entry>& top() const { return top_; }
  /// No valid candidate is better than one of these in both respects, and of equals this one has the least index; peaks
  /// ascend, costs descend.
  const std::vector<Entry>& front() const { return front_; }
  /// The least indices, ascending.
  const std::vector<std::int64_t>& invalid() const { return invalid_; }
  const std::vector<std::int64_t>& histogram() const { return histogram_; }

  double mean_peak() const;  ///< 0 where nothing is valid
  double mean_cost() const;
  /// A peak that at least `percent` of the valid candidates do not exceed, the least such; bytes. The true one is less
  /// than options().width() above what is returned. Exact for 0 and 100, and 0 where nothing is valid.
  std::int64_t quantile(std::int32_t percent) const;

  bool operator==(const Tally&) const = default;

  /// One line of JSON that holds all of it.
  std::string to_json() const;
  /// Throws InputError, with `origin` for the file, on what no to_json() wrote.
  static Tally from_json(std::string_view text, const std::string& origin);

 private:
  template <class IndexOf>
  void add_all(const Outcomes& outcomes, const IndexOf& index_of);
  bool is_consistent() const;  ///< what is kept with what is counted
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
