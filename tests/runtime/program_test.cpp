#include "cairn/runtime/program.h"

#include <string>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/precision.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/graphs.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/parse_error.h"

namespace cairn::tests::program_test {
namespace {

using core::Graph;

/// Returns a graph with one resident tensor x and the nodes that `add` adds, which read x.
template <class F>
Graph graph_over(const Shape& shape, const F& add) {
  core::GraphBuilder builder;
  const auto x = builder.add_resident({.name = "x", .shape = shape, .role = Resident::Role::data});
  add(builder, Operand::resident(x));
  return builder.build();
}

std::string compile_error(const Graph& graph, const core::Plan& plan, std::int64_t guard_bytes = 0) {
  return error_of([&] { runtime::compile(graph, core::baseline_schedule(graph), plan, {.guard_bytes = guard_bytes}); });
}

core::Plan baseline_plan(const Graph& graph, std::int64_t alignment = 256) {
  return solvers::plan_memory(graph, core::baseline_schedule(graph), {.alignment = alignment});
}

}  // namespace

TEST_CASE("instructions carry addresses of arguments, output and what dies") {
  const Perceptron p = perceptron();
  const core::Schedule schedule = with_recomputation(p);
  const core::Plan plan = solvers::plan_memory(p.graph, schedule, {.alignment = 256});
  const runtime::Program program = runtime::compile(p.graph, schedule, plan);
  CHECK(program.arena_bytes == plan.bytes);
  REQUIRE(program.instructions.size() == schedule.steps.size());
  std::size_t deaths = 0;
  for (const runtime::Instruction& instruction : program.instructions) {
    const Op& op = *p.graph.op(instruction.node);
    REQUIRE(instruction.input_count == op.args.size());
    for (std::uint32_t i = 0; i < instruction.input_count; ++i) {
      const runtime::Location& input = program.inputs[instruction.input_begin + i];
      const bool resident = op.args[i].kind == Operand::Kind::resident;
      CHECK((input.kind == runtime::Location::Kind::resident) == resident);
      if (!resident) CHECK(input.bytes == p.graph.size(op.args[i].index));
    }
    REQUIRE(instruction.output_count == 1);
    const runtime::OutputLocation& output = program.outputs_of(instruction).front();
    CHECK((output.kind == runtime::Location::Kind::resident) == (op.writes >= 0));
    CHECK((output.taken_bytes > 0) == (instruction.node == p.dhidden));
    deaths += instruction.free_count;
  }
  // Two buffers are never freed: that of the loss, which is kept, and the input of the in-place node, which becomes the
  // node's output.
  CHECK(deaths == plan.buffers.size() - 2);
  CHECK(program.kept.size() == 3);
}

TEST_CASE("a plan for another schedule is refused") {
  const Perceptron p = perceptron();
  const core::Plan plan = solvers::plan_memory(p.graph, with_recomputation(p), {.alignment = 256});
  CHECK(compile_error(p.graph, plan).find("the plan does not fit the schedule") == 0);
}

TEST_CASE("a plan without room for guards is refused") {
  const Perceptron p = perceptron();
  CHECK(compile_error(p.graph, baseline_plan(p.graph)).empty());
  CHECK(contains(compile_error(p.graph, baseline_plan(p.graph), 64), "no room for guards of 64 bytes"));
  CHECK(compile_error(p.graph, baseline_plan(p.graph), -1).find("guards of -1 bytes") == 0);
}

TEST_CASE("real ops need addresses aligned for fp32") {
  const Perceptron p = perceptron();
  CHECK(contains(compile_error(p.graph, baseline_plan(p.graph, 1)), "alignment is 1"));
  CHECK(compile_error(p.graph, baseline_plan(p.graph, 4)).empty());
}

TEST_CASE("a graph that gives an op too little scratch is refused") {
  const Graph graph = graph_over({1, 8, 8, 3}, [](core::GraphBuilder& builder, Operand x) {
    const auto w = builder.add_resident({.name = "w", .shape = {4, 3, 3, 3}});
    const Op conv = op_on(OpKind::conv2d, {1, 6, 6, 4}, {x, Operand::resident(w)});
    builder.node(add_op(builder, "conv", conv)).scratch = 100;
  });
  CHECK(compile_error(graph, baseline_plan(graph)).find("node 'conv': op conv2d needs 3888 bytes of scratch") == 0);
}

TEST_CASE("an op that cannot run in place is refused") {
  const auto second = [](OpKind kind, const OpAttrs& attrs) {
    return graph_over({4, 4}, [&](core::GraphBuilder& builder, Operand x) {
      const auto a = add_op(builder, "a", op_on(OpKind::relu, {4, 4}, {x}));
      const auto b = add_op(builder, "b", op_on(kind, {4, 4}, {Operand::node(a)}, attrs));
      builder.node(b).inplace = a;
      builder.node(b).scratch = -64;
    });
  };
  const Graph transposed = second(OpKind::permute, {.perm = {1, 0}});
  CHECK(compile_error(transposed, baseline_plan(transposed)).find("node 'b': op permute cannot run in place") == 0);
  const Graph scaled = second(OpKind::scale, {.alpha = 2});
  CHECK(compile_error(scaled, baseline_plan(scaled)).empty());
}

TEST_CASE("of an op's outputs, only the first can run in place") {
  core::GraphBuilder builder(pooled_norms(true));
  for (core::NodeId v = 0; v < builder.node_count(); ++v) {
    core::Node& node = builder.node(v);
    if (node.name == "second") std::swap(node.outputs[0].inplace, node.outputs[1].inplace);
  }
  const Graph graph = builder.build();
  CHECK(compile_error(graph, baseline_plan(graph)).find("node 'second': op layernorm_with_stats cannot run in place") ==
        0);
}

TEST_CASE("nodes of ops with several outputs: sizes, counts and arguments are checked") {
  const auto refused = [](const std::string& name, const auto& change) -> std::string {
    core::GraphBuilder builder(pooled_norms(true));
    for (core::NodeId v = 0; v < builder.node_count(); ++v) {
      if (builder.node(v).name == name) change(builder.node(v));
    }
    return error_of([&] { builder.build(); });
  };
  using core::Node;
  CHECK(refused("batch", [](Node&) {}).empty());
  // An output of size 0 carries no data, so it is permitted.
  CHECK(refused("batch", [](Node& node) { node.outputs.push_back({}); }).empty());
  CHECK(refused("batch", [](Node& node) { node.outputs.push_back({.size = 4}); }) ==
        "node 'batch': op batchnorm_with_stats: it makes 2 outputs, so the size of output 2 must be 0");
  CHECK(refused("loss", [](Node& node) {
          node.outputs = {{.size = 4}, {.size = 4}};
        }) == "node 'loss': op mse: it makes 1 output, so the size of output 1 must be 0");
  CHECK(refused("third", [](Node& node) { node.outputs.pop_back(); }) ==
        "node 'third': op batchnorm_with_stats: it makes 2 outputs, but the node has 1");
  CHECK(refused("batch", [](Node& node) { node.outputs[1].size += 4; }) ==
        "node 'batch': op batchnorm_with_stats: its output 1 needs 32 bytes, but has size 36");
  CHECK(contains(refused("dx", [](Node& node) { node.op->args[1].output = 0; }),
                 "argument 1 is node 1, which is not one"));
  CHECK(contains(refused("dx", [](Node& node) { node.op->args[1].output = 2; }),
                 "argument 1 is output 2 of node 1, which is not one of its inputs"));
  CHECK(refused("dpool", [](Node& node) {
          node.inputs.emplace_back(1, 1);
          node.op->args[1] = Operand::node(1, 1);
        }) == "node 'dpool': op batchnorm_grad_input: argument 1 must be of type f32");
  CHECK(refused("dx", [](Node& node) { node.op->args[1] = node.op->args[0]; }) ==
        "node 'dx': op maxpool_with_indices_grad: argument 1 must be of type i32");
  CHECK(contains(refused("layer", [](Node& node) { node.op->writes = 0; }), "only ops of one output can"));
}

TEST_CASE("a graph of ops with several outputs in a file, and in bf16") {
  const Graph graph = pooled_norms(true);
  const std::string text = core::graph_to_json(graph);
  CHECK(contains(text, "\"n1.1\""));
  const Graph again = core::parse_graph(text, "net.json");
  CHECK(core::graph_to_json(again) == text);
  CHECK(again.fingerprint() == graph.fingerprint());
  const auto error = [&](const std::string& arg) -> std::string {
    std::string wrong = text;
    wrong.replace(wrong.find("\"n1.1\""), 6, '"' + arg + '"');
    return parse_error(wrong, "net.json");
  };
  CHECK(error("n1.1").empty());
  for (const char* arg : {"n1.", "n1.x", "n1.-1", "n1.1.1", "n1.1x", "n.1", "n1.99999999999", "r1.1", "r0.0"}) {
    INFO(arg);
    CHECK(contains(error(arg), "\"args\" of its op must name nodes"));
  }
  CHECK(contains(error("n1.5"), "output 5 of node 1"));
  // In the file, the node `reader` comes before the node `norm`, which it reads. So `reader` is checked first. The
  // wrong shape of `norm` must still be reported as an InputError.
  const std::string empty = R"({"format":"cairn.graph","version":2,"nodes":[
      {"name":"reader","size":8,"inputs":[[1,1]],"op":{"kind":"scale","shape":[2],"args":["n1.1"]}},
      {"name":"norm","outputs":[{"size":0},{"size":0}],"op":{"kind":"layernorm_with_stats","shape":[2,0],"args":[]}}]})";
  CHECK_THROWS_AS(core::parse_graph(empty, "net.json"), core::InputError);

  const Graph half = core::with_precision(graph, core::Precision::bf16);
  CHECK(half.value_size(half.value({1, 0})) == 2 * 160);
  CHECK(half.value_size(half.value({1, 1})) == 4 * 160);  // indices do not become smaller in bf16
  CHECK(half.value_size(half.value({2, 1})) == 4 * 8);    // nor do statistics
}

TEST_CASE("optimizer state is no operand") {
  core::GraphBuilder builder;
  const auto state = builder.add_resident({.name = "adam", .shape = {4}, .role = Resident::Role::optimizer});
  add_op(builder, "read", op_on(OpKind::relu, {4}, {Operand::resident(state)}));
  const Graph graph = builder.build();
  CHECK(compile_error(graph, baseline_plan(graph)).find("resident 'adam' is optimizer state") == 0);
}

}  // namespace cairn::tests::program_test
