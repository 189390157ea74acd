#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "cairn/sim/device/drawing/random_order.h"
#include "cairn/sim/host/lockstep/lockstep.h"
#include "cairn/sim/host/lockstep/vectors.h"

// One file per processor family includes this header, as lockstep_lanes.h describes.
namespace cairn::sim {
namespace {

using device::Outcome;

/// Draws orders in lanes (DrawOrders), and evaluates them without sorting their nodes.
///
/// The range of the times at which nodes run is divided into intervals of equal length, called buckets, about as many
/// as there are nodes. For each bucket, the bytes that its steps take and the bytes that they free are added up. From
/// these sums follows the memory before each bucket. This memory plus the bytes taken in the bucket is an upper bound
/// of the memory during the bucket's steps. The steps of a bucket are sorted and evaluated exactly only if this bound
/// is not below the peak found so far. Few buckets have such a bound.
template <class Id, int kVectorBytes>
class DrawLanes final : public DrawOrders {
 public:
  static constexpr int kLanes = kVectorBytes / 4;

  explicit DrawLanes(const device::TablesView<Id>& graph)
      : graph_(graph),
        bucket_count_(std::clamp(graph.node_count, 1, kMostBuckets)),
        bucket_width_(rounded_up(bucket_count_)),
        node_width_(rounded_up(graph.node_count)),
        value_width_(rounded_up(graph.value_count)) {
    keys_.resize((static_cast<std::size_t>(graph.node_count) + 4) * kLanes);
    row_.resize(static_cast<std::size_t>(graph.node_count));
  }

  int lanes() const override { return kLanes; }

  void draw(std::uint64_t seed, std::int64_t first) override {
    for (std::int32_t i = 0; i < graph_.node_count; i += device::kHalves) wait(seed, first, i);
    for (std::int32_t i = graph_.level_count > 0 ? graph_.level_begin[1] : 0; i < graph_.node_count; ++i) {
      const std::int32_t v = graph_.by_level[i];
      Words ready{};
      for (std::int32_t e = graph_.predecessor_begin[v]; e < graph_.predecessor_begin[v + 1]; ++e) {
        const Words ran = key_of(graph_.predecessors[e]);
        ready = ran > ready ? ran : ready;
      }
      key_of(v) += ready;
    }
  }

  const std::uint32_t* keys(int lane) override {
    const std::uint32_t* from = keys_.data() + lane;
    std::uint32_t* row = row_.data();
    for (std::int32_t v = 0; v < graph_.node_count; ++v) row[v] = from[static_cast<std::size_t>(v) * kLanes];
    return row;
  }

  void evaluate(int count, Outcome* outcomes) override {
    make_room();
    find_buckets();
    for (int lane = 0; lane < count; ++lane) {
      if (lane % kGroup == 0) {
        to_rows(own_, node_width_, own_rows_, lane);
        to_rows(last_, value_width_, last_rows_, lane);
      }
      outcomes[lane] = graph_.unit > 0 ? outcome_of(lane, graph_.in_units) : outcome_of(lane, graph_.in_bytes);
    }
  }

 private:
  using Words = typename VectorOf<std::uint32_t, kLanes>::Type;
  using HalfWords = typename VectorOf<std::uint16_t, 2 * kLanes>::Type;
  using Ints = typename VectorOf<std::int32_t, kLanes>::Type;
  using Floats = typename VectorOf<float, kLanes>::Type;
  /// The 32-bit words of every second lane, widened to 64 bits so that products of two words fit.
  using Halves = typename VectorOf<std::uint64_t, kLanes / 2>::Type;
  static constexpr int kHalf = kLanes / 2;
  using Bucket = std::uint16_t;
  using Buckets = typename VectorOf<Bucket, kLanes>::Type;
  static constexpr std::int32_t kMostBuckets = 0xFFF0;
  static constexpr int kGroup = kTransposed;  ///< number of lanes that are transposed at once
  /// A row, i.e. an array with the buckets of all nodes or values in one lane, is searched in pieces, each of which
  /// fills a vector register. Padding at the end of a row has a value that no search looks for.
  using Piece = typename VectorOf<Bucket, kVectorBytes / static_cast<int>(sizeof(Bucket))>::Type;
  static constexpr std::int32_t kPiece = kVectorBytes / static_cast<int>(sizeof(Bucket));
  static constexpr Bucket kPadding = 0xFFFF;
  /// Number of sums, one per bucket, in a vector register.
  template <class Sum>
  static constexpr int kSums = kVectorBytes / static_cast<int>(sizeof(Sum));
  template <class Sum>
  using Sums = typename VectorOf<Sum, kSums<Sum>>::Type;

