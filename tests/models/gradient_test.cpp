#include "cairn/core/error.h"
#include "cairn/models/autodiff.h"
#include "cairn/models/builder.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/models/gradient_check.h"
#include "cairn/tests/models/tiny_models.h"

namespace cairn::gradient_test {

using namespace cairn::models;
using Init = core::Resident::Init;

namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// Returns whether `weight` is one of the biases on which the loss does not depend. The gradient of such a bias is 0.
bool is_invisible(const std::string& weight) {
  // The bias of the keys adds the same number to all scores of a query, which does not change their softmax.
  if (ends_with(weight, ".key.bias")) return true;
  // This bias adds the same number to all channels of a token, which the layer norms after it remove again.
  return ends_with(weight, ".tokens.linear2.bias");
}

}  // namespace

TEST_CASE("the weight gradients of every architecture agree with finite differences") {
  // The registry's remaining models consist of the same blocks as these.
  for (const std::string name : {"ffn", "resnet18", "resnet50", "unet", "transformer", "gpt2", "mlp-mixer"}) {
    SECTION(name) {
      const bool has_dense_kinks = name.rfind("resnet", 0) == 0;
      for (const std::string& weight : tests::check_gradients(tests::tiny_model(name), has_dense_kinks ? 1e-8 : 1e-6)) {
        INFO("no gradient: " << weight);
        CHECK(is_invisible(weight));
      }
    }
  }
}

TEST_CASE("gradients of what the models do not combine agree with finite differences") {
  ModelBuilder model("odds and ends", {});
  const Tensor x = model.data("x", {2, 3, 4});

  SECTION("scale, a sum with itself, a loss whose target is data") {
    const Tensor w = model.weight("w", {4, 4}, Init::normal);
    Tensor y = model.scale("scale", model.project("y", x, w), -1.5);
    y = model.add("twice", y, y);
    CHECK(tests::check_gradients(training_step(model, model.mse("loss", y, x))).empty());
  }
  SECTION("one weight used three times") {
    const Tensor w = model.weight("w", {4, 4}, Init::normal);
    Tensor y = x;
    for (const char* name : {"first", "second", "third"})
      y = model.gelu(std::string(name) + ".gelu", model.project(name, y, w));
    const core::Graph graph = training_step(model, model.mse("loss", y, x));
    CHECK(tests::check_gradients(graph).empty());
    const core::NodeId gradient = tests::gradient_nodes(graph).begin()->second;
    CHECK(graph.name(gradient) == "w/grad_sum2");
    CHECK(graph.size(gradient) == 0);
    for (const core::NodeId part : graph.inputs(gradient)) {
      CHECK(graph.size(part) == 64);
      CHECK_FALSE(graph.keep(part));
    }
  }
  SECTION("norms of weights") {
    const Tensor w = model.weight("w", {4, 4}, Init::normal), v = model.weight("v", {4, 4}, Init::normal);
    const Tensor params = model.weight("params", {2, 4}, Init::norm_params);
    Tensor y = model.project("y", x, model.layernorm("layernorm", w, params));
    y = model.project("z", model.project("y with w", y, w), model.batchnorm("batchnorm", v, params));
    const core::Graph graph = training_step(model, model.mse("loss", y, x));
    CHECK(tests::check_gradients(graph).empty());
    CHECK(tests::gradient_nodes(graph).size() == 3);
  }
  SECTION("pooling and upsampling, windows that overlap") {
    const Tensor image = model.data("image", {2, 4, 4, 2});
    const Tensor w = model.weight("w", {3, 3, 3, 2}, Init::normal);
    const Tensor bias = model.weight("bias", {3}, Init::normal);
    Tensor y = model.conv2d("conv", model.upsample("upsample.data", image), w, bias, 2, 1);
    y = model.maxpool("maxpool", model.upsample("upsample", y), 3, 2, 1);
    y = model.mean_pool("mean_pool", y);
    CHECK(y.shape == core::Shape{2, 3});
    const core::Graph graph = training_step(model, model.mse("loss", y, model.data("target", {2, 3})));
    CHECK(tests::check_gradients(graph).empty());
  }
}

TEST_CASE("gradients of matrix products agree with finite differences, however the factors are stored") {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      INFO("trans_a " << trans_a << ", trans_b " << trans_b);
      ModelBuilder model("products", {});
      const Tensor x = model.data("x", {2, 3, 4}), bias = model.weight("bias", {6}, Init::normal);
      const Tensor wa = model.weight("wa", {4, 6}, Init::normal);
      const Tensor wb = model.weight("wb", {5, 4}, Init::normal);
      Tensor a = model.project("a", x, wa, {.bias = bias});        // shape [2, 3, 6], so op(A) is 6 x 3
      Tensor b = model.project("b", x, wb, {.transposed = true});  // shape [2, 3, 5], so op(B) is 3 x 5
      if (!trans_a) a = model.permute("a.stored", a, {0, 2, 1});
      if (trans_b) b = model.permute("b.stored", b, {0, 2, 1});
      const Tensor y = model.batched_matmul("y", a, b, {.trans_a = trans_a, .trans_b = trans_b, .alpha = 0.5});
      CHECK(y.shape == core::Shape{2, 6, 5});
      const core::Graph graph = training_step(model, model.mse("loss", y, model.data("target", {2, 6, 5})));
      CHECK(tests::check_gradients(graph).empty());
      CHECK(tests::gradient_nodes(graph).size() == 3);
    }
  }
}

TEST_CASE("a weight that the loss does not depend on gets no gradient") {
  ModelBuilder model("unused", {});
  const Tensor x = model.data("x", {2, 4}), w = model.weight("w", {4, 4}, Init::normal);
  const Tensor unused = model.weight("unused", {4, 4}, Init::normal), y = model.project("y", x, w);
  model.project("side", y, unused);
  model.project("side with w", y, w);  // is not used by the loss, so it adds nothing to the gradient of w
  const core::Graph graph = training_step(model, model.mse("loss", y, x));
  const auto gradients = tests::gradient_nodes(graph);
  REQUIRE(gradients.size() == 1);
  CHECK(gradients.begin()->first == w.operand.index);
  CHECK(graph.name(gradients.begin()->second) == "y/grad_weight");
  CHECK(tests::check_gradients(graph).empty());
}

TEST_CASE("what cannot be differentiated is refused") {
  ModelBuilder model("refused", {});
  const Tensor x = model.data("x", {2, 4}), w = model.weight("w", {4, 4}, Init::normal);
  const Tensor y = model.project("y", x, w);

  SECTION("a loss that is none") {
    CHECK_THROWS_AS(backward(model, y), core::InputError);
    CHECK_THROWS_AS(backward(model, x), core::InputError);
  }
  SECTION("a target that depends on weights") {
    CHECK_THROWS_AS(backward(model, model.mse("loss", y, y)), core::InputError);
  }
  SECTION("a loss of a loss") {
    const Tensor inner = model.mse("inner", y, x);
    CHECK_THROWS_AS(backward(model, model.mse("loss", inner, model.data("target", {1}))), core::InputError);
  }
  SECTION("a weight as a term of a sum") {
    const Tensor term = model.weight("term", {2, 4}, Init::normal);
    CHECK_THROWS_AS(backward(model, model.mse("loss", model.add("sum", y, term), x)), core::InputError);
  }
}

}  // namespace cairn::gradient_test
