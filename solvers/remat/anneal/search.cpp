// Implements the main search of `auto` (search.h). The search consists of islands, which are parallel searches. The
// islands run in rounds of a fraction of a second, and exchange their best schedules after each round.

#include "cairn/solvers/remat/anneal/search.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/machine/support/thread_pool.h"
#include "cairn/core/support/random.h"
#include "cairn/core/threads.h"
#include "cairn/solvers/common/support/costs.h"
#include "cairn/solvers/common/support/peers.h"
#include "cairn/solvers/remat/anneal/annealer.h"
#include "cairn/solvers/remat/exact/live_set_search.h"
#include "cairn/solvers/remat/exact/window.h"

namespace cairn::solvers {
namespace {

using core::NodeId;

/// Describes the goal of all islands: a schedule within `budget` (bytes) that is as cheap as possible. An island stops
/// when its best schedule costs at most `enough`.
struct Goal {
  std::int64_t budget = 0;
  std::int64_t enough = -1;
};

/// Makes runs of annealing. After each run, the island polishes: exact searches (WindowSearch) improve windows, which
/// are ranges of consecutive steps, of the schedule that the run found. If no schedule within the budget is known yet,
/// polishing has another goal: to bring the run's last schedule within the budget. Such polishing is called mending.
class Island {
 public:
  Island(const core::Graph& graph, const SolveOptions& options, const Scope& scope, std::uint64_t seed,
         std::int64_t memory_bytes)
      : graph_(graph),
        scope_(scope),
        memory_bytes_(memory_bytes),
        recomputes_(options.scope.max_occurrences != 1),
        random_(seed),
        annealer_(graph, scope, random_.next()) {}

  /// Restarts from a schedule with a new goal. `cost` is the schedule's cost if it is within the goal's budget.
  /// Otherwise `cost` is absent.
  void aim(const Goal& goal, const std::vector<NodeId>& steps, std::optional<std::int64_t> cost) {
    goal_ = goal;
    windows_.emplace(graph_, scope_, goal.budget, random_.next(), memory_bytes_);
    best_ = steps;
    best_cost_ = cost.value_or(kAnyCost);
    annealer_.set_enough(goal.enough);
    running_ = false;
    polish_left_ = 0;
    mending_ = false;
    if (!cost) runs_ = 0;  // makes the next runs short, because a few changes often suffice to lower the peak
  }
  void meet(const std::vector<NodeId>& steps, std::int64_t cost) {
    if (cost >= best_cost_) return;
    best_ = steps;
    best_cost_ = cost;
  }

  /// Searches until the watch expires or the goal's `enough` is reached. `moves_left` is an estimate of how many moves
  /// this island can still make.
  void advance(core::Stopwatch& watch, std::int64_t moves_left) {
    while (!watch.expired() && best_cost_ > goal_.enough) {
      if (polish_left_ > 0) {
        polish(watch);
      } else if (running_) {
        annealer_.advance(watch);
        // The best schedule of an unfinished run counts as well, because on a large graph a run can outlast the limit.
        if (annealer_.fits() && annealer_.best_cost() < best_cost_) {
          best_ = annealer_.best();
          best_cost_ = annealer_.best_cost();
        }
        if (annealer_.run_ended()) end_run();
      } else {
        begin_run(moves_left);
      }
    }
  }

  const std::vector<NodeId>& best() const { return best_; }
  std::int64_t best_cost() const { return best_cost_; }
  std::vector<NodeId> current() const { return running_ ? annealer_.current() : best_; }
  bool fits() const { return best_cost_ != kAnyCost; }
  std::int64_t moves() const { return annealer_.moves(); }
  int ended_runs() const { return ended_runs_; }

 private:
  void begin_run(std::int64_t moves_left) {
    // With about one move for each node, a run can only reach the nearest local minimum. A high temperature helps only
    // with about a thousand moves for each node. So the first temperature grows with the number of moves.
    constexpr double kLeastHot = 0.1, kMostHot = 10, kLeastCold = 0.02, kMostCold = 0.12, kThorough = 1000;
    constexpr std::int64_t kShortest = 20'000, kMovesOfNode = 100;
    const auto nodes = static_cast<std::int64_t>(graph_.node_count());
    // Until a schedule within the budget is known, runs are shorter, because short runs find such a schedule sooner.
    const std::int64_t a_node = fits() ? kMovesOfNode : kMovesOfNode / 10;
    const std::int64_t wanted = std::max(kShortest, a_node * nodes) << std::min(runs_, 24);
    const std::int64_t moves = std::clamp(wanted, kShortest, std::max(kShortest, moves_left));
    const double part = static_cast<double>(moves) / (kThorough * static_cast<double>(nodes + 1));
    const double hot = std::clamp(kMostHot * part, kLeastHot, kMostHot) * (0.5 + random_.uniform());
    // The best final temperature differs between graphs: it is high for layered graphs and low for training graphs.
    const double warmest = std::clamp(hot / 50, kLeastCold, kMostCold);
    const double cold = kLeastCold * std::pow(warmest / kLeastCold, random_.uniform());
    annealer_.start(best_, goal_.budget);
    annealer_.begin_run(moves, hot, cold);
    running_ = true;
    ++runs_;
  }

