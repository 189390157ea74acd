#include "cairn/models/random_graphs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <tuple>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/graph_classes.h"
#include "cairn/tests/support/random_graph.h"

// Tests that each generated graph satisfies the definition of its class, and has the requested size.
namespace cairn::models::random_graphs_test {
namespace {

using core::Graph;
using core::NodeId;
using tests::Random;

GeneratedSizes random_sizes(Random& random) {
  GeneratedSizes sizes{.least = random.between(0, 3)};
  sizes.most = sizes.least + random.pick(std::vector<std::int64_t>{0, 1, 5, 1'000'000});
  const std::vector<double> shares{0, 0, 0.3, 1};
  sizes.scratch = random.pick(shares);
  sizes.in_place = random.pick(shares);
  sizes.keep = random.pick(shares);
  return sizes;
}

/// Checks that all sizes are in the requested range, and that scratch, in-place nodes and kept nodes occur only if they
/// were requested. An in-place output has the size of the input that it overwrites, so its size is in the range, too.
void check_sizes(const Graph& graph, const GeneratedSizes& sizes) {
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    REQUIRE(graph.size(v) >= sizes.least);
    REQUIRE(graph.size(v) <= sizes.most);
    REQUIRE(graph.scratch(v) <= sizes.most);
    if (sizes.scratch == 0) REQUIRE(graph.scratch(v) <= 0);
    if (sizes.in_place == 0) REQUIRE(graph.scratch(v) >= 0);
    if (sizes.in_place == 0) REQUIRE(graph.inplace(v) == core::kNoNode);
    if (graph.scratch(v) < 0) REQUIRE(graph.inplace(v) != core::kNoNode);
    if (sizes.keep == 0) REQUIRE_FALSE(graph.keep(v));
    if (sizes.keep == 1) REQUIRE(graph.keep(v));
  }
}

/// Calls make(random, sizes, seed) for each seed from 0 to seeds - 1, each time with different random `sizes`, and
/// checks the sizes of the graph that make() returns. `number` is the seed of `random`.
template <class Make>
void check_generated(std::uint64_t number, std::uint64_t seeds, const Make& make) {
  Random random(number);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const GeneratedSizes sizes = random_sizes(random);
    check_sizes(make(random, sizes, seed), sizes);
  }
}

/// Checks that the same seed always gives the same graph, and that most other seeds give other graphs.
void check_seeds(const std::function<Graph(std::uint64_t)>& generate) {
  const std::string fingerprint = generate(7).fingerprint();
  REQUIRE(generate(7).fingerprint() == fingerprint);
  int others = 0;
  for (std::uint64_t seed = 8; seed < 13; ++seed) others += generate(seed).fingerprint() != fingerprint;
  REQUIRE(others >= 4);
}

std::size_t most_inputs(const Graph& graph) {
  std::size_t most = 0;
  for (NodeId v = 0; v < graph.node_count(); ++v) most = std::max(most, graph.inputs(v).size());
  return most;
}
std::size_t most_readers(const Graph& graph) {
  std::size_t most = 0;
  for (NodeId v = 0; v < graph.node_count(); ++v) most = std::max(most, graph.readers(v).size());
  return most;
}

/// Returns the branches of a pumpkin, i.e. the chains between its source and its sink. Nodes are in the order of the
/// chain.
std::vector<std::vector<NodeId>> branches_of(const Graph& graph) {
  std::vector<std::vector<NodeId>> branches;
  for (NodeId v : graph.readers(tests::sources(graph).at(0))) {
    branches.emplace_back();
    for (; !graph.readers(v).empty(); v = graph.readers(v)[0]) branches.back().push_back(v);
  }
  return branches;
}

TEST_CASE("generated pumpkins are pumpkins", "[order]") {
  check_generated(1, 150, [](Random& random, const GeneratedSizes& sizes, std::uint64_t seed) {
    const auto branches = static_cast<NodeId>(random.between(1, 9)), length = static_cast<NodeId>(random.between(1, 7));
    const Graph graph = generate_pumpkin(branches, length, sizes, seed);
    REQUIRE(tests::is_pumpkin(graph));
    REQUIRE(graph.node_count() == branches * length + 2);
    for (const auto& branch : branches_of(graph)) REQUIRE(branch.size() == static_cast<std::size_t>(length));
    return graph;
  });
  check_seeds([](std::uint64_t seed) { return generate_pumpkin(3, 4, GeneratedSizes{}, seed); });
}

