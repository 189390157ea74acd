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
#include "cairn/solvers/common/incumbent.h"
#include "cairn/solvers/engines/engine.h"
#include "cairn/solvers/registry.h"
#include "cairn/solvers/remat/anneal/population.h"
#include "cairn/solvers/remat/anneal/search.h"
#include "cairn/solvers/remat/cost_bound.h"
#include "cairn/solvers/remat/repair/priced_remat.h"
#include "cairn/solvers/remat/repair/refine.h"

namespace cairn::solvers {
namespace {

bool has_backward_nodes(const core::Graph& graph) {
  const auto order = graph.input_order();
  return std::any_of(order.begin(), order.end(), [&](core::NodeId v) { return graph.backward(v); });
}

/// Whether the solver takes such a graph, keeps to the scope and is here.
bool ready(const SolverInfo& solver, const core::Graph& graph, const Scope& scope) {
  const core::ValueId most = solver.turn.most_values;
  if (!solver.honours(scope) || (most > 0 && graph.value_count() > most) || !solver.why_missing().empty()) return false;
  if (solver.graphs == "any" || graph.value_count() <= solver.most_values) return true;
  return solver.graphs == kTrainingGraphs && has_backward_nodes(graph);
}

/// Those in the order of their turns.
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

/// Those that get the time that is left in the end; what recomputes first.
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

/// Whether that much is left, in work too where that is limited.
bool has_left(const core::Stopwatch& watch, double seconds) {
  const core::Limit rest = watch.rest();
  return rest.seconds >= seconds && static_cast<double>(rest.work) >= seconds * kEngineWorkPerSecond;
}

/// A visit of a node in a construction takes about an eighth of a move of the search, the unit of limits of work here.
constexpr std::int64_t kVisitsOfMove = 8;

core::Limit in_visits(core::Limit limit) {
  if (limit.counts_work()) limit.work = std::min(limit.work, core::Limit::kAnyWork / kVisitsOfMove - 1) * kVisitsOfMove;
  return limit;
}

/// cost_bound(), on a thread of its own beside the search, or before it.
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

  /// Tells each what the other has found. Whether more may come.
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
  /// Computes it now, where it is not beside the search.
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
  std::future<CostBound> bound_;  // last: its destructor waits, and the thread uses all others
};

}  // namespace

