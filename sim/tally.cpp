#include "cairn/sim/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

#include "cairn/core/error.h"
#include "cairn/core/formats/support/json.h"
#include "cairn/core/profile.h"

namespace cairn::sim {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int32_t kMostBins = 65'536;

/// A table that approximates the Pareto front of peak and cost. It divides the range of peaks into cells of equal
/// width, and stores for each cell the highest cost with which a candidate may still be on the front. With one
/// comparison, it rules out most candidates that some entry of the front dominates.
class FrontGuard {
 public:
  explicit FrontGuard(const std::vector<Entry>& front) {
    bound_.fill(kMost);
    if (front.empty()) return;
    from_ = front.front().peak;
    const auto range = static_cast<std::uint64_t>(front.back().peak - from_);
    shift_ = std::max(0, static_cast<int>(std::bit_width(range)) - kLog2Cells + 1);
    std::size_t next = 0;
    for (std::uint64_t cell = 1; cell < kCells; ++cell) {
      bound_[cell] = bound_[cell - 1];
      // Costs descend along the front. So among the entries with a peak below the cell, the last one has the least
      // cost.
      while (next < front.size() && static_cast<std::uint64_t>(front[next].peak - from_) < cell << shift_)
        bound_[cell] = front[next++].cost - 1;
    }
  }

  /// Returns true only if some entry of the front has a lower peak and a cost that is not higher. Can return false even
  /// if there is such an entry.
  bool dominated(std::int64_t peak, std::int64_t cost) const {
    if (peak < from_) return false;
    const std::uint64_t cell = static_cast<std::uint64_t>(peak - from_) >> shift_;
    return cost > bound_[std::min(cell, kCells - 1)];
  }

 private:
  static constexpr int kLog2Cells = 9;
  static constexpr std::uint64_t kCells = std::uint64_t{1} << kLog2Cells;
  std::int64_t from_ = kMost;
  int shift_ = 0;  ///< a cell is 2^shift_ bytes wide; the whole front is in the first half of the cells
  /// For each cell, one less than the least cost among the entries of the front whose peak lies below the cell; kMost
  /// if no entry's peak does.
  std::array<std::int64_t, kCells> bound_;
};

double divided(WideSum sum, std::int64_t count) {
  if (count == 0) return 0;
  // The integer part is computed exactly in integers, so the quotient is exact to the last bit or two, even for large
  // sums.
  const auto whole = static_cast<std::uint64_t>(sum / static_cast<std::uint64_t>(count));
  const auto rest = static_cast<std::uint64_t>(sum % static_cast<std::uint64_t>(count));
  return static_cast<double>(whole) + static_cast<double>(rest) / static_cast<double>(count);
}

/// Returns the bin that holds the number at a percentile. This is the rank-th lowest number, where rank = ceil(count *
/// percent / 100), computed without overflow. `percent` must be in 1 .. 99. bins[b] says how many numbers are in bin b,
/// and `count` > 0 is the total.
std::int32_t percentile_bin(const std::vector<std::int64_t>& bins, std::int64_t count, std::int32_t percent) {
  const std::int64_t rank = count / 100 * percent + (count % 100 * percent + 99) / 100;
  std::int64_t seen = 0;
  std::int32_t b = 0;
  while ((seen += bins[b]) < rank) ++b;
  return b;
}

// --- JSON ----------------------------------------------------------------------------------------------------------

using core::formats::Json;
using core::formats::OrderedJson;
using core::formats::Place;

std::string to_text(WideSum sum) {
  std::string digits;
  do {
    digits += static_cast<char>('0' + static_cast<int>(sum % 10));
    sum /= 10;
  } while (sum > 0);
  return {digits.rbegin(), digits.rend()};
}

WideSum to_sum(const Json& object, const char* key, const Place& place) {
  const std::string text = core::formats::string_or(object, key, place, "");
  constexpr std::size_t kMostDigits = 38;  // 10^38 < 2^128
  if (text.empty() || text.size() > kMostDigits || text.find_first_not_of("0123456789") != std::string::npos)
    place.fail(fmt::format("\"{}\" must be a sum as a string of digits", key));
  WideSum sum = 0;
  for (const char digit : text) sum = sum * 10 + static_cast<unsigned>(digit - '0');
  return sum;
}

OrderedJson to_json(const std::vector<Entry>& entries) {
  OrderedJson list = OrderedJson::array();
  for (const Entry& entry : entries) list.push_back({entry.peak, entry.cost, entry.index});
  return list;
}

/// Reads a list of rows of `width` integers each from object[key]. Returns all integers, row after row.
std::vector<std::int64_t> to_rows(const Json& object, const char* key, const Place& place, std::size_t width) {
  std::vector<std::int64_t> values;
  for (const Json& row : core::formats::require_array(object, key, place)) {
    if (!row.is_array() || row.size() != width)
      place.fail(fmt::format("\"{}\" must be a list of lists of {} integers", key, width));
    for (const Json& value : row) values.push_back(core::formats::to_int(value, key, place));
  }
  return values;
}

std::vector<Entry> to_entries(const Json& object, const char* key, const Place& place) {
  const std::vector<std::int64_t> values = to_rows(object, key, place, 3);
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < values.size(); i += 3) entries.push_back({values[i], values[i + 1], values[i + 2]});
  return entries;
}

