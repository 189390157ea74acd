#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/host_device.h"
#include "cairn/core/machine/support/machine.h"
#include "cairn/sim/canonical_batch.h"
#include "cairn/sim/device/dominance/canonical_batch.h"
#include "cairn/sim/device/intrinsics.h"
#include "cairn/sim/device/shared_items.h"
#include "cairn/sim/support/dominance.h"

/// Decides dominance among many memory profiles on any Machine (core/machine/support/machine.h).
///
/// By Definition 2.4 of Jin et al. (core/dominance.h), profile `a` dominates profile `b` if for every moment of `a`
/// there is a moment of `b` such that
/// - from these moments to the ends of the profiles, a's highest value is at most b's, and a's lowest value is at most
///   b's;
/// - the same holds from the beginnings of the profiles to these moments.
///
/// The part of a profile to the right of its lowest valley (local minimum) defines a staircase. This is a function that
/// maps a height, in bytes, to the lowest value after the last moment at which the part reaches that height. It is
/// defined for heights up to the part's highest value. The lower the height, the later that moment, and the higher the
/// lowest value after it. The function is constant on several ranges of heights. Each such range, with its value, is a
/// stair. The part to the left of the valley defines another staircase in the same way, read from right to left. Hence
/// `a` dominates `b` exactly if
///   - a's lowest value is at most b's, and
///   - the left staircase of a is nowhere above the left one of b, and the right staircase of a nowhere above the right
///     one of b. At a height for which only one of two staircases is defined, that staircase counts as the one above.
/// Two profiles dominate each other exactly if their lowest values and their staircases are equal.
///
/// Signatures make comparisons fast. Staircases are monotone, so if `a` dominates `b`, then at every fixed height a's
/// staircase is at most b's. This remains true after values are rounded by a monotone map. A signature of a profile
/// holds such rounded values, called levels, at a few fixed heights. Each level is in a byte of its own, which is
/// called a lane. Eight levels are compared at once. If the signatures do not rule out dominance, the staircases are
/// compared. So the choice of heights and levels changes only the time, never the answer.
namespace cairn::sim::device {

/// A stair: the largest height of its range, and the value of the staircase for all heights of the range, both in
/// bytes. From the lowest valley outwards, heights strictly fall and floors strictly rise.
struct alignas(16) Stair {
  std::int64_t height;
  std::int64_t floor;
};

/// A profile as its lowest value and its two staircases. The stairs of all profiles are in one array, in which the left
/// staircase of a profile comes before the right one. Each staircase begins at the profile's highest value. The left
/// one ends at the profile's first value, the right one at its last value.
struct Outline {
  std::int64_t lowest;
  std::int64_t first;        ///< index of the first stair
  std::int32_t left, right;  ///< number of stairs of each staircase
};

inline constexpr std::int64_t kBelowAll = std::numeric_limits<std::int64_t>::min();

/// Number of bytes (lanes) of a signature. Each lane holds a rounded value (level).
inline constexpr int kLanes = 16;
inline constexpr int kWords = 2;  ///< number of words of a signature, of eight bytes each
/// Number of lanes of a signature that hold the value of a staircase at a fixed height (threshold).
inline constexpr int kThresholds = 12;
/// Number of boundaries (cuts) between the levels 0 to 127, to which values are rounded. A level has seven bits, so the
/// highest bit of its byte is 0.
inline constexpr int kCuts = 127;

/// What turns a profile into a signature: the heights at which its staircases are read (thresholds), and the boundaries
/// between the levels to which values are rounded (cuts).
struct Levels {
  std::int64_t thresholds[kThresholds];  ///< heights for right staircases, then those for left ones; each list descends
  std::int32_t right_thresholds;         ///< number of thresholds for right staircases
  std::int64_t cuts[kLanes][kCuts];      ///< cuts of each lane, ascending
};

/// Profiles in the memory of a Machine.
struct Profiles {
  const Stair* stairs;
  const Outline* outlines;
  const std::uint64_t* words;  ///< signatures: word w of profile i is at [w * stride + i]
  std::int64_t stride;
};

/// Returns whether staircase `a` is nowhere above staircase `b`: for each stair of `a`, `b` has a stair that is at
/// least as high and has at least as high a floor. O(a_count + b_count) for the numbers of stairs.
CAIRN_HD inline bool nowhere_above(const Stair* a, std::int32_t a_count, const Stair* b, std::int32_t b_count) {
  const Stair* const a_end = a + a_count;
  const Stair* const b_last = b + b_count - 1;
  if (a->height > b->height || a_end[-1].floor > b_last->floor) return false;
  for (; a != a_end; ++a) {
    if ((b->height < a->height) | (b->floor < a->floor)) {
      if (b->height < a->height) --b;  // back to the previous stair, which is high enough
      while (b->floor < a->floor) ++b;
      if (b->height < a->height) return false;
    }
    if (b != b_last) ++b;
  }
  return true;
}

CAIRN_HD inline bool dominates_by_stairs(const Profiles& a, std::int64_t i, const Profiles& b, std::int64_t j) {
  const Outline& in_a = a.outlines[i];
  const Outline& in_b = b.outlines[j];
  const Stair* of_a = a.stairs + in_a.first;
  const Stair* of_b = b.stairs + in_b.first;
  return in_a.lowest <= in_b.lowest && nowhere_above(of_a + in_a.left, in_a.right, of_b + in_b.left, in_b.right) &&
         nowhere_above(of_a, in_a.left, of_b, in_b.left);
}

/// Returns whether each of the eight levels in `a` is at most the level in the same byte of `b`. The unused highest bit
/// of each byte of `b` is set before the subtraction. It stays set exactly if the byte of `a` is not larger, because
/// then the subtraction does not borrow from this bit.
CAIRN_HD inline bool levels_at_most(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kFree = 0x8080808080808080ULL;
  return (((b | kFree) - a) & kFree) == kFree;
}

CAIRN_HD inline bool may_dominate(const Profiles& a, std::int64_t i, const Profiles& b, std::int64_t j) {
  return levels_at_most(a.words[i], b.words[j]) && levels_at_most(a.words[a.stride + i], b.words[b.stride + j]);
}

/// Returns whether profile i of `a` dominates profile j of `b`. The signatures of both must be made with the same
/// Levels.
CAIRN_HD inline bool dominates(const Profiles& a, std::int64_t i, const Profiles& b, std::int64_t j) {
  return may_dominate(a, i, b, j) && dominates_by_stairs(a, i, b, j);
}

/// Writes the stairs of a staircase, from the lowest valley outwards. Merges neighbouring stairs with equal values.
class StairWriter {
 public:
  CAIRN_HD StairWriter(Stair* stairs, std::int64_t highest, std::int64_t lowest) : stairs_(stairs) {
    stairs[0] = {highest, lowest};
  }
  CAIRN_HD void add(std::int64_t height, std::int64_t floor) {
    Stair& last = stairs_[count_ - 1];
    if (floor <= last.floor) return;
    if (height >= last.height) {
      last.floor = floor;
    } else {
      stairs_[count_++] = {height, floor};
    }
  }
  CAIRN_HD std::int32_t count() const { return count_; }

