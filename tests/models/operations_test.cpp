#include "cairn/models/support/operations.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/models/registry.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"
#include "cairn/solvers/remat/rotor/rotor.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/models/tiny_models.h"
#include "cairn/tests/support/errors.h"

namespace cairn::operations_test {

using core::NodeId;
using models::BuildOptions;
using models::Granularity;
using tests::contains;
using tests::error_of;

namespace {

core::Graph operations_of(const std::string& name, decltype(BuildOptions::values) values, std::string optimizer = "") {
  BuildOptions options{.values = std::move(values), .optimizer = std::move(optimizer), .granularity = Granularity::op};
  return models::build_model(name, options);
}

core::Graph in_operations(tests::TinyModel model) {
  model.options.granularity = Granularity::op;
  return model.build();
}

bool updates(std::string_view name) { return name.find("/assign") != std::string_view::npos; }

/// Checks that our number is within 10% of the published number.
void check_near(double ours, double published) {
  CHECK(ours >= 0.9 * published);
  CHECK(ours <= 1.1 * published);
}

}  // namespace

TEST_CASE("graphs of operations are of the sizes and widths of Kumar et al., Table 1") {
  struct Row {
    std::string name;
    decltype(BuildOptions::values) values;
    double nodes, edges;
    std::int32_t width;
  };
  const std::vector<Row> rows{{"resnet200", {}, 17705, 27312, 11},
                              {"ffn", {{"layers", 100}}, 3217, 4447, 6},
                              {"transformer", {}, 15842, 21771, 18},
                              {"transformer", {{"attention-dropout", 10}, {"relu-dropout", 10}}, 15842, 21771, 18}};
  for (const auto& [name, values, nodes, edges, width] : rows) {
    INFO(name);
    const core::Graph graph = operations_of(name, values);
    check_near(graph.node_count(), nodes);
    check_near(static_cast<double>(graph.edge_count()), edges);
    check_near(static_cast<double>(graph.edge_count()) / graph.node_count(), edges / nodes);
    CHECK(solvers::min_fill_decomposition(graph).width <= width);
  }
}

TEST_CASE("two linear layers, operation by operation") {
  const core::Graph graph =
      operations_of("ffn", {{"batch", 2}, {"layers", 2}, {"inputs", 3}, {"width", 5}, {"outputs", 4}});
  // The operations whose results have elements, with the number of elements. The numbers are computed by hand.
  const std::map<std::string, std::int64_t> elements{
      {"layer0/matmul", 2 * 5},
      {"layer0/add", 2 * 5},
      {"layer0.relu/maximum", 2 * 5},
      {"layer1/matmul", 2 * 4},
      {"layer1/add", 2 * 4},
      {"loss/subtract", 2 * 4},
      {"loss/multiply", 2 * 4},  // the squared differences
      {"loss/sum", 1},
      {"loss/divide", 1},
      {"loss/grad_input/divide", 1},  // the factor 2 / (2 * 4)
      {"loss/grad_input/multiply", 2 * 4},
      {"layer1/grad_bias/sum", 4},
      {"layer1/grad_weight/matmul", 5 * 4},
      {"layer1/grad_input/matmul", 2 * 5},
      {"layer1.bias/multiply", 4},
      {"layer1.bias/subtract", 4},
      {"layer1.weight/multiply", 5 * 4},
      {"layer1.weight/subtract", 5 * 4},
      {"layer0.relu/grad_input/select", 2 * 5},
      {"layer0/grad_bias/sum", 5},
      {"layer0/grad_weight/matmul", 3 * 5},
      {"layer0.bias/multiply", 5},
      {"layer0.bias/subtract", 5},
      {"layer0.weight/multiply", 3 * 5},
      {"layer0.weight/subtract", 3 * 5},
  };
  std::int64_t found = 0, descriptors = 0, assigned = 0;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    INFO(graph.name(v));
    if (const auto it = elements.find(graph.name(v)); it != elements.end()) {
      CHECK(graph.size(v) == 4 * it->second);
      CHECK(graph.cost(v) >= 2000);  // at least the cost of a kernel launch
      ++found;
    } else if (graph.name(v) == "layer0.relu/grad_input/greater") {
      CHECK(graph.size(v) == 2 * 5);  // results of comparisons take one byte per element
    } else if (updates(graph.name(v))) {
      CHECK(graph.size(v) == 0);
      CHECK(graph.keep(v));
      ++assigned;
    } else {
      CHECK(graph.size(v) == 64);
      CHECK(graph.cost(v) == 0);
      ++descriptors;
    }
  }
  CHECK(found == static_cast<std::int64_t>(elements.size()));
  CHECK(assigned == 4);
  // This sum is the number of descriptors: nodes of 64 bytes that only describe a tensor, such as reads of resident
  // tensors, shapes and views (docs/operations.md). In the forward pass, each layer reads its weight and its bias and
  // takes three shapes. The first layer also reads the data. The loss reads the target and takes two shapes. The
  // remaining terms belong to the backward pass, in the order of its nodes.
  CHECK(descriptors == (1 + 5) + 5 + 3 + 1 + (2 + 2 + 2) + (2 + 2 + 1) + (2 + 3) + (2 + 2));
  // This sum is the number of edges. The terms are those of the two layers, of ReLU, of the loss and its gradient, and
  // then of the gradients of the second layer, of ReLU and of the first layer.
  CHECK(graph.edge_count() == 2 * 8 + 1 + 8 + 6 + (6 + 7 + 4 + 6 + 8) + 3 + (6 + 6 + 6 + 5));

