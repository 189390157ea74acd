#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/tests/support/random_graph.h"

/// These functions make small random graphs of the classes for which there are order solvers. The graphs have many
/// corner cases: equal sizes, sizes of 0, scratch, in-place nodes, kept nodes, and any numbering. They share no code
/// with models/random_graphs.h, which has tests of its own.
namespace cairn::tests {

/// The shape of a graph, i.e. the inputs of each node without any sizes. Nodes are numbered in a topological order.
using Inputs = std::vector<std::vector<core::NodeId>>;

inline core::NodeId node_of_shape(Inputs& shape, std::vector<core::NodeId> inputs = {}) {
  shape.push_back(std::move(inputs));
  return static_cast<core::NodeId>(shape.size() - 1);
}
inline void link(Inputs& shape, core::NodeId from, core::NodeId to) {
  auto& inputs = shape[static_cast<std::size_t>(to)];
  if (std::find(inputs.begin(), inputs.end(), from) == inputs.end()) inputs.push_back(from);
}

/// Returns a pumpkin: a source and a sink, and between them chains of these lengths. A chain of length 0 is an edge.
inline Inputs pumpkin_shape(const std::vector<std::int64_t>& lengths) {
  Inputs shape;
  const core::NodeId source = node_of_shape(shape);
  std::vector<core::NodeId> tips;
  for (const std::int64_t length : lengths) {
    core::NodeId tip = source;
    for (std::int64_t i = 0; i < length; ++i) tip = node_of_shape(shape, {tip});
    tips.push_back(tip);
  }
  const core::NodeId sink = node_of_shape(shape);
  for (const core::NodeId tip : tips) link(shape, tip, sink);
  return shape;
}
inline Inputs pumpkin_shape(Random& random) {
  std::vector<std::int64_t> lengths;
  const std::int64_t longest = random.between(1, 4);
  for (std::int64_t i = random.between(1, longest > 2 ? 3 : 4); i > 0; --i)
    lengths.push_back(random.between(1, longest));
  if (random.chance(15)) lengths.push_back(0);
  random.shuffle(lengths);
  return pumpkin_shape(lengths);
}

/// Returns an in-tree of n nodes: every node except the last is read by one later node. With `forest`, some nodes are
/// not read.
inline Inputs in_tree_shape(Random& random, core::NodeId n, bool forest) {
  Inputs shape(static_cast<std::size_t>(n));
  const std::int64_t reach = random.between(1, n);
  for (core::NodeId v = 0; v + 1 < n; ++v) {
    if (forest && random.chance(25)) continue;
    link(shape, v, static_cast<core::NodeId>(std::min<std::int64_t>(n - 1, v + random.between(1, reach))));
  }
  return shape;
}
/// Returns an out-tree of n nodes: every node except the first reads one earlier node. With `forest`, some nodes read
/// none.
inline Inputs out_tree_shape(Random& random, core::NodeId n, bool forest) {
  Inputs shape(static_cast<std::size_t>(n));
  const std::int64_t reach = random.between(1, n);
  for (core::NodeId v = 1; v < n; ++v) {
    if (forest && random.chance(25)) continue;
    link(shape, static_cast<core::NodeId>(std::max<std::int64_t>(0, v - random.between(1, reach))), v);
  }
  return shape;
}

/// Returns a starborescence of n nodes: a source, and an in-tree whose leaves and some of whose inner nodes read the
/// source.
inline Inputs starborescence_shape(Random& random, core::NodeId n) {
  const Inputs tree = in_tree_shape(random, n - 1, false);
  Inputs shape;
  const core::NodeId source = node_of_shape(shape);
  const int direct = static_cast<int>(random.pick(std::vector<int>{0, 0, 20, 60}));
  for (std::vector<core::NodeId> inputs : tree) {
    for (core::NodeId& u : inputs) ++u;
    if (inputs.empty() || random.chance(direct)) inputs.push_back(source);
    node_of_shape(shape, std::move(inputs));
  }
  return shape;
}

/// Returns the shape of a graph with the nodes 0 to n - 1 and these edges. The nodes are renumbered in a topological
/// order.
inline Inputs sorted_shape(core::NodeId n, const std::vector<std::pair<core::NodeId, core::NodeId>>& edges) {
  std::vector<core::NodeId> position(static_cast<std::size_t>(n), core::kNoNode);
  for (core::NodeId next = 0; next < n;) {
    for (core::NodeId v = 0; v < n; ++v) {
      const bool ready = std::all_of(edges.begin(), edges.end(), [&](const auto& edge) {
        return edge.second != v || position[static_cast<std::size_t>(edge.first)] != core::kNoNode;
      });
      if (position[static_cast<std::size_t>(v)] == core::kNoNode && ready)
        position[static_cast<std::size_t>(v)] = next++;
    }
  }
  Inputs shape(static_cast<std::size_t>(n));
  for (const auto& [from, to] : edges) {
    link(shape, position[static_cast<std::size_t>(from)], position[static_cast<std::size_t>(to)]);
  }
  return shape;
}

/// Returns a series-parallel graph of n nodes. It is made from one edge by repeatedly doubling an edge or inserting a
/// node into an edge. With `open`, the source or the sink is sometimes removed, so that there are several of them.
inline Inputs series_parallel_shape(Random& random, core::NodeId n, bool open) {
  std::vector<std::pair<core::NodeId, core::NodeId>> edges{{0, 1}};
  const int doubled = random.pick(std::vector<int>{20, 50, 70});
  for (core::NodeId next = 2; next < n;) {
    const auto place = random.place(edges);
    if (random.chance(doubled)) {
      edges.push_back(edges[place]);
    } else {
      const auto [from, to] = edges[place];
      edges[place] = {from, next};
      edges.push_back({next, to});
      ++next;
    }
  }
  Inputs shape = sorted_shape(n, edges);
  if (!open || n < 3) return shape;
  if (random.chance(50)) shape.pop_back();  // removes the sink, which is the last node and has no reader
  if (random.chance(50)) {
    shape.erase(shape.begin());
    for (auto& inputs : shape) {
      inputs.erase(std::remove(inputs.begin(), inputs.end(), 0), inputs.end());
      for (core::NodeId& u : inputs) --u;
    }
  }
  return shape;
}

/// Returns a graph of n nodes in which each pair of nodes has an edge with the same probability.
inline Inputs any_shape(Random& random, core::NodeId n) {
  Inputs shape(static_cast<std::size_t>(n));
  const int density = random.pick(std::vector<int>{5, 20, 35, 50, 80});
  for (core::NodeId v = 1; v < n; ++v) {
    for (core::NodeId u = 0; u < v; ++u) {
      if (random.chance(density)) link(shape, u, v);
    }
  }
  return shape;
}

/// Makes nodes of a shape and gives them sizes and all other attributes. In half of the graphs, the nodes are numbered
/// at random. All names have the same length, so that no name is part of another one in a message.
inline std::vector<core::Node> dressed(Random& random, const Inputs& shape) {
  const std::size_t n = shape.size();
  std::vector<core::NodeId> id = numbers_below(static_cast<core::NodeId>(n));
  if (random.chance(50)) random.shuffle(id);

  const std::int64_t most = random.pick(std::vector<std::int64_t>{1, 2, 2, 3, 5, 20, 1'000'000});
  const int scratch = random.pick(std::vector<int>{0, 0, 30, 70}),
            in_place = random.pick(std::vector<int>{0, 0, 30, 60});
  const int keep = random.pick(std::vector<int>{0, 0, 0, 15, 50});
  const bool equal = random.chance(10);
  std::vector<core::Node> nodes(n);
  for (std::size_t p = 0; p < n; ++p) {
    core::Node& node = nodes[static_cast<std::size_t>(id[p])];
    node.name = fmt::format("<{:03}>", id[p]);
    node.size = equal ? most : random.between(0, most);
    node.cost = random.between(0, 3);
    node.keep = random.chance(keep);
    if (random.chance(scratch)) node.scratch = random.between(0, most);
    for (const core::NodeId input : shape[p]) node.inputs.push_back(id[static_cast<std::size_t>(input)]);
    random.shuffle(node.inputs);
  }
  if (n > 0 && random.chance(10)) nodes[static_cast<std::size_t>(id[0])].size = 0;
  if (n > 0 && random.chance(10)) nodes[static_cast<std::size_t>(id[0])].keep = true;
  // Goes through the nodes in topological order, because a node's legal scratch depends on the final sizes of its
  // inputs.
  for (const core::NodeId v : id) {
    if (!nodes[static_cast<std::size_t>(v)].inputs.empty() && random.chance(in_place)) make_in_place(random, nodes, v);
  }
  return nodes;
}

/// Returns a pumpkin with `branches` equal branches of `length` nodes each.
inline core::Graph equal_branches(Random& random, std::int64_t branches, std::int64_t length) {
  const std::int64_t most = random.pick(std::vector<std::int64_t>{1, 2, 3, 20, 1000});
  const int scratch = random.pick(std::vector<int>{0, 40}), keep = random.pick(std::vector<int>{0, 0, 20});
  // The pattern has the source, one branch and the sink. The first node of the branch gets no negative scratch, because
  // only one of the branches could overwrite the source's storage.
  std::vector<core::Node> pattern(static_cast<std::size_t>(length + 2));
  for (std::size_t place = 0; place < pattern.size(); ++place) {
    core::Node& node = pattern[place];
    node.size = random.between(0, most);
    node.keep = random.chance(keep);
    const bool overwrites = place > 1 && !pattern[place - 1].keep;
    const std::int64_t lowest = overwrites ? -std::min(node.size, pattern[place - 1].size) : 0;
    if (random.chance(scratch)) node.scratch = random.between(lowest, most);
  }
  const Inputs shape = pumpkin_shape(std::vector<std::int64_t>(static_cast<std::size_t>(branches), length));
  std::vector<core::Node> nodes;
  for (std::size_t p = 0; p < shape.size(); ++p) {
    const bool inner = p > 0 && p + 1 < shape.size();
    nodes.push_back(inner    ? pattern[1 + (p - 1) % static_cast<std::size_t>(length)]
                    : p == 0 ? pattern.front()
                             : pattern.back());
    nodes.back().name = fmt::format("<{:03}>", p);
    nodes.back().inputs.assign(shape[p].begin(), shape[p].end());
  }
  return build_graph(nodes);
}

inline core::Graph dressed_graph(Random& random, const Inputs& shape) { return build_graph(dressed(random, shape)); }

}  // namespace cairn::tests