std::int32_t to_small(const Json& object, const char* key, const Place& place, std::int64_t least, std::int64_t most) {
  const std::int64_t value = core::formats::require_int(object, key, place);
  if (value < least || value > most)
    place.fail(fmt::format("\"{}\" is {}, which is not in {} .. {}", key, value, least, most));
  return static_cast<std::int32_t>(value);
}

TallyOptions to_options(const Json& json, const Place& place) {
  constexpr std::int64_t kMostEntries = std::numeric_limits<std::int32_t>::max();
  TallyOptions options;
  options.top = to_small(json, "top_size", place, 0, kMostEntries);
  options.invalid = to_small(json, "invalid_size", place, 0, kMostEntries);
  options.from = core::formats::require_int(json, "from", place);
  options.shift = to_small(json, "shift", place, 0, 62);
  options.bins = to_small(json, "bins", place, 1, kMostBins);
  options.budget = core::formats::require_int(json, "budget", place);
  if (json.contains("host_budget")) options.host_budget = core::formats::require_int(json, "host_budget", place);
  return options;
}

TallyCounts to_counts(const Json& json, const Place& place) {
  const auto number = [&](const char* key) { return core::formats::require_int(json, key, place); };
  TallyCounts counts;
  counts.valid = number("valid");
  counts.invalid = number("invalid_count");
  counts.within = number("within");
  counts.outside = number("outside");
  counts.least_peak = number("least_peak");
  counts.most_peak = number("most_peak");
  counts.least_cost = number("least_cost");
  counts.most_cost = number("most_cost");
  counts.peak_sum = to_sum(json, "peak_sum", place);
  counts.cost_sum = to_sum(json, "cost_sum", place);
  return counts;
}

}  // namespace

TallyOptions tally_options(const core::Graph& graph) {
  std::int64_t sizes = 0, scratch = 0;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    sizes += graph.size(v);
    scratch = std::max(scratch, graph.scratch(v));
  }
  TallyOptions options;
  options.from = core::peak_lower_bound(graph);
  const std::int64_t most = std::max(options.from, scratch > kMost - sizes ? kMost : sizes + scratch);
  const auto range = static_cast<std::uint64_t>(most - options.from);
  while (range >> options.shift >= kMostBins) ++options.shift;
  options.bins = static_cast<std::int32_t>(range >> options.shift) + 1;
  return options;
}

void TallyCounts::add(const TallyCounts& other) {
  valid += other.valid;
  invalid += other.invalid;
  within += other.within;
  outside += other.outside;
  least_peak = std::min(least_peak, other.least_peak);
  most_peak = std::max(most_peak, other.most_peak);
  least_cost = std::min(least_cost, other.least_cost);
  most_cost = std::max(most_cost, other.most_cost);
  peak_sum += other.peak_sum;
  cost_sum += other.cost_sum;
}

Tally::Tally(const TallyOptions& options) : options_(options), histogram_(static_cast<std::size_t>(options.bins), 0) {}

std::int32_t Tally::bin(std::int64_t peak) const {
  if (peak < options_.from) return 0;
  const std::int64_t bin = (peak - options_.from) >> options_.shift;
  return static_cast<std::int32_t>(std::min<std::int64_t>(bin, options_.bins - 1));
}

