#include "cairn/solvers/order/internal/series_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "cairn/core/error.h"
#include "cairn/solvers/order/internal/series_parallel_reducer.h"

namespace cairn::solvers {

using core::NodeId;

SeriesParallelTree series_parallel_tree(const core::Graph& graph) {
  using Part = SeriesParallelTree::Part;
  using Kind = SeriesParallelTree::Kind;
  SeriesParallelTree tree;
  const auto add = [&](const Part& part) {
    tree.parts.push_back(part);
    return static_cast<std::int32_t>(tree.parts.size() - 1);
  };
  const auto unite = [&](std::int32_t& a, std::int32_t b) {
    a = add({Kind::parallel, tree.parts[a].source, tree.parts[a].sink, a, b});
  };
  const NodeId source = graph.node_count(), sink = source + 1;
  SeriesParallelReducer<std::int32_t> reducer(graph.node_count() + 2);
  const auto connect = [&](NodeId from, NodeId to) {
    reducer.connect(from, to, add({Kind::edge, from, to, -1, -1}), unite);
  };
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    for (const NodeId u : graph.inputs(v)) connect(u, v);
    if (graph.inputs(v).empty()) connect(source, v);
    if (graph.readers(v).empty()) connect(v, sink);
  }
  reducer.run(
      [&](NodeId, std::int32_t before, std::int32_t behind, std::int32_t& value) {
        const std::int32_t first = reducer.edge(before).value, second = reducer.edge(behind).value;
        value = add({Kind::series, tree.parts[first].source, tree.parts[second].sink, first, second});
        return true;
      },
      unite);
  if (const NodeId v = reducer.first_left(graph.input_order()); v >= 0) {
    throw core::InputError(fmt::format(
        "the graph is not series-parallel: {} of its nodes stay when all that is series or parallel is reduced, '{}' "
        "among them",
        reducer.vertices_left(), graph.name(v)));
  }
  return tree;
}

IsolatedSubgraph locate_starborescence(const core::Graph& graph, const SeriesParallelTree& tree) {
  // The last of the nodes with several readers, in any topological order: the input order is one.
  NodeId source = core::kNoNode;
  for (const NodeId v : graph.input_order()) {
    if (graph.readers(v).size() >= 2) source = v;
  }
  if (source == core::kNoNode) throw core::InputError("no node has several readers, so there is no starborescence");
  // Parents come after their children, so the last composition is the highest.
  std::int32_t highest = -1;
  for (std::size_t p = 0; p < tree.parts.size(); ++p) {
    if (tree.parts[p].kind == SeriesParallelTree::Kind::parallel && tree.parts[p].source == source)
      highest = static_cast<std::int32_t>(p);
  }
  IsolatedSubgraph found{source, tree.parts[highest].sink, {}};
  std::vector<std::int32_t> waiting{highest};
  while (!waiting.empty()) {
    const SeriesParallelTree::Part& part = tree.parts[waiting.back()];
    waiting.pop_back();
    if (part.kind == SeriesParallelTree::Kind::edge) continue;
    if (part.kind == SeriesParallelTree::Kind::series) found.inner.push_back(tree.parts[part.first].sink);
    waiting.push_back(part.first);
    waiting.push_back(part.second);
  }
  std::sort(found.inner.begin(), found.inner.end());
  return found;
}

}  // namespace cairn::solvers
