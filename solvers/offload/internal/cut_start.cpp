// Makes a schedule with transfers from a minimum cut (cut_start.h). The cut belongs to a moment, the first run of a
// certain node. It says which values are on the host at this moment.

#include "cairn/solvers/offload/internal/cut_start.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "cairn/core/link.h"
#include "cairn/solvers/remat/bound/cut/cut_bound.h"

namespace cairn::solvers::offloading {
namespace {

/// Describes a value that is evicted before the moment of the cut (the first run of a certain node) and fetched after
/// it.
struct Move {
  core::ValueId value;
  std::int64_t made = 0, last_read = 0;  ///< steps before the moment
  std::int64_t next_read = 0;            ///< step after the moment, or the number of steps if the value is kept
  double time = 0;                       ///< time of one copy of the value
};

/// Adds to a schedule the evicts and fetches of the values that a cut moves to the host.
class Mover {
 public:
  Mover(const core::Graph& graph, const core::Link& link, core::Schedule schedule, core::NodeId moment)
      : graph_(graph), link_(link), schedule_(std::move(schedule)) {
    const std::vector<core::NodeId>& steps = schedule_.steps;
    moment_ = std::ranges::find(steps, moment) - steps.begin();
    begin_.push_back(0);
    for (const core::NodeId v : steps) begin_.push_back(begin_.back() + static_cast<double>(graph.cost(v)));
  }

  core::Schedule run(const std::vector<std::uint8_t>& moved) {
    std::vector<Move> moves = moves_of(moved);
    add_evicts(moves);
    add_fetches(moves);
    return std::move(schedule_);
  }

 private:
  /// Returns the moves in the order in which the values are made.
  std::vector<Move> moves_of(const std::vector<std::uint8_t>& moved) const {
    const std::vector<core::NodeId>& steps = schedule_.steps;
    const std::int64_t length = schedule_.length();
    std::vector<std::int32_t> number(graph_.value_count(), -1);
    std::vector<Move> moves;
    for (std::int64_t i = 0; i < length; ++i) {
      for (const core::ValueId x : graph_.inputs(steps[i])) {
        if (number[x] < 0) continue;
        Move& move = moves[number[x]];
        if (i <= moment_) move.last_read = i;
        if (i > moment_) move.next_read = std::min(move.next_read, i);
      }
      if (i >= moment_) continue;
      for (const core::ValueId x : graph_.outputs(steps[i])) {
        if (moved[x] == 0) continue;
        number[x] = static_cast<std::int32_t>(moves.size());
        const auto time = static_cast<double>(core::copy_cost(link_, graph_.value_size(x), graph_.cost_unit()));
        moves.push_back({x, i, i, length, time});
      }
    }
    std::erase_if(moves, [&](const Move& move) { return move.next_read == length && !graph_.value_kept(move.value); });
    return moves;
  }

  void add_evicts(const std::vector<Move>& moves) {
    double free = 0;  // time at which the link is free
    for (const Move& move : moves) {
      free = std::max(free, begin_[move.made + 1]) + move.time;
      const std::int64_t over = std::ranges::lower_bound(begin_, free) - begin_.begin();
      const std::int64_t finish = std::min(std::max(move.last_read + 1, over), moment_);
      schedule_.transfers.evicts.push_back({move.value, move.made, move.made, finish});
    }
  }

  void add_fetches(const std::vector<Move>& moves) {
    std::vector<std::size_t> order(moves.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t k) { return moves[k].next_read; });
    double free = begin_.back();
    for (const std::size_t k : order) {
      const Move& move = moves[k];
      free = std::min(free, begin_[move.next_read]) - move.time;
      // `ended` is the last step that has ended when the copy must begin.
      const std::int64_t ended = std::ranges::upper_bound(begin_, free) - begin_.begin() - 2;
      const std::int64_t start = std::clamp(ended, moment_, move.next_read - 1);
      schedule_.transfers.fetches.push_back({static_cast<std::int32_t>(k), start, move.next_read});
    }
  }

  const core::Graph& graph_;
  const core::Link& link_;
  core::Schedule schedule_;
  std::int64_t moment_ = 0;  ///< step of the moment's node
  /// For each step, the time at which it begins if no step waits; then the end of the last step.
  std::vector<double> begin_;
};

}  // namespace

std::optional<core::Schedule> cut_start(const core::Graph& graph, const MomentCutOptions& options,
                                        core::Stopwatch& watch) {
  const CutBound bound = cut_bound(graph, options, std::numeric_limits<std::int64_t>::max(), {}, watch);
  if (bound.infeasible || bound.moment == core::kNoNode) return std::nullopt;
  std::optional<CutSchedule> cut = cut_schedule(graph, options, bound.moment, watch);
  if (!cut) return std::nullopt;
  return Mover(graph, *options.link, std::move(cut->schedule), bound.moment).run(cut->cut.moved);
}

}  // namespace cairn::solvers::offloading
