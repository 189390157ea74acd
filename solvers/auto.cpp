#include "cairn/solvers/internal/auto.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/solvers/common/incumbent.h"
#include "cairn/solvers/engines/internal/engine.h"
#include "cairn/solvers/registry.h"
#include "cairn/solvers/remat/internal/refine.h"

namespace cairn::solvers {
namespace {

/// Whether the solver takes such a graph, keeps to the scope and is here.
bool ready(const SolverInfo& solver, const core::Graph& graph, const Scope& scope) {
  const core::ValueId most = solver.turn.most_values;
  if (!solver.honours(scope) || (most > 0 && graph.value_count() > most) || !solver.why_missing().empty()) return false;
  if (solver.graphs == "any" || graph.value_count() <= solver.most_values) return true;
  const auto order = graph.input_order();
  return solver.graphs == kTrainingGraphs &&
         std::any_of(order.begin(), order.end(), [&](core::NodeId v) { return graph.backward(v); });
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

}  // namespace

Solution auto_remat(const core::Graph& graph, const SolveOptions& options) {
  constexpr int kStagnation = 2000;
  constexpr double kHopelessSeconds = 2;
  const bool hopeless = options.budget && *options.budget < core::peak_lower_bound(graph);
  const bool recomputes = options.scope.max_occurrences != 1;
  core::Limit limit = options.limit;
  // No schedule can fit: what is left to find is the least budget, and nobody waits long for that.
  if (hopeless) limit.seconds = std::min(limit.seconds, kHopelessSeconds);
  core::Stopwatch watch(limit);
  Incumbent incumbent(graph, options, watch);
  incumbent.offer(core::baseline_schedule(graph));
  std::int64_t least_peak = incumbent.least_peak();
  std::string_view least_peak_by = "none";
  const auto credit = [&](std::string_view solver) {
    if (incumbent.least_peak() < least_peak) least_peak_by = solver;
    least_peak = incumbent.least_peak();
  };
  SolveOptions inner = options;
  if (options.progress) {
    // The inner solvers start afresh; people want to see the best of all.
    inner.progress = [&](const Progress&) { options.progress({incumbent.peak(), incumbent.cost(), watch.seconds()}); };
  }
  if (hopeless) inner.budget.reset();

  const auto take = [&](const Solution& solution) {
    if (!solution.schedule.steps.empty()) incumbent.offer(solution.schedule);
    watch.charge(solution.work);
    for (const Tradeoff& tradeoff : solution.tradeoffs) incumbent.note(tradeoff);
    incumbent.raise_peak_bound(solution.peak_bound);
    credit(solution.least_peak_by);
  };
  const auto run = [&](const SolverInfo& solver, double share) {
    if (incumbent.cannot_improve() || watch.expired_now()) return;
    if (!has_left(watch, solver.turn.least_seconds)) return;
    inner.limit = watch.share(share);
    Solution solution;
    try {
      solution = solver.solve(graph, inner);
    } catch (const core::InputError&) {
      return;  // takes other graphs of this kind
    }
    take(solution);
    incumbent.raise_cost_bound(solution.cost_bound);
  };
  const auto run_all = [&](bool recomputing) {
    for (const SolverInfo* solver : turns(graph, options.scope, recomputing)) run(*solver, solver->turn.share);
  };
  // The cheap ones first, so that something is known when time is short.
  if (recomputes) run_all(true);
  if (recomputes && !options.budget) {
    // From what they found, before an order without recomputation, hard to better by small changes, takes its place.
    core::within(watch, 0.1, [&](core::Stopwatch& first) { refine(graph, inner, incumbent, first, kStagnation / 10); });
    credit("auto");
  }
  // An order that needs no recomputation is the cheapest schedule of all, where it fits: a short try, and a long one
  // with the time that local search leaves.
  run_all(false);
  const std::vector<const SolverInfo*> last = rest_of_time(graph, options.scope, recomputes);
  const bool engines = std::any_of(last.begin(), last.end(), [&](const SolverInfo* solver) {
    return solver->can.recomputes && has_left(watch, 2 * solver->turn.least_seconds);
  });
  const bool more = (options.budget || !recomputes) && !hopeless;
  const auto search = [&](double part) {
    if (!recomputes || watch.expired_now()) return;
    core::within(watch, part, [&](core::Stopwatch& one) { refine(graph, inner, incumbent, one, kStagnation); });
    credit("auto");
  };
  if (recomputes && more) {
    search(0.1);
    if (!incumbent.within_budget() && !incumbent.cannot_improve() && !watch.expired_now()) {
      // Nothing fits yet: what lowers the peak alone, as without a budget, reaches lower ones.
      SolveOptions lower = inner;
      lower.budget.reset();
      lower.limit = watch.share(0.6);
      take(auto_remat(graph, lower));
    }
  }
  search(more && engines ? 0.5 : 1.0);
  if (more) {
    const std::int64_t cost = incumbent.cost();
    for (std::size_t i = 0; i < last.size(); ++i)
      run(*last[i], (engines ? 0.9 : 1.0) / static_cast<double>(last.size() - i));
    if (engines && incumbent.cost() < cost) search(1.0);
  }
  Solution solution = incumbent.finish(watch.expired_now());
  solution.least_peak_by = least_peak_by;
  return solution;
}

}  // namespace cairn::solvers
