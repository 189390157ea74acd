// Searches for schedules with recomputation and transfers (solve.h). Makes several schedules by a solver that only
// handles recomputation, and calls offload() with them as its starts, i.e. as the schedules from which it begins.

#include "cairn/solvers/offload/support/solve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/solvers/offload/internal/chain_starts.h"
#include "cairn/solvers/offload/internal/cut_start.h"
#include "cairn/solvers/offload/internal/priced_graph.h"

namespace cairn::solvers {
namespace {

/// Searches by bisection for the least number between 0 and 1 with which no step waits for a copy. The number sets how
/// much a schedule avoids copies. The larger the number is, the fewer bytes the link has to move.
struct Bisection {
  double low = 0, high = 1;

  double middle() const { return low + (high - low) / 2; }
  /// Continues above middle() if steps wait for copies when the number is middle(), otherwise below middle().
  void learn(bool waits) { (waits ? low : high) = middle(); }
};

/// Makes the starts, i.e. the schedules from which offload() begins its search. They are collected in starts_.
class Starts {
 public:
  Starts(const core::Graph& graph, const SolverInfo& solver, const SolveOptions& search, const OffloadOptions& options,
         core::Stopwatch& watch)
      : graph_(graph), solver_(solver), search_(search), options_(options), watch_(watch) {}

  std::vector<core::Schedule> find() {
    constexpr int kRounds = 5;
    // The dynamic program for chains (ChainStarts) is called with kChainRounds prices, or not at all if time is short.
    constexpr int kChainRounds = 2;
    constexpr double kSecondsForChains = 1;
    const int chains = watch_.rest().seconds >= kSecondsForChains ? kChainRounds : 0;
    const core::Schedule baseline = core::baseline_schedule(graph_);
    const std::int64_t most = core::evaluate(graph_, baseline).peak;
    if (search_.start != nullptr && options_.scope.contains(graph_, *search_.start)) add(*search_.start);
    bool waits = add(baseline);
    double left = 2 * kRounds + chains + 1;
    const auto share = [&] { return 1 / std::exchange(left, left - 1); };
    if (!waits && done()) return std::move(starts_);
    add_cut();
    add_level(options_.budget, share());
    Bisection price, level, chain_price;
    for (int k = 0; k < kRounds && !done(); ++k) {
      if (k < chains) chain_price.learn(add_chain(price_at(chain_price.middle()), share()));
      price.learn(add_priced(price_at(price.middle()), share()));
      const auto above = static_cast<double>(std::max<std::int64_t>(0, most - options_.budget));
      const double part = 1 - level.middle();
      level.learn(add_level(options_.budget + static_cast<std::int64_t>(part * above), share()));
    }
    return std::move(starts_);
  }

 private:
  /// Returns a price of copies, as a multiple of the time that a copy takes. `part` is between 0 and 1; the price grows
  /// with it. A low price is right if the link is mostly idle.
  static double price_at(double part) {
    constexpr double kLeast = 0.002, kRange = 1000;  // prices from 0.002 to 2
    return kLeast * std::pow(kRange, part);
  }

  bool done() { return watch_.expired_now() || best_ <= options_.enough; }

  std::optional<core::Schedule> call(const core::Graph& graph, std::int64_t budget, double share) {
    SolveOptions one = search_;
    one.budget = budget;
    one.start = nullptr;
    one.start_offsets = nullptr;
    one.limit = watch_.share(share);
    one.progress = {};
    if (one.limit.seconds <= 0) return std::nullopt;
    Solution solution = solver_.solve(graph, one);
    watch_.charge(solution.work);
    if (solution.schedule.steps.empty()) return std::nullopt;
    return std::move(solution.schedule);
  }

  /// Adds transfers to the schedule `start`, and appends the resulting schedule to starts_. Returns true if the
  /// resulting schedule exceeds the budgets, or if some of its steps wait for copies.
  bool add(const core::Schedule& start) {
    OffloadOptions one = options_;
    one.limit = watch_.rest();
    one.progress = {};
    OffloadSolution built = add_transfers(graph_, start, one);
    watch_.charge(built.work);
    if (built.fits) best_ = std::min(best_, built.makespan);
    starts_.push_back(std::move(built.schedule));
    return !built.fits || built.makespan > built.cost;
  }

  /// Adds the schedule made from a minimum cut (cut_start()). This schedule is found quickly, and is near the optimum
  /// if one moment needs far more memory than all other moments.
  void add_cut() {
    constexpr double kShare = 0.1;
    std::optional<core::Schedule> start =
        core::within(watch_, kShare, [&](core::Stopwatch& part) { return cut_start(graph_, options_, part); });
    if (start) add(*start);
  }

  bool add_level(std::int64_t budget, double share) {
    std::optional<core::Schedule> found = call(graph_, budget, share);
    return !found || add(*found);
  }

  bool add_priced(double price, double share) {
    if (options_.scope.order == OrderRule::stages) return true;
    const offloading::PricedGraph priced(graph_, options_.link, price);
    if (priced.split_nodes() == 0) return false;
    const std::optional<core::Schedule> found = call(priced.graph(), options_.budget, share);
    return !found || add(priced.original(*found));
  }

  /// Adds the schedule that the dynamic program for chains finds. This program is fast, and finds out which checkpoints
  /// should be on the host. Returns what add() returns, or true if no schedule in the scope was found.
  bool add_chain(double price, double share) {
    if (options_.scope.order == OrderRule::stages || options_.scope.max_occurrences != 0) return true;
    std::optional<core::Schedule> found = core::within(watch_, share, [&](core::Stopwatch& part) {
      if (!chains_) chains_.emplace(graph_, options_.link, part);
      return chains_->cheapest(options_.budget, price, part);
    });
    // The schedule of a chain need not follow the input order, so the scope may forbid its order. If so, the schedule
    // is skipped.
    return !found || !options_.scope.contains(graph_, *found) || add(*found);
  }

  const core::Graph& graph_;
  const SolverInfo& solver_;
  const SolveOptions& search_;
  const OffloadOptions& options_;
  core::Stopwatch& watch_;
  std::optional<offloading::ChainStarts> chains_;
  std::vector<core::Schedule> starts_;
  std::int64_t best_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace

OffloadOptions offload_options(const core::HostMemory& host, const SolveOptions& search) {
  return {.link = host.link, .host_budget = host.budget, .scope = search.scope, .seed = search.seed};
}

std::optional<core::Schedule> cut_start(const core::Graph& graph, const OffloadOptions& options,
                                        core::Stopwatch& watch) {
  if (options.scope.order == OrderRule::stages || options.scope.max_occurrences == 1) return std::nullopt;
  const MomentCutOptions at{options.budget, options.scope.order, options.link, options.host_budget};
  return offloading::cut_start(graph, at, watch);
}

OffloadSolution solve_with_transfers(const core::Graph& graph, const SolverInfo& solver, const SolveOptions& search,
                                     const OffloadOptions& options) {
  constexpr double kOfStarts = 0.5;
  core::Stopwatch watch(options.limit);
  const std::vector<core::Schedule> starts = core::within(
      watch, kOfStarts, [&](core::Stopwatch& part) { return Starts(graph, solver, search, options, part).find(); });
  OffloadOptions rest = options;
  rest.limit = watch.rest();
  rest.limit.seconds = std::max(0.0, rest.limit.seconds);
  OffloadSolution solution = offload(graph, starts, rest);
  solution.work += watch.work();
  return solution;
}

}  // namespace cairn::solvers
