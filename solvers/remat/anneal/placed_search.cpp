// Searches for a schedule together with the addresses of its values (placed_search.h).

#include "cairn/solvers/remat/anneal/placed_search.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "cairn/core/machine/support/thread_pool.h"
#include "cairn/core/support/random.h"
#include "cairn/core/threads.h"
#include "cairn/solvers/remat/anneal/annealer.h"
#include "cairn/solvers/remat/anneal/placement.h"

namespace cairn::solvers {
namespace {

/// Holds the cheapest schedule that fits and that any island, i.e. any of the parallel searches, has found.
/// Thread-safe.
class BestPlaced {
 public:
  explicit BestPlaced(const PlacedSearchOptions& options) : options_(options) {}

  void offer(const PlacedSchedule& one) {
    const std::lock_guard lock(mutex_);
    if (best_ && one.cost >= best_->cost) return;
    best_ = one;
    if (options_.found) options_.found(one);
  }
  std::optional<PlacedSchedule> get() const {
    const std::lock_guard lock(mutex_);
    return best_;
  }

 private:
  const PlacedSearchOptions& options_;
  mutable std::mutex mutex_;
  std::optional<PlacedSchedule> best_;
};

/// Runs one of several parallel searches. The island's first run of annealing begins with one of the given starts.
/// Later runs begin with the best schedule that fits or, if there is none, with the last schedule of the run before.
class PlacedIsland {
 public:
  PlacedIsland(const core::Graph& graph, const PlacedSearchOptions& options, const core::Limit& limit,
               std::uint64_t seed, BestPlaced& all)
      : graph_(graph),
        options_(options),
        random_(seed),
        placement_(graph, options.budget, random_.next()),
        annealer_(graph, options.scope, random_.next()),
        watch_(limit),
        counts_work_(limit.counts_work()),
        all_(all) {
    annealer_.set_enough(options.enough);
  }

  /// Offers all starts that fit as results. Then makes annealing runs until the search ends. The first run begins with
  /// starts[own].
  void run(const std::vector<PlacedSchedule>& starts, std::size_t own) {
    constexpr double kHot = 0.05, kCold = 0.02, kCheap = 0.05, kDear = 0.7;
    for (const PlacedSchedule& start : starts) {
      annealer_.start(start.schedule.steps, placement_, start.offsets);
      take();
    }
    PlacedSchedule from = starts[own];
    learn_price(from.schedule);
    started_work_ = watch_.work();
    started_seconds_ = watch_.seconds();
    for (; !watch_.expired_now() && !(best_ && best_->cost <= options_.enough) && !stagnated(); ++runs_) {
      annealer_.start(from.schedule.steps, placement_, from.offsets);
      // If a schedule that fits is known, the price of bytes that two values use at the same time is low at the
      // beginning of the run. So the search can move far away from that schedule.
      annealer_.begin_run(next_work(), kHot * (0.5 + random_.uniform()), kCold, best_ ? kCheap : kDear);
      annealer_.advance(watch_);
      take();
      // Without a work limit, this island continues from another island's schedule if that is cheaper. Under a work
      // limit it does not, because the result would depend on the speed of the threads.
      if (!counts_work_) meet(all_.get());
      from = best_ ? *best_ : PlacedSchedule{{annealer_.current()}, placement_.offsets(annealer_.schedule()), 0};
    }
  }

  const std::optional<PlacedSchedule>& best() const { return best_; }
  std::int64_t work() const { return watch_.work(); }
  bool timed_out() { return watch_.expired_now(); }

 private:
  /// Returns whether more than kPatience annealing runs have been made since the last improvement. Always returns false
  /// if time or work is limited.
  bool stagnated() const {
    constexpr int kPatience = 2;
    return !counts_work_ && !std::isfinite(watch_.rest().seconds) && runs_ - improved_run_ > kPatience;
  }

  /// Finds the price of one byte above the budget, by an annealing run that ignores addresses.
  void learn_price(const core::Schedule& schedule) {
    constexpr double kWarm = 0.05;
    constexpr std::int64_t kMovesOfNode = 50;
    annealer_.start(schedule.steps, options_.budget);
    annealer_.begin_run(kMovesOfNode * (graph_.node_count() + 1), kWarm, kWarm);
    annealer_.advance(watch_);
  }

