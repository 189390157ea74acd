#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/core/machine/support/team.h"
#include "cairn/sim/device/candidate_profile.h"
#include "cairn/sim/device/drawing/draw_lanes.h"
#include "cairn/sim/device/drawing/order_lanes.h"
#include "cairn/sim/device/graph_tables.h"
#include "cairn/sim/device/intrinsics.h"
#include "cairn/sim/device/lanes.h"
#include "cairn/sim/device/shared_items.h"

/// Evaluates random orders (sim/generator.h) without sorting their nodes, one order in each lane of a team
/// (sim/device/lanes.h).
namespace cairn::sim::device {

/// Arrays that BucketLanes needs, shared by a team. A bucket is a range of the random times at which nodes run; see
/// BucketLanes.
template <class Sum, int kLanes>
struct BucketArrays {
  /// Largest number of steps of a lane that one call of BucketLanes::refine() can list and evaluate exactly. All other
  /// steps are only bounded. On real graphs, rarely more than 30 steps must be listed.
  static constexpr int kListed = 64;

  std::uint16_t* bucket = nullptr;  ///< [node][lane]: bucket in which the node runs
  // [bucket][lane]: at first, the memory that is taken in the bucket, and the memory that is freed in it. After
  // find_bounds(), the upper bound of the memory during the bucket's steps, and the memory before these steps.
  Sum* taken = nullptr;
  Sum* freed = nullptr;
  // [entry][lane], for the steps that are evaluated exactly: the node, the memory that is freed after the step, and the
  // memory during the step.
  std::uint16_t* listed = nullptr;
  Sum* listed_freed = nullptr;
  Peak<Sum>* listed_peak = nullptr;
  std::int32_t* count = nullptr;  ///< [lane]: number of steps in `listed`. One more entry: number of lanes with more
                                  ///< than kListed such steps.
  std::int32_t* before =
      nullptr;  ///< [lane]: number of listed steps in lower lanes. One more entry: number of listed steps in all lanes.
  std::byte* of_row = nullptr;  ///< room for LaneGrid::combine_below()

  static CAIRN_HD std::int64_t bytes(std::int64_t nodes, std::int64_t buckets, std::int64_t threads) {
    BucketArrays arrays;
    return arrays.place(nullptr, nodes, buckets, threads);
  }
  static CAIRN_HD BucketArrays in(std::byte* memory, std::int64_t nodes, std::int64_t buckets, std::int64_t threads) {
    BucketArrays arrays;
    arrays.place(memory, nodes, buckets, threads);
    return arrays;
  }

 private:
  CAIRN_HD std::int64_t place(std::byte* memory, std::int64_t nodes, std::int64_t buckets, std::int64_t threads) {
    std::int64_t end = 0;
    take(memory, end, bucket, nodes * kLanes);
    take(memory, end, taken, buckets * kLanes);
    take(memory, end, freed, buckets * kLanes);
    take(memory, end, listed, kListed * kLanes);
    take(memory, end, listed_freed, kListed * kLanes);
    take(memory, end, listed_peak, kListed * kLanes);
    take(memory, end, count, kLanes + 1);
    take(memory, end, before, kLanes + 1);
    take(memory, end, of_row, of_row_entries<kLanes>(threads) * static_cast<std::int64_t>(sizeof(Peak<Sum>)));
    return end;
  }
  template <class T>
  static CAIRN_HD void take(std::byte* memory, std::int64_t& end, T*& array, std::int64_t entries) {
    if (memory != nullptr) array = reinterpret_cast<T*>(memory + end);
    end += aligned(entries * static_cast<std::int64_t>(sizeof(T)));
  }
};

/// Evaluates one drawn order per lane. The keys of the thread's lane are key[v * kStride] for node v, and `highest` is
/// the highest key. A key is the random time at which the node runs. kSingle says whether every node has one output.
///
/// The range of keys is divided into `buckets` buckets; with fewer buckets, the bounds below are higher, so more steps
/// must be evaluated exactly. For each bucket, the memory that its steps take and the memory that they free are added
/// up. From these sums follows the memory before each bucket. This memory plus the memory taken in the bucket is an
/// upper bound of the memory during the bucket's steps. Then the steps of the bucket with the highest bound are
/// evaluated exactly, and after that, the steps of all buckets whose bound is above the peak found so far.
template <bool kSingle, class Id, class Sum, int kLanes, int kStride, class Team>
class BucketLanes {
 public:
  using Grid = LaneGrid<Team, kLanes>;
  using Arrays = BucketArrays<Sum, kLanes>;

