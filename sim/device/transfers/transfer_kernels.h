#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/sim/device/lanes.h"
#include "cairn/sim/device/transfers/transfer_profile.h"

/// This file has functors for Machine::launch. They evaluate and draw candidates (schedules) with transfers, one in
/// each thread.
namespace cairn::sim::device {

/// The largest numbers of values, steps and copies of a candidate; the sizes of the arrays in WalkArrays follow from
/// these numbers.
struct WalkSizes {
  std::int64_t values = 0, steps = 0, copies = 0;

  std::int64_t bytes(std::int64_t lanes) const { return WalkArrays::bytes(values, steps, copies, lanes); }
};

/// Number of threads of a team whose threads run a TransferWalk, each on a schedule of its own.
inline constexpr int kThreadsOfWalk = 32;
/// Number of blocks that a multiprocessor should run at a time. A walk keeps many numbers in registers, and with one
/// block per multiprocessor a thread may use more of them.
inline constexpr int kBlocksOfWalk = 1;

/// Calls take(c, arrays) for each candidate c in [0, count) that this thread handles. `index` is the team's number, and
/// `teams` the number of teams.
template <class Team, class Take>
CAIRN_HD void for_each_walked(const Team& team, const WalkSizes& sizes, std::byte* memory, std::int64_t index,
                              std::int64_t teams, std::int64_t count, const Take& take) {
  const LaneGrid<Team, kThreadsOfWalk> grid(team);
  const WalkArrays arrays = WalkArrays::in(memory, grid.lane(), grid.lanes(), sizes.values, sizes.steps, sizes.copies);
  for (std::int64_t c = index * grid.lanes() + grid.lane(); c < count; c += teams * grid.lanes()) take(c, arrays);
}

template <class Id, class Space>
struct EvaluateMoved {
  static constexpr int kThreads = kThreadsOfWalk;
  static constexpr int kBlocks = kBlocksOfWalk;
  TablesView<Id> graph;
  MovesView moves;
  BatchView<Id> batch;
  OutcomesView outcomes;
  WalkSizes sizes;
  Space space;
  std::int64_t teams;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    for_each_walked(team, sizes, space.of(team, index), index, teams, batch.count,
                    [&](std::int64_t c, const WalkArrays& arrays) {
                      put(outcomes, c, walk_transfers(graph, moves, moved_row(batch, c), arrays, IgnoreSteps{}));
                    });
  }
};

/// Writes the memory profiles of candidates with transfers. Skips a candidate whose range in `begin` is empty, because
/// it is invalid.
template <class Id, class Space>
struct WriteMovedProfiles {
  static constexpr int kThreads = kThreadsOfWalk;
  static constexpr int kBlocks = kBlocksOfWalk;
  TablesView<Id> graph;
  MovesView moves;
  BatchView<Id> batch;
  const std::int64_t* begin;  ///< batch.count + 1 offsets into `value`, one range per candidate
  std::int64_t* value;
  WalkSizes sizes;
  Space space;
  std::int64_t teams;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    for_each_walked(team, sizes, space.of(team, index), index, teams, batch.count,
                    [&](std::int64_t c, const WalkArrays& arrays) {
                      if (begin[c] == begin[c + 1]) return;
                      value[begin[c]] = 0;
                      walk_transfers(graph, moves, moved_row(batch, c), arrays, StoreProfile{value + begin[c]});
                    });
  }
};

/// Draws the transfers of candidates whose steps have been drawn. The copies of candidate c are written from copies + c
/// * 2 * most on.
template <class Id, class Space>
struct DrawCopies {
  static constexpr int kThreads = kThreadsOfWalk;
  static constexpr int kBlocks = kBlocksOfWalk;
  TablesView<Id> graph;
  MovesView moves;
  std::uint64_t seed;
  std::int32_t most;
  std::int64_t first;
  BatchView<Id> batch;
  Copy* copies;
  std::int64_t* copies_begin;
  std::int32_t* copies_count;
  WalkSizes sizes;
  Space space;
  std::int64_t teams;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    for_each_walked(
        team, sizes, space.of(team, index), index, teams, batch.count, [&](std::int64_t c, const WalkArrays& arrays) {
          copies_begin[c] = c * 2 * most;
          const MovedRow<Id> row{batch.steps + batch.begin[c], batch.length[c]};
          copies_count[c] = draw_transfers(graph, moves, seed, most, first + c, row, arrays, copies + c * 2 * most);
        });
  }
};

}  // namespace cairn::sim::device
