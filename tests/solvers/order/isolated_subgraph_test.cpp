// Tests how isolated subgraphs are found and replaced by paths (Lemma 5.4 of Jin et al.), and series-parallel
// reduction. An isolated subgraph has a source and a sink, and only its sink is read from outside. The results are
// compared with the definitions.
#include "cairn/solvers/order/internal/reduction/isolated_subgraph.h"

#include <algorithm>
#include <bit>
#include <set>

#include "cairn/core/profile.h"
#include "cairn/solvers/order/internal/chains/series_parallel_reducer.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/reference/reference_order.h"
#include "cairn/tests/solvers/order/order_graphs.h"
#include "cairn/tests/support/graph_classes.h"
#include "cairn/tests/support/show.h"

namespace cairn::tests::isolated_subgraph_test {
namespace {

using core::Graph;
using core::NodeId;
using solvers::IsolatedSubgraph;
namespace reference = core::reference;
using reference::NodeSet;
using reference::Order;
using EdgeList = std::vector<std::pair<NodeId, NodeId>>;

/// Returns the edges of the graph with two additional nodes: a source, node_count(), before all nodes without inputs,
/// and a sink, node_count() + 1, after all nodes without readers.
EdgeList edges_between_ends(const Graph& graph) {
  const NodeId source = graph.node_count(), sink = source + 1;
  EdgeList edges;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    for (const NodeId u : graph.inputs(v)) edges.emplace_back(u, v);
    if (graph.inputs(v).empty()) edges.emplace_back(source, v);
    if (graph.readers(v).empty()) edges.emplace_back(v, sink);
  }
  return edges;
}

/// Returns the isolated subgraphs of the graph that begin and end at nodes of the graph, not at the two additional
/// nodes.
std::vector<IsolatedSubgraph> subgraphs_within(const Graph& graph) {
  const NodeId source = graph.node_count(), sink = source + 1;
  auto found = solvers::isolated_subgraphs(sink + 1, edges_between_ends(graph), source, sink, 1000);
  std::erase_if(found, [&](const IsolatedSubgraph& s) { return s.source == source || s.sink == sink; });
  return found;
}

NodeSet set_of(const IsolatedSubgraph& subgraph) {
  return reference::set_of(subgraph.inner) | reference::bit(subgraph.source) | reference::bit(subgraph.sink);
}

TEST_CASE("isolated subgraphs are isolated by the definition and none with several readers is missed", "[order]") {
  Random random(11);
  int found_in_all = 0;
  for (int i = 0; i < 4000; ++i) {
    const NodeId n = static_cast<NodeId>(random.between(2, 11));
    const Inputs shape = i % 2 == 0 ? any_shape(random, n) : series_parallel_shape(random, n, false);
    const Graph graph = dressed_graph(random, shape);
    INFO(show(graph));
    const auto found = subgraphs_within(graph);
    const reference::OrderModel model(graph);
    std::set<NodeId> begun;
    for (const IsolatedSubgraph& subgraph : found) {
      CHECK(reference::isolated(model, set_of(subgraph)));
      CHECK(begun.insert(subgraph.source).second);
      ++found_in_all;
    }
    // For each node with several readers, finds the smallest isolated set of nodes whose source is this node, by trying
    // all sets.
    for (NodeId source = 0; source < graph.node_count() && graph.node_count() <= 9; ++source) {
      if (graph.readers(source).size() < 2) continue;
      const auto all = NodeSet{1} << graph.node_count();
      NodeSet least = 0;
      for (NodeSet set = 0; set < all; ++set) {
        if (!reference::contains(set, source) || !reference::isolated(model, set)) continue;
        const auto inputs_inside = [&](NodeId v) {
          return std::any_of(graph.inputs(v).begin(), graph.inputs(v).end(),
                             [&](NodeId u) { return reference::contains(set, u); });
        };
        if (inputs_inside(source)) continue;  // `source` reads a node of the set, so it is not the source of the set
        if (least == 0 || std::popcount(set) < std::popcount(least)) least = set;
      }
      const auto same = std::find_if(found.begin(), found.end(),
                                     [&](const IsolatedSubgraph& subgraph) { return subgraph.source == source; });
      CHECK((least != 0) == (same != found.end()));
      if (least != 0 && same != found.end()) CHECK(set_of(*same) == least);
    }
  }
  CHECK(found_in_all > 1000);
}

TEST_CASE("of isolated subgraphs those that stay share no node but their ends", "[order]") {
  Random random(14);
  int kept = 0, dropped = 0;
  for (int i = 0; i < 4000; ++i) {
    const Graph graph = dressed_graph(random, any_shape(random, static_cast<NodeId>(random.between(2, 14))));
    const NodeId source = graph.node_count(), sink = source + 1;
    const auto found = solvers::isolated_subgraphs(sink + 1, edges_between_ends(graph), source, sink, 1000);
    const auto disjoint = solvers::disjoint_subgraphs(sink + 1, found);
    const auto overlap = [](const IsolatedSubgraph& a, const IsolatedSubgraph& b) {
      return (reference::set_of(a.inner) & set_of(b)) != 0 || (set_of(a) & reference::set_of(b.inner)) != 0;
    };
    INFO(show(graph));
    for (std::size_t a = 0; a < disjoint.size(); ++a) {
      for (std::size_t b = a + 1; b < disjoint.size(); ++b) CHECK_FALSE(overlap(disjoint[a], disjoint[b]));
    }
    CHECK(found.empty() == disjoint.empty());
    if (!found.empty()) CHECK(set_of(found.front()) == set_of(disjoint.front()));
    kept += static_cast<int>(disjoint.size());
    dropped += static_cast<int>(found.size() - disjoint.size());
  }
  CHECK(kept > 300);
  CHECK(dropped > 30);
}

TEST_CASE("linearizing by a dominant order keeps the least peak and every schedule stays valid", "[order]") {
  Random random(12);
  int linearized = 0, refused = 0;
  for (int i = 0; i < 4000; ++i) {
    const Inputs shape = series_parallel_shape(random, static_cast<NodeId>(random.between(4, 11)), false);
    const Graph graph = dressed_graph(random, shape);
    for (const IsolatedSubgraph& subgraph : subgraphs_within(graph)) {
      if (subgraph.inner.size() > 6) continue;
      INFO(show(graph));
      // Returns the internal profile up to the step before the sink, because the sink's scratch does not belong to the
      // subgraph.
      const auto inner_profile = [&](const Order& order) {
        reference::Bytes bytes = reference::internal_profile(graph, set_of(subgraph), order);
        bytes.resize(bytes.size() - 2);
        return bytes;
      };
      const std::vector<Order> dominant =
          reference::dominant_among(reference::topological_orders(graph, set_of(subgraph)), inner_profile);
      REQUIRE(!dominant.empty());
      if (!reference::replaceable(graph, set_of(subgraph))) {
        ++refused;
        continue;
      }
      ++linearized;
      const Graph path = reference::linearized(graph, dominant.front());
      CHECK(reference::least_peak_without_recomputation(path) == reference::least_peak_without_recomputation(graph));
      const core::Schedule schedule = core::baseline_schedule(path);
      REQUIRE(reference::valid(graph, schedule));
      CHECK(reference::peak(graph, schedule) == reference::peak(path, schedule));
      for (std::size_t k = 1; k < dominant.front().size(); ++k) {
        CHECK(path.readers(dominant.front()[k - 1]).front() == dominant.front()[k]);
      }
    }
  }
  CHECK(linearized > 1000);
  CHECK(refused > 10);
}

TEST_CASE("series-parallel reduction takes each edge once and leaves nothing exactly of series-parallel graphs",
          "[order]") {
  Random random(13);
  int reduced = 0, refused = 0;
  for (int i = 0; i < 6000; ++i) {
    const NodeId n = static_cast<NodeId>(random.between(1, 12));
    const Inputs shape = i % 2 == 0 ? any_shape(random, n) : series_parallel_shape(random, std::max(n, 2), true);
    const Graph graph = dressed_graph(random, shape);
    INFO(show(graph));
    const NodeId source = graph.node_count(), sink = source + 1;
    const EdgeList edges = edges_between_ends(graph);
    // Describes the part of the graph that an edge has replaced: the ends of the part (Definition 7.1 of Jin et al.),
    // and each of its edges once.
    struct Part {
      NodeId source = core::kNoNode, sink = core::kNoNode;
      EdgeList edges;
    };
    const auto append = [](Part& part, const Part& other) {
      part.edges.insert(part.edges.end(), other.edges.begin(), other.edges.end());
    };
    const auto unite = [&](Part& a, const Part& b) {
      CHECK(a.source == b.source);
      CHECK(a.sink == b.sink);
      append(a, b);
    };
    solvers::SeriesParallelReducer<Part> reducer(graph.node_count() + 2);
    for (const auto& [from, to] : edges) reducer.connect(from, to, {from, to, {{from, to}}}, unite);
    const auto series = [&](NodeId v, std::int32_t before, std::int32_t behind, Part& joined) {
      const Part &first = reducer.edge(before).value, &second = reducer.edge(behind).value;
      CHECK(first.sink == v);
      CHECK(second.source == v);
      joined = {first.source, second.sink, first.edges};
      append(joined, second);
      return true;
    };
    reducer.run(series, unite);
    CHECK((reducer.vertices_left() == 0) == is_series_parallel(graph));
    EdgeList carried;
    for (const auto& edge : reducer.edges()) {
      if (edge.from < 0) continue;
      CHECK(edge.value.source == edge.from);
      CHECK(edge.value.sink == edge.to);
      carried.insert(carried.end(), edge.value.edges.begin(), edge.value.edges.end());
    }
    std::sort(carried.begin(), carried.end());
    EdgeList expected = edges;
    std::sort(expected.begin(), expected.end());
    CHECK(carried == expected);
    const NodeId left = reducer.first_left(graph.input_order());
    CHECK((left < 0) == (reducer.vertices_left() == 0));
    if (left < 0) {
      ++reduced;
      const Part& whole = reducer.edge(reducer.out_edge(source)).value;
      CHECK(whole.sink == sink);
      CHECK(whole.edges.size() == edges.size());
    } else {
      ++refused;
      const std::vector<NodeId> stay = not_series_parallel(graph);
      CHECK(std::find(stay.begin(), stay.end(), left) != stay.end());
    }
  }
  CHECK(reduced > 1000);
  CHECK(refused > 500);
}

}  // namespace
}  // namespace cairn::tests::isolated_subgraph_test
