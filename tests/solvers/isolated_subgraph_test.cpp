// Isolated subgraphs, their linearization (Lemma 5.4), and series-parallel decomposition, against the definitions.
#include "cairn/solvers/order/internal/isolated_subgraph.h"

#include <algorithm>
#include <bit>
#include <set>

#include "cairn/core/dominance.h"
#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/core/reference.h"
#include "cairn/models/random_graphs.h"
#include "cairn/solvers/order/internal/series_parallel.h"
#include "cairn/solvers/order/order.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/solvers/order_graphs.h"
#include "cairn/tests/solvers/order_oracle.h"
#include "cairn/tests/support/reference_order.h"

namespace cairn::tests {
namespace {

using core::Graph;
using core::NodeId;
using solvers::IsolatedSubgraph;
using solvers::SeriesParallelTree;

core::reference::NodeSet set_of(const IsolatedSubgraph& subgraph) {
  core::reference::NodeSet set = 0;
  for (const NodeId v : subgraph.inner) set = core::reference::with(set, v);
  return core::reference::with(core::reference::with(set, subgraph.source), subgraph.sink);
}

/// Orders of the subgraph alone, as graph node ids, source first and sink last.
std::vector<std::vector<NodeId>> orders_of(const Graph& graph, const IsolatedSubgraph& subgraph) {
  std::vector<NodeId> inner = subgraph.inner;
  std::vector<std::vector<NodeId>> orders;
  std::sort(inner.begin(), inner.end());
  do {
    std::set<NodeId> done{subgraph.source};
    const bool runs = std::all_of(inner.begin(), inner.end(), [&](NodeId v) {
      const auto inputs = graph.inputs(v);
      const bool ready = std::all_of(inputs.begin(), inputs.end(), [&](NodeId u) { return done.count(u) > 0; });
      done.insert(v);
      return ready;
    });
    if (!runs) continue;
    std::vector<NodeId> order{subgraph.source};
    order.insert(order.end(), inner.begin(), inner.end());
    order.push_back(subgraph.sink);
    orders.push_back(std::move(order));
  } while (std::next_permutation(inner.begin(), inner.end()));
  return orders;
}

/// The internal profile of an order of the subgraph, up to before the sink runs: node by node from the definitions.
std::vector<std::int64_t> inner_profile(const Graph& graph, const std::vector<NodeId>& order) {
  std::vector<std::int64_t> bytes{graph.size(order.front())};
  std::set<NodeId> done{order.front()};
  const auto held = [&] {
    std::int64_t sum = 0;
    for (const NodeId v : done) {
      const auto readers = graph.readers(v);
      const bool needed =
          graph.keep(v) || std::any_of(readers.begin(), readers.end(), [&](NodeId r) { return done.count(r) == 0; });
      sum += needed ? graph.size(v) : 0;
    }
    return sum;
  };
  for (std::size_t i = 1; i + 1 < order.size(); ++i) {
    bytes.push_back(held() + graph.size(order[i]) + graph.scratch(order[i]));
    done.insert(order[i]);
    bytes.push_back(held());
  }
  return bytes;
}

TEST_CASE("isolated subgraphs are isolated by the definition and none with several readers is missed", "[order]") {
  Random random(11);
  int found_in_all = 0;
  for (int i = 0; i < 4000; ++i) {
    const NodeId n = static_cast<NodeId>(random.between(2, 11));
    const Inputs shape = i % 2 == 0 ? any_shape(random, n) : series_parallel_shape(random, n, false);
    const Graph graph = dressed_graph(random, shape);
    INFO(describe(graph));
    const auto found = solvers::isolated_subgraphs(graph);
    std::set<NodeId> begun;
    for (const IsolatedSubgraph& subgraph : found) {
      CHECK(core::reference::isolated(graph, set_of(subgraph)));
      CHECK(begun.insert(subgraph.source).second);
      ++found_in_all;
    }
    // The smallest isolated set of each source with several readers, over all sets.
    for (NodeId source = 0; source < graph.node_count() && graph.node_count() <= 9; ++source) {
      if (graph.readers(source).size() < 2) continue;
      const auto all = core::reference::NodeSet{1} << graph.node_count();
      core::reference::NodeSet least = 0;
      for (core::reference::NodeSet set = 0; set < all; ++set) {
        if (!core::reference::contains(set, source) || !core::reference::isolated(graph, set)) continue;
        const auto inputs_inside = [&](NodeId v) {
          return std::any_of(graph.inputs(v).begin(), graph.inputs(v).end(),
                             [&](NodeId u) { return core::reference::contains(set, u); });
        };
        if (inputs_inside(source)) continue;  // it is not the source of this one
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

TEST_CASE("linearizing by a dominant order keeps the least peak and every schedule stays valid", "[order]") {
  Random random(12);
  int linearized = 0, refused = 0;
  for (int i = 0; i < 4000; ++i) {
    const Inputs shape = series_parallel_shape(random, static_cast<NodeId>(random.between(4, 11)), false);
    const Graph graph = dressed_graph(random, shape);
    for (const IsolatedSubgraph& subgraph : solvers::isolated_subgraphs(graph)) {
      if (subgraph.inner.size() > 6) continue;
      const auto orders = orders_of(graph, subgraph);
      const auto dominant = std::find_if(orders.begin(), orders.end(), [&](const auto& order) {
        return std::all_of(orders.begin(), orders.end(), [&](const auto& other) {
          return dominates_by_pointers(inner_profile(graph, order), inner_profile(graph, other));
        });
      });
      INFO(describe(graph));
      REQUIRE(dominant != orders.end());
      Graph path;
      try {
        path = solvers::linearize(graph, subgraph, *dominant);
      } catch (const core::InputError&) {
        ++refused;
        continue;
      }
      ++linearized;
      CHECK(core::reference::least_peak_without_recomputation(path) ==
            core::reference::least_peak_without_recomputation(graph));
      const core::Schedule schedule = core::baseline_schedule(path);
      REQUIRE(core::reference::valid(graph, schedule));
      CHECK(core::reference::peak(graph, schedule) == core::reference::peak(path, schedule));
      for (std::size_t k = 1; k < dominant->size(); ++k) {
        CHECK(path.readers((*dominant)[k - 1]).front() == (*dominant)[k]);
      }
    }
  }
  CHECK(linearized > 1000);
  CHECK(refused > 10);
}

TEST_CASE("linearize refuses an order that is none of the subgraph and a kept inner node", "[order]") {
  const Graph graph = models::generate_pumpkin(2, 1, {}, 1);
  const IsolatedSubgraph subgraph = solvers::isolated_subgraphs(graph).front();
  CHECK_THROWS_AS(solvers::linearize(graph, subgraph, std::vector<NodeId>{0, 1, 3}), core::InputError);
  CHECK_THROWS_AS(solvers::linearize(graph, subgraph, std::vector<NodeId>{1, 0, 2, 3}), core::InputError);
  CHECK_NOTHROW(solvers::linearize(graph, subgraph, std::vector<NodeId>{0, 2, 1, 3}));
  const Graph kept = models::generate_pumpkin(2, 1, {.keep = 1}, 1);
  CHECK_THROWS_AS(solvers::linearize(kept, subgraph, std::vector<NodeId>{0, 1, 2, 3}), core::InputError);
}

/// The edges of a part by the definition, from its leaves up; checks ends and composition on the way.
std::set<std::pair<NodeId, NodeId>> edges_of(const SeriesParallelTree& tree, std::int32_t p) {
  const SeriesParallelTree::Part& part = tree.parts[p];
  if (part.kind == SeriesParallelTree::Kind::edge) return {{part.source, part.sink}};
  const auto& first = tree.parts[part.first];
  const auto& second = tree.parts[part.second];
  CHECK(part.source == first.source);
  CHECK(part.sink == second.sink);
  if (part.kind == SeriesParallelTree::Kind::series) {
    CHECK(first.sink == second.source);
  } else {
    CHECK((first.source == second.source && first.sink == second.sink));
  }
  auto edges = edges_of(tree, part.first);
  edges.merge(edges_of(tree, part.second));
  return edges;
}

TEST_CASE("a series-parallel tree composes to the graph and exists exactly for series-parallel graphs", "[order]") {
  Random random(13);
  int trees = 0, refused = 0;
  for (int i = 0; i < 6000; ++i) {
    const NodeId n = static_cast<NodeId>(random.between(1, 12));
    const Inputs shape = i % 2 == 0 ? any_shape(random, n) : series_parallel_shape(random, std::max(n, 2), true);
    const Graph graph = dressed_graph(random, shape);
    INFO(describe(graph));
    if (!is_series_parallel(graph)) {
      ++refused;
      CHECK_THROWS_AS(solvers::series_parallel_tree(graph), core::InputError);
      continue;
    }
    ++trees;
    const SeriesParallelTree tree = solvers::series_parallel_tree(graph);
    std::set<std::pair<NodeId, NodeId>> edges;
    const NodeId source = graph.node_count(), sink = source + 1;
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      for (const NodeId u : graph.inputs(v)) edges.emplace(u, v);
      if (graph.inputs(v).empty()) edges.emplace(source, v);
      if (graph.readers(v).empty()) edges.emplace(v, sink);
    }
    CHECK(edges_of(tree, static_cast<std::int32_t>(tree.parts.size()) - 1) == edges);
    const bool path = [&] {
      for (NodeId v = 0; v < graph.node_count(); ++v) {
        if (graph.readers(v).size() >= 2) return false;
      }
      return true;
    }();
    if (path) {
      CHECK_THROWS_AS(solvers::locate_starborescence(graph, tree), core::InputError);
      continue;
    }
    const IsolatedSubgraph star = solvers::locate_starborescence(graph, tree);
    CHECK(graph.readers(star.source).size() >= 2);
    for (const NodeId v : star.inner) CHECK(graph.readers(v).size() <= 1);
    if (star.sink < graph.node_count()) CHECK(core::reference::isolated(graph, set_of(star)));
  }
  CHECK(trees > 1000);
  CHECK(refused > 500);
}

}  // namespace
}  // namespace cairn::tests