 private:
  Stair* stairs_;
  std::int32_t count_ = 1;
};

/// Builds the staircases of all profiles. A profile with s segments has room for s + 2 stairs.
struct BuildStairs {
  static constexpr int kThreads = 1;
  const std::int64_t* starts;
  const std::int64_t* begins;
  const core::Segment* segments;
  Stair* stairs;
  Outline* outlines;

  template <class Team>
  CAIRN_HD void operator()(const Team&, std::int64_t i) const {
    std::int64_t value = starts[i], lowest = value, highest = value, valley = begins[i];
    for (std::int64_t k = begins[i]; k < begins[i + 1]; ++k) {
      const core::Segment segment = segments[k];
      if (value + segment.rise > highest) highest = value + segment.rise;
      value += segment.change();
      if (segment.negative()) {
        lowest = value;
        valley = k + 1;
      }
    }
    Outline outline{lowest, begins[i] + 2 * i, 0, 0};
    StairWriter left(stairs + outline.first, highest, lowest);
    value = lowest;
    for (std::int64_t k = valley; k-- > begins[i];) {
      const std::int64_t height = value + segments[k].drop;
      left.add(height, value = height - segments[k].rise);
    }
    outline.left = left.count();
    StairWriter right(stairs + outline.first + outline.left, highest, lowest);
    value = lowest;
    for (std::int64_t k = valley; k < begins[i + 1]; ++k) {
      const std::int64_t height = value + segments[k].rise;
      right.add(height, value = height - segments[k].drop);
    }
    outline.right = right.count();
    outlines[i] = outline;
  }
};

/// Calls put(k, value) for each k in [from, to). `value` is the floor of the last stair whose height is at least
/// heights[k], or kBelowAll if no stair is so high. `heights` must be in descending order.
template <class Put>
CAIRN_HD void look_up(const Stair* stairs, std::int32_t count, const std::int64_t* heights, int from, int to,
                      const Put& put) {
  std::int32_t at = -1;
  for (int k = from; k < to; ++k) {
    while (at + 1 < count && stairs[at + 1].height >= heights[k]) ++at;
    put(k, at < 0 ? kBelowAll : stairs[at].floor);
  }
}

/// Calls put(lane, value) with the value that each lane of a signature is to hold, before it is rounded. Word 0, which
/// is compared first, has the lanes that rule out most pairs.
template <class Put>
CAIRN_HD void lane_values(const Outline& outline, const Stair* all_stairs, const Levels& levels, const Put& put) {
  const Stair* left = all_stairs + outline.first;
  const Stair* right = left + outline.left;
  put(0, left[0].height);
  put(7, right[outline.right - 1].floor);
  put(8, outline.lowest);
  put(9, left[outline.left - 1].floor);
  const auto put_threshold = [&put](int k, std::int64_t value) { put(k % 2 == 0 ? 1 + k / 2 : 10 + k / 2, value); };
  look_up(right, outline.right, levels.thresholds, 0, levels.right_thresholds, put_threshold);
  look_up(left, outline.left, levels.thresholds, levels.right_thresholds, kThresholds, put_threshold);
}

struct BuildSignatures {
  static constexpr int kThreads = 1;
  const Stair* stairs;
  const Outline* outlines;
  const Levels* levels;
  std::uint64_t* words;
  std::int64_t stride;

