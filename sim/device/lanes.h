#pragma once

#include <cstdint>

#include "cairn/core/host_device.h"

/// A team of threads can evaluate several candidates (schedules) side by side. Its threads form a table: each column is
/// a *lane*, which handles one candidate, and each row handles a part of the nodes in all lanes. An array with an entry
/// for each node and lane is stored node by node, so that the threads of a warp access consecutive memory for every
/// candidate.
namespace cairn::sim::device {

/// Number of entries of the array `of_row` of LaneGrid::combine_below() in a team of `threads` threads: one per thread,
/// then a total per lane.
template <int kLanes>
CAIRN_HD constexpr std::int64_t of_row_entries(std::int64_t threads) {
  return threads + kLanes;
}

/// A thread's place in the table of a team's threads. There are kLanes lanes; if the team has fewer threads than that,
/// there is one lane per thread. The number of threads must be a multiple of the number of lanes.
template <class Team, int kLanes>
class LaneGrid {
 public:
  CAIRN_HD explicit LaneGrid(const Team& team) : team_(team) {}

  CAIRN_HD int lanes() const { return team_.size() < kLanes ? team_.size() : kLanes; }
  CAIRN_HD int rows() const { return team_.size() / lanes(); }
  CAIRN_HD int lane() const { return team_.rank() % lanes(); }
  CAIRN_HD int row() const { return team_.rank() / lanes(); }
  CAIRN_HD const Team& team() const { return team_; }

  /// Calls body(i) for the numbers in [0, count) that belong to this thread's row.
  template <class Body>
  CAIRN_HD void for_each(std::int32_t count, const Body& body) const {
    CAIRN_UNROLL_BY(2)
    for (std::int32_t i = row(); i < count; i += rows()) body(i);
  }
  /// Sets the first `bytes` bytes of `memory` to zero, and up to 15 bytes after them. `memory` must be aligned to 16
  /// bytes. The team's threads share the work.
  CAIRN_HD void clear(void* memory, std::int64_t bytes) const {
    struct alignas(16) Piece {
      std::uint32_t word[4];
    };
    auto* const pieces = static_cast<Piece*>(memory);
    for (std::int64_t i = team_.rank(); i < (bytes + 15) / 16; i += team_.size()) pieces[i] = Piece{};
  }

  /// The numbers [begin, end) of [0, count) that belong to a row if each row needs consecutive numbers.
  struct Stretch {
    std::int32_t begin, end;
  };
  CAIRN_HD Stretch stretch(std::int32_t count) const {
    const std::int32_t length = (count + rows() - 1) / rows();
    const std::int32_t begin = row() * length < count ? row() * length : count;
    return {begin, begin + length < count ? begin + length : count};
  }

  /// Each thread of the team passes a `value`. Returns the combination, by `op`, of the values that the threads of this
  /// lane in lower rows passed; in the first row, returns `none`. Sets `all` to the combination of the lane's values
  /// from all rows. `of_row` must have room for of_row_entries() entries. Waits for all threads of the team, as sync()
  /// does.
  template <class T, class Op>
  CAIRN_HD T combine_below(T value, T none, const Op& op, T* of_row, T& all) const {
    team_.sync();
    of_row[team_.rank()] = value;
    team_.sync();
    if (row() == 0) {
      T below = none;
      for (int r = 0; r < rows(); ++r) {
        const T next = op(below, of_row[r * lanes() + lane()]);
        of_row[r * lanes() + lane()] = below;
        below = next;
      }
      of_row[team_.size() + lane()] = below;
    }
    team_.sync();
    all = of_row[team_.size() + lane()];
    return of_row[team_.rank()];
  }

 private:
  const Team& team_;
};

}  // namespace cairn::sim::device
