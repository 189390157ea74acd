#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/schedule.h"

/// This file makes seeded random graphs and schedules for tests. They are small, have various shapes, and have many
/// corner cases.
namespace cairn::tests {

/// Draws random numbers that are the same on every platform. The C++ standard defines the numbers of std::mt19937_64,
/// but not those of its distributions, so these are not used.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// Returns a random number that is uniform in [0, count). `count` must be at least 1.
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(count));
  }
  /// Returns a random number that is uniform in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  /// Returns a random index of a list, which must not be empty. All indices are equally likely.
  template <class Items>
  std::size_t place(const Items& items) {
    return static_cast<std::size_t>(below(std::ssize(items)));
  }
  template <class T>
  const T& pick(const std::vector<T>& items) {
    return items[place(items)];
  }
  template <class T>
  T& pick(std::vector<T>& items) {
    return items[place(items)];
  }
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
    }
  }

 private:
  std::mt19937_64 engine_;
};

/// Returns the numbers 0, 1, ..., count - 1.
inline std::vector<core::NodeId> numbers_below(core::NodeId count) {
  std::vector<core::NodeId> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

struct RandomGraphOptions {
  core::NodeId min_nodes = 2, max_nodes = 14;
  bool scratch = true;   ///< whether nodes may need extra bytes while they run
  bool in_place = true;  ///< whether nodes may run in place, with any legal negative scratch
  bool keep = true;
  bool several_outputs = false;  ///< whether half of the nodes have two to four outputs, some of size 0
  bool pinned = false;           ///< whether a fifth of the nodes may run only once
};

/// Sets options by the seed. A quarter of the seeds gets nodes with one output, a quarter nodes with several outputs, a
/// quarter pinned nodes, and a quarter pinned nodes and nodes with several outputs.
inline RandomGraphOptions any_graph(std::uint64_t seed, RandomGraphOptions options = {}) {
  options.several_outputs = seed % 2 != 0;
  options.pinned = seed / 2 % 2 != 0;
  return options;
}
inline RandomGraphOptions any_graph(Random& random, const RandomGraphOptions& options = {}) {
  return any_graph(static_cast<std::uint64_t>(random.below(4)), options);
}

/// The inputs of each node of a graph. Nodes are numbered in topological order, so the inputs of node i are all below
/// i.
struct RandomShape {
  std::vector<std::vector<core::NodeId>> inputs;
  std::vector<core::NodeId> forward;  ///< for a backward node, its forward node, else kNoNode
};

inline void add_edge(RandomShape& shape, core::NodeId from, core::NodeId to) {
  auto& inputs = shape.inputs[static_cast<std::size_t>(to)];
  if (std::find(inputs.begin(), inputs.end(), from) == inputs.end()) inputs.push_back(from);
}

/// Returns a path with a few additional edges that skip nodes.
inline RandomShape chain_shape(Random& random, RandomShape shape, core::NodeId n) {
  const int skips = static_cast<int>(random.between(0, 40));
  for (core::NodeId v = 1; v < n; ++v) {
    add_edge(shape, v - 1, v);
    if (v >= 2 && random.chance(skips)) add_edge(shape, static_cast<core::NodeId>(random.below(v - 1)), v);
  }
  return shape;
}

/// Returns layers of one to four nodes. Each node reads one to three nodes of the layer before, and sometimes an older
/// node.
inline RandomShape layered_shape(Random& random, RandomShape shape, core::NodeId n) {
  core::NodeId before = 0, begin = 0;
  while (begin < n) {
    const auto end = static_cast<core::NodeId>(std::min<std::int64_t>(n, begin + random.between(1, 4)));
    for (core::NodeId v = begin; v < end && begin > 0; ++v) {
      for (std::int64_t k = random.between(1, 3); k > 0; --k) {
        add_edge(shape, static_cast<core::NodeId>(random.between(before, begin - 1)), v);
      }
      if (random.chance(15)) add_edge(shape, static_cast<core::NodeId>(random.below(begin)), v);
    }
    before = begin;
    begin = end;
  }
  return shape;
}

/// Returns a sequence of parts. A part has a source, one to three paths from the source, and a join that reads the ends
/// of the paths. The join is the source of the next part.
inline RandomShape fork_join_shape(Random& random, RandomShape shape, core::NodeId n) {
  core::NodeId source = 0;
  while (source + 1 < n) {
    const auto join = static_cast<core::NodeId>(std::min<std::int64_t>(n - 1, source + random.between(2, 8)));
    const std::int64_t branches = random.between(1, 3);
    std::vector<core::NodeId> tips(static_cast<std::size_t>(branches), source);
    for (core::NodeId v = source + 1; v < join; ++v) {
      core::NodeId& tip = tips[static_cast<std::size_t>(random.below(branches))];
      add_edge(shape, tip, v);
      tip = v;
    }
    for (const core::NodeId tip : tips) add_edge(shape, tip, join);
    source = join;
  }
  return shape;
}

/// Returns a graph in which every possible edge exists with the same probability. The probability itself is random.
inline RandomShape dense_shape(Random& random, RandomShape shape, core::NodeId n) {
  const int density = static_cast<int>(random.between(0, 100));
  for (core::NodeId v = 1; v < n; ++v) {
    for (core::NodeId u = 0; u < v; ++u) {
      if (random.chance(density)) add_edge(shape, u, v);
    }
  }
  return shape;
}

/// Returns a forward graph and its backward pass. The backward node of f reads the backward nodes of f's readers and
/// the inputs of f. In half of the cases, or if f has no inputs, it also reads f itself.
inline RandomShape training_shape(Random& random, RandomShape shape, core::NodeId n) {
  const core::NodeId forward = n / 2;
  shape = random.chance(50) ? chain_shape(random, std::move(shape), forward)
                            : layered_shape(random, std::move(shape), forward);
  const auto mirror = [&](core::NodeId v) { return 2 * forward - 1 - v; };
  for (core::NodeId v = forward - 1; v >= 0; --v) {
    shape.forward[static_cast<std::size_t>(mirror(v))] = v;
    for (core::NodeId reader = v + 1; reader < forward; ++reader) {
      const auto& inputs = shape.inputs[static_cast<std::size_t>(reader)];
      if (std::find(inputs.begin(), inputs.end(), v) != inputs.end()) add_edge(shape, mirror(reader), mirror(v));
    }
    const std::vector<core::NodeId> inputs = shape.inputs[static_cast<std::size_t>(v)];
    if (inputs.empty() || random.chance(50)) add_edge(shape, v, mirror(v));
    for (const core::NodeId input : inputs) add_edge(shape, input, mirror(v));
  }
  return shape;
}

inline RandomShape random_shape(Random& random, core::NodeId n) {
  RandomShape shape;
  shape.inputs.resize(static_cast<std::size_t>(n));
  shape.forward.assign(static_cast<std::size_t>(n), core::kNoNode);
  switch (random.below(5)) {
    case 0:
      return chain_shape(random, std::move(shape), n);
    case 1:
      return layered_shape(random, std::move(shape), n);
    case 2:
      return fork_join_shape(random, std::move(shape), n);
    case 3:
      return dense_shape(random, std::move(shape), n);
    default:
      return training_shape(random, std::move(shape), n);
  }
}

/// Returns the least scratch, which is negative or 0, that GraphBuilder permits a node. Its absolute value is the
/// smaller one of two sizes: that of the inputs that only this node reads and that are not kept, and that of the node's
/// outputs.
inline std::int64_t lowest_scratch(const std::vector<core::Node>& nodes, const core::Node& node) {
  std::int64_t made = node.outputs.empty() ? node.size : 0, freed = 0;
  for (const core::Output& output : node.outputs) made += output.size;
  for (const core::OutputRef input : node.inputs) {
    const auto reads = [&](const core::Node& other) {
      return std::find(other.inputs.begin(), other.inputs.end(), input) != other.inputs.end();
    };
    const core::Node& from = nodes[static_cast<std::size_t>(input.node)];
    const core::Output read = from.outputs.empty() ? core::Output{from.size, from.keep, {}, ""}
                                                   : from.outputs[static_cast<std::size_t>(input.output)];
    if (!read.keep && std::count_if(nodes.begin(), nodes.end(), reads) == 1) freed += read.size;
  }
  return -std::min(made, freed);
}

/// Makes `v` overwrite one of its inputs in place. In most cases, output and input have the same size, and the scratch
/// is minus the number of shared bytes. In the remaining cases, the scratch is a random legal value.
inline void make_in_place(Random& random, std::vector<core::Node>& nodes, core::NodeId v) {
  core::Node& node = nodes[static_cast<std::size_t>(v)];
  node.inplace = random.pick(node.inputs);
  const std::int64_t input_size = nodes[static_cast<std::size_t>(node.inplace.node)].size;
  if (random.chance(75)) node.size = input_size;
  const std::int64_t lowest = lowest_scratch(nodes, node);
  if (random.chance(60)) {
    node.scratch = std::max(lowest, -std::min(node.size, input_size));
  } else if (random.chance(60)) {
    node.scratch = random.between(lowest, 0);
  } else {
    node.scratch = random.between(lowest, 5);
  }
}

/// Gives more outputs to half of the nodes, and lets their readers read and overwrite any of the outputs. The scratch
/// of all nodes stays legal.
inline void give_several_outputs(Random& random, std::vector<core::Node>& nodes, const RandomGraphOptions& options) {
  const auto at = [&](core::NodeId v) -> core::Node& { return nodes[static_cast<std::size_t>(v)]; };
  for (core::Node& node : nodes) {
    const std::int64_t outputs = random.chance(50) ? random.between(2, 4) : 1;
    node.outputs.push_back({node.size, node.keep, {}, ""});
    while (static_cast<std::int64_t>(node.outputs.size()) < outputs) {
      const bool keep = options.keep && random.chance(15);
      node.outputs.push_back({random.chance(25) ? 0 : random.between(0, 20), keep, {}, ""});
    }
    random.shuffle(node.outputs);
    if (outputs > 1 && random.chance(20)) node.outputs.back().name = "last";
  }
  for (core::Node& node : nodes) {
    std::vector<core::OutputRef> inputs;
    for (const core::OutputRef input : node.inputs) {
      const auto outputs = static_cast<std::int64_t>(at(input.node).outputs.size());
      for (std::int64_t reads = random.chance(30) ? 2 : 1; reads > 0; --reads) {
        const core::OutputRef ref(input.node, static_cast<std::int32_t>(random.below(outputs)));
        if (std::find(inputs.begin(), inputs.end(), ref) == inputs.end()) inputs.push_back(ref);
      }
    }
    node.inputs = inputs;
    random.shuffle(inputs);
    for (core::Output& output : node.outputs) {
      if (!options.in_place || inputs.empty() || !random.chance(30)) continue;
      output.inplace = inputs.back();
      inputs.pop_back();
    }
  }
  for (core::Node& node : nodes) {
    const std::int64_t lowest = lowest_scratch(nodes, node);
    if (node.scratch < lowest || (options.in_place && random.chance(20))) {
      node.scratch = random.chance(50) ? lowest : random.between(lowest, 0);
    }
  }
}

/// Returns nodes of a random graph that GraphBuilder accepts. In half of the graphs, they are numbered in topological
/// order.
inline std::vector<core::Node> random_nodes(Random& random, const RandomGraphOptions& options = {}) {
  const auto n = static_cast<core::NodeId>(random.between(options.min_nodes, options.max_nodes));
  const RandomShape shape = random_shape(random, n);
  std::vector<core::NodeId> id = numbers_below(n);
  if (random.chance(50)) random.shuffle(id);

  const std::int64_t max_size = random.pick(std::vector<std::int64_t>{0, 1, 3, 20, 1000});
  const bool equal_sizes = random.chance(20);
  const std::int64_t max_cost = random.pick(std::vector<std::int64_t>{0, 1, 9, 1000});
  const int keep_percent = random.pick(std::vector<int>{0, 10, 50});
  std::vector<core::Node> nodes(static_cast<std::size_t>(n));
  for (core::NodeId p = 0; p < n; ++p) {
    const auto place = static_cast<std::size_t>(p);
    core::Node& node = nodes[static_cast<std::size_t>(id[place])];
    node.name = fmt::format("n{}", id[place]);
    node.size = equal_sizes ? max_size : random.between(0, max_size);
    node.cost = random.between(0, max_cost);
    node.keep = options.keep && random.chance(keep_percent);
    if (options.scratch && random.chance(25)) node.scratch = random.between(0, max_size);
    if (shape.forward[place] != core::kNoNode) {
      node.backward = true;
      node.forward = id[static_cast<std::size_t>(shape.forward[place])];
    }
    for (const core::NodeId input : shape.inputs[place]) node.inputs.push_back(id[static_cast<std::size_t>(input)]);
    random.shuffle(node.inputs);
  }
  // Goes through the nodes in topological order, because a node's legal scratch depends on the final sizes of its
  // inputs.
  for (const core::NodeId v : id) {
    if (options.in_place && !nodes[static_cast<std::size_t>(v)].inputs.empty() && random.chance(30)) {
      make_in_place(random, nodes, v);
    }
  }
  if (options.several_outputs) give_several_outputs(random, nodes, options);
  for (core::Node& node : nodes) node.pinned = options.pinned && random.chance(20);
  return nodes;
}

/// Returns a node with the fields that most tests need. Tests can set more fields afterwards.
inline core::Node make_node(std::string name, std::int64_t size = 0, std::vector<core::NodeId> inputs = {},
                            std::int64_t cost = 1) {
  core::Node node{.name = std::move(name), .size = size, .cost = cost};
  node.inputs.assign(inputs.begin(), inputs.end());
  return node;
}

inline core::Graph build_graph(const std::vector<core::Node>& nodes) {
  core::GraphBuilder builder("random");
  for (const core::Node& node : nodes) builder.add(node);
  return builder.build();
}

inline core::Graph random_graph(Random& random, const RandomGraphOptions& options = {}) {
  return build_graph(random_nodes(random, options));
}

/// Returns a valid schedule: a random topological order, into which `recomputations` further runs of nodes are inserted
/// at any place after their first run. Some of these runs are read, and some are not.
inline core::Schedule random_schedule(Random& random, const core::Graph& graph, std::int64_t recomputations) {
  std::vector<std::size_t> missing(static_cast<std::size_t>(graph.node_count()));
  std::vector<core::NodeId> ready;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    missing[static_cast<std::size_t>(v)] = graph.predecessors(v).size();
    if (graph.predecessors(v).empty()) ready.push_back(v);
  }
  std::vector<core::NodeId> done;
  core::Schedule schedule;
  while (!ready.empty() || recomputations > 0) {
    const std::int64_t left = graph.node_count() - static_cast<std::int64_t>(done.size());
    if (!done.empty() && random.below(left + recomputations) < recomputations) {
      const core::NodeId again = random.pick(done);
      if (!graph.pinned(again)) schedule.steps.push_back(again);
      --recomputations;
      continue;
    }
    const auto choice = random.place(ready);
    const core::NodeId v = ready[choice];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(choice));
    done.push_back(v);
    schedule.steps.push_back(v);
    for (const core::NodeId reader : graph.successors(v)) {
      if (--missing[static_cast<std::size_t>(reader)] == 0) ready.push_back(reader);
    }
  }
  return schedule;
}