  template <class Team>
  CAIRN_HD void operator()(const Team&, std::int64_t i) const {
    std::uint64_t signature[kWords] = {};
    lane_values(outlines[i], stairs, *levels, [&](int lane, std::int64_t value) {
      const std::int64_t* cuts = levels->cuts[lane];
      std::uint64_t level = 0;  // number of cuts that are at most the value
      for (std::uint64_t half = (kCuts + 1) / 2; half > 0; half /= 2)
        level += cuts[level + half - 1] <= value ? half : 0;
      // `w` is a constant in each unrolled iteration, so the words of `signature` stay in registers.
      CAIRN_UNROLL
      for (int w = 0; w < kWords; ++w) signature[w] |= w == lane / 8 ? level << (lane % 8 * 8) : 0;
    });
    for (int w = 0; w < kWords; ++w) words[w * stride + i] = signature[w];
  }
};

/// Number of profiles that are sampled to choose the Levels. The sampled profiles are evenly spaced in the set.
inline constexpr std::int64_t kSample = 2048;
inline constexpr std::int64_t kSampledStairs = 8;

CAIRN_HD inline std::int64_t sampled(std::int64_t sample, std::int64_t samples, std::int64_t count) {
  return sample * count / samples;
}

/// Writes the heights of kSampledStairs stairs of each staircase of the sampled profiles; the first stair of a
/// staircase, whose height is the profile's peak, is never taken. If a staircase has fewer stairs, the remaining
/// entries are kBelowAll.
struct SampleHeights {
  static constexpr int kThreads = 1;
  const Stair* stairs;
  const Outline* outlines;
  std::int64_t samples, count;
  std::int64_t* left;
  std::int64_t* right;

