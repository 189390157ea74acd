#include <algorithm>
#include <cstdint>
#include <limits>

#include "cairn/solvers/plan/internal/instance.h"
#include "cairn/solvers/plan/internal/packing/packer.h"
#include "cairn/solvers/plan/internal/packing/rules.h"
#include "cairn/solvers/plan/planner.h"

namespace cairn::solvers {

PlanSolution greedy_plan(const PlanProblem& problem, const PlanOptions& options) {
  core::Stopwatch watch(options.limit);
  const plan::Instance instance(problem, options);
  const std::vector<std::int64_t> loads = instance.load();
  const std::int64_t max_live = *std::max_element(loads.begin(), loads.end());
  plan::check_fixed(problem, instance);
  const std::int64_t bound = plan::height_bound(instance, max_live);
  const bool too_small = options.capacity && *options.capacity < bound;
  // If no plan can fit, a low plan is of no use, so the first plan is enough.
  const std::int64_t target =
      too_small ? std::numeric_limits<std::int64_t>::max() : std::max(options.capacity.value_or(0), bound);
  const plan::Packing packing = plan::pack(instance, bound, target, loads, watch);

  PlanSolution solution;
  core::Plan& plan = solution.plan;
  plan = {packing.height, max_live, options.alignment, problem.buffers};
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    plan.buffers[b].size = core::align_up(plan.buffers[b].size, options.alignment);
    plan.buffers[b].offset = packing.offsets[instance.block_of[b]];
  }
  solution.lower_bound = bound;
  solution.work = watch.work();
  solution.timed_out = packing.timed_out;
  if (too_small) {
    solution.status = Status::infeasible;
  } else if (plan.bytes == bound) {
    solution.status = Status::optimal;
  } else {
    const bool fits = !options.capacity || plan.bytes <= *options.capacity;
    solution.status = fits ? Status::feasible : Status::not_found;
  }
  return solution;
}

}  // namespace cairn::solvers
