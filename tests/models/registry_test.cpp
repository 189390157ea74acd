#include "cairn/models/registry.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"
#include "cairn/runtime/executor.h"
#include "cairn/runtime/program.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/models/gradient_check.h"
#include "cairn/tests/models/tiny_models.h"
#include "cairn/tests/support/errors.h"

namespace cairn::registry_test {

using models::build_model;
using models::BuildOptions;
using tests::contains;
using Role = core::Resident::Role;

namespace {

core::Graph build(const std::string& name, decltype(BuildOptions::values) values) {
  return build_model(name, {.values = std::move(values)});
}

std::int64_t elements(const core::Graph& graph, Role role) {
  std::int64_t sum = 0;
  for (const core::Resident& resident : graph.residents()) {
    if (resident.role == role) sum += core::element_count(resident.shape);
  }
  return sum;
}

std::int64_t count(const core::Graph& graph, bool backward) {
  std::int64_t nodes = 0;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) nodes += graph.backward(v) == backward;
  return nodes;
}

core::NodeId find(const core::Graph& graph, const std::string& name) {
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.name(v) == name) return v;
  }
  FAIL("no node " << name);
  return core::kNoNode;
}

core::Shape shape(const core::Graph& graph, const std::string& name) { return graph.op(find(graph, name))->shape; }

bool read_by_backward(const core::Graph& graph, core::NodeId v) {
  const auto readers = graph.readers(v);
  return std::any_of(readers.begin(), readers.end(), [&](core::NodeId w) { return graph.backward(w); });
}

/// Checks that building the model throws an InputError, and returns its message.
std::string refusal(const std::string& name, const BuildOptions& options) {
  return tests::error_of([&] { build_model(name, options); });
}

std::string refusal(const std::string& name, decltype(BuildOptions::values) values) {
  BuildOptions options{.values = std::move(values)};
  return refusal(name, options);
}

}  // namespace

