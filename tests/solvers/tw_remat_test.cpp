#include "cairn/solvers/remat/tw_remat.h"

#include <cmath>

#include "cairn/core/profile.h"
#include "cairn/core/reference.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::solvers {
namespace {

using core::Graph;
using core::NodeId;

TwRematOptions with_k(std::int64_t k) {
  TwRematOptions options;
  options.k = k;
  return options;
}

/// The training graph of a chain: forward 0..n-1, backward n..2n-1, unit sizes and costs.
Graph training_chain(int n) {
  core::GraphBuilder builder;
  for (int i = 0; i < 2 * n; ++i) {
    core::Node node;
    node.size = node.cost = 1;
    node.backward = i >= n;
    if (i > 0) node.inputs.push_back(i - 1);
    if (i > n) node.inputs.push_back(2 * n - 1 - i);
    builder.add(node);
  }
  return builder.build();
}

TEST_CASE("TWRemat(k) is valid for every k, and k above the number of bags is NoRemat") {
  tests::Random random(1);
  for (int i = 0; i < 300; ++i) {
    const Graph graph = tests::random_graph(random, {.max_nodes = 30});
    for (const std::int64_t k : {1, 2, 3, 5, 8}) {
      const Solution solution = tw_remat(graph, with_k(k));
      REQUIRE(core::reference::valid(graph, solution.schedule));
      CHECK(solution.peak == core::reference::peak(graph, solution.schedule));
    }
    CHECK(tw_remat(graph, with_k(graph.node_count() + 1)).schedule == core::baseline_schedule(graph));
  }
}

TEST_CASE("Theorem 5: on training chains the peak grows with the logarithm of the length") {
  for (const int n : {16, 64, 256, 1024}) {
    const Graph graph = training_chain(n);
    const int width = min_fill_decomposition(graph).width;
    const Solution solution = tw_remat(graph, with_k(1));
    // (M_in + (w + 1) M_max) a level of the recursion, whose depth is at most log2(bags) + 1.
    const double levels = std::ceil(std::log2(2.0 * n)) + 1;
    CHECK(static_cast<double>(solution.peak) <= (2.0 + width + 1.0) * levels);
    CHECK(core::evaluate(graph, core::baseline_schedule(graph)).peak >= n);
  }
}

TEST_CASE("keeping what fits never makes a schedule dearer") {
  tests::Random random(2);
  int cheaper = 0;
  for (int i = 0; i < 200; ++i) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 10, .max_nodes = 40});
    TwRematOptions options;
    const std::int64_t baseline = core::evaluate(graph, core::baseline_schedule(graph)).peak;
    options.budget = (baseline + core::peak_lower_bound(graph)) / 2;
    const Solution kept = tw_remat(graph, options);
    options.retain = false;
    const Solution plain = tw_remat(graph, options);
    CHECK((kept.status == Status::not_found) == (plain.status == Status::not_found));
    if (plain.status == Status::not_found) continue;
    CHECK(kept.cost <= plain.cost);
    cheaper += kept.cost < plain.cost;
  }
  CHECK(cheaper > 0);
}

}  // namespace
}  // namespace cairn::solvers
