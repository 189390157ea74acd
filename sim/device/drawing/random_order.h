#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/host_device.h"
#include "cairn/core/machine/support/team.h"
#include "cairn/sim/device/drawing/philox.h"
#include "cairn/sim/device/graph_tables.h"
#include "cairn/sim/device/intrinsics.h"

/// Draws the random numbers and the random schedule of a candidate; see sim/generator.h.
namespace cairn::sim::device {

/// Purposes of random words. Each candidate has a separate sequence of random words for each purpose.
inline constexpr std::uint32_t kWaitingTimes =
    0;                                          ///< half word i: for the waiting time of node TablesView::by_level[i]
inline constexpr std::uint32_t kMoves = 1;      ///< word j: for the edge that recomputation move j draws
inline constexpr std::uint32_t kMoveCount = 2;  ///< word 0: for the number of moves
inline constexpr std::uint32_t kTransfers = 3;  ///< words 4 i .. 4 i + 3: for the transfer that step i draws
inline constexpr std::uint32_t kTransferCount = 4;  ///< word 0: for the expected number of transfers

/// Returns the random words 4 * group .. 4 * group + 3 of candidate `index` for a purpose.
CAIRN_HD inline Philox random_words(std::uint64_t seed, std::int64_t index, std::uint32_t purpose,
                                    std::uint32_t group) {
  const auto number = static_cast<std::uint64_t>(index);
  return philox({{static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32), group, purpose}}, seed);
}
CAIRN_HD inline std::uint32_t random_word(std::uint64_t seed, std::int64_t index, std::uint32_t purpose,
                                          std::int32_t place) {
  const auto at = static_cast<std::uint32_t>(place);
  return random_words(seed, index, purpose, at / 4).word[at % 4];
}

inline constexpr std::int32_t kHalves = 8;  ///< number of random half words that one call of philox() gives

/// Returns the k-th 16-bit half of four words, for k in [0, kHalves). The low half of a word comes before its high
/// half.
CAIRN_HD inline std::uint32_t half_of(const Philox& words, std::int32_t k) {
  return k % 2 == 0 ? words.word[k / 2] & 0xFFFFU : words.word[k / 2] >> 16;
}

/// Returns word * n / 2^32, which is in [0, n). For a random word, all results are about equally likely.
CAIRN_HD inline std::uint32_t below(std::uint32_t word, std::uint32_t n) {
  return static_cast<std::uint32_t>((std::uint64_t{word} * n) >> 32);
}

CAIRN_HD inline std::int32_t move_count(std::uint64_t seed, std::int64_t index, std::int32_t most) {
  return static_cast<std::int32_t>(
      below(random_word(seed, index, kMoveCount, 0), static_cast<std::uint32_t>(most) + 1));
}

/// Returns -log2(u) * 2^16 for the uniform number u = (half + 1) / 2^16, where `half` has 16 bits. This is an
/// exponentially distributed waiting time of at most kLongestWait. The result is within 0.1% of the logarithm. Uses
/// integers and one exact conversion to float, so the result is the same on every machine.
inline constexpr std::uint32_t kLongestWait = 16U << 16;
CAIRN_HD inline std::uint32_t exponential(std::uint32_t half) {
  const auto uniform = static_cast<float>(static_cast<std::int32_t>(half + 1));  // 1 .. 2^16, exact
  std::uint32_t bits = 0;
  memcpy(&bits, &uniform, sizeof bits);
  const std::uint32_t exponent = (bits >> 23) - 127, f = bits >> 7 & 0xFFFFU;  // uniform = 2^exponent * (1 + f / 2^16)
  // For f scaled to [0, 1), log2(1 + f) = f + f (1 - f) c(f) with a smooth function c. A parabola that is exact at 0,
  // 1/2 and 1 approximates c.
  const std::uint32_t c = 29013U - (f * 16194U >> 16) + ((f * f >> 16) * 5446U >> 16);
  const std::uint32_t bend = (f * (0x10000U - f) >> 16) * c >> 16;
  return kLongestWait - (exponent << 16) - f - bend;
}

/// Returns the time, at least 1, that a node waits after its last input has run. `shift` makes times shorter, so that
/// the sum of the times along a path fits into 32 bits.
CAIRN_HD inline std::uint32_t waiting_time(std::uint32_t half, std::uint32_t shift) {
  return (exponential(half) >> shift) + 1;
}

/// Returns a `shift` for waiting_time() with which the waiting times on a path of `longest` nodes add up to less than
/// 2^32. The shift is at least 6, so that a waiting time is at most 2^14 + 1. rank_keys() in draw_lanes.h needs this
/// limit: it divides the times into as many buckets as there are nodes, and requires that the times in a bucket differ
/// by less than 2^15.
inline std::uint32_t waiting_time_shift(std::int32_t longest) {
  std::uint32_t shift = 6;
  while (((std::uint64_t{kLongestWait} >> shift) + 1) * static_cast<std::uint64_t>(longest) > 0xFFFFFFFFU) ++shift;
  return shift;
}