  void end_run() {
    constexpr std::int64_t kMendingWindows = 20;
    running_ = false;
    polish_left_ = 0;
    if (annealer_.fits()) {
      polished_ = annealer_.best();
      if (recomputes_) polish_left_ = 8 + static_cast<std::int64_t>(polished_.size()) / 16;
    } else if (!fits()) {
      best_ = polished_ = annealer_.current();
      if (recomputes_) polish_left_ = kMendingWindows;
    }
    mending_ = polish_left_ > 0 && !annealer_.fits();
    if (!mending_) ++ended_runs_;
  }

  void polish(core::Stopwatch& watch) {
    --polish_left_;
    if (windows_->improve(polished_, watch)) take_polished();
    if (mending_ && polish_left_ == 0) {
      mending_ = false;
      ++ended_runs_;
    }
  }
  void take_polished() {
    // Mending looks for a schedule within the budget, and ends when it has found one.
    if (mending_) {
      best_ = polished_;
      if (core::evaluate(graph_, {polished_}).peak > goal_.budget) return;
      polish_left_ = 0;
    }
    const std::int64_t cost = cost_of(graph_, polished_);
    if (cost >= best_cost_) return;
    best_ = polished_;
    best_cost_ = cost;
  }

  const core::Graph& graph_;
  const Scope scope_;
  const std::int64_t memory_bytes_;
  const bool recomputes_;
  core::Random random_;
  Annealer annealer_;
  std::optional<WindowSearch> windows_;
  Goal goal_;
  /// Cheapest known schedule within the budget. If none is known: the last schedule of the latest run.
  std::vector<NodeId> best_;
  std::int64_t best_cost_ = kAnyCost;
  bool running_ = false;
  int runs_ = 0, ended_runs_ = 0;
  std::int64_t polish_left_ = 0;  ///< number of windows still to be searched before the next annealing run
  bool mending_ = false;
  std::vector<NodeId> polished_;
};

/// Runs the islands, exchanges their schedules, and sets their goals.
class Search {
 public:
  Search(const core::Graph& graph, const SolveOptions& options, const std::function<bool()>& between,
         Incumbent& incumbent, core::Stopwatch& watch)
      : graph_(graph),
        options_(options),
        between_(between),
        incumbent_(incumbent),
        watch_(watch),
        limit_(watch.rest()),
        key_(options.peers != nullptr ? std::stoull(graph.fingerprint(), nullptr, 16) : 0) {
    const std::vector<std::uint64_t> seeds = island_seeds(0, limit_, options.seed);
    const std::int64_t memory_bytes = options.memory_bytes / (2 * std::ssize(seeds));
    for (const std::uint64_t seed : seeds)
      islands_.push_back(std::make_unique<Island>(graph, options, incumbent.scope(), seed, memory_bytes));
    improved_seconds_ = watch.seconds();
    improved_work_ = watch.work();
  }

  Stop run() {
    const Stop stop = until_stopped();
    // Offer the current schedules of the islands. They exceed the goal's budget, but their peaks can be below the
    // lowest known peak. In that case, a later call of search() can continue from them.
    if (lowering_) {
      for (const auto& island : islands_) incumbent_.offer({island->current()});
    }
    return stop;
  }

 private:
  Stop until_stopped() {
    lowering_ = true;
    aim();
    while (true) {
      const bool waiting = between_ && between_();
      if (incumbent_.cannot_improve()) return Stop::proved;
      if (incumbent_.done()) return Stop::ended;
      if (watch_.interrupted()) return Stop::interrupted;
      if (watch_.expired_now()) return Stop::limit;
      if (!waiting && stagnated()) return Stop::stagnated;
      round();
      collect();
    }
  }

