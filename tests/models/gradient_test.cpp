#include "core/error.h"
#include "models/autodiff.h"
#include "models/builder.h"
#include "tests/catch.h"
#include "tests/models/gradient_check.h"
#include "tests/models/tiny_models.h"

using namespace cairn;
using namespace cairn::models;
using Init = core::Resident::Init;

namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// Whether the loss cannot depend on this bias.
bool is_invisible(const std::string& weight) {
  // A bias of all keys adds the same to every score of a query, and softmax does not see it.
  if (ends_with(weight, ".key.bias")) return true;
  // A bias of a token adds the same to all its channels, and no layer norm after it sees that.
  return ends_with(weight, ".tokens.linear2.bias");
}

}  // namespace

TEST_CASE("the weight gradients of every architecture agree with finite differences") {
  // The other models of the registry repeat the same blocks.
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

  SECTION("matrix products, stored either way") {
    const Tensor w = model.weight("w", {4, 6}, Init::normal);
    const Tensor wt = model.weight("wt", {6, 4}, Init::normal);
    const Tensor bias = model.weight("bias", {6}, Init::normal);
    for (const bool trans_a : {false, true}) {
      for (const bool trans_b : {false, true}) {
        const std::string name = std::string(trans_a ? "t" : "n") + (trans_b ? "t" : "n");
        const Tensor a = model.project("a" + name, x, wt, {.bias = bias, .transposed = true});  // [2, 3, 6]
        const Tensor b = model.project("b" + name, x, w);
        // [2, 3, 6] and [2, 6, 3] in every storage of a 3 x 6 times 6 x 3 product.
        const Tensor left = trans_a ? model.permute("left" + name, a, {0, 2, 1}) : a;
        const Tensor right = trans_b ? b : model.permute("right" + name, b, {0, 2, 1});
        const Tensor y =
            model.batched_matmul("y" + name, left, right, {.trans_a = trans_a, .trans_b = trans_b, .alpha = 0.5});
        CHECK(y.shape == core::Shape{2, 3, 3});
        if (trans_a && trans_b) {
          const core::Graph graph = training_step(model, model.mse("loss", y, model.data("target", {2, 3, 3})));
          // Only the last product reaches the loss, and the others are not differentiated.
          CHECK(tests::check_gradients(graph).empty());
          CHECK(tests::gradient_nodes(graph).size() == 3);
        }
      }
    }
  }
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

TEST_CASE("what cannot be differentiated is refused") {
  ModelBuilder model("refused", {});
  const Tensor x = model.data("x", {2, 4});
  const Tensor w = model.weight("w", {4, 4}, Init::normal);
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
