#pragma once

#include <cstdint>

#include "cairn/core/dominance.h"
#include "cairn/core/host_device.h"

/// How the table of solve_pumpkin() (pumpkin.h) is stored.
namespace cairn::solvers {

__extension__ typedef __int128 Int128;

/// A segment in 8 bytes. Sizes are in units of several bytes (PumpkinScale).
struct NarrowSegment {
  std::uint32_t rise, drop;
};
CAIRN_HD inline core::Segment unpacked(const NarrowSegment& segment) { return {segment.rise, segment.drop}; }
CAIRN_HD inline const core::Segment& unpacked(const core::Segment& segment) { return segment; }

/// The types in which a table is stored. Narrow ones take half of the memory, and are used if all numbers fit.
struct NarrowTable {
  using Segment = NarrowSegment;
  using Offset = std::uint16_t;  ///< index of a state's first segment among those of its group (PumpkinLayer)
  using Sum = std::int64_t;      ///< type of PumpkinSum::left
  static constexpr std::int64_t kMostSum = INT32_MAX, kMostSegments = 1023;

  static CAIRN_HD Segment packed(std::int64_t rise, std::int64_t drop) {
    return {static_cast<std::uint32_t>(rise), static_cast<std::uint32_t>(drop)};
  }
};
struct WideTable {
  using Segment = core::Segment;
  using Offset = std::uint32_t;
  using Sum = Int128;

  static CAIRN_HD Segment packed(std::int64_t rise, std::int64_t drop) { return {rise, drop}; }
};

/// The problem's table of states, which is not stored. A layer contains the multisets of one size, sorted by the number
/// of branches of the last kind, ties by that of the last kind but one, and so on. The rank of a multiset is its
/// position in the layer. Multisets are computed from their ranks. A rank is computed by counting the multisets that
/// come before.
struct PumpkinRanks {
  const std::int64_t*
      kinds_before;  ///< number of multisets of kinds before k, of size 0..s, at index k * (branches + 1) + s
  std::int32_t kinds;
  std::int64_t branches;

  CAIRN_HD std::int64_t up_to(std::int32_t kind, std::int64_t size) const {
    return size < 0 ? 0 : kinds_before[kind * (branches + 1) + size];
  }

  /// Calls visit(kind, rank) for each kind in the multiset, the last kind first, until visit() returns false. `rank` is
  /// the rank, in the layer below, of the multiset without one branch of that kind. O(kinds + branches).
  template <class Visit>
  CAIRN_HD void for_each_kind(std::int64_t rank, std::int64_t size, const Visit& visit) const {
    // The kinds are visited from the last to the first. `before` counts the multisets of the layer below that rank
    // before the result because they have fewer branches of a kind visited already.
    std::int64_t before = 0;
    for (std::int32_t kind = kinds; kind-- > 0 && size > 0;) {
      // `up_to(size) - up_to(size - x)` multisets have fewer than x branches of this kind.
      const std::int64_t all = up_to(kind, size);
      std::int64_t left = size;
      while (rank >= all - up_to(kind, left - 1)) --left;
      rank -= all - up_to(kind, left);
      const std::int64_t all_below = up_to(kind, size - 1);
      if (left < size && !visit(kind, before + all_below - up_to(kind, left) + rank)) return;
      before += all_below - up_to(kind, left - 1);
      size = left;
    }
  }
};

/// The segments of all states of one size, state after state. Successive states are in groups of kGroup. The table has
/// the index of each group's first segment, and for each state a short offset from there.
template <class Table>
struct PumpkinLayer {
  static constexpr std::int64_t kGroup = 64;
  using Segment = typename Table::Segment;
  using Offset = typename Table::Offset;

  const Segment* segments;
  const std::int64_t* group_begin;
  const Offset* offset;  ///< one more than there are states

  CAIRN_HD std::int64_t begin(std::int64_t state) const { return group_begin[state / kGroup] + offset[state]; }
  /// Number of groups of `states` states, with the entry after the last state.
  static std::int64_t groups(std::int64_t states) { return states / kGroup + 1; }
};

/// Turns the numbers of segments of a group's states into offsets, and counts the group's segments.
template <class Table>
struct SumGroup {
  static constexpr int kThreads = 1;
  static constexpr std::int64_t kGroup = PumpkinLayer<Table>::kGroup;
  std::int64_t states;
  typename Table::Offset* offset;  ///< number of segments of each state; becomes PumpkinLayer::offset
  std::int32_t* sums;

  template <class Team>
  CAIRN_HD void operator()(const Team& /*team*/, std::int64_t group) const {
    const std::int64_t begin = group * kGroup, end = begin + kGroup < states ? begin + kGroup : states;
    std::uint32_t sum = 0;
    for (std::int64_t state = begin; state < end; ++state) {
      const std::uint32_t count = offset[state];
      offset[state] = static_cast<typename Table::Offset>(sum);
      sum += count;
    }
    if (end == states && end < begin + kGroup) offset[end] = static_cast<typename Table::Offset>(sum);
    sums[group] = static_cast<std::int32_t>(sum);
  }
};

}  // namespace cairn::solvers