template <class IndexOf>
void Tally::add_all(const Outcomes& outcomes, const IndexOf& index_of) {
  // Number of candidates for which one FrontGuard is built. Building a FrontGuard takes as long as adding a few hundred
  // candidates.
  constexpr std::int64_t kPiece = 8'192;
  const std::int64_t count = outcomes.count();
  const bool transfers = !outcomes.host_peak.empty();
  for (std::int64_t begin = 0; begin < count; begin += kPiece) {
    const std::int64_t end = std::min(count, begin + kPiece);
    // The guard and `worst` are computed once for kPiece candidates, so they can be outdated. This does no harm: while
    // candidates are added, the conditions for the front and for the list of best candidates only become stricter. So
    // an outdated guard can rule out too few candidates, never too many.
    const FrontGuard guard(front_);
    const std::int64_t worst = worst_top().peak;
    TallyCounts sum;
    for (std::int64_t c = begin; c < end; ++c) {
      if (outcomes.valid[c] == 0) {
        ++sum.invalid;
        add_invalid(index_of(c));
        continue;
      }
      const std::int64_t peak = outcomes.peak[c], cost = outcomes.cost[c];
      ++sum.valid;
      const bool on_host = !transfers || outcomes.host_peak[c] <= options_.host_budget;
      sum.within += peak <= options_.budget && on_host ? 1 : 0;
      sum.least_peak = std::min(sum.least_peak, peak);
      sum.most_peak = std::max(sum.most_peak, peak);
      sum.least_cost = std::min(sum.least_cost, cost);
      sum.most_cost = std::max(sum.most_cost, cost);
      sum.peak_sum += static_cast<std::uint64_t>(peak);
      sum.cost_sum += static_cast<std::uint64_t>(cost);
      const std::int32_t b = bin(peak);
      ++histogram_[b];
      sum.outside += (peak - options_.from) >> options_.shift != b ? 1 : 0;
      if (transfers) {
        makespans_.add(cost);
        host_peaks_.add(outcomes.host_peak[c]);
      }
      if (peak <= worst) add_top({peak, cost, index_of(c)});
      if (!guard.dominated(peak, cost)) add_front({peak, cost, index_of(c)});
    }
    counts_.add(sum);
  }
}

void Tally::add(std::int64_t first, const Outcomes& outcomes) {
  add_all(outcomes, [first](std::int64_t c) { return first + c; });
}

void Tally::add(std::span<const std::int64_t> indices, const Outcomes& outcomes) {
  add_all(outcomes, [indices](std::int64_t c) { return indices[c]; });
}

void Tally::merge(const Tally& other) {
  if (options_ != other.options_) throw core::InputError("two tallies of different options cannot be merged");
  add_counts(other.counts_);
  add_histogram(other.histogram_);
  makespans_.merge(other.makespans_);
  host_peaks_.merge(other.host_peaks_);
  for (const Entry& entry : other.top_) add_top(entry);
  for (const Entry& entry : other.front_) add_front(entry);
  for (const std::int64_t index : other.invalid_) add_invalid(index);
}

void Tally::add_histogram(std::span<const std::int64_t> counts) {
  for (std::size_t b = 0; b < histogram_.size(); ++b) histogram_[b] += counts[b];
}

void Tally::add_entry(const Entry& entry) {
  add_top(entry);
  add_front(entry);
}

void Tally::add_invalid(std::int64_t index) {
  const auto most = static_cast<std::size_t>(options_.invalid);
  if (invalid_.size() == most && (most == 0 || index > invalid_.back())) return;
  invalid_.insert(std::lower_bound(invalid_.begin(), invalid_.end(), index), index);
  if (invalid_.size() > most) invalid_.pop_back();
}

Entry Tally::worst_top() const {
  if (options_.top == 0) return {-1, -1, -1};
  return top_.size() < static_cast<std::size_t>(options_.top) ? Entry{kMost, kMost, kMost} : top_.back();
}

void Tally::add_top(const Entry& entry) {
  if (entry >= worst_top()) return;
  top_.insert(std::lower_bound(top_.begin(), top_.end(), entry), entry);
  if (top_.size() > static_cast<std::size_t>(options_.top)) top_.pop_back();
}

void Tally::add_front(const Entry& entry) {
  // Finds the first entry of the front whose peak is higher than the new entry's. Costs descend along the front, so
  // among the entries before it, the last one has the least cost.
  auto next = std::upper_bound(front_.begin(), front_.end(), entry.peak,
                               [](std::int64_t peak, const Entry& other) { return peak < other.peak; });
  if (next != front_.begin()) {
    Entry& before = *std::prev(next);
    if (before.cost < entry.cost || (before.cost == entry.cost && before.peak < entry.peak)) return;
    if (before.cost == entry.cost) {
      before.index = std::min(before.index, entry.index);
      return;
    }
    if (before.peak == entry.peak) --next;
  }
  const auto last = std::find_if(next, front_.end(), [&](const Entry& other) { return other.cost < entry.cost; });
  front_.insert(front_.erase(next, last), entry);
}