Solution auto_remat(const core::Graph& graph, const SolveOptions& options) {
  constexpr double kHopelessSeconds = 2, kPricing = 0.2, kConstruction = 0.5, kShortConstruction = 0.01, kAgain = 0.3,
                   kNearBest = 1.01, kRefining = 0.3, kProof = 0.2, kLowering = 0.6;
  constexpr core::NodeId kLarge = 2000;
  constexpr int kStagnation = 2000, kShortStagnation = 200;
  const bool hopeless = options.budget && *options.budget < core::peak_lower_bound(graph);
  const bool recomputes = options.scope.max_occurrences != 1;
  core::Limit limit = options.limit;
  // No schedule can fit: what is left to find is the least budget, and nobody waits long for that.
  if (hopeless) limit.seconds = std::min(limit.seconds, kHopelessSeconds);
  core::Stopwatch watch(limit);
  SolveOptions inner = options;
  if (hopeless) inner.budget.reset();
  Incumbent incumbent(graph, options, watch);
  incumbent.offer(core::baseline_schedule(graph));
  std::int64_t least_peak = incumbent.least_peak();
  std::string_view least_peak_by = "none";
  const auto credit = [&](std::string_view solver) {
    if (incumbent.least_peak() < least_peak) least_peak_by = solver;
    least_peak = incumbent.least_peak();
  };
  if (options.progress) {
    // The inner solvers start afresh; people want to see the best of all.
    inner.progress = [&](const Progress&) { options.progress({incumbent.peak(), incumbent.cost(), watch.seconds()}); };
  }
  std::vector<std::pair<std::int64_t, core::Schedule>> constructions;  // within the budget, with their costs
  const SolverInfo* cut_short = nullptr;  // by the end of its share, with the best schedule of such
  std::int64_t cut_short_cost = 0;
  const auto run = [&](const SolverInfo& solver, double share) {
    if (incumbent.done() || watch.expired_now()) return;
    if (!has_left(watch, solver.turn.least_seconds)) return;
    const bool visits = !solver.can.exact && solver.can.recomputes && !solver.turn.rest;
    inner.limit = visits ? in_visits(watch.share(share)) : watch.share(share);
    if (inner.limit.seconds < solver.turn.setup_seconds * static_cast<double>(graph.node_count() + graph.edge_count()))
      return;
    Solution solution;
    try {
      solution = solver.solve(graph, inner);
    } catch (const core::InputError&) {
      return;  // takes other graphs of this kind
    }
    if (!solution.schedule.steps.empty()) incumbent.offer(solution.schedule);
    if (solution.timed_out && options.budget && solution.status == Status::feasible &&
        (cut_short == nullptr || solution.cost < cut_short_cost)) {
      cut_short = &solver;
      cut_short_cost = solution.cost;
    }
    watch.charge(visits ? solution.work / kVisitsOfMove : solution.work);
    if (options.budget && solution.status != Status::not_found && solution.peak <= *options.budget)
      constructions.emplace_back(solution.cost, std::move(solution.schedule));
    for (const Tradeoff& tradeoff : solution.tradeoffs) incumbent.note(tradeoff);
    incumbent.raise_peak_bound(solution.peak_bound);
    if (!hopeless) incumbent.raise_cost_bound(solution.cost_bound);
    credit(solution.least_peak_by);
  };
  // Byte prices first: near-linear a round. On large graphs that are no training graphs the others are far from what
  // these reach in the same time, and the bound is weak: the search gets the time.
  const bool training = has_backward_nodes(graph);
  const bool priced = inner.budget && recomputes && options.scope.order != OrderRule::stages;
  const bool search_most = priced && !training && graph.node_count() > kLarge;
  if (priced && !incumbent.within_budget()) {
    core::Stopwatch part(in_visits(watch.share(kPricing)));
    offer_priced(graph, graph.input_order(), *inner.budget, incumbent, part);
    watch.charge(part.work() / kVisitsOfMove);
    credit("auto");
  }
  // Constructions, so that something is known when time is short, and the search has good places to start from. An
  // order that needs no recomputation is the cheapest schedule of all, where it fits.
  for (const bool recomputing : {true, false}) {
    if (recomputing && !recomputes) continue;
    for (const SolverInfo* solver : turns(graph, options.scope, recomputing))
      run(*solver, solver->turn.share * (search_most ? kShortConstruction : solver->can.exact ? 1 : kConstruction));
  }
  // With more time it may get further than all others.
  if (cut_short != nullptr && incumbent.within_budget() &&
      static_cast<double>(cut_short_cost) <= kNearBest * static_cast<double>(incumbent.cost()))
    run(*cut_short, kAgain);
  // The cheapest schedule of the lowest peak, by a search of its own: what lowers peaks leads away from it. The bound
  // on its cost is none of other schedules.
  const auto lower_cost_of_peak = [&] {
    SolveOptions of_peak = inner;
    of_peak.budget = incumbent.peak();
    of_peak.max_cost.reset();
    of_peak.start = &incumbent.schedule();
    of_peak.limit = watch.rest();
    const Solution cheapest = auto_remat(graph, of_peak);
    watch.charge(cheapest.work);
    incumbent.offer(cheapest.schedule);
    for (const Tradeoff& tradeoff : cheapest.tradeoffs) incumbent.note(tradeoff);
    return cheapest.stop;
  };
  const auto finish = [&](Stop stop) {
    Solution solution = incumbent.finish(stop == Stop::limit || stop == Stop::interrupted);
    if (solution.stop != Stop::proved) solution.stop = stop;
    solution.least_peak_by = least_peak_by;
    return solution;
  };
  if (!options.budget && incumbent.optimal() && !incumbent.done() && !watch.expired_now())
    return finish(lower_cost_of_peak());
  inner.limit = watch.rest();
  if (options.scope.order == OrderRule::stages || !recomputes) {
    if (recomputes) {
      core::within(watch, 0.5, [&](core::Stopwatch& part) { refine(graph, inner, incumbent, part, kStagnation); });
      credit("auto");
    }
    const std::vector<const SolverInfo*> last = rest_of_time(graph, options.scope, recomputes);
    for (std::size_t i = 0; i < last.size(); ++i) run(*last[i], 1.0 / static_cast<double>(last.size() - i));
    Solution solution = incumbent.finish(watch.expired_now());
    solution.least_peak_by = least_peak_by;
    return solution;
  }
  std::optional<BoundBeside> bound;
  if (inner.budget && !search_most) {
    // On training graphs evicting and retaining gets far at once.
    const int rounds = training ? kShortStagnation : 0;
    core::within(watch, kRefining, [&](core::Stopwatch& part) { refine(graph, inner, incumbent, part, rounds); });
    if (!incumbent.done() && !watch.expired_now()) offer_evolved(graph, inner, incumbent, watch);
    // Under a work limit one after the other, so that the answer is the same on every machine.
    const bool beside = !options.limit.counts_work() && core::thread_count() > 1;
    if (!options.peak_alone && !incumbent.done() && !watch.expired_now()) {
      bound.emplace(graph, inner, incumbent, beside ? watch.rest() : watch.share(kProof), beside);
      if (!beside) bound->finish(incumbent, watch);
    }
  }
  const auto between = [&] { return bound && bound->exchange(incumbent, watch); };
  const auto search_in = [&](core::Stopwatch& part) {
    return search(graph, inner, {.between = between}, incumbent, part);
  };
  const bool at_once = options.budget || options.peak_alone;
  Stop stop = at_once ? search_in(watch) : core::within(watch, kLowering, search_in);
  credit("auto");
  if (!at_once && recomputes && stop != Stop::ended && !incumbent.done() && !watch.expired_now()) {
    const Stop of_cost = lower_cost_of_peak();
    // A proof of the cost is none of the peak.
    if (incumbent.optimal() || of_cost == Stop::interrupted) stop = of_cost;
  }
  Solution solution = finish(stop);
  std::sort(constructions.begin(), constructions.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [cost, schedule] : constructions) {
    if (cost > solution.cost) solution.others.push_back(std::move(schedule));
  }
  return solution;
}

}  // namespace cairn::solvers
