// Tests large graphs of shapes that have once exhausted a solver's stack, memory or time. The tests check that the
// solvers end, and what they return. The limits are on work, not on time.

#include "cairn/core/profile.h"
#include "cairn/models/random_graphs.h"
#include "cairn/solvers/order/support/order.h"
#include "cairn/tests/catch.h"

namespace cairn::tests::order_scale_test {
namespace {

using core::Graph;
using core::NodeId;
using solvers::OrderOptions;
using solvers::Solution;
using solvers::Status;

core::Node node_of(std::int64_t size, std::int64_t scratch, std::vector<NodeId> inputs) {
  core::Node node{.size = size, .cost = 1, .scratch = scratch};
  node.inputs.assign(inputs.begin(), inputs.end());
  return node;
}

/// Returns a path whose sizes rise and whose peaks fall, so that every node is a segment of its own. With `leaves`,
/// every node also reads a leaf.
Graph path_of_segments(NodeId length, bool leaves) {
  core::GraphBuilder builder;
  NodeId last = core::kNoNode;
  for (NodeId i = 0; i < length; ++i) {
    std::vector<NodeId> inputs;
    if (last != core::kNoNode) inputs.push_back(last);
    if (leaves) inputs.push_back(builder.add(node_of(1 + i % 5, i * 17 % length, {})));
    last = builder.add(node_of(i + 1, 10 * length - 6 * i, std::move(inputs)));
  }
  return builder.build();
}

/// Returns a source and a sink, and between them `count` chains of `length` nodes each. With `pairs`, the end of each
/// chain first meets another reader of the source.
Graph star(NodeId count, NodeId length, bool pairs) {
  core::GraphBuilder builder;
  const NodeId source = builder.add(node_of(100, 0, {}));
  std::vector<NodeId> ends;
  for (NodeId b = 0; b < count; ++b) {
    NodeId last = source;
    for (NodeId i = 0; i < length; ++i) last = builder.add(node_of(1 + (b + i) % 3, b % 7, {last}));
    if (pairs) last = builder.add(node_of(2, 0, {last, builder.add(node_of(1, 1, {source}))}));
    ends.push_back(last);
  }
  builder.add(node_of(1, 0, std::move(ends)));
  return builder.build();
}

void check_ends(const Graph& graph, Solution (*solver)(const Graph&, const OrderOptions&), std::int64_t work) {
  OrderOptions options;
  options.limit.work = work;
  options.threads = 1;
  const Solution solution = solver(graph, options);
  REQUIRE(solution.schedule.length() == graph.node_count());
  const core::Evaluation measures = core::evaluate(graph, solution.schedule);
  CHECK(measures.valid());
  CHECK(measures.peak <= core::evaluate(graph, core::baseline_schedule(graph)).peak);
}

TEST_CASE("paths and trees of a hundred thousand segments are solved to a proof", "[order]") {
  for (const bool leaves : {false, true}) {
    const Graph graph = path_of_segments(100'000, leaves);
    OrderOptions options;
    options.threads = 1;
    CHECK(solvers::in_tree(graph, options).status == Status::optimal);
    CHECK(solvers::series_parallel(graph, options).status == Status::optimal);
    CHECK(solvers::order(graph, options).status == Status::optimal);
  }
}

TEST_CASE("a source with fifty thousand readers that go straight to the sink is solved to a proof", "[order]") {
  const Graph graph = star(50'000, 1, false);
  CHECK(solvers::pumpkin(graph, {}).status == Status::optimal);
  CHECK(solvers::order(graph, {}).status == Status::optimal);
}

TEST_CASE("wide stars end at their limit with a valid order", "[order]") {
  for (const std::int64_t work : {0, 100'000}) {
    check_ends(star(20'000, 0, true), solvers::order, work);
    check_ends(star(20'000, 0, true), solvers::series_parallel, work);
    check_ends(star(20'000, 2, false), solvers::order, work);
    check_ends(star(300, 3, true), solvers::series_parallel, work);
  }
}

TEST_CASE("the exact search does not begin on graphs too large for it", "[order]") {
  check_ends(models::generate_random(20'000, 40'000, {}, 1), solvers::exact, 1'000'000);
}

}  // namespace
}  // namespace cairn::tests::order_scale_test