TEST_CASE("generated trees are trees of bounded degree", "[order]") {
  check_generated(2, 200, [](Random& random, const GeneratedSizes& sizes, std::uint64_t seed) {
    const auto nodes = static_cast<NodeId>(random.between(1, 60)), degree = static_cast<NodeId>(random.between(1, 5));
    const Graph in = generate_in_tree(nodes, degree, sizes, seed);
    REQUIRE(in.node_count() == nodes);
    REQUIRE(tests::is_in_forest(in));
    REQUIRE(tests::sinks(in).size() == 1);
    REQUIRE(most_inputs(in) <= static_cast<std::size_t>(degree));
    check_sizes(in, sizes);
    const Graph out = generate_out_tree(nodes, degree, sizes, seed);
    REQUIRE(out.node_count() == nodes);
    REQUIRE(tests::is_out_forest(out));
    REQUIRE(tests::sources(out).size() == 1);
    REQUIRE(most_readers(out) <= static_cast<std::size_t>(degree));
    return out;
  });
  // Some node must have as many inputs, or as many readers, as the degree bound allows.
  CHECK(most_inputs(generate_in_tree(300, 3, GeneratedSizes{}, 1)) == 3);
  CHECK(most_readers(generate_out_tree(300, 3, GeneratedSizes{}, 1)) == 3);
  check_seeds([](std::uint64_t seed) { return generate_in_tree(20, 3, GeneratedSizes{}, seed); });
  check_seeds([](std::uint64_t seed) { return generate_out_tree(20, 3, GeneratedSizes{}, seed); });
}

TEST_CASE("generated series-parallel graphs reduce to an edge", "[order]") {
  check_generated(3, 200, [](Random& random, const GeneratedSizes& sizes, std::uint64_t seed) {
    const auto nodes = static_cast<NodeId>(random.between(2, 50)), degree = static_cast<NodeId>(random.between(1, 6));
    const Graph graph = generate_series_parallel(nodes, degree, sizes, seed);
    REQUIRE(graph.node_count() == nodes);
    REQUIRE(tests::sources(graph).size() == 1);
    REQUIRE(tests::sinks(graph).size() == 1);
    REQUIRE(tests::is_series_parallel(graph));
    REQUIRE(most_readers(graph) <= static_cast<std::size_t>(degree));
    return graph;
  });
  CHECK(most_readers(generate_series_parallel(300, 4, GeneratedSizes{}, 1)) == 4);
  check_seeds([](std::uint64_t seed) { return generate_series_parallel(20, 3, GeneratedSizes{}, seed); });
}

TEST_CASE("generated starborescences have one node that several read", "[order]") {
  check_generated(4, 200, [](Random& random, const GeneratedSizes& sizes, std::uint64_t seed) {
    const auto degree = static_cast<NodeId>(random.between(1, 7));
    const auto nodes = static_cast<NodeId>(degree + random.between(2, 40));
    const Graph graph = generate_starborescence(nodes, degree, sizes, seed);
    REQUIRE(graph.node_count() == nodes);
    REQUIRE(tests::is_starborescence(graph));
    REQUIRE(tests::is_series_parallel(graph));
    REQUIRE(graph.readers(tests::sources(graph).at(0)).size() == static_cast<std::size_t>(degree));
    return graph;
  });
  check_seeds([](std::uint64_t seed) { return generate_starborescence(20, 4, GeneratedSizes{}, seed); });
}

TEST_CASE("generated random graphs have the nodes and edges that were asked for", "[order]") {
  check_generated(6, 200, [](Random& random, const GeneratedSizes& sizes, std::uint64_t seed) {
    const auto nodes = static_cast<NodeId>(random.between(1, 40));
    const std::int64_t pairs = std::int64_t{nodes} * (nodes - 1) / 2;
    const std::int64_t edges = random.between(0, std::min<std::int64_t>(pairs, 3 * nodes));
    const Graph graph = generate_random(nodes, edges, sizes, seed);
    REQUIRE(graph.node_count() == nodes);
    REQUIRE(graph.edge_count() == edges);
    for (NodeId v = 0; v < nodes; ++v) {
      for (const NodeId u : graph.inputs(v)) REQUIRE(u < v);
    }
    return graph;
  });
  check_seeds([](std::uint64_t seed) { return generate_random(20, 40, GeneratedSizes{}, seed); });
}

