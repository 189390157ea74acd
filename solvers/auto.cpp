#include "cairn/solvers/internal/auto.h"

#include <algorithm>

#include "cairn/core/profile.h"
#include "cairn/solvers/common/incumbent.h"
#include "cairn/solvers/order/order.h"
#include "cairn/solvers/remat/baselines.h"
#include "cairn/solvers/remat/internal/refine.h"
#include "cairn/solvers/remat/tw_remat.h"

namespace cairn::solvers {

Solution auto_remat(const core::Graph& graph, const SolveOptions& options) {
  constexpr int kBarrenRounds = 2000;
  constexpr double kHopelessSeconds = 2;
  const bool hopeless = options.budget && *options.budget < core::peak_lower_bound(graph);
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

  const auto run = [&](SolverFunction solver, double share) {
    if (incumbent.cannot_improve() || watch.expired_now()) return;
    inner.limit = watch.share(share);
    const Solution solution = solver(graph, inner);
    if (!solution.schedule.steps.empty()) incumbent.offer(solution.schedule);
    watch.charge(solution.work);
    for (const Tradeoff& tradeoff : solution.tradeoffs) incumbent.note(tradeoff);
  };
  const SolverFunction by_order = [](const core::Graph& g, const SolveOptions& o) { return order(g, OrderOptions{o}); };
  // The cheap ones first, so that something is known when time is short.
  run(greedy_remat, 0.25);
  run(chen_remat, 0.25);
  run([](const core::Graph& g, const SolveOptions& o) { return tw_remat(g, TwRematOptions{o}); }, 0.35);
  if (!options.budget) {
    // From what they found, before an order without recomputation, hard to better by small changes, takes its place.
    core::within(watch, 0.1,
                 [&](core::Stopwatch& first) { refine(graph, inner, incumbent, first, kBarrenRounds / 10); });
  }
  // An order that needs no recomputation is the cheapest schedule of all, where it fits: a short try, and a long one
  // with the time that local search leaves.
  run(by_order, 0.15);
  if (!watch.expired_now()) refine(graph, inner, incumbent, watch, kBarrenRounds);
  if (options.budget && !hopeless) run(by_order, 1);
  return incumbent.finish(watch.expired_now());
}

}  // namespace cairn::solvers
