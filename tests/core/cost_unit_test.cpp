#include "cairn/core/cost_unit.h"

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/graph.h"
#include "cairn/core/precision.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/models/tiny_models.h"

namespace cairn::tests::cost_unit_test {
namespace {

core::Graph two_nodes(core::CostUnit unit) {
  core::GraphBuilder builder("two");
  builder.set_cost_unit(std::move(unit));
  const core::NodeId a = builder.add({.name = "a", .size = 4, .cost = 3});
  builder.add({.name = "b", .size = 4, .cost = 5, .inputs = {a}});
  return builder.build();
}

}  // namespace

TEST_CASE("costs are printed with their unit") {
  CHECK(core::cost_text(12345, {"ns", ""}) == "12345 ns");
  CHECK(core::cost_text(7, {}) == "7 cost units");
  CHECK(core::to_string(core::CostUnit{"steps", ""}) == "steps");
  CHECK(core::CostUnit{"ns", ""}.seconds() == Approx(1e-9));
  CHECK(core::CostUnit{"ms", ""}.seconds() == Approx(1e-3));
  CHECK(core::CostUnit{"steps", ""}.seconds() == 0);
  CHECK(core::CostUnit{}.seconds() == 0);
  CHECK(core::duration_text(250e-9) == "250 ns");
  CHECK(core::duration_text(12.5e-6) == "12.50 us");
  CHECK(core::duration_text(0.0125) == "12.500 ms");
  CHECK(core::duration_text(1.25) == "1.250 s");
}

TEST_CASE("the unit of costs travels with the graph, and does not enter its fingerprint") {
  const core::CostUnit unit{"us", "a stopwatch"};
  const core::Graph graph = two_nodes(unit);
  CHECK(graph.cost_unit() == unit);
  CHECK(graph.fingerprint() == two_nodes({}).fingerprint());
  CHECK(graph.with_scratch({0, 8}).cost_unit() == unit);
  CHECK(graph.with_costs({1, 1}).cost_unit() == unit);
  CHECK(graph.with_costs({1, 1}, core::CostUnit{"steps", ""}).cost_unit().name == "steps");
  CHECK(core::forward_part(graph).cost_unit() == unit);
  CHECK(core::align_sizes(graph, 256).cost_unit() == unit);
  CHECK(core::GraphBuilder(graph).build().cost_unit() == unit);

  const core::Graph read = core::parse_graph(core::graph_to_json(graph), "g.json");
  CHECK(read.cost_unit() == unit);
  // A graph without a unit of costs is written without the key `cost_unit`, as in files from before the key existed.
  const std::string plain = core::graph_to_json(two_nodes({}));
  CHECK(plain.find("cost_unit") == std::string::npos);
  CHECK_FALSE(core::parse_graph(plain, "g.json").cost_unit().known());
}

TEST_CASE("a unit of costs is one short line") {
  core::GraphBuilder builder;
  CHECK_THROWS_AS(builder.set_cost_unit({"ns\n", ""}), core::InputError);
  CHECK_THROWS_AS(builder.set_cost_unit({"a unit of many words", ""}), core::InputError);
  CHECK_THROWS_AS(builder.set_cost_unit({"ns", "\x1b[31m"}), core::InputError);
  CHECK_THROWS_AS(
      core::parse_graph(R"({"format":"cairn.graph","version":1,"cost_unit":"\u0007","nodes":[]})", "g.json"),
      core::InputError);
}

TEST_CASE("costs of models are of the roofline that they were built with") {
  const core::Graph graph = tiny_models().front().build();
  CHECK(graph.cost_unit() == core::CostUnit{"ns", "roofline model of an NVIDIA H200, fp32"});
  const core::Roofline bf16 = core::roofline_of(core::Precision::bf16);
  CHECK(core::with_roofline_costs(graph, bf16).cost_unit().source == "roofline model of an NVIDIA H200, bf16");
  CHECK(core::with_roofline_costs(graph, {.flops_per_ns = 1000, .bytes_per_ns = 100, .launch_ns = 5})
            .cost_unit()
            .source == "roofline model of 1 TFLOP/s, 0.1 TB/s and 5 ns a launch");
}

}  // namespace cairn::tests::cost_unit_test