  CAIRN_HD static void sample(const Stair* inner, std::int64_t inner_count, std::int64_t* heights) {
    for (std::int64_t k = 0; k < kSampledStairs; ++k) {
      const std::int64_t place = inner_count <= kSampledStairs ? k : k * inner_count / kSampledStairs;
      heights[k] = place < inner_count ? inner[place].height : kBelowAll;
    }
  }
  template <class Team>
  CAIRN_HD void operator()(const Team&, std::int64_t i) const {
    const Outline outline = outlines[sampled(i, samples, count)];
    const Stair* first = stairs + outline.first;
    sample(first + 1, outline.left - 1, left + i * kSampledStairs);
    sample(first + outline.left + 1, outline.right - 1, right + i * kSampledStairs);
  }
};

struct SampleLanes {
  static constexpr int kThreads = 1;
  const Stair* stairs;
  const Outline* outlines;
  const Levels* levels;
  std::int64_t samples, count;
  std::int64_t* values;  ///< sampled values; the value of lane l of sample i is at [l * samples + i]

  template <class Team>
  CAIRN_HD void operator()(const Team&, std::int64_t i) const {
    lane_values(outlines[sampled(i, samples, count)], stairs, *levels,
                [&](int lane, std::int64_t value) { values[lane * samples + i] = value; });
  }
};

/// Returns Levels whose thresholds are quantiles of the heights of staircases. The staircases on the side that has more
/// stairs get more of the thresholds.
Levels levels_with_thresholds(std::vector<std::int64_t> left, std::vector<std::int64_t> right);
/// Sets the cuts of each lane to quantiles of the lane's sampled values.
void choose_cuts(Levels& levels, std::vector<std::int64_t> values);

/// Returns whether the only profile of `one` dominates profile j of `many`. If kOneDominates is false, returns whether
/// profile j dominates the profile of `one`.
template <bool kOneDominates>
struct OneAgainstMany {
  Profiles one, many;
  CAIRN_HD bool operator()(std::int64_t j) const {
    return kOneDominates ? dominates(one, 0, many, j) : dominates(many, j, one, 0);
  }
};

/// Returns the index of the set bit of `word` below which exactly `count` bits are set. More than `count` bits of
/// `word` must be set.
CAIRN_HD inline std::int32_t nth_bit(std::uint64_t word, std::int32_t count) {
  std::int32_t at = 0;
  CAIRN_UNROLL
  for (std::int32_t width = 32; width > 0; width /= 2) {
    const auto low =
        static_cast<std::uint32_t>(word >> at) & static_cast<std::uint32_t>((std::uint64_t{1} << width) - 1);
    const std::int32_t bits = count_bits(low);
    if (bits <= count) {
      count -= bits;
      at += width;
    }
  }
  return at;
}

/// Computes one tile of a bit matrix that says for each pair of profiles whether the row's profile dominates the
/// column's. The tile is part of a band, i.e. of a range of rows (sim::DominanceBand). It consists of up to 32 rows and
/// of 64 columns, so it has one 64-bit word of each row. First, each thread compares the signature of one row's profile
/// with the signatures of all columns' profiles. Then the threads share evenly the pairs that the signatures do not
/// rule out; rows can have very different numbers of these.
struct MatrixTile {
  static constexpr int kThreads = 32, kRows = 32, kColumns = 64;
  Profiles profiles;
  std::int64_t count, words_of_row, first_row, rows;
  std::int64_t tiles_of_column;
  std::uint64_t* bits;

