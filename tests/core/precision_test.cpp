#include "cairn/core/precision.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/bf16.h"
#include "cairn/models/autodiff.h"
#include "cairn/models/builder.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/models/tiny_models.h"
#include "cairn/tests/support/errors.h"

namespace cairn::precision_test {

using core::Bf16;
using core::ElementType;
using core::Graph;
using core::Precision;

TEST_CASE("bf16 rounds to the nearest, ties to even") {
  const auto bits = [](float value) { return Bf16(value).bits; };
  CHECK(bits(1.0F) == 0x3F80);
  CHECK(bits(1.0F + 0x1p-8F) == 0x3F80);            // a tie: rounds down, to the even mantissa
  CHECK(bits(1.0F + 0x1p-7F + 0x1p-8F) == 0x3F82);  // a tie: rounds up, to the even mantissa
  CHECK(bits(1.0F + 0x1p-8F + 0x1p-20F) == 0x3F81);
  CHECK(bits(-2.5F) == 0xC020);
  CHECK(bits(0.0F) == 0x0000);
  CHECK(bits(-0.0F) == 0x8000);
  CHECK(bits(std::numeric_limits<float>::infinity()) == 0x7F80);
  CHECK(bits(std::numeric_limits<float>::max()) == 0x7F80);
  CHECK(bits(std::numeric_limits<float>::quiet_NaN()) == 0x7FFF);
  CHECK(bits(-std::numeric_limits<float>::quiet_NaN()) == 0x7FFF);
  CHECK(bits(std::numeric_limits<float>::denorm_min()) == 0x0000);
}

TEST_CASE("every bf16 survives the way to float and back") {
  for (std::uint32_t word = 0; word <= 0xFFFF; ++word) {
    Bf16 value;
    value.bits = static_cast<std::uint16_t>(word);
    const float wide = static_cast<float>(value);
    if (std::isnan(wide)) continue;
    CHECK(Bf16(wide).bits == value.bits);
  }
}

TEST_CASE("bf16 graphs halve what is stored as bf16, and keep statistics, norms and losses in fp32") {
  for (const auto& tiny : tests::tiny_models()) {
    INFO(tiny.name);
    const Graph graph = tiny.build();
    CHECK(core::with_precision(graph, Precision::fp32).fingerprint() == graph.fingerprint());
    CHECK(core::with_precision(graph, Precision::tf32).fingerprint() == graph.fingerprint());
    CHECK_FALSE(core::stores_bf16(graph));
    const Graph half = core::with_precision(graph, Precision::bf16);
    CHECK(core::stores_bf16(half));
    REQUIRE(half.node_count() == graph.node_count());
    for (core::NodeId v = 0; v < graph.node_count(); ++v) {
      const ElementType type = half.op(v)->type;
      CHECK(type == core::output_type(half.op(v)->kind, ElementType::bf16));
      if (graph.size(v) > 0) CHECK(half.size(v) == (type == ElementType::bf16 ? graph.size(v) / 2 : graph.size(v)));
      CHECK(half.cost(v) == graph.cost(v));
      for (std::size_t i = 0; i < half.op(v)->args.size(); ++i) {
        CHECK(core::type_of(half, half.op(v)->args[i]) == core::arg_type(half.op(v)->kind, i, ElementType::bf16));
      }
    }
    CHECK(half.resident_bytes() < graph.resident_bytes());
    CHECK(core::with_precision(half, Precision::bf16).fingerprint() == half.fingerprint());
    CHECK_THROWS_AS(core::with_precision(half, Precision::fp32), core::InputError);
  }
}

TEST_CASE("bf16 halves the scratch of nodes that overwrite a tensor of several GiB") {
  const std::int64_t elements = 1'200'000'000;
  const std::string text = fmt::format(
      R"({{"format": "cairn.graph", "version": 1, "residents": [{{"name": "x", "role": "data", "shape": [{0}]}}],
           "nodes": [{{"name": "a", "size": {1}, "op": {{"kind": "scale", "shape": [{0}], "args": ["r0"], "alpha": 2}}}},
                     {{"name": "b", "size": {1}, "scratch": -{1}, "inputs": [0], "inplace": 0, "keep": true,
                      "op": {{"kind": "relu", "shape": [{0}], "args": ["n0"]}}}}]}})",
      elements, 4 * elements);
  const Graph half = core::with_precision(core::parse_graph(text, "large"), Precision::bf16);
  CHECK(half.scratch(1) == -2 * elements);
}

TEST_CASE("a bf16 graph comes back from its file") {
  const Graph graph = core::with_precision(tests::tiny_models().front().build(), Precision::bf16);
  const Graph again = core::parse_graph(core::graph_to_json(graph), "g.json");
  CHECK(again.fingerprint() == graph.fingerprint());
  for (core::NodeId v = 0; v < graph.node_count(); ++v) CHECK(*again.op(v) == *graph.op(v));
  for (std::size_t i = 0; i < graph.residents().size(); ++i) CHECK(again.residents()[i] == graph.residents()[i]);
}

TEST_CASE("mixed storage is refused, and the message names the node") {
  const Graph graph = tests::tiny_models().front().build();
  core::GraphBuilder builder(graph);
  core::NodeId changed = core::kNoNode;
  for (core::NodeId v = 0; v < graph.node_count() && changed == core::kNoNode; ++v) {
    if (graph.op(v)->kind == core::OpKind::relu) changed = v;
  }
  REQUIRE(changed != core::kNoNode);
  builder.node(changed).op->type = ElementType::bf16;
  builder.node(changed).size /= 2;
  CHECK(tests::contains(tests::error_of([&] { builder.build(); }), graph.name(changed)));
}

TEST_CASE("norms that share their parameters are refused at bf16, by the names of both") {
  for (const char* optimizer : {"", "adamw"}) {
    models::ModelBuilder model("shared", {.optimizer = optimizer});
    const auto params = model.weight("norm", {2, 8}, core::Resident::Init::norm_params);
    auto x = model.data("x", {4, 8});
    for (const char* name : {"first", "second"}) x = model.layernorm(name, x, params);
    const Graph graph = models::training_step(model, model.mse("loss", x, model.data("target", {4, 8})));
    tests::check_line(tests::error_of<core::InputError>([&] { core::with_precision(graph, Precision::bf16); }),
                      {"node 'norm/grad_sum' adds 'second/grad_params' and 'first/grad_params'",
                       "give each norm its own parameters, or drop --precision bf16"});
    CHECK_NOTHROW(core::with_precision(graph, Precision::tf32));
  }
}

TEST_CASE("names of precisions") {
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16}) {
    CHECK(core::precision_from_string(core::to_string(precision)) == precision);
  }
  CHECK_THROWS_AS(core::precision_from_string("fp16"), core::InputError);
}

TEST_CASE("the roofline of a bf16 graph is no slower than fp32's") {
  for (const auto& tiny : tests::tiny_models()) {
    const Graph graph = tiny.build();
    const Graph fp32 = core::with_roofline_costs(graph, core::roofline_of(Precision::fp32));
    const Graph bf16 =
        core::with_roofline_costs(core::with_precision(graph, Precision::bf16), core::roofline_of(Precision::bf16));
    for (core::NodeId v = 0; v < graph.node_count(); ++v) {
      CHECK(fp32.cost(v) == graph.cost(v));
      CHECK(bf16.cost(v) <= fp32.cost(v));
    }
  }
}

}  // namespace cairn::precision_test
