// Tests the order of the updates of weights (BuildOptions::optimizer).
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cairn/core/precision.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/models/random_network.h"
#include "cairn/tests/models/tiny_models.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::updates_test {
namespace {

using core::Graph;
using core::NodeId;
using core::Op;
using core::Operand;
using core::Resident;
using models::BuildOptions;
using tests::Random;
using tests::RandomNetwork;

std::vector<NodeId> updates_of(const Graph& graph) {
  std::vector<NodeId> updates;
  for (const NodeId v : graph.input_order()) {
    if (core::is_update(graph.op(v)->kind)) updates.push_back(v);
  }
  return updates;
}

/// Returns, for every node, whether it is in `nodes` or whether a node that is reads it, at any distance. Control edges
/// count.
std::vector<bool> with_inputs(const Graph& graph, const std::vector<NodeId>& nodes, bool through_pinned) {
  std::vector<bool> found(static_cast<std::size_t>(graph.node_count()));
  std::vector<NodeId> open = nodes;
  for (const NodeId v : nodes) found[static_cast<std::size_t>(v)] = true;
  while (!open.empty()) {
    const NodeId v = open.back();
    open.pop_back();
    for (const core::ValueId input : graph.inputs(v)) {
      const NodeId u = graph.producer(input);
      if (found[static_cast<std::size_t>(u)] || (graph.pinned(u) && !through_pinned)) continue;
      found[static_cast<std::size_t>(u)] = true;
      open.push_back(u);
    }
  }
  return found;
}

/// Returns, for every node, whether a valid schedule can run it after `update`. At worst, all nodes run then that no
/// edge forces to run before, memory has lost all values that can be computed again, and kept values are computed again
/// for the end of the step. A pinned node that has run before does not run again.
std::vector<bool> may_run_after(const Graph& graph, NodeId update) {
  const std::vector<bool> before = with_inputs(graph, {update}, true);
  std::vector<NodeId> open;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    const bool again = graph.keep(v) && !graph.pinned(v);
    if (v != update && (!before[static_cast<std::size_t>(v)] || again)) open.push_back(v);
  }
  return with_inputs(graph, open, false);
}

/// Returns a line for each node that could read a resident tensor after the update that overwrites it.
std::string late_readers(const Graph& graph) {
  std::string text;
  for (const NodeId update : updates_of(graph)) {
    const Op& op = *graph.op(update);
    std::set<std::int32_t> overwritten{op.writes};
    for (const std::size_t i : core::updated_args(op.kind)) overwritten.insert(op.args[i].index);
    const std::vector<bool> after = may_run_after(graph, update);
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      if (v == update || !after[static_cast<std::size_t>(v)]) continue;
      for (const Operand& arg : graph.op(v)->args) {
        if (arg.kind == Operand::Kind::resident && overwritten.contains(arg.index))
          text += fmt::format("{} can run after {}\n", graph.name(v), graph.name(update));
      }
    }
  }
  return text;
}

NodeId loss_of(const Graph& graph) {
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    const core::OpKind kind = graph.op(v)->kind;
    if (kind == core::OpKind::mse || kind == core::OpKind::cross_entropy) return v;
  }
  return core::kNoNode;
}

/// Returns the weights that the loss depends on.
std::set<std::int32_t> trained_weights(const Graph& graph) {
  std::set<std::int32_t> weights;
  const std::vector<bool> needed = with_inputs(graph, {loss_of(graph)}, true);
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (!needed[static_cast<std::size_t>(v)]) continue;
    for (const Operand& arg : graph.op(v)->args) {
      if (arg.kind != Operand::Kind::resident) continue;
      if (graph.residents()[static_cast<std::size_t>(arg.index)].role == Resident::Role::weight)
        weights.insert(arg.index);
    }
  }
  return weights;
}

/// Returns the number of inputs of all updates that carry no data.
std::int64_t control_edges(const Graph& graph) {
  std::int64_t edges = 0;
  for (const NodeId update : updates_of(graph)) {
    for (const core::ValueId input : graph.inputs(update)) edges += graph.value_size(input) == 0;
  }
  return edges;
}