TEST_CASE("scratch and in-place nodes and kept nodes come where they are asked for", "[order]") {
  GeneratedSizes sizes{.scratch = 0.5, .keep = 0.2};
  const Graph graph = generate_series_parallel(400, 3, sizes, 1);
  int scratch = 0, kept = 0;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    scratch += graph.scratch(v) > 0;
    kept += graph.keep(v);
  }
  CHECK(scratch > 140);
  CHECK(scratch < 260);
  CHECK(kept > 40);
  CHECK(kept < 130);
  sizes = {};
  sizes.in_place = 1;
  const Graph chain = generate_in_tree(50, 1, sizes, 1);
  int in_place = 0;
  for (NodeId v = 0; v < chain.node_count(); ++v) in_place += chain.scratch(v) < 0;
  CHECK(in_place >= 40);
}

TEST_CASE("the pumpkin of a 3-Partition instance has the sizes of section 9", "[order]") {
  for (int groups = 1; groups <= 5; ++groups) {
    const std::int64_t m = groups, sum = 17 + 4 * groups;
    const std::vector<std::int64_t> numbers = feasible_three_partition(groups, sum, static_cast<std::uint64_t>(groups));
    const auto n = static_cast<std::int64_t>(numbers.size());
    const ThreePartition instance = three_partition_pumpkin(numbers);
    const Graph& graph = instance.graph;
    REQUIRE(tests::is_pumpkin(graph));
    const std::int64_t source_size = m * (m + 1) * n * sum / 2 + m * sum;
    REQUIRE(graph.size(tests::sources(graph).at(0)) == source_size);
    REQUIRE(graph.size(tests::sinks(graph).at(0)) == 0);
    REQUIRE(instance.feasible_peak == source_size + m * (m + 1) * sum / 2);
    std::vector<std::vector<std::int64_t>> expected, found;
    for (const std::int64_t number : numbers) {
      expected.emplace_back();
      for (std::int64_t k = 2 * m - 1; k >= 1; --k) {
        const bool valley = k % 2 == 1;
        expected.back().push_back(valley ? (k + 1) / 2 * number : (m - k / 2) * (m + k / 2 + 1) * sum / 2 - number);
      }
    }
    for (const auto& branch : branches_of(graph)) {
      found.emplace_back();
      for (const NodeId v : branch) found.back().push_back(graph.size(v));
    }
    std::sort(expected.begin(), expected.end());
    std::sort(found.begin(), found.end());
    REQUIRE(found == expected);
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      REQUIRE(graph.scratch(v) == 0);
      REQUIRE_FALSE(graph.keep(v));
    }
  }
}

TEST_CASE("feasible 3-Partition instances can be split into groups of three", "[order]") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const int groups = 1 + static_cast<int>(seed % 5);
    const std::int64_t sum = 3 + static_cast<std::int64_t>(seed * 7 % 50);
    const std::vector<std::int64_t> numbers = feasible_three_partition(groups, sum, seed);
    REQUIRE(numbers.size() == static_cast<std::size_t>(3 * groups));
    REQUIRE(std::all_of(numbers.begin(), numbers.end(), [](std::int64_t number) { return number > 0; }));
    REQUIRE(feasible_three_partition(groups, sum, seed) == numbers);
    // Repeatedly removes three numbers whose sum is `sum`, one of which is the first remaining number. Returns true if
    // no number is left in the end.
    const std::function<bool(std::vector<std::int64_t>)> splits = [&](std::vector<std::int64_t> left) {
      if (left.empty()) return true;
      for (std::size_t a = 1; a < left.size(); ++a) {
        for (std::size_t b = a + 1; b < left.size(); ++b) {
          if (left[0] + left[a] + left[b] != sum) continue;
          std::vector<std::int64_t> rest;
          for (std::size_t k = 1; k < left.size(); ++k) {
            if (k != a && k != b) rest.push_back(left[k]);
          }
          if (splits(rest)) return true;
        }
      }
      return false;
    };
    REQUIRE(splits(numbers));
  }
}

