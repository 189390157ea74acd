#pragma once

#include "cairn/core/graph.h"
#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Makes the answer of a solver that has proved its budget to be too small. Calls the solver once more, with `options`
/// but without a budget, because the least peak that it finds tells the user which budget suffices.
template <typename Options>
Solution infeasible_with_least_peak(Solution (*solver)(const core::Graph&, const Options&), const core::Graph& graph,
                                    Options options) {
  options.budget.reset();
  Solution solution = solver(graph, options);
  solution.status = Status::infeasible;
  return solution;
}

}  // namespace cairn::solvers
