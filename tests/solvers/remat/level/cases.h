#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/remat/hiremate/level.h"
#include "cairn/solvers/remat/rotor/layers.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/remat/level/passes.h"
#include "cairn/tests/solvers/remat/training_graphs.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/show.h"

/// This file makes random levels, i.e. inputs of H-ILP (solvers/remat/hiremate/level.h). A level is a sequence of
/// parts. A part consists of forward nodes and their backward nodes, and an option is one way to run a part.
namespace cairn::tests::level {

using solvers::layers_of;
using solvers::LevelProblem;

struct Case {
  Graph graph;
  LevelProblem problem;
  Layer whole;
  /// Whether every part has one forward node, at most one backward node and one option, no forward node is kept, and no
  /// node has negative scratch. If so, memory between two steps is never higher than during them.
  bool single = true;
};

/// Returns a random option. It runs all nodes of a layer once, and sometimes runs forward nodes again.
inline LayerOption random_option(Random& random, const Graph& graph, const Layer& layer) {
  LayerOption option;
  for (const NodeId v : layer.forward) {
    for (const NodeId u : option.forward) {
      if (!random.chance(6) || graph.pinned(u)) continue;
      option.forward.push_back(u);
      break;
    }
    option.forward.push_back(v);
  }
  for (const NodeId v : layer.backward) {
    for (const NodeId u : layer.forward) {
      if (random.chance(40) && !graph.pinned(u)) option.backward.push_back(u);
    }
    option.backward.push_back(v);
  }
  return option;
}

inline std::int64_t cost_of(const Graph& graph, const LayerOption& option) {
  return reference::cost(graph, {option.forward}) + reference::cost(graph, {option.backward});
}

/// Returns how many sequences of runs all_choices() would try, but at most 1e9.
inline std::int64_t choices(const LevelProblem& problem) {
  double count = 1, again = 1;
  bool backward = false;
  for (const LevelProblem::Part& part : problem.parts) backward = backward || !part.layer.backward.empty();
  for (const LevelProblem::Part& part : problem.parts) {
    const auto options = static_cast<double>(part.options.size());
    count *= options + 1;
    if (!backward) count *= again;
    again *= 2 + options;
    if (!part.layer.backward.empty()) count *= options;
  }
  for (const LevelProblem::Part& part : problem.parts) count *= part.layer.backward.empty() ? 1 : again;
  return static_cast<std::int64_t>(std::min(count, 1e9));
}

/// Returns a random level of a training graph, or of a graph without backward nodes. The level is the whole graph or,
/// if `inner` is set, some consecutive layers of it. If `single` is set, every part is one layer. choices() is at most
/// `most_choices`.
inline Case random_case(Random& random, bool inner, bool single, std::int64_t most_choices) {
  for (;;) {
    Case made;
    tests::TrainingOptions options{.forward = tests::any_graph(random)};
    options.forward.min_nodes = 2;
    options.forward.max_nodes = single ? (inner ? 5 : 4) : 6;
    options.forward.keep = random.chance(40);
    options.without_backward = random.chance(50) ? 0 : 40;
    options.two_backward = single ? 0 : 20;
    if (random.chance(20)) options.without_backward = 100;
    made.graph = tests::training_graph(random, options);
    std::vector<Layer> layers = layers_of(made.graph);
    if (inner) {
      const auto count = static_cast<std::int64_t>(layers.size());
      const std::int64_t begin = random.below(count), end = random.between(begin + 1, count);
      layers = std::vector<Layer>(layers.begin() + begin, layers.begin() + end);
    }
    made.problem.inner = inner;
    made.single = single;
    for (const Layer& layer : layers) {
      made.single = made.single && !made.graph.keep(layer.forward[0]);
      for (const Steps* part : {&layer.forward, &layer.backward}) {
        for (const NodeId v : *part) made.single = made.single && made.graph.scratch(v) >= 0;
      }
    }
    std::vector<const Layer*> all;
    for (std::size_t i = 0; i < layers.size();) {
      const std::size_t size = single ? 1 : static_cast<std::size_t>(random.between(1, 3));
      std::vector<const Layer*> joined;
      for (; i < layers.size() && joined.size() < size; ++i) joined.push_back(&layers[i]);
      all.insert(all.end(), joined.begin(), joined.end());
      LevelProblem::Part part{join(joined), {}};
      part.options.push_back({part.layer.forward, part.layer.backward});
      for (std::int64_t more = single ? 0 : random.below(3); more > 0; --more) {
        const LayerOption option = random_option(random, made.graph, part.layer);
        if (std::find(part.options.begin(), part.options.end(), option) == part.options.end())
          part.options.push_back(option);
      }
      made.problem.parts.push_back(std::move(part));
    }
    made.whole = join(all);
    if (made.problem.parts.size() > 4 || choices(made.problem) > most_choices) continue;
    return made;
  }
}

inline std::string show(const Case& level) {
  std::string text = tests::show(level.graph);
  for (NodeId v = 0; v < level.graph.node_count(); ++v) {
    for (const ValueId x : level.graph.outputs(v)) {
      text += fmt::format("  {}value {} of {}: {}{} readers {}\n", level.graph.pinned(v) ? "pinned " : "", x, v,
                          level.graph.value_size(x), level.graph.value_kept(x) ? " keep" : "",
                          tests::show(level.graph.readers(x)));
    }
  }
  for (const LevelProblem::Part& part : level.problem.parts) {
    text += "part\n";
    for (const LayerOption& option : part.options)
      text += "  " + tests::show(option.forward) + " / " + tests::show(option.backward) + "\n";
  }
  return text;
}

}  // namespace cairn::tests::level