  CAIRN_HD BucketLanes(const Grid& grid, const TablesView<Id>& graph, const Arrays& arrays, std::int32_t buckets,
                       const std::uint32_t* key, std::uint32_t highest)
      : grid_(grid),
        graph_(graph),
        arrays_(arrays),
        amounts_(graph.template amounts<Sum>()),
        buckets_(buckets),
        bucket_of_(buckets, highest),
        lanes_(grid.lanes()),
        lane_(grid.lane()),
        keys_(key - lane_) {}

  /// Evaluates the orders of all lanes. Sets `outcome` in every thread of a lane. Computes Outcome::peak_step only if
  /// `with_step` is set. Returns false if some lane has more than BucketArrays::kListed steps to evaluate exactly. All
  /// threads of the team get the same answer.
  CAIRN_HD bool evaluate(bool with_step, Outcome& outcome) const {
    add_up();
    Sum least = 0;
    const Peak<Sum> top = find_bounds(least);
    Peak<Sum> best;
    const auto is_top = [&](std::int32_t b) { return b == top.place; };
    const auto may_be_higher = [&](std::int32_t b) {
      const Sum bound = arrays_.taken[b * lanes_ + lane_];
      return bound >= least && b != top.place &&
             (bound > best.value || (bound == best.value && b < best.place / Arrays::kListed));
    };
    if (!refine(is_top, best) || !refine(may_be_higher, best)) return false;
    outcome.valid = true;
    outcome.cost = graph_.cost_once;
    if (graph_.node_count == 0) return true;
    outcome.peak = static_cast<std::int64_t>(best.value) * (sizeof(Sum) == sizeof(std::int32_t) ? graph_.unit : 1);
    if (with_step) outcome.peak_step = steps_before(best.place / Arrays::kListed) + best.place % Arrays::kListed;
    return true;
  }

 private:
  CAIRN_HD std::int32_t bucket(std::int32_t v, std::int32_t lane) const { return arrays_.bucket[v * lanes_ + lane]; }
  CAIRN_HD std::int32_t bucket(std::int32_t v) const { return bucket(v, lane_); }
  CAIRN_HD std::uint32_t key(std::int32_t v, std::int32_t lane) const {
    return keys_[std::int64_t{v} * kStride + lane];
  }

  /// Finds the bucket of each node, and adds up the memory that is taken and freed in each bucket.
  CAIRN_HD void add_up() const {
    const std::int64_t bytes = std::int64_t{buckets_} * lanes_ * std::int64_t{sizeof(Sum)};
    grid_.clear(arrays_.taken, bytes);
    grid_.clear(arrays_.freed, bytes);
    grid_.for_each(graph_.node_count, [&](std::int32_t v) {
      arrays_.bucket[v * lanes_ + lane_] = static_cast<std::uint16_t>(bucket_of_(key(v, lane_)));
    });
    grid_.team().sync();
    grid_.for_each(graph_.value_count, [&](std::int32_t x) {
      const ValueRecord<Sum> value = amounts_.values[x];
      const std::int32_t own = bucket(kSingle ? x : graph_.producer[x]);
      std::int32_t last = own;
      CAIRN_UNROLL_BY(1)
      for (std::int32_t k = value.begin; k < value.end; ++k) {
        const FourIds<Id> readers = graph_.reader_fours[k];
        std::int32_t read[4];
        CAIRN_UNROLL
        for (int j = 0; j < 4; ++j) read[j] = bucket(readers.id[j]);
        CAIRN_UNROLL
        for (int j = 0; j < 4; ++j) last = read[j] > last ? read[j] : last;
      }
      if (kSingle || x < graph_.node_count) {
        Sum taken = value.taken;
        if (graph_.has_scratch) {
          // Scratch is taken and freed in the same bucket. Negative scratch would lower the bound for all steps of the
          // bucket, but the other steps run without it. So it is left out of the sum.
          const Sum scratch = amounts_.scratch[x];
          if (scratch < 0) taken -= scratch;
          if (scratch > 0) fetch_add(&arrays_.freed[own * lanes_ + lane_], scratch);
        }
        fetch_add(&arrays_.taken[own * lanes_ + lane_], taken);
      }
      fetch_add(&arrays_.freed[last * lanes_ + lane_], value.freed);
    });
    grid_.team().sync();
  }