  struct Shared {
    std::uint64_t possible[kRows];   ///< pairs that signatures do not rule out, a bit per column
    std::uint32_t found[kRows][2];   ///< pairs of which the row's profile dominates the column's
    std::int32_t counts[kRows];      ///< number of possible pairs in a row
    std::int32_t before[kRows + 1];  ///< number of possible pairs in all rows above
  };

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    // Tiles are numbered column by column, so that the profiles of the columns stay in a cache while all rows use them.
    const std::int64_t word = index / tiles_of_column, row = (index - word * tiles_of_column) * kRows;
    const std::int64_t first = word * kColumns;
    const auto rows_here = static_cast<std::int32_t>(rows - row < kRows ? rows - row : kRows);
    Shared& shared = *team.template shared<Shared>();
    for (std::int32_t r = team.rank(); r < kRows; r += team.size()) {
      shared.possible[r] = r < rows_here ? possible(first_row + row + r, first) : 0;
      shared.counts[r] = count_bits(shared.possible[r]);
      shared.found[r][0] = shared.found[r][1] = 0;
    }
    team.sync();
    count_before(team, shared.counts, kRows, shared.before);
    team.sync();
    for_each_item<kRows>(team, shared.before, kRows, [&](std::int32_t r, std::int32_t item) {
      const std::int32_t column = nth_bit(shared.possible[r], item);
      if (dominates_by_stairs(profiles, first_row + row + r, profiles, first + column))
        fetch_or(&shared.found[r][column / 32], 1U << column % 32);
    });
    team.sync();
    for (std::int32_t r = team.rank(); r < rows_here; r += team.size()) {
      bits[(row + r) * words_of_row + word] = std::uint64_t{shared.found[r][1]} << 32 | shared.found[r][0];
    }
  }

 private:
  /// Returns a bit for each of the columns from `first` on: whether the signatures allow that profile `row` dominates
  /// the column's profile.
  CAIRN_HD std::uint64_t possible(std::int64_t row, std::int64_t first) const {
    const std::uint64_t low = profiles.words[row], high = profiles.words[profiles.stride + row];
    const std::uint64_t* const lows = profiles.words + first;
    const std::uint64_t* const highs = profiles.words + profiles.stride + first;
    const auto columns = static_cast<std::int32_t>(count - first < kColumns ? count - first : kColumns);
    std::uint64_t mask = 0;
    CAIRN_UNROLL_BY(4)
    for (std::int32_t k = 0; k < columns; ++k) {
      const std::uint64_t below = levels_at_most(low, lows[k]), above = levels_at_most(high, highs[k]);
      mask |= (below & above) << k;  // not &&, because a branch would cost more than the second comparison
    }
    return mask;
  }
};

/// Computes the keys by which profiles are sorted for non_dominated(). If profile a dominates profile b, the key of a
/// is not larger than the key of b. A key begins with the sum of the levels in the signature, because a profile with
/// low levels dominates many profiles and should come early.
struct OrderKeys {
  static constexpr int kThreads = 1;
  Profiles profiles;
  std::uint64_t* keys;
  std::int32_t* places;

  template <class Team>
  CAIRN_HD void operator()(const Team&, std::int64_t i) const {
    std::uint64_t sum = 0;
    for (int w = 0; w < kWords; ++w) {
      for (int byte = 0; byte < 8; ++byte) sum += profiles.words[w * profiles.stride + i] >> (8 * byte) & 0xFF;
    }
    constexpr int kSumBits = 11;
    static_assert(kLanes * kCuts < 1 << kSumBits);
    const std::int64_t highest = profiles.stairs[profiles.outlines[i].first].height;
    const std::uint64_t rising = static_cast<std::uint64_t>(highest) ^ std::uint64_t{1} << 63;
    keys[i] = sum << (64 - kSumBits) | rising >> kSumBits;
    places[i] = static_cast<std::int32_t>(i);
  }
};

/// Candidates: profiles that are not yet known to be dominated, sorted by key.
struct Candidates {
  const Stair* stairs;
  Outline* outlines;
  std::uint64_t* words;
  std::uint64_t* keys;
  std::int32_t* places;  ///< index of each candidate in the set
  std::int64_t stride;

  CAIRN_HD Profiles profiles() const { return {stairs, outlines, words, stride}; }
};

