#include "cairn/models/random_graphs.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/graph_classes.h"
#include "cairn/tests/support/random_graph.h"

// Each generated graph is of its class by the class's definition, and as large as was asked for.
namespace cairn::models {
namespace {

using core::Graph;
using core::NodeId;
using tests::Random;

GeneratedSizes random_sizes(Random& random) {
  GeneratedSizes sizes;
  sizes.least = random.between(0, 3);
  sizes.most = sizes.least + random.pick(std::vector<std::int64_t>{0, 1, 5, 1'000'000});
  const std::vector<double> shares{0, 0, 0.3, 1};
  sizes.scratch = random.pick(shares);
  sizes.in_place = random.pick(shares);
  sizes.keep = random.pick(shares);
  return sizes;
}

/// Sizes are in their range (an output that takes over an input's storage has the input's size, which is too), and
/// nothing is where none was asked for.
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

/// make(random, sizes, seed) for so many seeds, each with sizes of some kind, which the graph must have.
template <class Make>
void check_generated(std::uint64_t number, std::uint64_t seeds, const Make& make) {
  Random random(number);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const GeneratedSizes sizes = random_sizes(random);
    check_sizes(make(random, sizes, seed), sizes);
  }
}

/// The same for a seed, and mostly another for another seed.
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

/// The nodes of each chain of a pumpkin, from the source on.
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
  // The degree is reached, not only allowed.
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
  GeneratedSizes sizes;
  sizes.scratch = 0.5;
  sizes.keep = 0.2;
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
    // Takes three numbers of the right sum, the first that is left among them, until none is left.
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
  CHECK_THROWS_AS(three_partition_pumpkin(Numbers{1, 1, 1, 1, 1, 2}), core::InputError);  // an odd sum for two groups
  CHECK_THROWS_AS(three_partition_pumpkin(Numbers{7, 1, 1, 1, 1, 1}), core::InputError);  // 7 is above 12 / 2
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
          REQUIRE(graph.size(branch[k]) >= low);  // what lies between is between
          valley = low;
          peak = high;
        }
      }
      REQUIRE(generate_valley_pumpkin(branches, length, 3).fingerprint() == graph.fingerprint());
    }
  }
}

}  // namespace
}  // namespace cairn::models