/// Returns the position of each node in the input order.
std::vector<std::int64_t> positions(const Graph& graph) {
  std::vector<std::int64_t> position(static_cast<std::size_t>(graph.node_count()), -1);
  std::int64_t next = 0;
  for (const NodeId v : graph.input_order()) position[static_cast<std::size_t>(v)] = next++;
  return position;
}

/// Checks that the input order runs every node after its inputs, and that it runs an update a few nodes after the
/// node of the gradient. If gradients are clipped, checks instead that only updates follow the first update.
void require_prompt_updates(const Graph& graph, bool clipped) {
  const std::vector<std::int64_t> position = positions(graph);
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    for (const NodeId u : graph.predecessors(v))
      REQUIRE(position[static_cast<std::size_t>(u)] < position[static_cast<std::size_t>(v)]);
  }
  const std::vector<NodeId> updates = updates_of(graph);
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const std::int64_t at = position[static_cast<std::size_t>(updates[i])];
    if (clipped) {
      REQUIRE(at == graph.node_count() - std::ssize(updates) + static_cast<std::int64_t>(i));
      continue;
    }
    // At most four nodes and another update can be between them: two other gradients of the same node, each with the
    // sum that it is added to.
    const NodeId gradient = graph.op(updates[i])->args[0].index;
    INFO(graph.name(updates[i]));
    REQUIRE(at - position[static_cast<std::size_t>(gradient)] <= 6);
  }
}

/// Returns options with one of four optimizers: sgd and adamw, with clipped gradients and without.
BuildOptions with_optimizer(BuildOptions options, std::uint64_t number) {
  options.optimizer = number % 2 == 0 ? "sgd" : "adamw";
  options.update = {.rate = 0.02, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-2, .decay = 0.1};
  if (number / 2 % 2 != 0) options.update.clip = 0.5;
  return options;
}

}  // namespace

TEST_CASE("no schedule reads a weight of the registry's models after its update") {
  for (tests::TinyModel& model : tests::tiny_models()) {
    for (std::uint64_t optimizer = 0; optimizer < 4; ++optimizer) {
      const BuildOptions options = with_optimizer(model.options, optimizer);
      const Graph graph = models::build_model(model.name, options);
      INFO(model.name << ", optimizer " << optimizer);
      CHECK(late_readers(graph) == "");
      CHECK(late_readers(core::with_precision(graph, core::Precision::bf16)) == "");
      const std::int64_t updates = std::ssize(updates_of(graph));
      const auto is_weight = [](const Resident& resident) { return resident.role == Resident::Role::weight; };
      CHECK(updates == std::ranges::count_if(graph.residents(), is_weight));
      CHECK(control_edges(graph) <= 3 * updates);
      require_prompt_updates(graph, options.update.clip > 0);
    }
  }
}

TEST_CASE("no schedule reads a weight of a random network after its update") {
  std::int64_t updates = 0, shared = 0;
  tests::for_each_seed(3'000, [&](Random& random, std::uint64_t seed) {
    const BuildOptions options = with_optimizer({}, seed);
    const Graph graph =
        RandomNetwork(random, options, {.dead_ends = seed / 4 % 3 == 1, .kept = seed / 4 % 3 == 2}).build();
    REQUIRE(late_readers(graph) == "");
    require_prompt_updates(graph, options.update.clip > 0);
    std::set<std::int32_t> updated;
    for (const NodeId update : updates_of(graph)) {
      REQUIRE(updated.insert(graph.op(update)->writes).second);
      const NodeId gradient = graph.op(update)->args[0].index;
      shared += graph.op(gradient)->kind == core::OpKind::add;
      REQUIRE(graph.pinned(gradient));
    }
    REQUIRE(updated == trained_weights(graph));
    updates += std::ssize(updated);
  });
  CHECK(updates > 6'000);
  CHECK(shared > 500);
}

}  // namespace cairn::updates_test
