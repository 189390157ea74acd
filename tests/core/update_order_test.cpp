// Tests that GraphBuilder::build() makes every update of a weight run after all nodes that read the weight.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/formats/files.h"
#include "cairn/core/graph.h"
#include "cairn/core/op.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/late_readers.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::update_order_test {
namespace {

using namespace cairn::core;
using tests::Random;

constexpr std::int64_t kBytes = 16;  // of every tensor, which has 4 elements

/// Writes graphs of additions whose weights are updated.
class Writer {
 public:
  explicit Writer(int weights) {
    for (int i = 0; i < weights; ++i) {
      weights_.push_back(tensor(fmt::format("w{}", i), Resident::Role::weight));
      momenta_.push_back(tensor(fmt::format("m{}", i), Resident::Role::optimizer));
    }
    rate_ = builder.add_resident({.name = "rate", .shape = {1}, .role = Resident::Role::data});
    input_ = tensor("input", Resident::Role::data);
  }

  /// Adds a node that adds two of these: a weight if one is given, the results of up to two nodes, and the input.
  NodeId add(const std::string& name, const std::vector<NodeId>& read, std::optional<int> weight) {
    Op op{OpKind::add, {4}, {}, {}};
    Node node{.name = name, .size = kBytes, .cost = 1};
    if (weight) op.args.push_back(Operand::resident(weights_[static_cast<std::size_t>(*weight)]));
    for (std::size_t i = 0; i < read.size() && op.args.size() < 2; ++i) {
      op.args.push_back(Operand::node(read[i]));
      node.inputs.emplace_back(read[i]);
    }
    while (op.args.size() < 2) op.args.push_back(Operand::resident(input_));
    node.op = std::move(op);
    return builder.add(std::move(node));
  }

  NodeId update(int weight, NodeId gradient) {
    const auto i = static_cast<std::size_t>(weight);
    Op op{OpKind::sgd, {4}, {Operand::node(gradient), Operand::resident(weights_[i])}, {}};
    op.args.insert(op.args.end(), {Operand::resident(momenta_[i]), Operand::resident(rate_)});
    op.writes = weights_[i];
    Node node{.name = fmt::format("w{}/update", weight), .cost = 1, .keep = true, .pinned = true};
    node.inputs = {gradient};
    node.op = std::move(op);
    return builder.add(std::move(node));
  }

  GraphBuilder builder{"updated"};

 private:
  std::int32_t tensor(std::string name, Resident::Role role) {
    return builder.add_resident({.name = std::move(name), .shape = {4}, .role = role});
  }

  std::vector<std::int32_t> weights_, momenta_;
  std::int32_t rate_ = 0, input_ = 0;
};

/// Draws a graph of nodes that read each other and weights, with an update of each weight somewhere among them. Some
/// nodes are kept or pinned, and some run after an update by a control edge. Returns the message if build() refuses it.
std::optional<std::string> draw(Random& random, std::optional<Graph>& graph) {
  const int weights = 1 + static_cast<int>(random.below(3));
  Writer writer(weights);
  const int nodes = 3 + static_cast<int>(random.below(10));
  std::vector<NodeId> made, updates;
  int updated = 0;
  for (int i = 0; i < nodes; ++i) {
    std::vector<NodeId> read;
    for (int k = 0; k < 2 && !made.empty(); ++k) {
      if (random.below(4) > 0) read.push_back(made[static_cast<std::size_t>(random.below(made.size()))]);
    }
    if (read.size() == 2 && read[0] == read[1]) read.pop_back();
    std::optional<int> weight;
    if (random.below(2) == 0) weight = static_cast<int>(random.below(static_cast<std::uint64_t>(weights)));
    const NodeId v = writer.add(fmt::format("v{}", i), read, weight);
    writer.builder.node(v).keep = random.below(6) == 0;
    writer.builder.node(v).pinned = random.below(6) == 0;
    made.push_back(v);
    if (!updates.empty() && random.below(8) == 0)
      writer.builder.add_control_input(v, updates[static_cast<std::size_t>(random.below(updates.size()))]);
    if (updated < weights && random.below(3) == 0) updates.push_back(writer.update(updated++, v));
  }
  while (updated < weights) updates.push_back(writer.update(updated++, made.back()));
  try {
    graph = writer.builder.build();
  } catch (const InputError& error) {
    return error.what();
  }
  return std::nullopt;
}

TEST_CASE("no schedule of a built graph reads a weight after its update") {
  int built = 0, refused = 0, pinned = 0;
  tests::for_each_seed(4000, [&](Random& random) {
    std::optional<Graph> graph;
    if (const auto error = draw(random, graph)) {
      tests::check_line(*error, {"can only run after the update"});
      ++refused;
      return;
    }
    CHECK(tests::late_readers(*graph) == "");
    CHECK(graph_to_json(GraphBuilder(*graph).build()) == graph_to_json(*graph));
    for (NodeId v = 0; v < graph->node_count(); ++v) pinned += graph->pinned(v) ? 1 : 0;
    ++built;
  });
  CHECK(built > 1000);
  CHECK(refused > 50);
  CHECK(pinned > 1000);
}

TEST_CASE("an update runs after the nodes for which its readers could run again, and no other") {
  Writer writer(1);
  const NodeId h = writer.add("h", {}, 0), other = writer.add("other", {}, std::nullopt);
  const NodeId u = writer.update(0, h), end = writer.add("end", {h}, std::nullopt);
  const Graph graph = writer.builder.build();
  CHECK(std::ranges::equal(graph.predecessors(u), std::vector<NodeId>{h, end}));
  CHECK_FALSE(graph.pinned(h));
  CHECK(graph.successors(other).empty());
}

TEST_CASE("a reader that a node after the update needs is pinned") {
  Writer writer(1);
  const NodeId h = writer.add("h", {}, 0), u = writer.update(0, h), end = writer.add("end", {h}, std::nullopt);
  writer.builder.add_control_input(end, u);
  const Graph graph = writer.builder.build();
  CHECK(graph.pinned(h));
  CHECK_FALSE(graph.pinned(end));
}

TEST_CASE("a reader that can only run after the update is refused") {
  Writer writer(1);
  const NodeId h = writer.add("h", {}, std::nullopt), u = writer.update(0, h);
  writer.builder.add_control_input(writer.add("late", {h}, 0), u);
  tests::check_line(tests::error_of([&] { writer.builder.build(); }),
                    {"'late'", "'w0/update'", "only run after the update"});
  CHECK(writer.builder.node_count() == 0);
}

}  // namespace
}  // namespace cairn::update_order_test