/// Arrays for draw_schedule() and the functions that it calls, shared by a team.
struct DrawSpace {
  std::uint32_t* key = nullptr;     ///< sort key of each node
  std::int32_t* bucket = nullptr;   ///< index in the sorted order at which each bucket begins, node_count + 1 entries
  std::uint32_t* chosen = nullptr;  ///< one bit per edge: whether a move has drawn it; only if there are moves
  void* order = nullptr;            ///< the order without moves, node_count Ids; only if there are moves

  static CAIRN_HD std::int64_t bytes(std::int64_t nodes, std::int64_t edges, std::int64_t id_bytes, bool moves) {
    return aligned(nodes * 4) + aligned((nodes + 1) * 4) +
           (moves ? aligned((edges + 31) / 32 * 4) + aligned(nodes * id_bytes) : 0);
  }
  static CAIRN_HD DrawSpace in(std::byte* memory, std::int64_t nodes, std::int64_t edges) {
    DrawSpace space;
    space.key = reinterpret_cast<std::uint32_t*>(memory);
    memory += aligned(nodes * 4);
    space.bucket = reinterpret_cast<std::int32_t*>(memory);
    memory += aligned((nodes + 1) * 4);
    space.chosen = reinterpret_cast<std::uint32_t*>(memory);
    space.order = memory + aligned((edges + 31) / 32 * 4);
    return space;
  }
};

/// Replaces each value by the sum of the values before it, and returns the sum of all values. Each thread handles a
/// range of consecutive values.
template <class Team>
CAIRN_HD std::int32_t sum_before(const Team& team, std::int32_t* values, std::int32_t count) {
  const std::int32_t stretch = (count + team.size() - 1) / team.size();
  const std::int32_t begin = team.rank() * stretch < count ? team.rank() * stretch : count;
  const std::int32_t end = begin + stretch < count ? begin + stretch : count;
  std::int32_t own = 0, total = 0;
  for (std::int32_t i = begin; i < end; ++i) own += values[i];
  std::int32_t sum = team.scan(own, total);
  for (std::int32_t i = begin; i < end; ++i) {
    const std::int32_t value = values[i];
    values[i] = sum;
    sum += value;
  }
  team.sync();
  return total;
}

/// Sorts nodes by (key, number) into `order`. First distributes the nodes to as many buckets as there are nodes, by
/// their keys. Keys are random times and spread out, so a bucket holds few nodes, and an insertion sort within each
/// bucket is fast enough.
template <class Id, class Team>
CAIRN_HD void sort_by_key(const Team& team, std::int32_t count, const std::uint32_t* key, std::int32_t* bucket,
                          Id* order) {
  std::uint32_t highest = 0;
  for (std::int32_t v = team.rank(); v < count; v += team.size()) highest = key[v] > highest ? key[v] : highest;
  highest = team.reduce(highest, core::Max());
  const std::uint64_t scale = (static_cast<std::uint64_t>(count) << 32) / (std::uint64_t{highest} + 1);
  const auto bucket_of = [=](std::int32_t v) { return static_cast<std::int32_t>(key[v] * scale >> 32); };

  for (std::int32_t b = team.rank(); b <= count; b += team.size()) bucket[b] = 0;
  team.sync();
  for (std::int32_t v = team.rank(); v < count; v += team.size()) fetch_add(&bucket[bucket_of(v)], 1);
  team.sync();
  sum_before(team, bucket, count);
  for (std::int32_t v = team.rank(); v < count; v += team.size()) {
    order[fetch_add(&bucket[bucket_of(v)], 1)] = static_cast<Id>(v);
  }
  team.sync();
  // The counter of each bucket is now the index at which the next bucket begins.
  for (std::int32_t b = team.rank(); b < count; b += team.size()) {
    const std::int32_t begin = b > 0 ? bucket[b - 1] : 0, end = bucket[b];
    for (std::int32_t i = begin + 1; i < end; ++i) {
      const Id v = order[i];
      std::int32_t j = i;
      for (; j > begin && (key[order[j - 1]] > key[v] || (key[order[j - 1]] == key[v] && order[j - 1] > v)); --j) {
        order[j] = order[j - 1];
      }
      order[j] = v;
    }
  }
  team.sync();
}