  CHECK(graph.fingerprint() == "eb8a8c29b2f867ad");  // must never change, because schedule files refer to it

  // Residents are the weights, the updated weights for the next step, and the data (inputs and targets).
  const std::int64_t weights = 3 * 5 + 5 + 5 * 4 + 4;
  CHECK(graph.resident_bytes() == 4 * (2 * weights + 2 * 3 + 2 * 4));
  // The peak is reached when the second weight has been transposed, to compute the gradient of the hidden layer. The
  // first factor has the elements in memory: the gradient of the second weight, the hidden layer, the gradients of the
  // output and of the bias, and the loss. Six descriptors of 64 bytes are in memory, too: two shapes of the first
  // layer, views of the gradients of the bias and of the output, and the second weight and its transpose.
  CHECK(core::evaluate(graph, core::baseline_schedule(graph)).peak ==
        4 * (5 * 4 + 2 * 5 + 2 * 4 + 4 + 1) + 64 * (2 + 2 + 2));
}

TEST_CASE("every model lowers into a training step that is all needed, and in its order") {
  for (const tests::TinyModel& model : tests::tiny_models()) {
    INFO(model.name);
    const core::Graph layers = model.build(), graph = in_operations(model);
    CHECK_FALSE(graph.order_was_given());
    CHECK(graph.input_order().front() == 0);
    CHECK(graph.input_order().back() == graph.node_count() - 1);

    std::int64_t assigned = 0, kept = 0;
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      INFO(graph.name(v));
      REQUIRE(graph.op(v) == nullptr);
      CHECK_FALSE(graph.pinned(v));
      if (graph.readers(v).empty()) CHECK(graph.keep(v));
      assigned += updates(graph.name(v));
      kept += graph.keep(v);
      if (graph.keep(v)) CHECK((graph.size(v) == 0 || graph.size(v) == 4));
      if (graph.backward(v)) {
        REQUIRE(graph.forward(v) != core::kNoNode);
        CHECK_FALSE(graph.backward(graph.forward(v)));
        CHECK(graph.cost(graph.forward(v)) > 0);  // a cost above 0 shows that it is not a descriptor
      } else {
        for (const NodeId u : graph.predecessors(v)) CHECK_FALSE(graph.backward(u));
      }
    }
    std::int64_t weights = 0, averages = 0;
    for (const core::Resident& resident : layers.residents()) {
      weights += resident.role == core::Resident::Role::weight;
    }
    for (NodeId v = 0; v < layers.node_count(); ++v) averages += layers.op(v)->kind == core::OpKind::batchnorm_stats;
    CHECK(kept == assigned + 1);  // the assigned tensors and the loss
    // Each weight, the optimizer's state of each weight, and two running statistics of each batch norm are assigned.
    const auto& optimizer = models::find_model(model.name).optimizer;
    const std::int64_t states = optimizer == "adam" ? 4 : optimizer == "momentum" ? 2 : 1;
    CHECK(assigned == states * weights + 2 * averages);
    CHECK(in_operations(model).fingerprint() == graph.fingerprint());

    const core::Graph inference = core::forward_part(graph);
    CHECK(inference.node_count() < graph.node_count());
  }
}

TEST_CASE("marks say with which part of the forward pass a backward operation can run") {
  const core::Graph graph =
      operations_of("ffn", {{"batch", 4096}, {"layers", 6}, {"width", 64}, {"inputs", 64}, {"outputs", 64}});
  std::map<std::string, std::string> marks;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.backward(v)) marks[graph.name(v)] = graph.name(graph.forward(v));
  }
  CHECK(marks.at("layer2/grad_bias/sum") == "layer2/add");
  CHECK(marks.at("layer2/grad_weight/matmul") == "layer2/matmul");  // the gradient reads the input of this product
  CHECK(marks.at("layer2.weight/assign") == "layer2/matmul");
  CHECK(marks.at("layer2.relu/grad_input/select") == "layer2.relu/maximum");
  // With these marks, solver rotor finds a chain of blocks, and can recompute values that are used within a single
  // block.
  solvers::RotorOptions options;
  options.budget = core::evaluate(graph, core::baseline_schedule(graph)).peak * 3 / 4;
  CHECK(solvers::rotor(graph, options).peak <= *options.budget);
  CHECK(solvers::rotor(graph, options).peak > 0);
}