TEST_CASE("numbers that are no 3-Partition instance are refused", "[order]") {
  using Numbers = std::vector<std::int64_t>;
  CHECK_NOTHROW(three_partition_pumpkin(Numbers{1, 2, 3}));
  CHECK_NOTHROW(three_partition_pumpkin(Numbers{6, 1, 1, 2, 1, 1}));
  CHECK_THROWS_AS(three_partition_pumpkin(Numbers{}), core::InputError);
  CHECK_THROWS_AS(three_partition_pumpkin(Numbers{1, 2}), core::InputError);
  CHECK_THROWS_AS(three_partition_pumpkin(Numbers{1, 2, 3, 4}), core::InputError);
  CHECK_THROWS_AS(three_partition_pumpkin(Numbers{1, 2, 0}), core::InputError);
  CHECK_THROWS_AS(three_partition_pumpkin(Numbers{1, 2, -3}), core::InputError);
  // Two groups would need equal sums, but the total is odd.
  CHECK_THROWS_AS(three_partition_pumpkin(Numbers{1, 1, 1, 1, 1, 2}), core::InputError);
  // 7 exceeds the sum of a group, which is 12 / 2 = 6.
  CHECK_THROWS_AS(three_partition_pumpkin(Numbers{7, 1, 1, 1, 1, 1}), core::InputError);
}

TEST_CASE("in a valley pumpkin every valley of a branch is lower and every peak higher than those before", "[order]") {
  for (const NodeId branches : {1, 2, 5}) {
    for (const NodeId length : {1, 2, 3, 4, 7, 8}) {
      const Graph graph = generate_valley_pumpkin(branches, length, 3);
      REQUIRE(tests::is_pumpkin(graph));
      REQUIRE(graph.node_count() == branches * length + 2);
      for (const auto& branch : branches_of(graph)) {
        std::int64_t valley = graph.size(branch[0]), peak = 0;
        for (std::size_t k = 1; k + 1 < branch.size(); k += 2) {
          const std::int64_t high = graph.size(branch[k - 1]) + graph.size(branch[k]);
          const std::int64_t low = graph.size(branch[k + 1]);
          REQUIRE(low < valley);
          REQUIRE(high > peak);
          REQUIRE(graph.size(branch[k]) >= low);  // the node between two valleys is no lower than the next valley
          valley = low;
          peak = high;
        }
      }
      REQUIRE(generate_valley_pumpkin(branches, length, 3).fingerprint() == graph.fingerprint());
    }
  }
}

/// Returns, for each node, the length of the longest path from the source to the node. This length is the number of the
/// node's layer, because every node reads a node of the previous layer.
std::vector<NodeId> layers(const Graph& graph) {
  std::vector<NodeId> layer(graph.node_count(), 0);
  for (const NodeId v : graph.input_order()) {
    for (const NodeId u : graph.inputs(v)) layer[v] = std::max(layer[v], layer[u] + 1);
  }
  return layer;
}