/// Appends the candidates from[begin + selected[i]] to `to`, which holds to_count candidates.
template <class Place>
struct Append {
  static constexpr int kThreads = 1;
  Candidates from;
  std::int64_t begin;
  const Place* selected;
  Candidates to;
  std::int64_t to_count;

  template <class Team>
  CAIRN_HD void operator()(const Team&, std::int64_t i) const {
    const std::int64_t source = begin + selected[i], target = to_count + i;
    to.outlines[target] = from.outlines[source];
    to.keys[target] = from.keys[source];
    to.places[target] = from.places[source];
    for (int w = 0; w < kWords; ++w) to.words[w * to.stride + target] = from.words[w * from.stride + source];
  }
};

/// Sets flags[i] to 1 if none of the first `earlier_count` profiles of `earlier` dominates profile begin + i of
/// `candidates`, else to 0. If `earlier_count` is kThoseBefore, compares the profile only with the first i profiles of
/// `earlier`.
struct Filter {
  static constexpr int kThreads = 32;
  static constexpr std::int64_t kThoseBefore = -1;
  Profiles earlier;
  std::int64_t earlier_count;
  Profiles candidates;
  std::int64_t begin;
  std::uint8_t* flags;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t i) const {
    // Number of profiles that the team compares before its threads tell each other whether one of them has found a
    // dominating profile.
    constexpr std::int64_t kRound = 512;
    const std::int64_t count = earlier_count == kThoseBefore ? i : earlier_count;
    int found = 0;
    for (std::int64_t first = 0; first < count && found == 0; first += kRound) {
      const std::int64_t end = count - first < kRound ? count : first + kRound;
      for (std::int64_t k = first + team.rank(); k < end && found == 0; k += team.size()) {
        found = dominates(earlier, k, candidates, begin + i);
      }
      found = team.reduce(found, core::Or());
    }
    if (team.rank() == 0) flags[i] = found == 0;
  }
};

/// Returns whether no later candidate dominates candidate i. Filter has compared each candidate only with earlier ones.
/// Candidates are sorted by key, and a profile's key is never larger than the keys of profiles that it dominates. So
/// only later candidates with an equal key must be compared.
struct FilterTies {
  Profiles candidates;
  const std::uint64_t* keys;
  std::int32_t count;  ///< a set has at most 2^31 - 1 profiles

  CAIRN_HD bool operator()(std::int64_t i) const {
    const auto own = static_cast<std::int32_t>(i);  // indices of 32 bits need fewer registers
    for (std::int32_t k = own + 1; k < count && keys[k] == keys[own]; ++k) {
      if (dominates(candidates, k, candidates, own)) return false;
    }
    return true;
  }
};

/// The DominanceSet of sim/support/dominance.h on any Machine. The machine must outlive the set and must be bound
/// (Machine::bind) while the set is constructed.
template <class Machine>
class DominanceSet : public sim::DominanceSet {
 public:
  DominanceSet(Machine& machine, const Batch<Machine>& batch) : machine_(machine) {
    if (batch.count() > std::numeric_limits<std::int32_t>::max())
      throw core::InputError("a set of " + std::to_string(batch.count()) + " profiles is too large: split it");
    build_stairs(batch);
    build_levels();
    build_signatures();
  }
  DominanceSet(Machine& machine, const CanonicalBatch& batch) : DominanceSet(machine, upload(machine, batch)) {}

  std::int64_t size() const override { return outlines_.size(); }
  Profiles profiles() const { return {stairs_.data(), outlines_.data(), words_.data(), size()}; }

  std::vector<std::uint8_t> dominated_by(const core::CanonicalView& one) const override { return against<true>(one); }
  std::vector<std::uint8_t> dominators_of(const core::CanonicalView& one) const override { return against<false>(one); }

