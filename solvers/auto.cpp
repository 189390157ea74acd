// Implements the solver `auto` (internal/auto.h). With a budget, `auto` first calls offer_cut(), which computes a lower
// bound on the cost and derives a schedule from this computation. The schedule is often optimal. Then `auto` calls
// other solvers. In names of this file, the word "construction" stands for these calls and for the schedules that they
// return. Afterwards, `auto` improves the best schedule found, which is called the incumbent, by a search that changes
// order and recomputation together.

#include "cairn/solvers/internal/auto.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/core/threads.h"
#include "cairn/solvers/common/support/incumbent.h"
#include "cairn/solvers/engines/engine.h"
#include "cairn/solvers/registry.h"
#include "cairn/solvers/remat/anneal/population.h"
#include "cairn/solvers/remat/anneal/search.h"
#include "cairn/solvers/remat/bound/cost_bound.h"
#include "cairn/solvers/remat/bound/cut/offer_cut.h"
#include "cairn/solvers/remat/repair/priced_remat.h"
#include "cairn/solvers/remat/repair/refine.h"

namespace cairn::solvers {
namespace {

bool has_backward_nodes(const core::Graph& graph) {
  const auto order = graph.input_order();
  return std::any_of(order.begin(), order.end(), [&](core::NodeId v) { return graph.backward(v); });
}

/// Returns whether `auto` can call the solver. The solver must accept the graph, be able to keep to the scope and have
/// its engine installed.
bool ready(const SolverInfo& solver, const core::Graph& graph, const Scope& scope) {
  const core::ValueId most = solver.turn.most_values;
  if (!solver.honours(scope) || (most > 0 && graph.value_count() > most) || !solver.why_missing().empty()) return false;
  if (solver.graphs == "any" || graph.value_count() <= solver.most_values) return true;
  return solver.graphs == kTrainingGraphs && has_backward_nodes(graph);
}

/// Returns the ready() solvers that `auto` calls before its own search (AutoTurn::turn in registry.h), in the order of
/// the calls. If `recomputing` is true, these are the solvers that recompute, otherwise those that do not.
std::vector<const SolverInfo*> turns(const core::Graph& graph, const Scope& scope, bool recomputing) {
  std::vector<const SolverInfo*> found;
  for (const SolverInfo& solver : registry()) {
    if (solver.turn.turn > 0 && solver.can.recomputes == recomputing && ready(solver, graph, scope))
      found.push_back(&solver);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const SolverInfo* a, const SolverInfo* b) { return a->turn.turn < b->turn.turn; });
  return found;
}

/// Returns the ready() solvers that `auto` runs at the end (AutoTurn::rest in registry.h). The solvers that recompute
/// come first. They are left out if `recomputes` is false.
std::vector<const SolverInfo*> rest_of_time(const core::Graph& graph, const Scope& scope, bool recomputes) {
  std::vector<const SolverInfo*> found;
  for (const bool recomputing : {true, false}) {
    for (const SolverInfo& solver : registry()) {
      if (solver.turn.rest && solver.can.recomputes == recomputing && (recomputes || !recomputing) &&
          ready(solver, graph, scope))
        found.push_back(&solver);
    }
  }
  return found;
}

/// Returns whether at least `seconds` are left. Under a work limit, the work left must also suffice for an engine
/// (HiGHS or CP-SAT) that runs for this time.
bool has_left(const core::Stopwatch& watch, double seconds) {
  const core::Limit rest = watch.rest();
  return rest.seconds >= seconds && static_cast<double>(rest.work) >= seconds * kEngineWorkPerSecond;
}

/// Number of visits of nodes that take about as long as one small change of a schedule. The work limit of `auto` counts
/// small changes, but the limits of the solvers that `auto` calls count visits.
constexpr std::int64_t kVisitsOfMove = 8;

core::Limit in_visits(core::Limit limit) {
  if (limit.counts_work()) limit.work = std::min(limit.work, core::Limit::kAnyWork / kVisitsOfMove - 1) * kVisitsOfMove;
  return limit;
}

/// Computes a lower bound on the cost by cost_bound(). If `beside` is true, another thread computes the bound while the
/// caller searches. Otherwise, finish() computes it.
class BoundBeside {
 public:
  BoundBeside(const core::Graph& graph, const SolveOptions& options, const Incumbent& incumbent, core::Limit limit,
              bool beside)
      : scope_{incumbent.scope().order, 0}, budget_(*options.budget) {
    if (beside) limit.stop = &stop_;
    if (incumbent.within_budget()) known_cost_ = incumbent.cost();
    const auto launch = beside ? std::launch::async : std::launch::deferred;
    bound_ = std::async(launch, [this, &graph, limit, memory = options.memory_bytes / 2] {
      return cost_bound(graph, {.budget = budget_,
                                .order = scope_.order,
                                .limit = limit,
                                .known_cost = &known_cost_,
                                .raised = [this](std::int64_t cost) { raised_ = cost; },
                                .found =
                                    [this](const core::Schedule& schedule) {
                                      const std::lock_guard lock(mutex_);
                                      found_.push_back(schedule);
                                    },
                                .memory_bytes = memory});
    });
  }
  ~BoundBeside() { stop_ = true; }
  BoundBeside(const BoundBeside&) = delete;
  BoundBeside& operator=(const BoundBeside&) = delete;