TEST_CASE("layered graphs are like the published ones") {
  struct Published {
    NodeId nodes;
    double width;
    std::int64_t edges;
  };
  const auto published = GENERATE(Published{100, 0.27, 236}, Published{250, 0.43, 944}, Published{500, 0.36, 2461},
                                  Published{1000, 0.31, 5875});
  constexpr int kSeeds = 20;
  std::int64_t edges = 0, skips = 0, bytes = 0, cost = 0, bent = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Graph graph = generate_layered({.nodes = published.nodes, .width = published.width, .seed = seed});
    const NodeId source = 0, sink = graph.node_count() - 1;
    REQUIRE(graph.node_count() == published.nodes);
    const std::vector<NodeId> layer = layers(graph);
    std::vector<NodeId> size(layer[sink] + 1, 0);
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      ++size[layer[v]];
      bool reader_next = false;
      for (const NodeId w : graph.readers(v)) reader_next |= layer[w] == layer[v] + 1;
      REQUIRE((v == sink || reader_next));
      for (const NodeId u : graph.inputs(v)) skips += layer[v] > layer[u] + 1;
      REQUIRE(graph.size(v) > 0);
      REQUIRE(graph.size(v) % 10 == 0);
      REQUIRE(graph.cost(v) <= 1000);
      bytes += graph.size(v);
      cost += graph.cost(v);
    }
    REQUIRE(size[0] == 1);
    REQUIRE(size[layer[sink]] == 1);
    const double mean = 2 * published.width * std::sqrt(published.nodes);
    for (std::size_t i = 1; i + 1 < size.size(); ++i) {
      REQUIRE(size[i] <= std::ceil(1.75 * mean));
      if (i + 2 < size.size()) REQUIRE(size[i] >= std::floor(0.25 * mean));
    }
    REQUIRE((graph.cost(source) == 0 && graph.cost(sink) == 0));
    edges += graph.edge_count();
    for (std::size_t i = 1; i < graph.input_order().size(); ++i)
      bent += graph.input_order()[i] < graph.input_order()[i - 1];
  }
  const double nodes = double{kSeeds} * published.nodes;
  CHECK(std::abs(static_cast<double>(edges) / static_cast<double>(kSeeds * published.edges) - 1) < 0.15);
  CHECK(std::abs(static_cast<double>(skips) / static_cast<double>(edges) - 0.14) < 0.01);
  CHECK(std::abs(static_cast<double>(bytes) / nodes - 2000) < 150);
  CHECK(std::abs(static_cast<double>(cost) / nodes - 500) < 30);
  CHECK(static_cast<double>(bent) > 0.25 * nodes);
}

TEST_CASE("the edges of two neighbouring layers have the number and the nodes that are asked for") {
  // With a single layer between source and sink, there are no edges to choose: each of its 48 nodes has two edges. At
  // edge density 1, all pairs of nodes in neighbouring layers have an edge. At density 0, each node has only one such
  // edge.
  const Graph wide = generate_layered({.nodes = 50, .width = 100, .layers_variance = 0, .seed = 1});
  CHECK(wide.edge_count() == 96);
  const LayeredOptions square{.nodes = 102,
                              .width = 10 / (2 * std::sqrt(102.0)),
                              .layers_variance = 0,
                              .edge_density = 1,
                              .skip_density = 0,
                              .seed = 1};
  CHECK(generate_layered(square).edge_count() == 9 * 100 + 20);
  LayeredOptions sparse = square;
  sparse.edge_density = 0;
  CHECK(generate_layered(sparse).edge_count() == 9 * 10 + 20);
  sparse.edge_density = 0.5;
  CHECK(generate_layered(sparse).edge_count() == 9 * 55 + 20);
}

TEST_CASE("layered graphs are the same on every machine") {
  const auto checked = [](const Graph& graph) {
    std::int64_t order = 0, cost = 0;
    for (NodeId i = 0; i < graph.node_count(); ++i) {
      order = (order * 31 + graph.input_order()[i]) % 1'000'003;
      cost += graph.cost(i);
    }
    return std::tuple(graph.fingerprint(), order, cost);
  };
  CHECK(checked(generate_layered({.nodes = 100, .width = 0.27, .seed = 7})) ==
        std::tuple("3108e3486b48ddf3", 521344, 42374));
  CHECK(checked(generate_layered({.nodes = 1000, .seed = 1})) == std::tuple("8f8c6d2a2a192b83", 281584, 510076));
}

TEST_CASE("layered graphs that cannot be are refused") {
  CHECK_THROWS_AS(generate_layered({.nodes = 2}), core::InputError);
  CHECK_THROWS_AS(generate_layered({.width = 0}), core::InputError);
  CHECK_THROWS_AS(generate_layered({.width = std::nan("")}), core::InputError);
  CHECK_THROWS_AS(generate_layered({.layers_variance = 1.01}), core::InputError);
  CHECK_THROWS_AS(generate_layered({.edge_density = -0.1}), core::InputError);
  CHECK_THROWS_AS(generate_layered({.skip_density = 0.95}), core::InputError);
  CHECK_THROWS_AS(generate_layered({.nodes = 10'000'000}), core::InputError);
  CHECK_NOTHROW(generate_layered({.nodes = 3}));
}

}  // namespace
}  // namespace cairn::models::random_graphs_test
