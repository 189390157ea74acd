#include "cairn/solvers/common/support/incumbent.h"
#include "cairn/solvers/remat/baselines/baselines.h"

namespace cairn::solvers {

Solution no_remat(const core::Graph& graph, const SolveOptions& options) {
  const core::Stopwatch watch(options.limit);
  Incumbent incumbent(graph, options, watch);
  incumbent.offer(core::baseline_schedule(graph));
  return incumbent.finish(false);
}

}  // namespace cairn::solvers
