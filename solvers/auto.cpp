#include "cairn/solvers/internal/auto.h"

#include <algorithm>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/solvers/common/incumbent.h"
#include "cairn/solvers/registry.h"
#include "cairn/solvers/remat/internal/refine.h"

namespace cairn::solvers {
namespace {

/// The solvers that take such a graph and are here, in the order of their turns.
std::vector<const SolverInfo*> turns(const core::Graph& graph, const Scope& scope, bool recomputing) {
  std::vector<const SolverInfo*> found;
  for (const SolverInfo& solver : registry()) {
    const bool ready = solver.turn.turn > 0 && solver.honours(scope) &&
                       (solver.graphs == "any" || graph.value_count() <= solver.most_values);
    if (ready && solver.can.recomputes == recomputing && solver.why_missing().empty()) found.push_back(&solver);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const SolverInfo* a, const SolverInfo* b) { return a->turn.turn < b->turn.turn; });
  return found;
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
  SolveOptions inner = options;
  if (options.progress) {
    // The inner solvers start afresh; people want to see the best of all.
    inner.progress = [&](const Progress&) { options.progress({incumbent.peak(), incumbent.cost(), watch.seconds()}); };
  }
  if (hopeless) inner.budget.reset();

  const auto run = [&](const SolverInfo& solver, double share) {
    if (incumbent.cannot_improve() || watch.expired_now()) return;
    inner.limit = watch.share(share);
    const Solution solution = solver.solve(graph, inner);
    if (!solution.schedule.steps.empty()) incumbent.offer(solution.schedule);
    watch.charge(solution.work);
    for (const Tradeoff& tradeoff : solution.tradeoffs) incumbent.note(tradeoff);
    incumbent.raise_peak_bound(solution.peak_bound);
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
  }
  // An order that needs no recomputation is the cheapest schedule of all, where it fits: a short try, and a long one
  // with the time that local search leaves.
  run_all(false);
  if (recomputes && !watch.expired_now()) refine(graph, inner, incumbent, watch, kStagnation);
  if ((options.budget || !recomputes) && !hopeless) {
    std::vector<const SolverInfo*> again;
    for (const bool recomputing : {true, false}) {
      for (const SolverInfo* solver : turns(graph, options.scope, recomputing)) {
        if (solver->turn.rest && (recomputes || !recomputing)) again.push_back(solver);
      }
    }
    for (std::size_t i = 0; i < again.size(); ++i) run(*again[i], 1.0 / static_cast<double>(again.size() - i));
  }
  return incumbent.finish(watch.expired_now());
}

}  // namespace cairn::solvers
