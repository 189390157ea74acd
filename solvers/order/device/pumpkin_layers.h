#pragma once

#include <cstdint>

#include "cairn/core/dominance.h"
#include "cairn/core/host_device.h"

/// Stores the table of solve_pumpkin() (pumpkin.h). A branch is one of the parallel chains that are to be merged, and
/// all branches with equal memory profiles are of one kind. A state is a multiset of branches. The table has the
/// segments (core::Segment) of the best schedule of each state.
namespace cairn::solvers {

__extension__ typedef __int128 Int128;

/// Stores a segment in 8 bytes. Its sizes are multiples of a unit, which can be several bytes (PumpkinScale::unit).
struct NarrowSegment {
  std::uint32_t rise, drop;
};
CAIRN_HD inline core::Segment unpacked(const NarrowSegment& segment) { return {segment.rise, segment.drop}; }
CAIRN_HD inline const core::Segment& unpacked(const core::Segment& segment) { return segment; }

/// Names the types in which a table is stored. A NarrowTable takes half of the memory of a WideTable, and is used if
/// all numbers fit.
struct NarrowTable {
  using Segment = NarrowSegment;
  using Offset = std::uint16_t;  ///< index of a state's first segment among the segments of its group (PumpkinLayer)
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

/// Numbers the states of the problem, which are multisets of branches, without storing them. A layer contains the
/// multisets of one size, sorted by the number of branches of the last kind, ties by the number of branches of the last
/// kind but one, and so on. The rank of a multiset is its position in the layer. A multiset is computed from its rank.
/// A rank is computed by counting the multisets that come before.
struct PumpkinRanks {
  /// Entry k * (branches + 1) + s is the number of multisets of at most s branches that have only kinds before k.
  const std::int64_t* kinds_before;
  std::int32_t kinds;
  std::int64_t branches;

  CAIRN_HD std::int64_t up_to(std::int32_t kind, std::int64_t size) const {
    return size < 0 ? 0 : kinds_before[kind * (branches + 1) + size];
  }

  /// Calls visit(kind, rank) for each kind in the multiset, the last kind first, until visit() returns false. `rank` is
  /// the rank, in the layer below, of the multiset without one branch of that kind. O(kinds + branches).
  template <class Visit>
  CAIRN_HD void for_each_kind(std::int64_t rank, std::int64_t size, const Visit& visit) const {
    // The kinds are visited from the last to the first. `before` counts multisets of the layer below that rank before
    // the multiset sought, because they have fewer branches of a kind that was already visited.
    std::int64_t before = 0;
    for (std::int32_t kind = kinds; kind-- > 0 && size > 0;) {
      // up_to(kind, s) counts the multisets of at most s branches of earlier kinds. So of the multisets of `size`
      // branches without later kinds, up_to(kind, size) - up_to(kind, size - x) have fewer than x branches of this
      // kind. The loop finds `left`, the number of branches of the multiset sought that are of earlier kinds.
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

/// Stores the segments of all states of one size, state after state. Each kGroup successive states form a group. The
/// layer stores the index of each group's first segment, and for each state a short offset from there.
template <class Table>
struct PumpkinLayer {
  static constexpr std::int64_t kGroup = 64;
  using Segment = typename Table::Segment;
  using Offset = typename Table::Offset;

  const Segment* segments;
  const std::int64_t* group_begin;
  const Offset* offset;  ///< one entry for each state, and one for the end of the last state

  CAIRN_HD std::int64_t begin(std::int64_t state) const { return group_begin[state / kGroup] + offset[state]; }
  /// Returns the number of groups that `states` states and one entry after the last state form.
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