  void for_each_band(std::int64_t most_bytes, const std::function<void(const DominanceBand&)>& visit) const override {
    const auto bound = machine_.bind();
    const std::int64_t words = (size() + 63) / 64, row_bytes = 8 * words;
    if (size() == 0) return;
    if (most_bytes < row_bytes) {
      throw core::InputError("one row of the dominance matrix of " + std::to_string(size()) + " profiles takes " +
                             std::to_string(row_bytes) + " bytes, more than the limit of " +
                             std::to_string(most_bytes) + ": raise it");
    }
    const std::int64_t most_rows = std::min(size(), most_bytes / row_bytes);
    const auto bits = machine_.template array<std::uint64_t>(most_rows * words);
    std::vector<std::uint64_t> band(static_cast<std::size_t>(most_rows * words));
    for (std::int64_t row = 0; row < size(); row += most_rows) {
      const std::int64_t rows = std::min(most_rows, size() - row);
      const std::int64_t tiles = (rows + MatrixTile::kRows - 1) / MatrixTile::kRows;
      machine_.launch(MatrixTile{profiles(), size(), words, row, rows, tiles, bits.data()}, tiles * words,
                      sizeof(MatrixTile::Shared));
      machine_.download(bits.data(), rows * words, band.data());
      visit({row, rows, size(), words, std::span(band).first(static_cast<std::size_t>(rows * words))});
    }
  }

