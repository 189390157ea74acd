#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/tests/support/random_graph.h"

/// This file makes random training graphs, which consist of a forward and a backward pass.
namespace cairn::tests {

struct TrainingOptions {
  RandomGraphOptions forward = {};  ///< options of the forward pass
  int without_backward = 10;        ///< percentage of forward nodes that have no backward node
  int two_backward = 15;            ///< percentage of the remaining forward nodes that have two backward nodes
  int other_reads = 10;             ///< percentage of backward nodes that also read some other forward node
};

/// Returns the forward nodes and then the backward nodes, which are marked and name their forward node. Let f be the
/// forward node of a backward node b. Then b reads a backward node of each reader of f and, in most cases, f itself or
/// its inputs. The order is topological except among the forward nodes.
inline std::vector<core::Node> training_nodes(Random& random, const TrainingOptions& options) {
  std::vector<core::Node> nodes = random_nodes(random, options.forward);
  const auto n = static_cast<core::NodeId>(nodes.size());
  for (core::Node& node : nodes) {
    node.backward = false;
    node.forward = core::kNoNode;
  }
  const core::Graph forward = build_graph(nodes);
  const std::vector<core::NodeId> order(forward.input_order().begin(), forward.input_order().end());
  std::int64_t most_size = 1, most_cost = 0;
  for (const core::Node& node : nodes) {
    most_size = std::max(most_size, node.size);
    most_cost = std::max(most_cost, node.cost);
  }
  std::vector<std::vector<core::NodeId>> gradients(static_cast<std::size_t>(n));
  for (auto v = order.rbegin(); v != order.rend(); ++v) {
    if (random.chance(options.without_backward)) continue;
    auto& own = gradients[static_cast<std::size_t>(*v)];
    for (int i = random.chance(options.two_backward) ? 2 : 1; i > 0; --i) {
      core::Node node{.name = fmt::format("b{}", nodes.size()),
                      .size = random.between(0, most_size),
                      .cost = random.between(0, most_cost),
                      .backward = true,
                      .forward = *v};
      node.keep = options.forward.keep && random.chance(15);
      node.pinned = options.forward.pinned && random.chance(10);
      const auto read = [&](core::NodeId from) {
        const auto outputs = static_cast<std::int64_t>(nodes[static_cast<std::size_t>(from)].outputs.size());
        const core::OutputRef ref(from, outputs > 0 ? static_cast<std::int32_t>(random.below(outputs)) : 0);
        if (std::find(node.inputs.begin(), node.inputs.end(), ref) == node.inputs.end()) node.inputs.push_back(ref);
      };
      for (const core::NodeId reader : forward.successors(*v)) {
        const auto& of_reader = gradients[static_cast<std::size_t>(reader)];
        if (!of_reader.empty()) read(random.pick(of_reader));
      }
      if (!own.empty() && random.chance(70)) read(own.back());
      if (node.inputs.empty() || random.chance(50)) read(*v);
      if (random.chance(50)) {
        for (const core::NodeId input : forward.predecessors(*v)) read(input);
      }
      if (random.chance(options.other_reads)) read(static_cast<core::NodeId>(random.below(n)));
      if (options.forward.scratch && random.chance(20)) node.scratch = random.between(0, most_size);
      if (options.forward.in_place && random.chance(20)) {
        node.inplace = random.pick(node.inputs);
        node.scratch = -node.size;  // may be too low, which is mended below
      }
      own.push_back(static_cast<core::NodeId>(nodes.size()));
      nodes.push_back(std::move(node));
    }
  }
  // After the scratch was chosen, further readers were added. They can raise the least legal scratch.
  for (core::Node& node : nodes) node.scratch = std::max(node.scratch, lowest_scratch(nodes, node));
  return nodes;
}

inline core::Graph training_graph(Random& random, const TrainingOptions& options) {
  return build_graph(training_nodes(random, options));
}

}  // namespace cairn::tests