  static std::int32_t rounded_up(std::int32_t count) { return (count + kPiece - 1) / kPiece * kPiece; }

  Words& key_of(std::int32_t v) const {
    return *reinterpret_cast<Words*>(keys_.data() + static_cast<std::size_t>(v) * kLanes);
  }
  std::int32_t producer_of(std::int32_t x) const { return graph_.single_output() ? x : graph_.producer[x]; }
  /// Returns the total size of the outputs of each node.
  template <class Sum>
  const Sum* outputs_of(const device::Amounts<Sum>& amounts) const {
    return graph_.single_output() ? amounts.size : amounts.outputs;
  }
  const Bucket* own_row(int lane) const {
    return own_rows_.data() + static_cast<std::size_t>(lane % kGroup) * node_width_;
  }
  const Bucket* last_row(int lane) const {
    return last_rows_.data() + static_cast<std::size_t>(lane % kGroup) * value_width_;
  }
  template <class Sum>
  static Sums<Sum>& sums_at(const Aligned<std::int64_t>& sums, std::int32_t bucket) {
    return *reinterpret_cast<Sums<Sum>*>(reinterpret_cast<Sum*>(sums.data()) + bucket);
  }
  static Buckets& at(const Aligned<Bucket>& array, std::int32_t x) {
    return *reinterpret_cast<Buckets*>(array.data() + static_cast<std::size_t>(x) * kLanes);
  }

  /// Computes philox() for all lanes: word[0] gets the words of the lanes with even numbers, word[1] those of the lanes
  /// with odd numbers. Only the low 32 bits of each word have a meaning.
  static void philox_of(std::uint64_t seed, std::int64_t first, std::uint32_t group, Halves (&word)[2][4]) {
    for (int odd = 0; odd < 2; ++odd) {
      Halves number;
      for (int i = 0; i < kHalf; ++i)
        number[i] = static_cast<std::uint64_t>(first) + static_cast<std::uint64_t>(2 * i + odd);
      word[odd][0] = number;
      word[odd][1] = number >> 32;
      word[odd][2] = Halves{} + group;
      word[odd][3] = Halves{} + device::kWaitingTimes;
    }
    auto key_low = static_cast<std::uint32_t>(seed), key_high = static_cast<std::uint32_t>(seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < kPhiloxRounds; ++round) {
#pragma GCC unroll 2
      for (auto& [a, b, c, d] : word) {
        const Halves left = product_of_low(a, Halves{} + 0xD2511F53U);
        const Halves right = product_of_low(c, Halves{} + 0xCD9E8D57U);
        a = (right >> 32) ^ b ^ std::uint64_t{key_low};
        b = right;
        c = (left >> 32) ^ d ^ std::uint64_t{key_high};
        d = left;
      }
      key_low += 0x9E3779B9U;
      key_high += 0xBB67AE85U;
    }
  }

  /// Computes waiting_time() for the low 16 bits and for the high 16 bits of each random word. The polynomial that
  /// approximates the logarithm is computed for both at once, in a vector of twice as many 16-bit elements.
  void wait_of(Words word, Words& of_low, Words& of_high) const {
    const auto float_bits = [](Words number) {
      return reinterpret_cast<Words>(__builtin_convertvector(reinterpret_cast<Ints>(number), Floats));
    };
    const Words low = float_bits((word & 0xFFFFU) + 1U) >> 7, high_bits = float_bits((word >> 16) + 1U);
    const auto f = reinterpret_cast<HalfWords>((low & 0xFFFFU) | (high_bits << 9 & 0xFFFF0000U));
    const HalfWords c = static_cast<std::uint16_t>(29013) - high_product(f, HalfWords{} + std::uint16_t{16194}) +
                        high_product(high_product(f, f), HalfWords{} + std::uint16_t{5446});
    // If f is 0, the other factor 2^16 - f does not fit into 16 bits. This does no harm, because the product with f = 0
    // is 0.
    const auto logarithm = reinterpret_cast<Words>(f + high_product(high_product(f, -f), c));
    const auto wait = [&](Words exponent, Words fraction) {
      constexpr std::uint32_t kBias = 127U << 16;
      return ((device::kLongestWait + kBias - ((exponent & 0xFF0000U) | fraction)) >> graph_.wait_shift) + 1U;
    };
    of_low = wait(low, logarithm & 0xFFFFU);
    of_high = wait(high_bits >> 7, logarithm >> 16);
  }