  void take() {
    if (!annealer_.fits() || (best_ && annealer_.best_cost() >= best_->cost)) return;
    best_ = {{annealer_.best()}, annealer_.best_offsets(), annealer_.best_cost()};
    all_.offer(*best_);
    improved_run_ = runs_;
  }
  void meet(std::optional<PlacedSchedule> one) {
    if (one && (!best_ || one->cost < best_->cost)) best_ = std::move(one);
  }

  /// Chooses how much work the next run gets. The first run is short, because it measures the work per second. Until a
  /// schedule that fits is known, each run is twice as long as the one before. Afterwards, a run could use the fraction
  /// kMost of the remaining time, or all of the remaining work. If this is enough for two runs, the run gets only the
  /// fraction kLonger of it, so that another run can follow.
  std::int64_t next_work() const {
    constexpr double kFirst = 2000, kMuch = 40'000, kWithoutLimit = 200'000;  // units of work for each node
    constexpr double kLonger = 0.6, kMost = 0.95;
    const auto nodes = static_cast<double>(graph_.node_count() + 1);
    const core::Limit rest = watch_.rest();
    double work = kWithoutLimit * nodes;
    if (!best_ || runs_ == 0) {
      work = kFirst * std::exp2(runs_) * nodes;
    } else if (counts_work_) {
      work = static_cast<double>(rest.work);
    } else if (std::isfinite(rest.seconds)) {
      const double pace = static_cast<double>(watch_.work() - started_work_) / (watch_.seconds() - started_seconds_);
      work = pace * rest.seconds * kMost;
    }
    constexpr std::int64_t kShortest = 10'000;
    return std::max(kShortest, static_cast<std::int64_t>(!best_ || work < kMuch * nodes ? work : kLonger * work));
  }

  const core::Graph& graph_;
  const PlacedSearchOptions& options_;
  core::Random random_;
  Placement placement_;
  Annealer annealer_;
  core::Stopwatch watch_;
  const bool counts_work_;
  BestPlaced& all_;
  int runs_ = 0, improved_run_ = 0;
  std::int64_t started_work_ = 0;
  double started_seconds_ = 0;
  std::optional<PlacedSchedule> best_;
};

}  // namespace

bool can_search_placed(const core::Graph& graph) {
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.scratch(v) < 0) return false;
  }
  for (core::ValueId x = 0; x < graph.value_count(); ++x) {
    if (graph.inplace(x) != core::kNoValue) return false;
  }
  return true;
}

PlacedSolution search_placed(const core::Graph& graph, const std::vector<PlacedSchedule>& starts,
                             const PlacedSearchOptions& options) {
  if (!can_search_placed(graph)) throw std::logic_error("nodes that take over storage have no place of their own");
  if (starts.empty()) throw std::logic_error("a search of placed schedules starts from one");
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (std::max(graph.size(v), graph.scratch(v)) > options.budget) return {};
  }
  const std::vector<std::uint64_t> seeds = island_seeds(options.islands, options.limit, options.seed);
  core::Limit limit = options.limit;
  if (limit.counts_work()) limit.work /= std::ssize(seeds);
  BestPlaced best(options);
  std::vector<std::unique_ptr<PlacedIsland>> islands;
  for (const std::uint64_t seed : seeds)
    islands.push_back(std::make_unique<PlacedIsland>(graph, options, limit, seed, best));
  core::parallel_blocks(std::ssize(islands), 1, core::thread_count(), [&](std::int64_t i, std::int64_t, int) {
    const auto island = static_cast<std::size_t>(i);
    islands[island]->run(starts, island % starts.size());
  });
  PlacedSolution solution;
  for (const auto& island : islands) {
    if (island->best() && (!solution.best || island->best()->cost < solution.best->cost))
      solution.best = island->best();
    solution.work += island->work();
    solution.timed_out = solution.timed_out || island->timed_out();
  }
  return solution;
}

}  // namespace cairn::solvers
