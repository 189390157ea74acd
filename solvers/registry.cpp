#include "cairn/solvers/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/text.h"
#include "cairn/solvers/internal/auto.h"
#include "cairn/solvers/order/order.h"
#include "cairn/solvers/remat/baselines.h"
#include "cairn/solvers/remat/tw_remat.h"

namespace cairn::solvers {
namespace {

template <Solution (*solver)(const core::Graph&, const OrderOptions&)>
Solution run_order(const core::Graph& graph, const SolveOptions& options) {
  return solver(graph, OrderOptions{options});
}

constexpr SolverInfo kSolvers[] = {
    {"auto", "the others, then local search",
     "the cheapest schedule within budget and time limit that any of them found", auto_remat},
    {"tw", "Kumar et al. 2019, Algorithm 1: TWRemat(k)",
     "peak O((M_in + w M_max) log n) for tree decompositions of width w, where recursion goes to the end",
     [](const core::Graph& graph, const SolveOptions& options) { return tw_remat(graph, TwRematOptions{options}); }},
    {"greedy", "Kumar et al. 2019, section 4: GreedyRemat (XLA)", "no bound on peak or cost", greedy_remat},
    {"chen", "Chen et al. 2016: sublinear memory checkpointing, on DAGs", "O(sqrt n) values on a chain of n equal ones",
     chen_remat},
    {"order", "Jin et al.: dominance, linearization; then exact or anytime search",
     "least peak without recomputation where it says optimal; never above the input order", run_order<order>,
     Family::order},
    {"sp", "Jin et al., Theorem 7.2: series-parallel graphs", "least peak without recomputation",
     run_order<series_parallel>, Family::order, "series-parallel"},
    {"pumpkin", "Jin et al., Theorem 8.2: parallel chains", "least peak without recomputation", run_order<pumpkin>,
     Family::order, "pumpkin"},
    {"in-tree", "Liu 1987", "least peak without recomputation", run_order<in_tree>, Family::order, "in-tree"},
    {"out-tree", "Jin et al., Theorem 8.3", "least peak without recomputation", run_order<out_tree>, Family::order,
     "out-tree"},
    {"exact", "bottleneck search over topological cuts", "least peak without recomputation where it ends in time",
     run_order<exact>, Family::order},
    {"none", "Kumar et al. 2019, section 4: NoRemat", "every node once, in the input order", no_remat},
};

}  // namespace

std::span<const SolverInfo> registry() { return kSolvers; }

const SolverInfo& find_solver(std::string_view name) {
  std::vector<std::string_view> names;
  for (const SolverInfo& solver : kSolvers) {
    if (solver.name == name) return solver;
    names.push_back(solver.name);
  }
  throw core::InputError(fmt::format("there is no solver '{}'{} (known: {})", name, core::did_you_mean(name, names),
                                     fmt::join(names, ", ")));
}

}  // namespace cairn::solvers