  /// Sets the waiting times of the nodes at the places i .. i + 7 of TablesView::by_level, in every lane.
  void wait(std::uint64_t seed, std::int64_t first, std::int32_t i) {
    Halves word[2][4];
    philox_of(seed, first, static_cast<std::uint32_t>(i / device::kHalves), word);
    Words times[device::kHalves];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      wait_of(reinterpret_cast<Words>((word[0][k] & 0xFFFFFFFFU) | word[1][k] << 32), times[2 * k], times[2 * k + 1]);
    }
    for (int k = 0; k < device::kHalves && i + k < graph_.node_count; ++k) key_of(graph_.by_level[i + k]) = times[k];
  }

  /// Allocates the arrays that only evaluate() needs, unless an earlier call did so.
  void make_room() {
    if (own_.data() != nullptr) return;
    own_.resize(static_cast<std::size_t>(node_width_) * kLanes);
    last_.resize(static_cast<std::size_t>(value_width_) * kLanes);
    for (std::int32_t v = graph_.node_count; v < node_width_; ++v) at(own_, v) = Buckets{} + kPadding;
    for (std::int32_t x = graph_.value_count; x < value_width_; ++x) at(last_, x) = Buckets{} + kPadding;
    by_readers_.resize(static_cast<std::size_t>(graph_.value_count));
    std::iota(by_readers_.begin(), by_readers_.end(), 0);
    const auto readers = [&](std::int32_t x) { return graph_.reader_begin[x + 1] - graph_.reader_begin[x]; };
    std::stable_sort(by_readers_.begin(), by_readers_.end(),
                     [&](std::int32_t a, std::int32_t b) { return readers(a) < readers(b); });
    own_rows_.resize(static_cast<std::size_t>(node_width_) * kGroup);
    last_rows_.resize(static_cast<std::size_t>(value_width_) * kGroup);
    for (Aligned<std::int64_t>* sums : {&taken_, &freed_, &extra_, &bound_})
      sums->resize(static_cast<std::size_t>(bucket_width_) + 1);
  }

  /// Finds the bucket in which each node runs, and the bucket in which each value is read last. For a value that is
  /// never freed, the bucket of the last read is set to one bucket beyond the last.
  void find_buckets() {
    Words highest{};
    for (std::int32_t v = 0; v < graph_.node_count; ++v) highest = key_of(v) > highest ? key_of(v) : highest;
    // The conversion to float takes signed numbers, so keys are halved first to fit. Halving and rounding never reverse
    // the order of two keys. `scale` is a little too low on purpose, so that rounding errors do not lead beyond the
    // last bucket.
    const auto halved = [](Words key) { return __builtin_convertvector(reinterpret_cast<Ints>(key >> 1), Floats); };
    const Floats scale = static_cast<float>(bucket_count_) * 0.999999F / (halved(highest) + 1.0F);
    const auto bucket_of = [&](Words key) {
      return __builtin_convertvector(__builtin_convertvector(halved(key) * scale, Ints), Buckets);
    };
    for (std::int32_t v = 0; v < graph_.node_count; ++v) at(own_, v) = bucket_of(key_of(v));
    for (const std::int32_t x : by_readers_) {
      Buckets last = at(own_, producer_of(x));
      for (std::int32_t e = graph_.reader_begin[x]; e < graph_.reader_begin[x + 1]; ++e) {
        const Buckets read = at(own_, graph_.readers[e]);
        last = read > last ? read : last;
      }
      at(last_, x) = graph_.keep[x] != 0 ? Buckets{} + static_cast<Bucket>(bucket_count_) : last;
    }
  }

  void to_rows(const Aligned<Bucket>& from, std::int32_t width, Aligned<Bucket>& rows, int lane) const {
    for (std::int32_t x = 0; x < width; x += kGroup) {
      transpose<kGroup>(from.data() + static_cast<std::size_t>(x) * kLanes + lane, kLanes, rows.data() + x,
                        static_cast<std::size_t>(width));
    }
  }