TEST_CASE("parameter counts are those of the papers and of the usual implementations") {
  const std::map<std::string, std::int64_t> parameters{
      {"ffn", 8 * (1024 * 1024 + 1024)},
      {"resnet18", 11'689'512},
      {"resnet34", 21'797'672},
      {"resnet50", 25'557'032},
      {"resnet101", 44'549'160},
      {"resnet152", 60'192'808},
      {"resnet200", 64'673'832},
      {"unet", 2'160'194},  // a number of this variant only, which was never published
      // Without embeddings, the encoder and the decoder of the base model have 44,138,496 parameters.
      {"transformer", 44'138'496 + 37'000 * 512},
      {"transformer-big", 176'357'376 + 37'000 * 1024},
      {"gpt2", 124'439'808},
      {"mlp-mixer", 18'528'264},
  };
  for (const models::ModelInfo& model : models::registry()) {
    INFO(model.name);
    const core::Graph graph = build_model(model.name, {});
    CHECK(elements(graph, Role::weight) == parameters.at(std::string(model.name)));
    CHECK(elements(graph, Role::weight_grad) == elements(graph, Role::weight));
    CHECK(elements(graph, Role::optimizer) == 2 * elements(graph, Role::weight));
  }
  CHECK(models::registry().size() == parameters.size());
}

TEST_CASE("node counts follow from the architecture") {
  SECTION("ffn: linear and ReLU; bias, weight and input gradients") {
    for (const std::int64_t layers : {1, 2, 7}) {
      const core::Graph graph = build("ffn", {{"batch", 2}, {"layers", layers}, {"width", 3}});
      CHECK(count(graph, false) == layers + (layers - 1) + 1);
      CHECK(count(graph, true) == 1 + 2 * layers + 2 * (layers - 1));
    }
  }
  SECTION("resnet: convolutions, two nodes a batch norm, ReLUs, residual sums") {
    // Each entry is {model, convolutions, ReLUs, blocks}.
    const std::vector<std::tuple<std::string, int, int, int>> nets{
        {"resnet18", 20, 17, 8}, {"resnet50", 53, 49, 16}, {"resnet200", 203, 199, 66}};
    for (const auto& [name, convs, relus, blocks] : nets) {
      const core::Graph graph = build(name, {});
      // The last term stands for the four other nodes: max pool, mean pool, the linear layer and the loss.
      CHECK(count(graph, false) == 3 * convs + relus + blocks + 4);
      // Each convolution has two gradients, except the first, which has one. Each batch norm has two gradients, each
      // ReLU has one, and each block adds two gradients up. The last terms stand for the two poolings (one gradient
      // each), the linear layer (three gradients) and the loss (one gradient).
      CHECK(count(graph, true) == (2 * convs - 1) + 2 * convs + relus + blocks + 2 + 3 + 1);
    }
  }
  SECTION("gpt2: 20 nodes forward and 36 backward a block") {
    for (const std::int64_t layers : {1, 3, 12}) {
      const core::Graph graph = build("gpt2", {{"layers", layers}});
      CHECK(count(graph, false) == 20 * layers + 5);
      CHECK(count(graph, true) == 36 * layers + 8);
    }
  }
}

TEST_CASE("shapes at known places") {
  SECTION("resnet50") {
    const core::Graph graph = build("resnet50", {{"batch", 2}});
    CHECK(shape(graph, "stem.conv1") == core::Shape{2, 112, 112, 64});
    CHECK(shape(graph, "stem.maxpool") == core::Shape{2, 56, 56, 64});
    CHECK(shape(graph, "layer1.2.relu") == core::Shape{2, 56, 56, 256});
    // The stride is in the 3x3 convolution (conv2), not in conv1.
    CHECK(shape(graph, "layer2.0.conv1") == core::Shape{2, 56, 56, 128});
    CHECK(shape(graph, "layer2.0.conv2") == core::Shape{2, 28, 28, 128});
    CHECK(shape(graph, "layer4.2.relu") == core::Shape{2, 7, 7, 2048});
    CHECK(shape(graph, "layer4.2.relu/grad_input") == core::Shape{2, 7, 7, 2048});
    CHECK(shape(graph, "layer4.2.conv2/grad_weight") == core::Shape{512, 3, 3, 512});
    CHECK(shape(graph, "fc") == core::Shape{2, 1000});
    CHECK(graph.size(find(graph, "fc")) == 4 * 2 * 1000);
  }
  SECTION("unet") {
    const core::Graph graph = build("unet", {});
    CHECK(shape(graph, "bottom.relu2") == core::Shape{4, 4, 4, 256});
    CHECK(shape(graph, "up3.upconv") == core::Shape{4, 8, 8, 128});
    CHECK(shape(graph, "up3.concat") == core::Shape{4, 8, 8, 256});
    CHECK(shape(graph, "head") == core::Shape{4, 64, 64, 2});
  }
  SECTION("gpt2") {
    const core::Graph graph = build("gpt2", {});
    CHECK(shape(graph, "block0.attention.query.heads") == core::Shape{4, 12, 1024, 64});
    CHECK(shape(graph, "block0.attention.scores") == core::Shape{4, 12, 1024, 1024});
    CHECK(shape(graph, "block11.mlp.gelu") == core::Shape{4, 1024, 3072});
    CHECK(shape(graph, "logits") == core::Shape{4, 1024, 50257});
  }
  SECTION("transformer and mlp-mixer") {
    const core::Graph transformer = build("transformer", {});
    CHECK(shape(transformer, "decoder.5.cross_attention.context") == core::Shape{16, 8, 128, 64});
    CHECK(shape(transformer, "encoder.0.ff.relu") == core::Shape{16, 128, 2048});
    const core::Graph mixer = build("mlp-mixer", {});
    CHECK(shape(mixer, "patches") == core::Shape{32, 14, 14, 512});
    CHECK(shape(mixer, "block0.tokens.gelu") == core::Shape{32, 512, 256});
    CHECK(shape(mixer, "block7.channels.gelu") == core::Shape{32, 14, 14, 2048});
  }
}

TEST_CASE("every model is a training step whose nodes are all executable and all needed") {
  for (const tests::TinyModel& model : tests::tiny_models()) {
    INFO(model.name);
    const core::Graph graph = model.build();  // build() also checks every op
    const auto gradients = tests::gradient_nodes(graph);
    const core::NodeId loss = tests::loss_node(graph);
    REQUIRE(loss != core::kNoNode);
    CHECK(graph.op(loss)->shape == core::Shape{1});

    std::int64_t weights = 0;
    for (std::size_t i = 0; i < graph.residents().size(); ++i) {
      if (graph.residents()[i].role != Role::weight) continue;
      ++weights;
      CHECK(gradients.count(static_cast<std::int32_t>(i)) == 1);
    }
    std::int64_t kept = 0;
    core::NodeId last_forward = core::kNoNode;
    for (core::NodeId v = 0; v < graph.node_count(); ++v) {
      INFO(graph.name(v));
      REQUIRE(graph.op(v) != nullptr);
      kept += graph.keep(v);
      if (graph.readers(v).empty()) CHECK(graph.keep(v));  // a result is either read or kept
      CHECK(graph.size(v) == (graph.op(v)->writes >= 0 ? 0 : 4 * core::element_count(graph.op(v)->shape)));
      CHECK(graph.cost(v) >= 2000);
      if (graph.backward(v)) {
        REQUIRE(graph.forward(v) != core::kNoNode);
        CHECK_FALSE(graph.backward(graph.forward(v)));
        CHECK(contains(graph.name(v), "/grad"));
      } else {
        CHECK(v == last_forward + 1);  // all forward nodes come before all backward nodes
        last_forward = v;
      }
    }
    CHECK(kept == weights + 1);
    CHECK_FALSE(graph.order_was_given());  // so the order of the node ids is the baseline
    CHECK(graph.input_order().front() == 0);
    CHECK(graph.input_order().back() == graph.node_count() - 1);
  }
}

TEST_CASE("the backward pass reads no more than it must") {
  const core::Graph resnet = build("resnet50", {});
  for (core::NodeId v = 0; v < resnet.node_count(); ++v) {
    if (resnet.backward(v)) continue;
    const core::OpKind kind = resnet.op(v)->kind;
    // The derivative of ReLU is computed from ReLU's output. So the backward pass does not need ReLU's input.
    if (kind == core::OpKind::batchnorm || kind == core::OpKind::add) CHECK_FALSE(read_by_backward(resnet, v));
    if (kind == core::OpKind::relu || kind == core::OpKind::conv2d) CHECK(read_by_backward(resnet, v));
  }
  const core::Graph gpt2 = build("gpt2", {});
  CHECK_FALSE(read_by_backward(gpt2, find(gpt2, "block0.attention.scores")));
  CHECK(read_by_backward(gpt2, find(gpt2, "block0.attention.weights")));
  CHECK_FALSE(read_by_backward(gpt2, find(gpt2, "block0.attention.query")));
  CHECK(read_by_backward(gpt2, find(gpt2, "block0.mlp.linear1")));

  SECTION("and computes no gradient of data") {
    for (core::NodeId v = 0; v < resnet.node_count(); ++v) CHECK(resnet.name(v) != "stem.conv1/grad_input");
  }
}

TEST_CASE("gradients in the arena are ordinary kept nodes") {
  for (tests::TinyModel model : tests::tiny_models()) {
    INFO(model.name);
    const core::Graph resident = model.build();
    model.options.weight_grads_in_arena = true;
    const core::Graph arena = model.build();
    REQUIRE(arena.node_count() == resident.node_count());
    std::int64_t gradient_bytes = 0;
    for (core::NodeId v = 0; v < arena.node_count(); ++v) {
      CHECK(arena.name(v) == resident.name(v));
      CHECK(arena.keep(v) == resident.keep(v));
      CHECK(arena.op(v)->writes == -1);
      if (arena.keep(v) && arena.backward(v)) gradient_bytes += arena.size(v);
    }
    CHECK(gradient_bytes == 4 * elements(arena, Role::weight));
    CHECK(elements(arena, Role::weight_grad) == 0);
    CHECK(arena.resident_bytes() == resident.resident_bytes() - gradient_bytes);
  }
}

TEST_CASE("resident bytes count weights, gradients, optimizer state, data and constants") {
  const std::map<std::string, std::int64_t> copies{{"none", 0}, {"momentum", 1}, {"adam", 2}};
  for (const auto& [optimizer, states] : copies) {
    BuildOptions options{.optimizer = optimizer};
    options.values = {{"batch", 2}, {"layers", 1}, {"inputs", 3}, {"outputs", 5}};
    const core::Graph graph = build_model("ffn", options);
    const std::int64_t weights = 3 * 5 + 5;
    CHECK(elements(graph, Role::optimizer) == states * weights);
    CHECK(graph.resident_bytes() == 4 * ((2 + states) * weights + 2 * 3 + 2 * 5));
  }
}

TEST_CASE("the roofline sets the costs") {
  BuildOptions slow{.values = {{"batch", 64}, {"layers", 1}, {"inputs", 64}, {"outputs", 64}}};
  slow.roofline = {.flops_per_ns = 1.0, .bytes_per_ns = 1e9, .launch_ns = 0.0};
  const core::Graph graph = build_model("ffn", slow);
  CHECK(graph.cost(find(graph, "layer0")) == 2 * 64 * 64 * 64);
}

TEST_CASE("wrong options get one line that says what to do") {
  CHECK(contains(refusal("resnet51", BuildOptions{}), "did you mean 'resnet50'"));
  CHECK(contains(refusal("ffn", {{"widht", 3}}), "did you mean 'width'"));
  CHECK(contains(refusal("ffn", {{"batch", 0}}), "--batch 0 is out of range; use 1 to"));
  CHECK(contains(refusal("ffn", {{"layers", -1}}), "--layers -1 is out of range"));
  CHECK(contains(refusal("ffn", {{"layers", 1'000'000'000}}), "is out of range"));
  CHECK(contains(refusal("gpt2", {{"dropout", 100}}), "--dropout 100 is out of range; use 0 to 99"));
  CHECK(contains(refusal("gpt2", {{"heads", 5}}), "gpt2: --width 768 is not a multiple of heads (5); try 770"));
  CHECK(contains(refusal("transformer-big", {{"width", 8}}),
                 "transformer-big: --width 8 is not a multiple of heads (16)"));
  CHECK(contains(refusal("mlp-mixer", {{"image", 225}}), "--image 225 is not a multiple of patch (16); try 240"));
  CHECK(contains(refusal("unet", {{"image", 24}}), "--image 24 is not a multiple of 2^depth (16); try 32"));
  CHECK(contains(refusal("unet", {{"depth", 100}}), "--depth 100 is out of range"));
  CHECK(contains(refusal("ffn", BuildOptions{.optimizer = "sdg"}), "unknown optimizer 'sdg'"));
  CHECK(contains(refusal("ffn", BuildOptions{.optimizer = "sdg"}), "did you mean 'sgd'"));
}

TEST_CASE("no option, however large, does more than build or be refused in one line") {
  for (const models::ModelInfo& model : models::registry()) {
    for (const models::ModelOption& option : model.options) {
      if (option.name == "layers") continue;  // 10,000 layers are valid, only slow to build
      for (const std::int64_t value :
           {std::int64_t{1}, std::int64_t{1'000'000'000}, std::numeric_limits<std::int64_t>::max(),
            std::numeric_limits<std::int64_t>::min()}) {
        INFO(model.name << " --" << option.name << " " << value);
        const std::string message = refusal(std::string(model.name), {{std::string(option.name), value}});
        CHECK(message.find('\n') == std::string::npos);
        if (value > 1'000'000'000 || value < 0) CHECK(contains(message, "is out of range"));
      }
    }
  }
}

TEST_CASE("every dropout has a stream of its own, which its gradient shares") {
  const core::Graph graph = build("gpt2", {{"layers", 2}, {"dropout", 10}});
  std::set<std::uint64_t> streams;
  std::int64_t forward = 0;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    const core::Op& op = *graph.op(v);
    if (op.kind != core::OpKind::dropout) continue;
    CHECK(op.attrs.p == Approx(0.1));
    if (graph.backward(v)) {
      CHECK(op.attrs == graph.op(graph.forward(v))->attrs);
    } else {
      ++forward;
      streams.insert(op.attrs.stream);
    }
  }
  CHECK(forward == 1 + 3 * 2);
  CHECK(static_cast<std::int64_t>(streams.size()) == forward);
}

TEST_CASE("running the whole forward pass again changes no bit of loss and gradients") {
  for (const tests::TinyModel& model : tests::tiny_models()) {
    if (!contains(model.name, "transformer") && model.name != "gpt2") continue;  // only these models have dropout
    INFO(model.name);
    const core::Graph graph = model.build();
    const core::Schedule once = core::baseline_schedule(graph);
    core::Schedule twice;
    for (const core::NodeId v : once.steps) {
      if (!graph.backward(v)) twice.steps.push_back(v);
    }
    twice.steps.insert(twice.steps.end(), once.steps.begin(), once.steps.end());

    const auto executor = [&](const core::Schedule& schedule) {
      const core::Plan plan = solvers::plan_memory(graph, schedule, {.alignment = 256});
      return runtime::host_executor(runtime::compile(graph, schedule, plan));
    };
    const auto first = executor(once);
    const auto second = executor(twice);
    first->run();
    second->run();
    const auto expected = first->outputs();
    const auto found = second->outputs();
    REQUIRE(expected.size() == found.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO(graph.name(expected[i].node));
      CHECK(
          std::equal(expected[i].bytes.begin(), expected[i].bytes.end(), found[i].bytes.begin(), found[i].bytes.end()));
    }
  }
}

}  // namespace cairn::registry_test