// The bins of a Spread: each number below 2^11 has a bin of its own, and above that, each range [2^k, 2^(k + 1)) is
// divided into 2^10 bins.
namespace {

constexpr int kLog2Bins = 10;

int spread_shift(std::int64_t value) {
  return std::max(0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value))) - kLog2Bins - 1);
}

}  // namespace

void Spread::add(std::int64_t value) {
  const int shift = spread_shift(value);
  const std::size_t bin = (static_cast<std::size_t>(shift) << kLog2Bins) + static_cast<std::size_t>(value >> shift);
  if (bins_.size() <= bin) bins_.resize(bin + 1, 0);
  ++bins_[bin];
  ++count_;
  least_ = std::min(least_, value);
  most_ = std::max(most_, value);
  sum_ += static_cast<std::uint64_t>(value);
}

void Spread::merge(const Spread& other) {
  bins_.resize(std::max(bins_.size(), other.bins_.size()), 0);
  for (std::size_t b = 0; b < other.bins_.size(); ++b) bins_[b] += other.bins_[b];
  count_ += other.count_;
  least_ = std::min(least_, other.least_);
  most_ = std::max(most_, other.most_);
  sum_ += other.sum_;
}

double Spread::mean() const { return divided(sum_, count_); }

std::int64_t Spread::quantile(std::int32_t percent) const {
  if (count_ == 0) return 0;
  if (percent <= 0) return least_;
  if (percent >= 100) return most_;
  const std::int64_t bin = percentile_bin(bins_, count_, percent);
  const std::int64_t shift = std::max<std::int64_t>(0, (bin >> kLog2Bins) - 1);
  return std::clamp((bin - (shift << kLog2Bins)) << shift, least_, most_);
}

double Tally::mean_peak() const { return divided(counts_.peak_sum, counts_.valid); }
double Tally::mean_cost() const { return divided(counts_.cost_sum, counts_.valid); }

std::int64_t Tally::quantile(std::int32_t percent) const {
  if (counts_.valid == 0) return 0;
  if (percent <= 0) return counts_.least_peak;
  if (percent >= 100) return counts_.most_peak;
  const std::int32_t b = percentile_bin(histogram_, counts_.valid, percent);
  return std::clamp(options_.from + (std::int64_t{b} << options_.shift), counts_.least_peak, counts_.most_peak);
}

/// Reads and writes spreads.
struct SpreadFile {
  static OrderedJson to_json(const Spread& spread) {
    OrderedJson bins = OrderedJson::array();
    for (std::size_t b = 0; b < spread.bins_.size(); ++b) {
      if (spread.bins_[b] > 0) bins.push_back({b, spread.bins_[b]});
    }
    return {{"least", spread.least_}, {"most", spread.most_}, {"sum", to_text(spread.sum_)}, {"bins", std::move(bins)}};
  }
  static Spread from_json(const Json& object, const char* key, const Place& place) {
    const Json& json = core::formats::require(object, key, place);
    constexpr std::int64_t kMostSpreadBins = std::int64_t{64} << kLog2Bins;
    Spread spread;
    spread.least_ = core::formats::require_int(json, "least", place);
    spread.most_ = core::formats::require_int(json, "most", place);
    spread.sum_ = to_sum(json, "sum", place);
    const std::vector<std::int64_t> bins = to_rows(json, "bins", place, 2);
    for (std::size_t i = 0; i < bins.size(); i += 2) {
      if (bins[i] < 0 || bins[i] >= kMostSpreadBins || bins[i + 1] <= 0) {
        place.fail(fmt::format("\"{}\" has {} candidates in a bin {}, and there are {} bins", key, bins[i + 1], bins[i],
                               kMostSpreadBins));
      }
      spread.bins_.resize(std::max(spread.bins_.size(), static_cast<std::size_t>(bins[i]) + 1), 0);
      spread.bins_[static_cast<std::size_t>(bins[i])] = bins[i + 1];
      spread.count_ += bins[i + 1];
    }
    return spread;
  }
};