  void round() {
    constexpr double kSeconds = 0.25;
    constexpr std::int64_t kWork = 400'000;
    core::Limit limit = watch_.rest();
    const auto islands = static_cast<std::int64_t>(islands_.size());
    // If the limit counts work units, results must be reproducible. So the length of a round must not depend on the
    // clock.
    if (!limit_.counts_work()) limit.seconds = std::min(limit.seconds, kSeconds);
    limit.work = limit_.counts_work() ? std::min(limit.work / islands, kWork) : core::Limit::kAnyWork;
    const std::int64_t moves_left = most_moves();
    std::vector<core::Stopwatch> watches(islands_.size(), core::Stopwatch(limit));
    core::parallel_blocks(islands, 1, core::thread_count(), [&](std::int64_t i, std::int64_t, int) {
      islands_[static_cast<std::size_t>(i)]->advance(watches[static_cast<std::size_t>(i)], moves_left);
    });
    for (const core::Stopwatch& one : watches) watch_.charge(std::max<std::int64_t>(one.work(), 1));
  }

  /// Estimates how many moves each island can still make before the limit.
  std::int64_t most_moves() const {
    const core::Limit rest = watch_.rest();
    const std::int64_t done = moves();
    const double work = static_cast<double>(watch_.work() - started_work_);
    const double seconds = watch_.seconds() - started_seconds_;
    const auto islands = static_cast<double>(islands_.size());
    double most = 1e15;
    if (done > 0 && limit_.counts_work()) {
      most = static_cast<double>(done) / work * static_cast<double>(rest.work) / islands;
    } else if (std::isfinite(limit_.seconds)) {
      // Before the first move, assume about 50,000 moves per second for a schedule of 10,000 steps, and a time per move
      // proportional to sqrt(T) for T steps, because an edit takes O(sqrt(T)).
      const double a_second = done > 0 && seconds > 0
                                  ? static_cast<double>(done) / seconds / islands
                                  : 5e6 / std::sqrt(static_cast<double>(incumbent_.schedule().length() + 1));
      most = a_second * rest.seconds;
    }
    return static_cast<std::int64_t>(most);
  }

  std::int64_t moves() const {
    std::int64_t sum = 0;
    for (const auto& island : islands_) sum += island->moves();
    return sum;
  }

  void collect() {
    const bool before = incumbent_.within_budget();
    const std::int64_t cost = incumbent_.cost(), peak = incumbent_.peak();
    for (const auto& island : islands_) {
      const bool new_to_all = island->fits() && (lowering_ ? island->best_cost() <= goal_.enough
                                                           : !before || island->best_cost() < incumbent_.cost());
      if (new_to_all) incumbent_.offer({island->best()});
    }
    exchange(before, cost, peak);
    const bool better = incumbent_.within_budget() != before || incumbent_.cost() < cost || incumbent_.peak() < peak;
    if (better) {
      improved_seconds_ = watch_.seconds();
      improved_work_ = watch_.work();
      improved_moves_ = moves();
    }
    if (lowering_ && (incumbent_.peak() < peak || runs_ended() || lowered_enough())) {
      if (incumbent_.peak() < peak) {
        step_ = std::min(step_ * 1.5, 0.2);
      } else {
        step_ /= 2;
      }
      return aim();
    }
    if (better && !lowering_) {
      for (const auto& island : islands_) island->meet(incumbent_.schedule().steps, incumbent_.cost());
    }
  }

  /// Sends the incumbent to the peers (other processes that run the same search) if it has improved. The parameters
  /// describe the incumbent before the improvement. Afterwards, offers to the incumbent the schedules that peers have
  /// sent.
  void exchange(bool was_within_budget, std::int64_t cost, std::int64_t peak) {
    if (options_.peers == nullptr) return;
    if (incumbent_.within_budget() != was_within_budget || incumbent_.cost() < cost || incumbent_.peak() < peak)
      options_.peers->send(key_, incumbent_.schedule().steps);
    for (std::vector<NodeId>& steps : options_.peers->received(key_)) incumbent_.offer({std::move(steps)});
  }

  bool runs_ended() const {
    return std::ranges::all_of(islands_, [&](const auto& island) { return island->ended_runs() > aimed_runs_; });
  }

  /// Returns whether the part of the limit that is meant for lowering the peak is used up. The rest of the limit is for
  /// lowering the cost at the lowest peak found.
  bool lowered_enough() const {
    constexpr double kPart = 0.6;
    if (options_.max_cost || options_.budget || options_.peak_alone) return false;
    const core::Limit rest = watch_.rest();
    if (limit_.counts_work()) return static_cast<double>(rest.work) < (1 - kPart) * static_cast<double>(limit_.work);
    if (std::isfinite(limit_.seconds)) return rest.seconds < (1 - kPart) * limit_.seconds;
    return step_ < 1e-3;
  }