  /// A step of the bucket that refine() evaluates exactly.
  struct Step {
    std::uint64_t when;  ///< the node's key, then its number in the low 32 bits; steps are sorted by this
    std::int32_t node;
    std::int64_t freed;  ///< memory that is freed after the step
    bool operator<(const Step& other) const { return when < other.when; }
  };
  template <class Sum>
  struct Highest {
    Sum peak = std::numeric_limits<Sum>::min();
    std::int32_t bucket = 0, step = 0;  ///< bucket of the peak, and number of the peak's step in this bucket, from 0
  };

  template <class Sum>
  Outcome outcome_of(int lane, const device::Amounts<Sum>& amounts) {
    Outcome outcome;
    outcome.valid = true;
    outcome.cost = graph_.cost_once;
    if (graph_.node_count == 0) return outcome;
    add_up(lane, amounts);
    Sum* const bound = reinterpret_cast<Sum*>(bound_.data());
    const std::int32_t first = bound_buckets<Sum>();
    Highest<Sum> best;
    refine(lane, amounts, first, best);
    bound[first] = std::numeric_limits<Sum>::min();
    for (std::int32_t begin = 0; begin < bucket_width_; begin += kSums<Sum>) {
      for (std::uint64_t mask = mask_of(sums_at<Sum>(bound_, begin) >= best.peak); mask != 0; mask &= mask - 1) {
        const std::int32_t b = begin + __builtin_ctzll(mask);
        if (bound[b] > best.peak || (bound[b] == best.peak && b < best.bucket)) refine(lane, amounts, b, best);
      }
    }
    outcome.peak = std::int64_t{best.peak} * (graph_.unit > 0 ? graph_.unit : 1);
    outcome.peak_step = steps_before(lane, static_cast<Bucket>(best.bucket)) + best.step;
    return outcome;
  }

  /// Adds up the memory that is taken and freed in each bucket, for the candidate of one lane.
  template <class Sum>
  void add_up(int lane, const device::Amounts<Sum>& amounts) {
    const Bucket* __restrict own = own_row(lane);
    const Bucket* __restrict last = last_row(lane);
    Sum* __restrict taken = reinterpret_cast<Sum*>(taken_.data());
    Sum* __restrict freed = reinterpret_cast<Sum*>(freed_.data());
    // One more entry than there are buckets is for values that are never freed.
    const std::size_t bytes = (static_cast<std::size_t>(bucket_width_) + 1) * sizeof(Sum);
    std::memset(taken, 0, bytes);
    std::memset(freed, 0, bytes);
    if (graph_.has_scratch) {
      Sum* extra = reinterpret_cast<Sum*>(extra_.data());
      std::memset(extra, 0, bytes);
      for (std::int32_t v = 0; v < graph_.node_count; ++v) extra[own[v]] = std::max(extra[own[v]], amounts.scratch[v]);
    }
    const Sum* __restrict size = amounts.size;
    const Sum* __restrict outputs = outputs_of(amounts);
    const std::int32_t nodes = graph_.node_count, values = graph_.value_count;
#pragma GCC unroll 4
    for (std::int32_t v = 0; v < nodes; ++v) {
      taken[own[v]] += outputs[v];
      freed[last[v]] += size[v];
    }
    for (std::int32_t x = nodes; x < values; ++x) freed[last[x]] += size[x];
  }

  /// Computes the upper bound of the memory in each bucket. Returns the first bucket with the highest bound.
  template <class Sum>
  std::int32_t bound_buckets() {
    using V = Sums<Sum>;
    V live{}, highest = V{} + std::numeric_limits<Sum>::min();
    for (std::int32_t b = 0; b < bucket_width_; b += kSums<Sum>) {
      const V taken = sums_at<Sum>(taken_, b), freed = sums_at<Sum>(freed_, b);
      V change = taken - freed;
      sum_up(change);
      const V bound = live + change + freed + sums_at<Sum>(extra_, b);
      sums_at<Sum>(bound_, b) = bound;
      highest = bound > highest ? bound : highest;
      live += shuffled(change, change, V{} + (kSums<Sum> - 1));
    }
    fold(highest, [](V a, V b) { return a > b ? a : b; });
    for (std::int32_t b = 0;; b += kSums<Sum>) {
      if (const std::uint64_t mask = mask_of(sums_at<Sum>(bound_, b) == highest); mask != 0)
        return b + __builtin_ctzll(mask);
    }
  }