std::string Tally::to_json() const {
  OrderedJson bins = OrderedJson::array();
  for (std::size_t b = 0; b < histogram_.size(); ++b) {
    if (histogram_[b] > 0) bins.push_back({b, histogram_[b]});
  }
  OrderedJson json{{"top_size", options_.top},
                   {"invalid_size", options_.invalid},
                   {"from", options_.from},
                   {"shift", options_.shift},
                   {"bins", options_.bins},
                   {"budget", options_.budget},
                   {"host_budget", options_.host_budget},
                   {"valid", counts_.valid},
                   {"invalid_count", counts_.invalid},
                   {"within", counts_.within},
                   {"outside", counts_.outside},
                   {"least_peak", counts_.least_peak},
                   {"most_peak", counts_.most_peak},
                   {"least_cost", counts_.least_cost},
                   {"most_cost", counts_.most_cost},
                   {"peak_sum", to_text(counts_.peak_sum)},
                   {"cost_sum", to_text(counts_.cost_sum)},
                   {"top", sim::to_json(top_)},
                   {"front", sim::to_json(front_)},
                   {"invalid", invalid_},
                   {"histogram", std::move(bins)}};
  if (makespans_.count() > 0) {
    json["makespans"] = SpreadFile::to_json(makespans_);
    json["host_peaks"] = SpreadFile::to_json(host_peaks_);
  }
  return core::formats::dump(json);
}

bool Tally::is_consistent() const {
  const TallyCounts& c = counts_;
  const auto within_valid = [&](std::int64_t count) { return count >= 0 && count <= c.valid; };
  const auto kept = [](std::int64_t most, std::int64_t of) { return static_cast<std::size_t>(std::min(most, of)); };
  if (makespans_.count() != host_peaks_.count() || makespans_.count() > c.valid) return false;
  if (c.valid < 0 || c.invalid < 0 || !within_valid(c.within) || !within_valid(c.outside)) return false;
  if (top_.size() != kept(options_.top, c.valid) || invalid_.size() != kept(options_.invalid, c.invalid)) return false;
  const auto known = [&](const Entry& entry) {
    return entry.index >= 0 && entry.peak >= c.least_peak && entry.peak <= c.most_peak && entry.cost >= c.least_cost &&
           entry.cost <= c.most_cost;
  };
  const auto rises = [](const auto& values) {
    return std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end();
  };
  const auto descends = [](const Entry& a, const Entry& b) { return a.peak >= b.peak || a.cost <= b.cost; };
  if (!rises(top_) || !rises(invalid_) || !std::all_of(top_.begin(), top_.end(), known) ||
      !std::all_of(front_.begin(), front_.end(), known) ||
      std::adjacent_find(front_.begin(), front_.end(), descends) != front_.end())
    return false;
  if (front_.empty() || c.valid == 0) return front_.empty() && c.valid == 0;
  const auto between = [&](WideSum sum, std::int64_t least, std::int64_t most) {
    const auto count = static_cast<WideSum>(c.valid);
    return least >= 0 && sum >= count * static_cast<WideSum>(least) && sum <= count * static_cast<WideSum>(most);
  };
  return front_.front().peak == c.least_peak && front_.back().cost == c.least_cost &&
         (top_.empty() || top_.front() == front_.front()) && between(c.peak_sum, c.least_peak, c.most_peak) &&
         between(c.cost_sum, c.least_cost, c.most_cost);
}

Tally Tally::from_json(std::string_view text, const std::string& origin) {
  const Place place{.origin = origin};
  const Json json = core::formats::parse_json(text, origin);
  Tally tally(to_options(json, place));
  tally.counts_ = to_counts(json, place);
  tally.top_ = to_entries(json, "top", place);
  tally.front_ = to_entries(json, "front", place);
  for (const Json& index : core::formats::require_array(json, "invalid", place))
    tally.invalid_.push_back(core::formats::to_int(index, "invalid", place));
  const std::vector<std::int64_t> bins = to_rows(json, "histogram", place, 2);
  std::int64_t binned = 0;
  for (std::size_t i = 0; i < bins.size(); i += 2) {
    if (bins[i] < 0 || bins[i] >= tally.options_.bins || bins[i + 1] < 0)
      place.fail(fmt::format("\"histogram\" has {} candidates in a bin {}, and there are {} bins", bins[i + 1], bins[i],
                             tally.options_.bins));
    tally.histogram_[bins[i]] = bins[i + 1];
    binned += bins[i + 1];
  }
  if (json.contains("makespans")) tally.makespans_ = SpreadFile::from_json(json, "makespans", place);
  if (json.contains("host_peaks")) tally.host_peaks_ = SpreadFile::from_json(json, "host_peaks", place);
  if (binned != tally.counts_.valid || !tally.is_consistent())
    place.fail("its numbers contradict each other; the file is damaged: start again without it");
  return tally;
}

}  // namespace cairn::sim