  void aim() {
    constexpr NodeId kLarge = 2000;
    const bool low_enough =
        options_.budget ? incumbent_.within_budget() : incumbent_.peak() <= incumbent_.lower_bound();
    lowering_ = lowering_ && !low_enough && !lowered_enough();
    const std::int64_t budget_before = goal_.budget;
    std::optional<std::int64_t> cost;
    if (lowering_) {
      const auto gap = static_cast<double>(incumbent_.peak() - incumbent_.lower_bound());
      auto lower = std::max<std::int64_t>(1, static_cast<std::int64_t>(gap * step_));
      // If the user gave a budget, each new goal lowers the peak by at least 1/500, but not below this budget.
      if (options_.budget) lower = std::max(lower, incumbent_.peak() / 500);
      // On large graphs, one annealing run takes most of the limit. So if the user's budget is less than 1/25 below the
      // lowest known peak, the budget becomes the goal at once.
      if (options_.budget && graph_.node_count() > kLarge && incumbent_.peak() / 25 * 24 < *options_.budget)
        lower = incumbent_.peak();
      goal_ = {std::max(incumbent_.peak() - lower, options_.budget.value_or(0)),
               options_.budget ? kAnyCost - 1 : options_.max_cost.value_or(kAnyCost - 1)};
    } else {
      goal_ = {options_.budget.value_or(incumbent_.peak()), -1};
      if (incumbent_.peak() <= goal_.budget) cost = incumbent_.cost();
    }
    const bool again = lowering_ && goal_.budget == budget_before && incumbent_.peak() == aimed_peak_;
    aimed_peak_ = incumbent_.peak();
    aimed_runs_ = 0;
    for (const auto& island : islands_) {
      if (!again) island->aim(goal_, incumbent_.schedule().steps, cost);
      aimed_runs_ = std::max(aimed_runs_, island->ended_runs());
    }
  }

  bool stagnated() const {
    // Once the goal is the user's budget, the search goes on until every island has finished a run with this goal.
    if (lowering_ && goal_.budget == options_.budget && !runs_ended()) return false;
    // Without a limit, the search ends when it has made more moves since the last improvement than before it, plus
    // kLeastMoves for each node.
    constexpr std::int64_t kLeastMoves = 2000;
    // Fraction of a limit that has to pass without an improvement.
    constexpr double kPatience = 0.5;
    if (limit_.counts_work())
      return static_cast<double>(watch_.work() - improved_work_) > kPatience * static_cast<double>(limit_.work);
    if (std::isfinite(limit_.seconds)) return watch_.seconds() - improved_seconds_ > kPatience * limit_.seconds;
    return moves() > 2 * improved_moves_ + kLeastMoves * (graph_.node_count() + 1);
  }

  const core::Graph& graph_;
  const SolveOptions& options_;
  const std::function<bool()>& between_;
  Incumbent& incumbent_;
  core::Stopwatch& watch_;
  const core::Limit limit_;
  const std::uint64_t key_;  ///< key of the graph by which peers exchange schedules (Peers)
  std::vector<std::unique_ptr<Island>> islands_;
  Goal goal_;
  bool lowering_ = false;  ///< whether the goal is a lower peak rather than a lower cost
  /// Distance from the lowest known peak down to the next goal, as a fraction of the distance from this peak down to
  /// the lower bound on the peak.
  double step_ = 0.02;
  int aimed_runs_ = 0;            ///< largest number of runs that any island had finished when the goal was set
  std::int64_t aimed_peak_ = -1;  ///< peak of the incumbent when the goal was set

  double improved_seconds_ = 0, started_seconds_ = watch_.seconds();
  std::int64_t improved_work_ = 0, improved_moves_ = 0, started_work_ = watch_.work();
};

}  // namespace

Stop search(const core::Graph& graph, const SolveOptions& options, const std::function<bool()>& between,
            Incumbent& incumbent, core::Stopwatch& watch) {
  if (incumbent.scope().order == OrderRule::stages)
    throw std::logic_error("the search does not keep schedules in stages");
  constexpr std::int64_t kMostCost = std::int64_t{1} << 61;  // highest cost for which sums of costs cannot overflow
  if (graph.node_count() == 0 || incumbent.cost() > kMostCost) return Stop::ended;
  return Search(graph, options, between, incumbent, watch).run();
}

}  // namespace cairn::solvers