/// Generates the order of candidate `index` (sim/generator.h), without recomputation moves.
template <class Id, class Team>
CAIRN_HD void draw_order(const Team& team, const TablesView<Id>& graph, std::uint64_t seed, std::int64_t index,
                         const DrawSpace& space, Id* order) {
  const std::int32_t n = graph.node_count;
  for (std::int32_t group = team.rank(); kHalves * group < n; group += team.size()) {
    const Philox words = random_words(seed, index, kWaitingTimes, static_cast<std::uint32_t>(group));
    CAIRN_UNROLL
    for (std::int32_t i = 0; i < kHalves; ++i) {
      if (kHalves * group + i < n)
        space.key[graph.by_level[kHalves * group + i]] = waiting_time(half_of(words, i), graph.wait_shift);
    }
  }
  team.sync();
  for (std::int32_t level = 1; level < graph.level_count; ++level) {
    for (std::int32_t i = graph.level_begin[level] + team.rank(); i < graph.level_begin[level + 1]; i += team.size()) {
      const std::int32_t v = graph.by_level[i];
      std::uint32_t ready = 0;
      for (std::int32_t e = graph.predecessor_begin[v]; e < graph.predecessor_begin[v + 1]; ++e) {
        const std::uint32_t ran = space.key[graph.predecessors[e]];
        ready = ran > ready ? ran : ready;
      }
      space.key[v] += ready;
    }
    team.sync();
  }
  sort_by_key(team, n, space.key, space.bucket, order);
}

/// Inserts the recomputation moves of a candidate (sim/generator.h) into its order, and returns the length of the
/// schedule. `steps` must have room for node_count + moves entries.
template <class Id, class Team>
CAIRN_HD std::int32_t draw_moves(const Team& team, const TablesView<Id>& graph, std::uint64_t seed, std::int32_t moves,
                                 std::int64_t index, const DrawSpace& space, const Id* order, Id* steps) {
  const std::int32_t n = graph.node_count, words = (graph.edge_count + 31) / 32;
  for (std::int32_t i = team.rank(); i < words; i += team.size()) space.chosen[i] = 0;
  team.sync();
  const std::int32_t count = graph.edge_count > 0 ? move_count(seed, index, moves) : 0;
  for (std::int32_t group = team.rank(); 4 * group < count; group += team.size()) {
    const Philox four = random_words(seed, index, kMoves, static_cast<std::uint32_t>(group));
    for (std::int32_t i = 0; i < 4 && 4 * group + i < count; ++i) {
      const std::uint32_t edge = below(four.word[i], static_cast<std::uint32_t>(graph.edge_count));
      if (graph.pinned_count > 0 && graph.pinned[graph.predecessors[edge]] != 0) continue;
      fetch_or(&space.chosen[edge / 32], 1U << edge % 32);
    }
  }
  team.sync();
  const auto for_each_chosen = [&](const auto& visit) {
    for (std::int32_t i = team.rank(); i < words; i += team.size()) {
      for (std::uint32_t rest = space.chosen[i]; rest != 0; rest &= rest - 1) visit(32 * i + lowest_bit(rest));
    }
  };

  // At first, begin[i] is the number of steps for node order[i]: one for the node itself, and one for each node that
  // runs again directly before it. Later, begin[i] becomes the index of the first of these steps.
  std::uint32_t* place = space.key;    // index of each node in the order; reuses the keys' memory
  std::int32_t* begin = space.bucket;  // reuses the buckets' memory
  for (std::int32_t i = team.rank(); i < n; i += team.size()) {
    place[order[i]] = static_cast<std::uint32_t>(i);
    begin[i] = 1;
  }
  team.sync();
  for_each_chosen([&](std::int32_t e) { fetch_add(&begin[place[graph.edge_reader[e]]], 1); });
  team.sync();
  const std::int32_t length = sum_before(team, begin, n);
  for (std::int32_t i = team.rank(); i < n; i += team.size()) {
    steps[(i + 1 < n ? begin[i + 1] : length) - 1] = order[i];
  }
  for_each_chosen([&](std::int32_t e) {
    const std::int32_t reader = graph.edge_reader[e];
    steps[begin[place[reader]] + count_bits(space.chosen, graph.predecessor_begin[reader], e)] = graph.predecessors[e];
  });
  team.sync();
  return length;
}

/// Generates candidate `index` of the sequence that sim/generator.h describes, and writes its steps to `steps`. `steps`
/// must have room for node_count + moves entries. Returns the schedule's length.
template <class Id, class Team>
CAIRN_HD std::int32_t draw_schedule(const Team& team, const TablesView<Id>& graph, std::uint64_t seed,
                                    std::int32_t moves, std::int64_t index, const DrawSpace& space, Id* steps) {
  // draw_order() is called at two places, so that the compiler knows for each call whether the order is in shared or in
  // global memory.
  if (moves == 0) {
    draw_order(team, graph, seed, index, space, steps);
    return graph.node_count;
  }
  Id* order = static_cast<Id*>(space.order);
  draw_order(team, graph, seed, index, space, order);
  return draw_moves(team, graph, seed, moves, index, space, order, steps);
}

}  // namespace cairn::sim::device
