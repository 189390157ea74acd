#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/remat/hiremate/level.h"
#include "cairn/tests/solvers/remat/level/cases.h"
#include "cairn/tests/solvers/remat/level/passes.h"

/// This file enumerates the schedules of a level that H-ILP considers (its class), and measures them by the
/// definitions. A level is a sequence of parts. A part consists of forward nodes and their backward nodes, and an
/// option is one way to run a part. The forward and the backward nodes of a part are its forward part and its backward
/// part. The header solvers/remat/hiremate/level.h describes the class. Each phase ends with the run of one forward or
/// backward part, and phases run in order. In the phase of a backward part, or in all phases if there are no backward
/// parts, any set of forward parts first runs again. Each of them runs the forward part of one of its options. Each
/// backward part runs once, by one of its options. Memory is freed as early as possible. If parts have several nodes,
/// steps whose values nothing reads are left out.
///
/// H-ILP must also choose which run saves values for a backward part, and it counts each part as one unit. So the
/// optimum of H-ILP is never below the best cost found here, but it can be above. If every part has one forward node
/// and at most one backward node, the two costs are equal.
namespace cairn::tests::level {

using core::Schedule;
using solvers::LevelBudget;

/// Each entry of Measures is a peak, the memory between the passes, and a cost.
using Measures = std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>>;

inline std::optional<std::int64_t> least_cost(const Measures& all, const LevelBudget& budget) {
  std::optional<std::int64_t> least;
  for (const auto& [peak, between, cost] : all) {
    if (peak <= budget.peak && (!budget.between || between <= *budget.between))
      least = std::min(least.value_or(cost), cost);
  }
  return least;
}

/// Returns the peak, memory and cost of a schedule of the level, or nothing if it is not valid. With `prune`, steps
/// whose values nothing reads are left out.
inline std::optional<OptionNeeds> measure(const Case& level, LayerOption schedule, bool prune) {
  if (level.problem.inner) {
    Passes passes(level.graph, level.whole, schedule);
    if (!passes.valid()) return std::nullopt;
    if (prune) passes.prune();
    return passes.needs();
  }
  Schedule flat{schedule.forward};
  append(flat.steps, schedule.backward);
  if (!core::evaluate(level.graph, flat).valid()) return std::nullopt;
  if (prune) flat = core::drop_unread(level.graph, flat);
  const core::Evaluation found = core::evaluate(level.graph, flat);
  return OptionNeeds{found.peak, 0, found.cost};
}

/// Removes all runs of a pinned node except the first one.
inline void run_pinned_once(const Graph& graph, LayerOption& schedule) {
  std::set<NodeId> run;
  for (Steps* pass : {&schedule.forward, &schedule.backward}) {
    pass->erase(
        std::remove_if(pass->begin(), pass->end(), [&](NodeId v) { return graph.pinned(v) && !run.insert(v).second; }),
        pass->end());
  }
}

/// Returns the nodes that a forward part must run if the run saves nothing for the backward part: nodes whose values
/// are kept or read outside of the layer, and the nodes that these need.
inline Steps for_others(const Graph& graph, const Layer& layer) {
  Steps chosen;
  for (auto v = layer.forward.rbegin(); v != layer.forward.rend(); ++v) {
    const auto inside = [&](NodeId reader) {
      return std::find(layer.backward.begin(), layer.backward.end(), reader) != layer.backward.end() ||
             (std::find(layer.forward.begin(), layer.forward.end(), reader) != layer.forward.end() &&
              std::find(chosen.begin(), chosen.end(), reader) == chosen.end());
    };
    const auto readers = graph.successors(*v);
    if (graph.keep(*v) || !std::all_of(readers.begin(), readers.end(), inside)) chosen.push_back(*v);
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

inline Measures all_choices(const Case& level) {
  const std::vector<LevelProblem::Part>& parts = level.problem.parts;
  const std::size_t count = parts.size();
  bool backward = false;
  for (const LevelProblem::Part& part : parts) backward = backward || !part.layer.backward.empty();
  const auto pinned = [&](std::size_t part) {
    const Steps& nodes = parts[part].layer.forward;
    return level.single && level.graph.pinned(nodes[0]);
  };
  Measures all;
  LayerOption schedule;
  // In phase t < count, forward part t runs. In later phases, the backward parts run in reverse order. In the current
  // phase, forward parts from number `j` on may still run again.
  const std::function<void(std::size_t, std::size_t)> run = [&](std::size_t phase, std::size_t j) {
    if (phase == (backward ? 2 * count : count)) {
      LayerOption complete = schedule;
      run_pinned_once(level.graph, complete);
      if (const auto needs = measure(level, complete, !level.single))
        all.insert({needs->peak, needs->between, needs->cost});
      return;
    }
    const bool forward = phase < count;
    const std::size_t own = forward ? phase : 2 * count - 1 - phase;
    Steps& pass = forward ? schedule.forward : schedule.backward;
    const std::size_t length = pass.size();
    const auto with = [&](const Steps& more, std::size_t next_phase, std::size_t next) {
      append(pass, more);
      run(next_phase, next);
      pass.resize(length);
    };
    if (!forward && parts[own].layer.backward.empty()) return run(phase + 1, 0);
    for (const LayerOption& option : parts[own].options) with(forward ? option.forward : option.backward, phase + 1, 0);
    if (forward && !parts[own].layer.backward.empty() && !pinned(own))
      with(for_others(level.graph, parts[own].layer), phase + 1, 0);
    if (forward && backward) return;
    for (std::size_t again = j; again < (forward ? phase : count); ++again) {
      if (pinned(again)) continue;
      for (const LayerOption& option : parts[again].options) with(option.forward, phase, again + 1);
      if (!level.single) with(for_others(level.graph, parts[again].layer), phase, again + 1);
    }
  };
  run(0, 0);
  return all;
}

/// Returns the same optimum as all_choices() with least_cost(), but only for levels with Case::single. It uses dynamic
/// programming over the sets of values in memory after each run, so it can solve larger levels than all_choices() can.
/// Any value may be freed at any time.
inline std::optional<std::int64_t> cheapest_of_single(const Case& level, std::int64_t budget) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;
  const Graph& graph = level.graph;
  const auto masks = std::size_t{1} << graph.value_count();
  const auto bit = [](ValueId x) { return std::size_t{1} << x; };
  std::vector<std::int64_t> bytes(masks, 0), cost(masks, kNever);
  for (std::size_t mask = 1; mask < masks; ++mask) {
    for (ValueId x = 0; x < graph.value_count(); ++x) bytes[mask] += (mask & bit(x)) != 0 ? graph.value_size(x) : 0;
  }
  cost[0] = 0;
  const auto run = [&](NodeId v, bool may_skip) {
    for (ValueId x = 0; x < graph.value_count(); ++x) {
      for (std::size_t mask = 0; mask < masks; ++mask) {
        if ((mask & bit(x)) != 0) cost[mask ^ bit(x)] = std::min(cost[mask ^ bit(x)], cost[mask]);
      }
    }
    std::size_t inputs = 0, outputs = 0;
    for (const ValueId x : graph.inputs(v)) inputs |= bit(x);
    for (const ValueId x : graph.outputs(v)) outputs |= bit(x);
    std::vector<std::int64_t> next = may_skip ? cost : std::vector<std::int64_t>(masks, kNever);
    for (std::size_t mask = 0; mask < masks; ++mask) {
      if (cost[mask] == kNever || (mask & inputs) != inputs || (mask & outputs) != 0) continue;
      if (bytes[mask] + bytes[outputs] + graph.scratch(v) > budget) continue;
      next[mask | outputs] = std::min(next[mask | outputs], cost[mask] + graph.cost(v));
    }
    cost = std::move(next);
  };
  const auto& parts = level.problem.parts;
  const bool backward = !level.whole.backward.empty();
  const auto again = [&](std::size_t before) {
    for (std::size_t j = 0; j < before; ++j) {
      if (!graph.pinned(parts[j].layer.forward[0])) run(parts[j].layer.forward[0], true);
    }
  };
  for (std::size_t j = 0; j < parts.size(); ++j) {
    const Layer& layer = parts[j].layer;
    if (!backward) again(j);
    const bool for_backward = !layer.backward.empty() && for_others(graph, layer).empty();
    run(layer.forward[0], for_backward && !graph.pinned(layer.forward[0]));
  }
  for (std::size_t j = parts.size(); j-- > 0;) {
    if (parts[j].layer.backward.empty()) continue;
    again(parts.size());
    run(parts[j].layer.backward[0], false);
  }
  std::size_t kept = 0;
  for (ValueId x = 0; x < graph.value_count(); ++x) kept |= graph.value_kept(x) ? bit(x) : 0;
  std::int64_t least = kNever;
  for (std::size_t mask = 0; mask < masks; ++mask) least = (mask & kept) == kept ? std::min(least, cost[mask]) : least;
  return least == kNever ? std::nullopt : std::optional(least);
}

}  // namespace cairn::tests::level