  /// Replaces the two sums of each bucket by the bound and by the memory before the bucket. Returns the highest bound,
  /// and the first bucket that has it. Sets `least` to a lower bound of the peak: the highest memory before a bucket.
  /// If the graph has negative scratch, `least` is left as it is, because a step with negative scratch may use less
  /// memory than is in use after it.
  CAIRN_HD Peak<Sum> find_bounds(Sum& least) const {
    const typename Grid::Stretch stretch = grid_.stretch(buckets_);
    Sum* const taken = arrays_.taken + lane_;
    Sum* const freed = arrays_.freed + lane_;
    Sum own = 0, total = 0;
    CAIRN_UNROLL_BY(2)
    for (std::int32_t b = stretch.begin; b < stretch.end; ++b) own += taken[b * lanes_] - freed[b * lanes_];
    Sum live = grid_.combine_below(own, Sum{0}, core::Sum(), reinterpret_cast<Sum*>(arrays_.of_row), total);
    Peak<Sum> peak, highest;
    Sum before = 0;
    CAIRN_UNROLL_BY(2)
    for (std::int32_t b = stretch.begin; b < stretch.end; ++b) {
      before = live > before ? live : before;
      const Sum bound = live + taken[b * lanes_], after = bound - freed[b * lanes_];
      taken[b * lanes_] = bound;
      freed[b * lanes_] = live;
      live = after;
      if (bound > peak.value) peak = {bound, b};
    }
    grid_.combine_below(peak, Peak<Sum>{}, typename Peak<Sum>::Higher{}, reinterpret_cast<Peak<Sum>*>(arrays_.of_row),
                        highest);
    if (!graph_.negative_scratch)
      grid_.combine_below(before, Sum{0}, core::Max(), reinterpret_cast<Sum*>(arrays_.of_row), least);
    return highest;
  }

  /// Evaluates exactly, in each lane, the steps of those buckets b for which selected(b) holds, and updates the peak
  /// `best`. The place of a peak is the number of its bucket times kListed, plus the number of its step among the steps
  /// of the bucket, counted from 0. Returns false if a lane has more than kListed steps to evaluate.
  template <class Selected>
  CAIRN_HD bool refine(const Selected& selected, Peak<Sum>& best) const {
    const std::int32_t rank = grid_.team().rank();
    if (rank < lanes_) arrays_.count[rank] = 0;
    if (rank == 0) arrays_.count[lanes_] = 0;
    grid_.team().sync();
    grid_.for_each(graph_.node_count, [&](std::int32_t v) {
      if (!selected(bucket(v))) return;
      const std::int32_t entry = fetch_add(&arrays_.count[lane_], 1);
      if (entry < Arrays::kListed) arrays_.listed[entry * lanes_ + lane_] = static_cast<std::uint16_t>(v);
      if (entry == Arrays::kListed) fetch_add(&arrays_.count[lanes_], 1);
    });
    grid_.team().sync();
    count_before(grid_.team(), arrays_.count, lanes_, arrays_.before);
    grid_.team().sync();
    if (arrays_.count[lanes_] != 0) return false;
    if (arrays_.before[lanes_] == 0) {
      grid_.team().sync();  // the next round writes what other threads may still read
      return true;
    }
    for_each_item<kLanes>(grid_.team(), arrays_.before, lanes_, [&](std::int32_t lane, std::int32_t entry) {
      arrays_.listed_freed[entry * lanes_ + lane] = freed_after(arrays_.listed[entry * lanes_ + lane], lane);
    });
    grid_.team().sync();
    for_each_item<kLanes>(grid_.team(), arrays_.before, lanes_, [&](std::int32_t lane, std::int32_t entry) {
      arrays_.listed_peak[entry * lanes_ + lane] = exact(arrays_.listed[entry * lanes_ + lane], lane);
    });
    grid_.team().sync();
    auto* const highest = reinterpret_cast<Peak<Sum>*>(arrays_.of_row);
    if (grid_.row() == 0) {
      const std::int32_t count = arrays_.count[lane_];
      CAIRN_UNROLL_BY(1)
      for (std::int32_t entry = 0; entry < count; ++entry) {
        best = typename Peak<Sum>::Higher{}(best, arrays_.listed_peak[entry * lanes_ + lane_]);
      }
      highest[lane_] = best;
    }
    grid_.team().sync();
    best = highest[lane_];
    return true;
  }

