#include "cairn/solvers/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/support/timeline.h"

namespace cairn::solvers {

using core::NodeId;

PlanProblem plan_problem(const core::Graph& graph, const core::Schedule& schedule) {
  PlanProblem problem;
  std::vector<std::int32_t> latest(graph.value_count(), -1);
  for (const core::Lifetime& life : core::lifetimes(graph, schedule)) {
    const NodeId v = life.node;
    const core::ValueId x = graph.value({v, life.output}), taken = graph.inplace(x);
    if (graph.value_size(x) > 0) {
      const bool in_place = life.fetch < 0 && taken != core::kNoValue && latest[taken] >= 0 &&
                            problem.buffers[latest[taken]].last == life.first;
      problem.takes_over.push_back(in_place ? latest[taken] : -1);
      latest[x] = static_cast<std::int32_t>(problem.buffers.size());
      problem.buffers.push_back({v, life.first, life.last, graph.value_size(x), 0, false,
                                 in_place ? graph.output_ref(taken) : core::OutputRef(), life.output, life.evict,
                                 life.fetch});
    }
    if (life.fetch < 0 && life.output + 1 == graph.output_count(v) && graph.scratch(v) > 0) {
      problem.takes_over.push_back(-1);
      problem.buffers.push_back({v, life.first, life.first, graph.scratch(v), 0, true, {}, 0});
    }
  }
  return problem;
}

PlanProblem host_plan_problem(const core::Graph& graph, const core::Schedule& schedule) {
  PlanProblem problem;
  for (const core::HostCopy& copy : core::host_copies(graph, schedule)) {
    const core::OutputRef ref = graph.output_ref(schedule.transfers.evicts[copy.evict].value);
    problem.buffers.push_back({ref.node, copy.first, copy.last, copy.bytes, 0, false, {}, ref.output, copy.evict});
  }
  return problem;
}

void plan_host(const core::Graph& graph, const core::Schedule& schedule, const PlanOptions& options, core::Plan& plan) {
  if (schedule.transfers.empty()) return;
  PlanOptions host = options;
  host.capacity.reset();
  host.guard_bytes = 0;
  core::Plan found = find_plan(host_plan_problem(graph, schedule), host).plan;
  plan.host_bytes = found.bytes;
  plan.host_lower_bound = found.lower_bound;
  plan.host_buffers = std::move(found.buffers);
}

PlanSolution find_plan(const core::Graph& graph, const core::Schedule& schedule, const PlanOptions& options) {
  PlanSolution solution = find_plan(plan_problem(graph, schedule), options);
  plan_host(graph, schedule, options, solution.plan);
  return solution;
}

core::Plan plan_memory(const core::Graph& graph, const core::Schedule& schedule, const PlanOptions& options) {
  return find_plan(graph, schedule, options).plan;
}

PlanProblem plan_problem(const std::vector<core::BufferSpec>& specs) {
  std::vector<std::int64_t> times;
  for (const core::BufferSpec& spec : specs) {
    if (spec.lower >= spec.upper) {
      throw core::InputError(
          fmt::format("buffer '{}': lower {} is not below upper {}", spec.id, spec.lower, spec.upper));
    }
    times.push_back(spec.lower);
    times.push_back(spec.upper);
    for (const auto& [lower, upper] : spec.gaps) {
      if (lower <= spec.lower || upper <= lower || upper >= spec.upper)
        throw core::InputError(fmt::format("buffer '{}': the gap {}-{} does not lie inside its lifetime {}-{}", spec.id,
                                           lower, upper, spec.lower, spec.upper));
      times.push_back(lower);
      times.push_back(upper);
    }
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto rank = [&](std::int64_t time) {
    return std::lower_bound(times.begin(), times.end(), time) - times.begin();
  };
  PlanProblem problem;
  for (const core::BufferSpec& spec : specs) {
    problem.buffers.push_back({static_cast<NodeId>(problem.buffers.size()),
                               rank(spec.lower),
                               rank(spec.upper) - 1,
                               spec.size,
                               0,
                               false,
                               {},
                               0});
    PlacementRules rules{spec.alignment, spec.offset, spec.hint, {}};
    for (const auto& [lower, upper] : spec.gaps) rules.gaps.push_back({rank(lower), rank(upper) - 1});
    problem.rules.push_back(std::move(rules));
  }
  return problem;
}

core::Plan plan_buffers(const std::vector<core::BufferSpec>& specs, const PlanOptions& options) {
  core::Plan plan = find_plan(plan_problem(specs), options).plan;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    plan.buffers[i].first = specs[i].lower;
    plan.buffers[i].last = specs[i].upper - 1;
  }
  return plan;
}

}  // namespace cairn::solvers
