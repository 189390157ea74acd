#pragma once

#include "cairn/core/graph.h"
#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Makes the answer of a solver whose budget is proved out of reach: the least peak that the solver finds without a
/// budget, which is still worth knowing. `options`: the solver's options.
template <typename Options>
Solution infeasible_with_least_peak(Solution (*solver)(const core::Graph&, const Options&), const core::Graph& graph,
                                    Options options) {
  options.budget.reset();
  Solution solution = solver(graph, options);
  solution.status = Status::infeasible;
  return solution;
}

}  // namespace cairn::solvers