  std::vector<std::int64_t> non_dominated() const override {
    const auto bound = machine_.bind();
    const CandidateArrays all(machine_, stairs_.data(), size()), kept(machine_, stairs_.data(), size());
    sort_into(all.view());
    const std::int64_t most = std::max<std::int64_t>(4096, 2 * machine_.template resident_teams<Filter>(0));
    const CandidateArrays block(machine_, stairs_.data(), std::min(most, size()));
    const auto flags = machine_.template array<std::uint8_t>(size());
    const auto selected = machine_.template array<std::int64_t>(size());
    std::int64_t found = 0;
    for (std::int64_t begin = 0; begin < size(); begin += most) {
      const std::int64_t count = std::min(most, size() - begin);
      // Drops each profile of this block that an earlier profile dominates. The dominating profile p can itself be
      // dropped, because a profile q dominates it. This does no harm: dominance is transitive, so q also dominates
      // every profile that p dominates.
      machine_.launch(Filter{kept.view().profiles(), found, all.view().profiles(), begin, flags.data()}, count);
      const std::int64_t left = machine_.select(flags.data(), count, selected.data());
      machine_.launch(Append<std::int64_t>{all.view(), begin, selected.data(), block.view(), 0}, left);
      const Profiles rest = block.view().profiles();
      machine_.launch(Filter{rest, Filter::kThoseBefore, rest, 0, flags.data()}, left);
      const std::int64_t stay = machine_.select(flags.data(), left, selected.data());
      machine_.launch(Append<std::int64_t>{block.view(), 0, selected.data(), kept.view(), found}, stay);
      found += stay;
    }
    const FilterTies ties{kept.view().profiles(), kept.view().keys, static_cast<std::int32_t>(found)};
    machine_.launch(Mark<FilterTies>{ties, flags.data()}, found);
    const std::vector<std::int32_t> places = downloaded(machine_, kept.view().places, found);
    const std::vector<std::uint8_t> stays = downloaded(machine_, flags.data(), found);
    std::vector<std::int64_t> result;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (stays[i] != 0) result.push_back(places[i]);
    }
    std::sort(result.begin(), result.end());
    return result;
  }

 private:
  template <class T>
  using Array = typename Machine::template ArrayOf<T>;

  class CandidateArrays {
   public:
    CandidateArrays(Machine& machine, const Stair* stairs, std::int64_t count)
        : stairs_(stairs),
          outlines_(machine.template array<Outline>(count)),
          words_(machine.template array<std::uint64_t>(kWords * count)),
          keys_(machine.template array<std::uint64_t>(count)),
          places_(machine.template array<std::int32_t>(count)) {}
    Candidates view() const {
      return {stairs_, outlines_.data(), words_.data(), keys_.data(), places_.data(), outlines_.size()};
    }

   private:
    const Stair* stairs_;
    Array<Outline> outlines_;
    Array<std::uint64_t> words_, keys_;
    Array<std::int32_t> places_;
  };

  /// Makes a set that uses the Levels of another set. Otherwise, the signatures of the two sets could not be compared.
  DominanceSet(Machine& machine, const Batch<Machine>& batch, const Levels& levels) : machine_(machine) {
    build_stairs(batch);
    upload_levels(levels);
    build_signatures();
  }

  void build_stairs(const Batch<Machine>& batch) {
    stairs_ = machine_.template array<Stair>(batch.segments.size() + 2 * batch.count());
    outlines_ = machine_.template array<Outline>(batch.count());
    machine_.launch(
        BuildStairs{batch.starts.data(), batch.begins.data(), batch.segments.data(), stairs_.data(), outlines_.data()},
        batch.count());
  }
  void upload_levels(const Levels& levels) {
    chosen_ = levels;
    if (levels_.size() == 0) levels_ = machine_.template array<Levels>(1);
    machine_.upload(&chosen_, 1, levels_.data());
  }
  void build_levels() {
    const std::int64_t samples = std::min(kSample, size());
    const auto left = machine_.template array<std::int64_t>(samples * kSampledStairs);
    const auto right = machine_.template array<std::int64_t>(samples * kSampledStairs);
    machine_.launch(SampleHeights{stairs_.data(), outlines_.data(), samples, size(), left.data(), right.data()},
                    samples);
    upload_levels(levels_with_thresholds(downloaded(machine_, left.data(), left.size()),
                                         downloaded(machine_, right.data(), right.size())));
    const auto values = machine_.template array<std::int64_t>(samples * kLanes);
    machine_.launch(SampleLanes{stairs_.data(), outlines_.data(), levels_.data(), samples, size(), values.data()},
                    samples);
    choose_cuts(chosen_, downloaded(machine_, values.data(), values.size()));
    upload_levels(chosen_);
  }
  void build_signatures() {
    words_ = machine_.template array<std::uint64_t>(kWords * size());
    machine_.launch(BuildSignatures{stairs_.data(), outlines_.data(), levels_.data(), words_.data(), size()}, size());
  }

  template <bool kOneDominates>
  std::vector<std::uint8_t> against(const core::CanonicalView& one) const {
    const auto bound = machine_.bind();
    CanonicalBatch batch;
    batch.add(one);
    const DominanceSet alone(machine_, upload(machine_, batch), chosen_);
    const auto flags = machine_.template array<std::uint8_t>(size());
    machine_.launch(Mark<OneAgainstMany<kOneDominates>>{{alone.profiles(), profiles()}, flags.data()}, size());
    return downloaded(machine_, flags.data(), size());
  }

  void sort_into(const Candidates& sorted) const {
    const auto keys = machine_.template array<std::uint64_t>(size());
    const auto places = machine_.template array<std::int32_t>(size()),
               order = machine_.template array<std::int32_t>(size());
    machine_.launch(OrderKeys{profiles(), keys.data(), places.data()}, size());
    machine_.sort_pairs(keys.data(), sorted.keys, places.data(), order.data(), size());
    const Candidates all{stairs_.data(), outlines_.data(), words_.data(), keys.data(), places.data(), size()};
    machine_.launch(Append<std::int32_t>{all, 0, order.data(), sorted, 0}, size());
  }

  Machine& machine_;
  Levels chosen_{};  ///< a copy of levels_ in the host's memory
  Array<Levels> levels_;
  Array<Stair> stairs_;
  Array<Outline> outlines_;
  Array<std::uint64_t> words_;
};

/// A DominanceSet that owns its machine. The machine is constructed from `args`.
template <class Machine>
class OwningDominanceSet final : private OwnedMachine<Machine>, public DominanceSet<Machine> {
 public:
  template <class... Args>
  explicit OwningDominanceSet(const CanonicalBatch& batch, const Args&... args)
      : OwnedMachine<Machine>{Machine(args...)}, DominanceSet<Machine>(OwnedMachine<Machine>::machine, batch) {}
};

}  // namespace cairn::sim::device
