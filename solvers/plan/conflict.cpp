// Finds a small set of buffers that cannot fit into a capacity (irreducible_conflict() in planner.h).

#include <algorithm>
#include <numeric>

#include "cairn/core/error.h"
#include "cairn/solvers/plan/planner.h"

namespace cairn::solvers {
namespace {

/// Makes a problem of the given buffers of `problem`. A buffer that takes over the storage of a buffer outside of this
/// list becomes independent.
PlanProblem part_of(const PlanProblem& problem, const std::vector<std::int32_t>& buffers) {
  PlanProblem part;
  part.forbidden = problem.forbidden;
  std::vector<std::int32_t> index(problem.buffers.size(), -1);
  for (const std::int32_t b : buffers) {
    index[b] = static_cast<std::int32_t>(part.buffers.size());
    part.buffers.push_back(problem.buffers[b]);
    if (!problem.rules.empty()) part.rules.push_back(problem.rules[b]);
  }
  if (!problem.takes_over.empty()) {
    for (const std::int32_t b : buffers)
      part.takes_over.push_back(problem.takes_over[b] >= 0 ? index[problem.takes_over[b]] : -1);
  }
  return part;
}

}  // namespace

PlanConflict irreducible_conflict(const PlanProblem& problem, const PlanOptions& options) {
  if (!options.capacity) throw core::InputError("a conflict needs a capacity");
  core::Stopwatch watch(options.limit);
  const auto excluded = [&](const std::vector<std::int32_t>& buffers, double part) {
    return core::within(watch, part, [&](core::Stopwatch& inner) {
      PlanOptions own = options;
      own.limit = inner.rest();
      const PlanSolution solution = find_plan(part_of(problem, buffers), own);
      inner.charge(solution.work);
      return solution.status;
    });
  };

  PlanConflict conflict;
  std::vector<std::int32_t> kept(problem.buffers.size());
  std::iota(kept.begin(), kept.end(), 0);
  if (excluded(kept, 0.5) != Status::infeasible) return conflict;
  // In the order of first steps, neighbouring buffers are live at about the same time. So stretches of neighbours are
  // removed together.
  std::stable_sort(kept.begin(), kept.end(),
                   [&](std::int32_t a, std::int32_t b) { return problem.buffers[a].first < problem.buffers[b].first; });
  for (std::size_t stretch = std::max<std::size_t>(1, kept.size() / 2); stretch > 0; stretch /= 2) {
    conflict.irreducible = true;
    for (std::size_t at = 0; at < kept.size();) {
      const std::size_t end = std::min(kept.size(), at + stretch);
      std::vector<std::int32_t> rest(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(at));
      rest.insert(rest.end(), kept.begin() + static_cast<std::ptrdiff_t>(end), kept.end());
      const Status status = watch.expired_now() ? Status::not_found : excluded(rest, 0.1);
      if (status == Status::infeasible) {
        kept = std::move(rest);
      } else {
        if (status == Status::not_found) conflict.irreducible = false;
        at = end;
      }
    }
  }
  std::sort(kept.begin(), kept.end());
  conflict.buffers = std::move(kept);
  return conflict;
}

}  // namespace cairn::solvers
