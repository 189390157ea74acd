#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/core/machine/support/team.h"
#include "cairn/sim/device/drawing/random_order.h"
#include "cairn/sim/device/graph_tables.h"
#include "cairn/sim/device/intrinsics.h"
#include "cairn/sim/device/lanes.h"

/// Draws orders (sim/generator.h), one in each lane of a team (sim/device/lanes.h).
namespace cairn::sim::device {

/// Draws the keys of all nodes for candidate `index`, and returns the highest key. A key is the random time at which a
/// node runs (sim/generator.h). The key of node v goes to key[v * kStride]. One thread handles a candidate alone, so no
/// thread waits for another.
template <int kStride, class Id>
CAIRN_HD std::uint32_t draw_keys(const TablesView<Id>& graph, std::uint64_t seed, std::int64_t index,
                                 std::uint32_t* key) {
  std::uint32_t highest = 0;
  std::int32_t at = 0;
  for (std::int32_t i = 0; i < graph.node_count; i += kHalves) {
    const Philox words = random_words(seed, index, kWaitingTimes, static_cast<std::uint32_t>(i / kHalves));
    CAIRN_UNROLL
    for (int k = 0; k < kHalves; ++k) {
      if (i + k >= graph.node_count) break;
      std::uint32_t ready = 0;
      for (const std::int32_t end = graph.draw_begin[i + k + 1]; at < end; ++at) {
        const FourIds<Id> inputs = graph.draw_inputs[at];
        std::uint32_t ran[4];
        CAIRN_UNROLL
        for (int j = 0; j < 4; ++j) ran[j] = key[std::int64_t{inputs.id[j]} * kStride];
        CAIRN_UNROLL
        for (int j = 0; j < 4; ++j) ready = ran[j] > ready ? ran[j] : ready;
      }
      ready += waiting_time(half_of(words, k), graph.wait_shift);
      key[std::int64_t{graph.by_level[i + k]} * kStride] = ready;
      highest = ready > highest ? ready : highest;
    }
  }
  return highest;
}

/// Divides the range of a candidate's keys into `count` buckets of equal width, in ascending order of keys. `highest`
/// is the highest key.
class KeyBuckets {
 public:
  CAIRN_HD KeyBuckets(std::int32_t count, std::uint32_t highest)
      : shift_(highest > 0 ? leading_zeros(highest) : 0),
        scale_(static_cast<std::uint32_t>((static_cast<std::uint64_t>(count) << 32) /
                                          ((std::uint64_t{highest} + 1) << shift_))) {}
  CAIRN_HD std::int32_t operator()(std::uint32_t key) const {
    return static_cast<std::int32_t>(high_product(key << shift_, scale_));
  }

 private:
  int shift_;
  std::uint32_t scale_;
};

/// Arrays that rank_keys() needs, shared by a team.
template <int kLanes>
struct RankArrays {
  std::uint32_t* packed = nullptr;  ///< [position][lane]: the low 16 bits of a node's key, then its number
  /// [bucket][lane]: a 16-bit counter of the nodes in the bucket. There are as many buckets as nodes.
  std::uint16_t* bucket = nullptr;
  std::byte* of_row = nullptr;  ///< room for LaneGrid::combine_below(), in the same memory as `packed`

  static CAIRN_HD std::int64_t bytes(std::int64_t nodes, std::int64_t threads) {
    return packs(nodes, threads) + aligned((nodes + 2) * kLanes * 2);
  }
  static CAIRN_HD RankArrays in(std::byte* memory, std::int64_t nodes, std::int64_t threads) {
    return {reinterpret_cast<std::uint32_t*>(memory), reinterpret_cast<std::uint16_t*>(memory + packs(nodes, threads)),
            memory};
  }

 private:
  static CAIRN_HD std::int64_t packs(std::int64_t nodes, std::int64_t threads) {
    const std::int64_t of_nodes = nodes * kLanes * 4, of_rows = of_row_entries<kLanes>(threads) * 4;
    return aligned(of_nodes > of_rows ? of_nodes : of_rows);
  }
};

/// Replaces the keys in each lane by the ranks 1 .. n of the n nodes, sorted by key, and by number where keys are
/// equal. The keys of the thread's lane are key[v * kStride], as draw_keys() left them, and `highest` is the highest
/// key. Nodes are distributed to n buckets by their keys; then each node is compared with all nodes of its bucket. The
/// keys in a bucket differ by less than 2^15 (waiting_time_shift()), so their low 16 bits suffice to say which key is
/// lower. n must be below 2^16.
template <int kStride, class Grid, class Id, class Arrays>
CAIRN_HD void rank_keys(const Grid& grid, const TablesView<Id>& graph, const Arrays& arrays, std::uint32_t highest,
                        std::uint32_t* key) {
  const std::int32_t n = graph.node_count;
  if (n == 0) return;
  const int lanes = grid.lanes(), lane = grid.lane();
  std::uint32_t* const packed = arrays.packed + lane;
  const KeyBuckets bucket_of(n, highest);

  grid.clear(arrays.bucket, std::int64_t{n} * lanes * 2);
  grid.team().sync();
  grid.for_each(n, [&](std::int32_t v) {
    fetch_add(arrays.bucket, bucket_of(key[std::int64_t{v} * kStride]) * lanes + lane, 1);
  });
  grid.team().sync();
  const typename Grid::Stretch stretch = grid.stretch(n);
  std::uint16_t* const bucket = arrays.bucket + lane;
  std::uint32_t own = 0, all = 0;
  CAIRN_UNROLL_BY(4)
  for (std::int32_t b = stretch.begin; b < stretch.end; ++b) own += bucket[b * lanes];
  std::uint32_t below =
      grid.combine_below(own, std::uint32_t{0}, core::Sum(), reinterpret_cast<std::uint32_t*>(arrays.of_row), all);
  CAIRN_UNROLL_BY(4)
  for (std::int32_t b = stretch.begin; b < stretch.end; ++b) {
    const std::uint32_t count = bucket[b * lanes];
    bucket[b * lanes] = static_cast<std::uint16_t>(below);
    below += count;
  }
  grid.team().sync();
  grid.for_each(n, [&](std::int32_t v) {
    const std::uint32_t of = key[std::int64_t{v} * kStride];
    const std::uint32_t place = fetch_add(arrays.bucket, bucket_of(of) * lanes + lane, 1);
    packed[place * lanes] = of << 16 | static_cast<std::uint32_t>(v);
  });
  grid.team().sync();
  // The counter of each bucket is now the position at which the next bucket begins.
  grid.for_each(n, [&](std::int32_t v) {
    const std::uint32_t of = key[std::int64_t{v} * kStride], mine = of << 16 | static_cast<std::uint32_t>(v);
    const std::int32_t b = bucket_of(of), end = bucket[b * lanes];
    std::int32_t at = b > 0 ? bucket[(b - 1) * lanes] : 0;
    std::uint32_t rank = static_cast<std::uint32_t>(at) + 1;
    const auto before = [&](std::int32_t j) {
      return (packed[j * lanes] - mine) >> 31;
    };                         // 1 if entry j comes before v
    constexpr int kUsual = 4;  // few buckets hold more than four nodes; four reads are issued at once
    CAIRN_UNROLL
    for (int k = 0; k < kUsual; ++k) rank += at + k < end ? before(at + k) : 0;
    for (at += kUsual; at < end; ++at) rank += before(at);
    key[std::int64_t{v} * kStride] = rank;
  });
  grid.team().sync();
}

}  // namespace cairn::sim::device