  /// Passes to the incumbent the bounds and schedules that cost_bound() has found, and passes to cost_bound() the
  /// incumbent's cost. Returns whether cost_bound() can still raise the bound.
  bool exchange(Incumbent& incumbent, core::Stopwatch& watch) {
    if (bound_.valid() && bound_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) take(watch);
    std::vector<core::Schedule> found;
    {
      const std::lock_guard lock(mutex_);
      found.swap(found_);
    }
    for (const core::Schedule& schedule : found) incumbent.offer(schedule);
    incumbent.raise_cost_bound({raised_, scope_});
    if (infeasible_) incumbent.raise_peak_bound({budget_ + 1, scope_});
    if (incumbent.within_budget()) known_cost_ = incumbent.cost();
    return bound_.valid();
  }
  void finish(Incumbent& incumbent, core::Stopwatch& watch) {
    take(watch);
    exchange(incumbent, watch);
  }

 private:
  void take(core::Stopwatch& watch) {
    const CostBound bound = bound_.get();
    infeasible_ = bound.infeasible;
    if (!infeasible_) raised_ = std::max(raised_.load(), bound.value);
    watch.charge(bound.work);
  }

  const Scope scope_;
  const std::int64_t budget_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::int64_t> known_cost_ = CostBoundOptions::kNoneKnown, raised_ = 0;
  bool infeasible_ = false;
  std::mutex mutex_;
  std::vector<core::Schedule> found_;
  // The result of cost_bound(). Must be the last member, because its destructor waits for the thread, which uses all
  // other members.
  std::future<CostBound> bound_;
};

// Number of seconds after which `auto` ends if a bound proves that no schedule is within the budget.
constexpr double kHopelessSeconds = 2;
// Fractions of the limit: kCutting for offer_cut(), kCuttingWithoutBudget for offer_affordable_cuts() or
// offer_low_cuts(), which `auto` calls if there is no budget.
constexpr double kCutting = 0.2, kCuttingWithoutBudget = 0.1;
constexpr double kPricing = 0.2;  // fraction of the remaining limit for offer_priced()
// Factor by which construct() multiplies the share of the limit (AutoTurn::share) of each solver that is not exact. The
// factor is below 1 to leave time for the search that follows.
constexpr double kConstruction = 0.5;
// Factor that construct() uses for all solvers, instead of kConstruction, on large graphs (search_most_).
constexpr double kShortConstruction = 0.01;
// Fraction of the remaining limit for a second run of a solver that ended because its limit was reached.
constexpr double kAgain = 0.3;
// A solver that reached its limit runs again if its schedule costs at most this multiple of the best known cost.
constexpr double kNearBest = 1.01;
constexpr double kRefining = 0.3;        // fraction of the remaining limit for refine()
constexpr double kRefiningStages = 0.5;  // fraction of the remaining limit for refine() if no search follows
// Fraction of the remaining limit for cost_bound(), if it does not run at the same time as the search.
constexpr double kProof = 0.2;
// Fraction of the remaining limit for lowering the peak if there is no budget. The remainder is for lowering the cost
// at the lowest peak.
constexpr double kLowering = 0.6;
// On graphs that have more nodes than this and are not training graphs, offer_priced() finds far better schedules than
// the solvers that `auto` calls.
constexpr core::NodeId kLarge = 2000;
constexpr int kStagnation = 2000;  // number of rounds without success after which refine() ends
// Number of rounds without success after which refine() ends on a training graph if the search follows.
constexpr int kShortStagnation = 200;

/// Runs the solver `auto`. The incumbent (incumbent_) is the best schedule found so far.
class AutoRemat {
 public:
  AutoRemat(const core::Graph& graph, const SolveOptions& options);
  Solution solve();