  std::int32_t steps_before(int lane, Bucket bucket) const {
    const Bucket* own = own_row(lane);
    std::int32_t count = 0;
    for (std::int32_t v = 0; v < node_width_; v += kPiece)
      count += __builtin_popcountll(mask_of(*reinterpret_cast<const Piece*>(own + v) < bucket));
    return count;
  }

  /// Calls found(i) for the entries of a row that equal `bucket`.
  template <class Found>
  static void for_each_in(const Bucket* row, std::int32_t width, Bucket bucket, const Found& found) {
    for (std::int32_t begin = 0; begin < width; begin += kPiece) {
      const Piece piece = *reinterpret_cast<const Piece*>(row + begin);
      for (std::uint64_t mask = mask_of(piece == bucket); mask != 0; mask &= mask - 1) {
        found(begin + __builtin_ctzll(mask));
      }
    }
  }

  /// Sorts the steps of one bucket and evaluates each of them exactly. Updates `best` if a step uses more memory.
  template <class Sum>
  void refine(int lane, const device::Amounts<Sum>& amounts, std::int32_t bucket, Highest<Sum>& best) {
    const Bucket* own = own_row(lane);
    const Bucket* last = last_row(lane);
    const auto when = [&](std::int32_t v) {
      return std::uint64_t{keys_.data()[static_cast<std::size_t>(v) * kLanes + lane]} << 32 |
             static_cast<std::uint32_t>(v);
    };
    std::vector<Step>& steps = steps_;
    steps.clear();
    for_each_in(own, node_width_, static_cast<Bucket>(bucket), [&](std::int32_t v) {
      steps.push_back({when(v), v, 0});
    });
    std::sort(steps.begin(), steps.end());
    if (steps.size() > 1) {
      for_each_in(last, value_width_, static_cast<Bucket>(bucket), [&](std::int32_t x) {
        std::uint64_t latest = when(producer_of(x));
        for (std::int32_t e = graph_.reader_begin[x]; e < graph_.reader_begin[x + 1]; ++e)
          latest = std::max(latest, when(graph_.readers[e]));
        for (Step& step : steps) step.freed += step.when == latest ? amounts.size[x] : 0;
      });
    }
    const auto sum_of = [bucket](const Aligned<std::int64_t>& sums) {
      return reinterpret_cast<const Sum*>(sums.data())[bucket];
    };
    Sum live = sum_of(bound_) - sum_of(taken_) - sum_of(extra_);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::int32_t v = steps[i].node;
      live += outputs_of(amounts)[v];
      const Sum during = live + (graph_.has_scratch ? amounts.scratch[v] : 0);
      if (during > best.peak || (during == best.peak && bucket < best.bucket))
        best = {during, bucket, static_cast<std::int32_t>(i)};
      live -= static_cast<Sum>(steps[i].freed);
    }
  }

  device::TablesView<Id> graph_;
  std::int32_t bucket_count_, bucket_width_;  ///< number of buckets; the same number rounded up to whole vectors
  std::int32_t node_width_, value_width_;     ///< numbers of nodes and values, rounded up to whole pieces
  Aligned<std::uint32_t> keys_;               ///< keys of the nodes (DrawOrders), indexed [node][lane]
  Aligned<std::uint32_t> row_;                ///< keys of one lane
  Aligned<Bucket> own_, last_;                ///< buckets, indexed [node or value][lane]
  Aligned<Bucket> own_rows_, last_rows_;  ///< buckets of a group of lanes, indexed [lane of the group][node or value]
  std::vector<Step> steps_;
  std::vector<std::int32_t> by_readers_;  ///< values sorted by number of readers, so that the processor predicts the
                                          ///< ends of loops over readers
  /// Memory of one candidate, indexed by bucket: taken in the bucket, freed in it, the largest scratch of its steps,
  /// and the upper bound of the memory during its steps. The elements have the type Sum that is in use.
  Aligned<std::int64_t> taken_, freed_, extra_, bound_;
};

}  // namespace
}  // namespace cairn::sim