TEST_CASE("an operation reads the tensor behind a view, and random bits come from no state") {
  for (const tests::TinyModel& model : tests::tiny_models()) {
    INFO(model.name);
    const core::Graph graph = in_operations(model);
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      INFO(graph.name(v));
      if (contains(graph.name(v), "/random_bits")) {
        REQUIRE(graph.predecessors(v).size() == 1);
        CHECK(contains(graph.name(graph.predecessors(v).front()), "/shape"));
      }
      // An operation that reads a view also has the output behind the view as an input. So this output stays in memory.
      if (!contains(graph.name(v), "/contiguous")) continue;
      std::int64_t bytes = 0;
      for (const NodeId u : graph.predecessors(v)) bytes += graph.size(u) - (graph.size(u) == 64 ? 64 : 0);
      CHECK((bytes > 0 || graph.size(v) <= 64));
    }
  }
}

TEST_CASE("optimizers, decay and kept gradients") {
  const auto ffn = [](const std::string& optimizer) {
    return operations_of("ffn", {{"batch", 2}, {"layers", 2}, {"width", 5}}, optimizer);
  };
  const core::Graph plain = ffn("none");
  CHECK(ffn("").fingerprint() == plain.fingerprint());  // the default optimizer, as in the FFN's paper
  // For each of the four weights, momentum adds four nodes, which read the old momentum, scale it, add the gradient,
  // and store the result.
  CHECK(ffn("momentum").node_count() == plain.node_count() + 4 * 4);
  CHECK(ffn("adam").node_count() > ffn("momentum").node_count());

  BuildOptions options{.values = {{"batch", 2}, {"layers", 2}, {"width", 5}},
                       .weight_grads_in_arena = true,
                       .granularity = Granularity::op};
  const core::Graph kept = models::build_model("ffn", options);
  CHECK(kept.node_count() == plain.node_count());
  std::int64_t bytes = 0;
  for (NodeId v = 0; v < kept.node_count(); ++v) bytes += kept.keep(v) ? kept.size(v) : 0;
  CHECK(bytes == 4 * (1024 * 5 + 5 + 5 * 1024 + 1024) + 4);

  SECTION("weights of convolutions and of the linear layer decay, those of norms do not") {
    options.weight_grads_in_arena = false;
    options.values.clear();
    options.granularity = Granularity::layer;
    options.optimizer = "momentum";
    const core::Graph layers = models::build_model("resnet18", options);
    models::OperationOptions lowering{.optimizer = "momentum"};
    const core::Graph without = models::to_operations(layers, lowering);
    lowering.weight_decay = true;
    const core::Graph with = models::to_operations(layers, lowering);
    // Weight decay adds six nodes for each of 21 weights (20 convolutions and one linear layer). Three of them read and
    // square the weight and sum the squares. Three read and scale the weight and add it to the gradient. Three more
    // nodes add the sums to the loss.
    CHECK(with.node_count() == without.node_count() + 21 * 6 + 3);
    CHECK(operations_of("resnet18", {}).fingerprint() == with.fingerprint());
  }
}

TEST_CASE("what cannot be lowered gets one line that says why") {
  BuildOptions options{.optimizer = "adamw", .granularity = Granularity::op};
  CHECK(contains(error_of([&] { models::build_model("ffn", options); }),
                 "--optimizer adamw updates weights in layers only; drop --granularity op or use --optimizer adam"));
  CHECK(contains(error_of([&] { models::to_operations(tests::tiny_model("ffn"), {.optimizer = "sgd"}); }),
                 "--optimizer sgd updates weights in layers only"));
  CHECK(contains(error_of([&] { models::to_operations(tests::tiny_model("ffn"), {.optimizer = "sdg"}); }),
                 "unknown optimizer 'sdg': use none, momentum, adam, sgd or adamw; did you mean 'sgd'?"));
  CHECK(contains(error_of([] { models::granularity_from_string("ops"); }),
                 "unknown granularity 'ops': use layer or op; did you mean 'op'?"));
  const core::Graph operations = in_operations(tests::tiny_models().front());
  CHECK(contains(error_of([&] { models::to_operations(operations); }), "has no op that can be split into operations"));
  core::GraphBuilder builder;
  builder.add_resident({.name = "x", .shape = {2, 3}, .role = core::Resident::Role::data});
  builder.add_resident({.name = "p", .shape = {2, 3}});
  core::Node node{.name = "norm"};
  node.op = core::Op{
      core::OpKind::layernorm_with_stats, {2, 3}, {core::Operand::resident(0), core::Operand::resident(1)}, {}};
  core::set_sizes(node);
  builder.add(std::move(node));
  const core::Graph fused = builder.build();
  CHECK(contains(error_of([&] { models::to_operations(fused); }),
                 "node 'norm': it is not known which operations a layernorm_with_stats consists of"));
}

}  // namespace cairn::operations_test