/// Returns a valid schedule with at most two recomputations per node on average, or without any.
inline core::Schedule random_schedule(Random& random, const core::Graph& graph) {
  return random_schedule(random, graph, random.chance(25) ? 0 : random.between(1, 2 * graph.node_count()));
}

/// Makes a schedule invalid in one of four ways: a step is not a node; a node never runs, perhaps because another node
/// runs in its place; a node runs before its inputs; or a pinned node runs twice.
inline core::Schedule invalidated(Random& random, const core::Graph& graph, core::Schedule schedule) {
  auto& steps = schedule.steps;
  const core::NodeId n = graph.node_count();
  const auto victim = static_cast<core::NodeId>(random.below(n));
  switch (random.below(4)) {
    case 0:
      steps[static_cast<std::size_t>(random.below(schedule.length()))] =
          random.pick(std::vector<core::NodeId>{-1, n, n + 7, -2147483647, 2147483647});
      break;
    case 1:
      steps.erase(std::remove(steps.begin(), steps.end(), victim), steps.end());
      break;
    case 2:
      if (n > 1) {
        std::replace(steps.begin(), steps.end(), victim, victim == 0 ? n - 1 : victim - 1);
        break;
      }
      [[fallthrough]];
    default:
      // A node with inputs is inserted at the front, where its inputs have not run. A node without inputs is removed
      // instead.
      if (graph.pinned(victim)) {
        steps.push_back(victim);
      } else if (graph.predecessors(victim).empty()) {
        steps.erase(std::remove(steps.begin(), steps.end(), victim), steps.end());
      } else {
        steps.insert(steps.begin(), victim);
      }
  }
  return schedule;
}
inline core::Schedule random_invalid_schedule(Random& random, const core::Graph& graph) {
  return invalidated(random, graph, random_schedule(random, graph));
}

}  // namespace cairn::tests