  /// Returns whether node u runs before node v.
  CAIRN_HD bool before(std::int32_t u, std::int32_t v, std::int32_t lane) const {
    if (bucket(u, lane) != bucket(v, lane)) return bucket(u, lane) < bucket(v, lane);
    return key(u, lane) != key(v, lane) ? key(u, lane) < key(v, lane) : u < v;
  }

  /// Returns the memory that is freed after the step of node v: the inputs that nothing reads later, and the outputs
  /// that nothing reads.
  CAIRN_HD Sum freed_after(std::int32_t v, std::int32_t lane) const {
    Sum freed = 0;
    const NodeRecord& node = graph_.nodes[v];
    CAIRN_UNROLL_BY(1)
    for (std::int32_t place = node.begin(); place < node.end(); ++place) {
      const auto x = static_cast<std::int32_t>(graph_.template input<kSingle>(place));
      std::int32_t e = graph_.reader_begin[x];
      CAIRN_UNROLL_BY(1)
      for (const std::int32_t end = graph_.reader_begin[x + 1]; e < end && !before(v, graph_.readers[e], lane);) ++e;
      if (e == graph_.reader_begin[x + 1]) freed += amounts_.values[x].freed;
    }
    const auto add_unread = [&](std::int32_t x) {
      const ValueRecord<Sum> value = amounts_.values[x];
      if (value.begin == value.end) freed += value.freed;
    };
    add_unread(v);
    if constexpr (!kSingle) {
      for (std::int32_t x = graph_.further_begin[v]; x < graph_.further_begin[v + 1]; ++x) add_unread(x);
    }
    return freed;
  }

  /// Returns the memory during the step of node v, and the place of this step (see refine()). This memory is the memory
  /// before v's bucket, plus what v takes, plus what the earlier listed steps of this bucket in the same lane take,
  /// minus what these steps free.
  CAIRN_HD Peak<Sum> exact(std::int32_t v, std::int32_t lane) const {
    const std::int32_t b = bucket(v, lane), count = arrays_.count[lane];
    Sum during = arrays_.freed[b * lanes_ + lane] + amounts_.values[v].taken;
    std::int32_t place = b * Arrays::kListed;
    CAIRN_UNROLL_BY(1)
    for (std::int32_t entry = 0; entry < count; ++entry) {
      const std::int32_t u = arrays_.listed[entry * lanes_ + lane];
      if (bucket(u, lane) != b || !before(u, v, lane)) continue;
      during += amounts_.values[u].taken - arrays_.listed_freed[entry * lanes_ + lane];
      if (graph_.has_scratch) during -= amounts_.scratch[u];
      ++place;
    }
    return {during, place};
  }

  CAIRN_HD std::int32_t steps_before(std::int32_t limit) const {
    std::int32_t own = 0, all = 0;
    grid_.for_each(graph_.node_count, [&](std::int32_t v) { own += bucket(v) < limit ? 1 : 0; });
    grid_.combine_below(own, 0, core::Sum(), reinterpret_cast<std::int32_t*>(arrays_.of_row), all);
    return all;
  }

  const Grid& grid_;
  const TablesView<Id>& graph_;
  const Arrays arrays_;
  const Amounts<Sum> amounts_;
  const std::int32_t buckets_;
  const KeyBuckets bucket_of_;
  const std::int32_t lanes_, lane_;
  const std::uint32_t* const keys_;  ///< keys of lane 0; lane l's keys are l entries further
};

}  // namespace cairn::sim::device
