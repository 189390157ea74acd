#include "cairn/models/builder.h"

#include "cairn/core/error.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/errors.h"

namespace cairn::builder_test {

using namespace cairn::models;
using Init = core::Resident::Init;

TEST_CASE("the builder infers shapes, bytes and edges") {
  ModelBuilder model("shapes", {});
  const Tensor image = model.data("image", {2, 8, 6, 3});
  const Tensor w = model.weight("w", {5, 3, 3, 3}, Init::normal);

  const Tensor y = model.conv2d("conv", image, w, std::nullopt, 2, 1);
  CHECK(y.shape == core::Shape{2, 4, 3, 5});
  CHECK(model.maxpool("maxpool", y, 3, 2, 1).shape == core::Shape{2, 2, 2, 5});
  CHECK(model.upsample("upsample", y).shape == core::Shape{2, 8, 6, 5});
  CHECK(model.concat("concat", y, y).shape == core::Shape{2, 4, 3, 10});
  CHECK(model.permute("permute", y, {0, 3, 1, 2}).shape == core::Shape{2, 5, 4, 3});
  CHECK(model.mean_pool("mean_pool", y).shape == core::Shape{2, 5});
  const Tensor ids = model.indices("ids", {2, 7}, 10);
  const Tensor table = model.weight("table", {10, 4}, Init::normal);
  const Tensor positions = model.constant("positions", {7, 4}, Init::sinusoid);
  CHECK(model.embedding("embedding", ids, table, positions).shape == core::Shape{2, 7, 4});

  const core::Graph graph = model.build();
  CHECK(graph.node_count() == 7);
  CHECK(graph.size(0) == 4 * 2 * 4 * 3 * 5);
  CHECK(graph.scratch(0) > 0);  // the convolution needs scratch
  CHECK(graph.inputs(3).size() == 1);
  CHECK(graph.resident_bytes() == 4 * (2 * 8 * 6 * 3 + 5 * 3 * 3 * 3 + 2 * 7 + 10 * 4 + 7 * 4));
}

TEST_CASE("no dropout, no node") {
  ModelBuilder model("dropout", {});
  const Tensor x = model.data("x", {2, 4});
  CHECK(model.dropout("none", x, 0.0).operand == x.operand);
  CHECK(model.node_count() == 0);
  CHECK(model.dropout("some", x, 0.5).operand == core::Operand::node(0));
}

TEST_CASE("shapes that do not fit are refused with the node's name") {
  ModelBuilder model("refused", {});
  const Tensor x = model.data("x", {2, 4}), image = model.data("image", {1, 2, 2, 3});
  const Tensor w = model.weight("w", {3, 3}, Init::normal);
  const Tensor kernel = model.weight("kernel", {1, 5, 5, 3}, Init::normal);

  CHECK_THROWS_AS(model.project("here", x, w), core::InputError);
  CHECK_THROWS_AS(model.project("here", x, image), core::InputError);
  CHECK_THROWS_AS(model.batched_matmul("here", x, image), core::InputError);
  CHECK_THROWS_AS(model.add("here", x, image), core::InputError);
  CHECK_THROWS_AS(model.conv2d("here", x, kernel, std::nullopt, 1, 0), core::InputError);
  CHECK_THROWS_AS(model.conv2d("here", image, kernel, std::nullopt, 1, 0), core::InputError);
  CHECK_THROWS_AS(model.conv2d("here", image, kernel, std::nullopt, 0, 2), core::InputError);
  CHECK_THROWS_AS(model.permute("here", x, {0, 2}), core::InputError);
  CHECK_THROWS_AS(model.concat("here", x, image), core::InputError);
  CHECK_THROWS_AS(model.data("huge", {1'000'000'000, 1'000'000'000, 1'000'000'000}), core::InputError);
  CHECK(model.node_count() == 0);
  CHECK(tests::contains(tests::error_of([&] { model.project("layer7", x, w); }), "layer7"));
}

}  // namespace cairn::builder_test