 private:
  bool over() { return incumbent_.done() || watch_.expired_now(); }
  bool searches() const { return options_.scope.order != OrderRule::stages && recomputes_; }

  void offer_prices();
  void construct();
  void go_on_with_cut_short();
  void offer_cuts();
  Solution solve_without_search();
  void refine_and_bound();
  Stop search_schedules();
  Stop lower_cost_of_peak();

  void run(const SolverInfo& solver, double share);
  void refine_for(double share, int rounds);
  void credit(std::string_view solver);
  Solution finish(Stop stop);
  void add_others(Solution& solution);

  const core::Graph& graph_;
  const SolveOptions& options_;
  // Whether a lower bound proves that no schedule is within the budget. If so, `auto` minimises the peak instead of the
  // cost.
  const bool hopeless_;
  const bool recomputes_ = options_.scope.max_occurrences != 1;
  const bool training_ = has_backward_nodes(graph_);
  SolveOptions inner_ = options_;
  const bool priced_;
  // Whether nearly all time goes to the search, because the graph is large and not a training graph.
  const bool search_most_;
  core::Stopwatch watch_;
  Incumbent incumbent_;
  std::int64_t least_peak_ = 0;
  std::string_view least_peak_by_ = "none";
  std::vector<std::pair<std::int64_t, core::Schedule>> constructions_;
  // Among the solvers that ended because their limits were reached, the one whose schedule costs least. nullptr if
  // there is none.
  const SolverInfo* cut_short_ = nullptr;
  std::int64_t cut_short_cost_ = 0;
  std::optional<BoundBeside> bound_;
};

core::Limit limit_of(const SolveOptions& options, bool hopeless) {
  core::Limit limit = options.limit;
  if (hopeless) limit.seconds = std::min(limit.seconds, kHopelessSeconds);
  return limit;
}

AutoRemat::AutoRemat(const core::Graph& graph, const SolveOptions& options)
    : graph_(graph),
      options_(options),
      hopeless_(options.budget && *options.budget < core::peak_lower_bound(graph)),
      priced_(options.budget && !hopeless_ && searches()),
      search_most_(priced_ && !training_ && graph.node_count() > kLarge),
      watch_(limit_of(options, hopeless_)),
      incumbent_(graph, options, watch_) {
  if (hopeless_) inner_.budget.reset();
  // `inner_` has the options of the solvers that `auto` calls. These solvers may call search() on several threads and
  // for graphs that the peers (other processes that run the same search) do not have. So they exchange no schedules
  // with the peers.
  inner_.peers = nullptr;
  incumbent_.offer(core::baseline_schedule(graph));
  least_peak_ = incumbent_.least_peak();
  if (!options.progress) return;
  inner_.progress = [this](const Progress&) {
    options_.progress({incumbent_.peak(), incumbent_.cost(), watch_.seconds()});
  };
}

Solution AutoRemat::solve() {
  const bool within = incumbent_.within_budget();
  // On training graphs, offer_cut() often finds an optimal schedule in milliseconds, and its lower bound proves that
  // the schedule is optimal. If only the peak counts (peak_alone), other solvers are faster.
  const bool cuts_first = options_.budget && !options_.peak_alone;
  if (cuts_first) offer_cuts();
  if (!within) offer_prices();
  construct();
  go_on_with_cut_short();
  if (!cuts_first) offer_cuts();
  if (!options_.budget && incumbent_.optimal() && !over()) return finish(lower_cost_of_peak());
  inner_.limit = watch_.rest();
  if (!searches()) return solve_without_search();
  refine_and_bound();
  const Stop stop = search_schedules();
  Solution solution = finish(stop);
  add_others(solution);
  return solution;
}

/// Runs offer_priced(), which charges a price for each byte held in memory during a step. On large graphs that are not
/// training graphs, other solvers find far worse schedules in the same time, and cost_bound() yields only a weak bound.
/// So on such graphs, `auto` spends little time on other solvers and on cost_bound(), and gives nearly all of its time
/// to the search (search_most_).
void AutoRemat::offer_prices() {
  if (!priced_ || over()) return;
  core::Stopwatch part(in_visits(watch_.share(kPricing)));
  offer_priced(graph_, graph_.input_order(), *inner_.budget, incumbent_, part);
  watch_.charge(part.work() / kVisitsOfMove);
  credit("auto");
}

/// Runs the solvers with a turn (AutoTurn). They find an answer even if time is short, and their schedules are good
/// starts for the search. Solvers that never recompute run even if recomputation is allowed. If one of them finds a
/// schedule within the budget, this schedule runs each node once, so no schedule is cheaper.
void AutoRemat::construct() {
  for (const bool recomputing : {true, false}) {
    if (recomputing && !recomputes_) continue;
    for (const SolverInfo* solver : turns(graph_, options_.scope, recomputing))
      run(*solver, solver->turn.share * (search_most_ ? kShortConstruction : solver->can.exact ? 1 : kConstruction));
  }
}

/// Runs a solver again, with more time, if it reached its limit and its schedule is nearly as cheap as the best one.
void AutoRemat::go_on_with_cut_short() {
  if (cut_short_ != nullptr && incumbent_.within_budget() &&
      static_cast<double>(cut_short_cost_) <= kNearBest * static_cast<double>(incumbent_.cost()))
    run(*cut_short_, kAgain);
}

/// With a budget, runs offer_cut(), which often finds a schedule whose cost is equal to its lower bound, or nearly so.
/// Without a budget, runs offer_affordable_cuts() or offer_low_cuts(), which start from the lowest peak found so far.
void AutoRemat::offer_cuts() {
  if (!searches() || hopeless_ || over()) return;
  core::Stopwatch part(in_visits(watch_.share(inner_.budget ? kCutting : kCuttingWithoutBudget)));
  if (inner_.budget) {
    offer_cut(graph_, *inner_.budget, incumbent_, part);
  } else if (options_.max_cost) {
    offer_affordable_cuts(graph_, *options_.max_cost, incumbent_, part);
  } else {
    offer_low_cuts(graph_, incumbent_, part);
  }
  watch_.charge(part.work() / kVisitsOfMove);
  credit("auto");
}

Solution AutoRemat::solve_without_search() {
  if (recomputes_) {
    refine_for(kRefiningStages, kStagnation);
    credit("auto");
  }
  const std::vector<const SolverInfo*> last = rest_of_time(graph_, options_.scope, recomputes_);
  for (std::size_t i = 0; i < last.size(); ++i) run(*last[i], 1.0 / static_cast<double>(last.size() - i));
  Solution solution = incumbent_.finish(watch_.expired_now());
  solution.least_peak_by = least_peak_by_;
  return solution;
}

void AutoRemat::refine_and_bound() {
  if (!inner_.budget || search_most_) return;
  // On training graphs, refine() finds most of its improvements early, so it ends after a few rounds without success.
  refine_for(kRefining, training_ ? kShortStagnation : 0);
  if (!over()) offer_evolved(graph_, inner_, incumbent_, watch_);
  if (options_.peak_alone || over()) return;
  // Under a work limit, cost_bound() runs before the search. If it ran at the same time, the answer would depend on the
  // speed of the machine.
  const bool beside = !options_.limit.counts_work() && core::thread_count() > 1;
  bound_.emplace(graph_, inner_, incumbent_, beside ? watch_.rest() : watch_.share(kProof), beside);
  if (!beside) bound_->finish(incumbent_, watch_);
}

Stop AutoRemat::search_schedules() {
  const auto between = [&] { return bound_ && bound_->exchange(incumbent_, watch_); };
  SolveOptions with_peers = inner_;
  with_peers.peers = options_.peers;
  const auto search_in = [&](core::Stopwatch& part) { return search(graph_, with_peers, between, incumbent_, part); };
  const bool at_once = options_.budget || options_.peak_alone;
  Stop stop = at_once ? search_in(watch_) : core::within(watch_, kLowering, search_in);
  credit("auto");
  if (!at_once && stop != Stop::ended && !over()) {
    const Stop of_cost = lower_cost_of_peak();
    // `of_cost` can report a proof that the cost is least. This does not prove that the peak is least, so it counts
    // only if the peak is proved to be least, too.
    if (incumbent_.optimal() || of_cost == Stop::interrupted) stop = of_cost;
  }
  return stop;
}

/// Searches for the cheapest schedule whose peak is at most the lowest peak found. This is a separate search, because a
/// search for low peaks leads to expensive schedules. Its bound on the cost is not recorded, because that bound does
/// not hold for schedules with higher peaks.
Stop AutoRemat::lower_cost_of_peak() {
  SolveOptions of_peak = inner_;
  of_peak.peers = options_.peers;
  of_peak.budget = incumbent_.peak();
  of_peak.max_cost.reset();
  of_peak.start = &incumbent_.schedule();
  of_peak.limit = watch_.rest();
  const Solution cheapest = auto_remat(graph_, of_peak);
  watch_.charge(cheapest.work);
  incumbent_.offer(cheapest.schedule);
  for (const Tradeoff& tradeoff : cheapest.tradeoffs) incumbent_.note(tradeoff);
  return cheapest.stop;
}

void AutoRemat::run(const SolverInfo& solver, double share) {
  if (over() || !has_left(watch_, solver.turn.least_seconds)) return;
  const bool visits = !solver.can.exact && solver.can.recomputes && !solver.turn.rest;
  inner_.limit = visits ? in_visits(watch_.share(share)) : watch_.share(share);
  if (inner_.limit.seconds < solver.turn.setup_seconds * static_cast<double>(graph_.node_count() + graph_.edge_count()))
    return;
  Solution solution;
  try {
    solution = solver.solve(graph_, inner_);
  } catch (const core::InputError&) {
    return;
  }
  if (!solution.schedule.steps.empty()) incumbent_.offer(solution.schedule);
  if (solution.timed_out && options_.budget && solution.status == Status::feasible &&
      (cut_short_ == nullptr || solution.cost < cut_short_cost_)) {
    cut_short_ = &solver;
    cut_short_cost_ = solution.cost;
  }
  watch_.charge(visits ? solution.work / kVisitsOfMove : solution.work);
  if (options_.budget && solution.status != Status::not_found && solution.peak <= *options_.budget)
    constructions_.emplace_back(solution.cost, std::move(solution.schedule));
  for (const Tradeoff& tradeoff : solution.tradeoffs) incumbent_.note(tradeoff);
  incumbent_.raise_peak_bound(solution.peak_bound);
  if (!hopeless_) incumbent_.raise_cost_bound(solution.cost_bound);
  credit(solution.least_peak_by);
}

void AutoRemat::refine_for(double share, int rounds) {
  core::within(watch_, share, [&](core::Stopwatch& part) { refine(graph_, inner_, incumbent_, part, rounds); });
}

void AutoRemat::credit(std::string_view solver) {
  if (incumbent_.least_peak() < least_peak_) least_peak_by_ = solver;
  least_peak_ = incumbent_.least_peak();
}

Solution AutoRemat::finish(Stop stop) {
  Solution solution = incumbent_.finish(stop == Stop::limit || stop == Stop::interrupted);
  if (solution.stop != Stop::proved) solution.stop = stop;
  solution.least_peak_by = least_peak_by_;
  return solution;
}

/// Adds to solution.others those schedules of constructions_ (found by the solvers that `auto` called) whose cost is
/// higher than that of the solution, the cheapest first. Such a schedule can be useful if its plan fits into the budget
/// and the plan of the solution's schedule does not.
void AutoRemat::add_others(Solution& solution) {
  std::sort(constructions_.begin(), constructions_.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [cost, schedule] : constructions_) {
    if (cost > solution.cost) solution.others.push_back(std::move(schedule));
  }
}

}  // namespace

Solution auto_remat(const core::Graph& graph, const SolveOptions& options) { return AutoRemat(graph, options).solve(); }

}  // namespace cairn::solvers
