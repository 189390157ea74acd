#include "cairn/runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "cairn/core/error.h"
#include "cairn/core/machine/support/thread_pool.h"
#include "cairn/core/profile.h"
#include "cairn/runtime/support/residents.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/graphs.h"
#include "cairn/tests/support/errors.h"

namespace cairn::tests::executor_test {
namespace {

using core::Buffer;
using core::Graph;
using core::NodeId;
using runtime::ExecuteOptions;
using runtime::Instruction;
using runtime::Location;
using runtime::Program;

constexpr std::int64_t kGuard = 64;

/// The graph source -> a -> b -> c -> last, with another edge from a to last. Only last is kept. The nodes have no ops,
/// so synthetic kernels execute them.
struct Diamond {
  Graph graph;
  NodeId source = 0, a = 1, b = 2, c = 3, last = 4;

  Diamond() {
    core::Node kept = make_node("last", 100, {3, 1});
    kept.keep = true;
    graph = build_graph(
        {make_node("source", 300), make_node("a", 200, {0}), make_node("b", 300, {1}), make_node("c", 50, {2}), kept});
  }
  Program program(std::int64_t guard_bytes = 0) const { return compiled(graph, 1, guard_bytes); }
};

/// Returns the program with the buffer of an output moved to another offset. All instructions that write, read or free
/// the buffer, and the list of kept outputs, use the new offset.
Program moved(Program program, const Buffer& buffer, std::int64_t offset) {
  const auto move = [&](Location& location) {
    if (location.kind == Location::Kind::arena && location.offset == buffer.offset) location.offset = offset;
  };
  for (Instruction& instruction : program.instructions) {
    if (instruction.step < buffer.first || instruction.step > buffer.last) continue;
    if (instruction.step == buffer.first) {
      move(program.outputs[instruction.output_begin + static_cast<std::uint32_t>(buffer.output)]);
    } else {
      for (std::uint32_t i = 0; i < instruction.input_count; ++i) move(program.inputs[instruction.input_begin + i]);
    }
    if (instruction.step != buffer.last) continue;
    for (std::uint32_t i = 0; i < instruction.free_count; ++i) move(program.frees[instruction.free_begin + i]);
  }
  for (runtime::KeptOutput& kept : program.kept) {
    if (kept.node == buffer.node && kept.output == buffer.output) move(kept.location);
  }
  return program;
}

std::string error_of(runtime::Executor& executor) {
  return tests::error_of<core::Error>([&] { executor.run(); });
}

Tensor initial(const Graph& graph, std::int32_t index, std::uint64_t seed) {
  const Resident& resident = graph.residents()[index];
  Bytes bytes(static_cast<std::size_t>(resident.bytes()));
  runtime::fill_resident(resident, index, seed, bytes);
  const std::vector<float> values = as_floats(bytes);
  return {resident.shape, Values(values.begin(), values.end()), {}};
}

}  // namespace

TEST_CASE("a perceptron's loss and gradients are those of its formulas") {
  const Perceptron p = perceptron();
  const auto outputs = execute(compiled(p.graph), {.seed = 9});
  REQUIRE(outputs.size() == 3);

  const Tensor x = initial(p.graph, p.x, 9), w1 = initial(p.graph, p.w1, 9), w2 = initial(p.graph, p.w2, 9);
  const Tensor target = initial(p.graph, p.target, 9);
  const auto loss = [&](const Values& first, const Values& second) {
    double sum = 0;
    for (std::size_t row = 0; row < 5; ++row) {
      for (std::size_t out = 0; out < 3; ++out) {
        double y = 0;
        for (std::size_t h = 0; h < 9; ++h) {
          double hidden = 0;
          for (std::size_t i = 0; i < 7; ++i) hidden += x.values[row * 7 + i] * first[i * 9 + h];
          y += std::max(hidden, 0.0) * second[h * 3 + out];
        }
        sum += std::pow(y - target.values[row * 3 + out], 2);
      }
    }
    return Values{sum / 15};
  };
  const auto output = [&](NodeId node) {
    for (const auto& [id, bytes] : outputs) {
      const std::vector<float> values = as_floats(bytes);
      if (id == node) return Values(values.begin(), values.end());
    }
    return Values{};
  };
  check_close(output(p.loss), loss(w1.values, w2.values), 1e-5);
  check_close(output(p.dw1), numeric_gradient([&](const Values& w) { return loss(w, w2.values); }, w1.values, {1}),
              1e-4);
  check_close(output(p.dw2), numeric_gradient([&](const Values& w) { return loss(w1.values, w); }, w2.values, {1}),
              1e-4);
}

TEST_CASE("recomputation, in-place ops and another plan change no bit") {
  const Perceptron p = perceptron(40, 70, 90, 30);
  const auto expected = execute(compiled(p.graph));
  CHECK(execute(compiled(p.graph, with_recomputation(p))) == expected);
  CHECK(execute(compiled(p.graph, with_recomputation(p), 64)) == expected);
  CHECK(execute(compiled(p.graph, with_recomputation(p)), {.poison = true}) == expected);
  CHECK(execute(compiled(p.graph, with_recomputation(p), 256, kGuard), {.sentinels = true}) == expected);
  CHECK(execute(compiled(p.graph, with_recomputation(p)), {.seed = 2}) != expected);
}

TEST_CASE("the same bits in every run and with any number of threads") {
  const Perceptron p = perceptron(64, 130, 200, 33);
  const int threads_before = core::thread_count();
  core::set_thread_count(1);
  const auto expected = execute(compiled(p.graph));
  core::set_thread_count(2);
  const auto executor = runtime::host_executor(compiled(p.graph, with_recomputation(p)));
  for (int i = 0; i < 5; ++i) {
    executor->run();
    CHECK(outputs_of(*executor) == expected);
  }
  core::set_thread_count(threads_before);
}

TEST_CASE("random graphs: every schedule gives the same outputs and sinks, measured is planned, live is the bound") {
  for (std::uint64_t kind = 0; kind < 4; ++kind) {
    Random random(7);
    for (int i = 0; i < 150; ++i) {
      const Graph graph = random_graph(random, any_graph(kind));
      const Results expected = results_of(compiled(graph, 1));
      for (const std::int64_t alignment : {1, 16}) {
        const core::Schedule schedule = random_schedule(random, graph);
        const core::Plan plan = solvers::plan_memory(graph, schedule, {.alignment = alignment});
        const auto executor = runtime::host_executor(runtime::compile(graph, schedule, plan), {.poison = true});
        const runtime::StepReport report = executor->run();
        CHECK(executor->measured_peak_bytes() == plan.bytes);
        CHECK(report.live_peak_bytes == plan.lower_bound);
        CHECK(results_of(runtime::compile(graph, schedule, plan), {.poison = true}) == expected);
        CHECK(results_of(compiled(graph, schedule, alignment, kGuard), {.poison = true, .sentinels = true}) ==
              expected);
      }
    }
  }
}

TEST_CASE("two live buffers laid over one another: the plan is refused, and executing it would show") {
  Random random(8);
  std::int64_t tried = 0;
  for (int i = 0; i < 300; ++i) {
    // These schedules have no recomputation, and these graphs have no empty output. So every value that is computed
    // affects a kept output or a sink, i.e. an output that is neither read nor kept, of which the executor returns a
    // hash.
    std::vector<core::Node> nodes = random_nodes(random, {.in_place = false, .several_outputs = true});
    for (core::Node& node : nodes) {
      for (core::Output& output : node.outputs) output.size = 8 * (output.size + 1);
    }
    const Graph graph = build_graph(nodes);
    const core::Schedule schedule = core::baseline_schedule(graph);
    const core::Plan plan = solvers::plan_memory(graph, schedule, {.alignment = 1});
    const Results expected = results_of(runtime::compile(graph, schedule, plan));
    for (int attempt = 0; attempt < 10; ++attempt) {
      const Buffer& under = random.pick(plan.buffers);
      const Buffer& over = random.pick(plan.buffers);
      const bool both_live = over.first >= under.first && over.first < under.last && &over != &under;
      if (!both_live || under.scratch || over.scratch || under.offset > plan.bytes - over.size) continue;
      ++tried;
      CHECK_FALSE(results_of(moved(runtime::compile(graph, schedule, plan), over, under.offset)) == expected);
      core::Plan broken = plan;
      broken.buffers[static_cast<std::size_t>(&over - plan.buffers.data())].offset = under.offset;
      CHECK_THROWS_AS(runtime::compile(graph, schedule, broken), core::InputError);
    }
  }
  CHECK(tried > 200);
}

TEST_CASE("norms with statistics and max-pool with indices: bits of the single ops, less memory, for every schedule") {
  const Graph single = pooled_norms(false), bundled = pooled_norms(true);
  const core::Schedule baseline = core::baseline_schedule(bundled);
  CHECK(core::evaluate(bundled, baseline).peak < core::evaluate(single, core::baseline_schedule(single)).peak);
  const auto expected = execute(compiled(single));
  const Results results = results_of(compiled(bundled, baseline));
  REQUIRE(results.outputs.size() == expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) CHECK(results.outputs[k].second == expected[k].second);
  CHECK(results.sinks.size() == 2);  // the sinks are the two statistics of the branch
  Random random(9);
  for (int i = 0; i < 20; ++i) {
    const core::Schedule schedule = random_schedule(random, bundled);
    CHECK(results_of(compiled(bundled, schedule, 256, kGuard), {.poison = true, .sentinels = true}) == results);
  }
  // The noise changes floating-point values, but never indices.
  CHECK(execute(compiled(bundled, baseline), {.rounding_noise = 1e-5}) != results.outputs);
}

TEST_CASE("a control edge orders ops, and takes no memory") {
  const Perceptron p = perceptron();
  core::GraphBuilder builder(p.graph);
  builder.add_control_input(p.dw1, p.dw2);
  const Graph graph = builder.build();
  CHECK(execute(compiled(graph)) == execute(compiled(p.graph)));
}

TEST_CASE("a clobbered buffer shows in the outputs of synthetic nodes") {
  const Diamond d;
  const auto expected = execute(d.program());
  Program broken = d.program();
  // Places the output of b over a, which `last` has yet to read.
  Location& b = output_of(broken, 2);
  b.offset = std::min(output_of(broken, 1).offset, broken.arena_bytes - b.reserved);
  CHECK(execute(broken) != expected);
}

TEST_CASE("scratch laid over a live buffer shows") {
  std::vector<core::Node> nodes = {make_node("a", 64), make_node("b", 64, {0}), make_node("c", 64, {0, 1})};
  nodes[1].scratch = 32;
  nodes[2].keep = true;
  const Graph graph = build_graph(nodes);
  Program program = compiled(graph, 1);
  const auto expected = execute(program);
  program.instructions[1].scratch.offset = output_of(program, 0).offset;
  CHECK(execute(program) != expected);
}

TEST_CASE("poison shows a read after free") {
  const Diamond d;
  const auto expected = execute(d.program(), {.poison = true});
  Program broken = d.program();
  free_early(broken, 2, 1);  // frees `a` right after b, although `last` reads it later
  CHECK(execute(broken) == expected);
  CHECK(execute(broken, {.poison = true}) != expected);
}

TEST_CASE("poison turns a read after free of fp32 into NaN") {
  const Perceptron p = perceptron();
  Program broken = compiled(p.graph);
  free_early(broken, 2, 1);
  const auto outputs = execute(broken, {.poison = true});
  const std::vector<float> gradient = as_floats(outputs[1].second);
  CHECK(std::any_of(gradient.begin(), gradient.end(), [](float value) { return std::isnan(value); }));
}

TEST_CASE("sentinels name the node that writes too far") {
  const Diamond d;
  for (const std::size_t step : {0, 2, 4}) {
    Program broken = d.program(kGuard);
    output_of(broken, step).bytes += 1;
    const auto executor = runtime::host_executor(broken, {.sentinels = true});
    const std::string error = error_of(*executor);
    const std::string& culprit = d.graph.name(broken.instructions[step].node);
    CHECK(contains(error, fmt::format("node '{}', wrote beyond the end", culprit)));
  }
  const auto sound = runtime::host_executor(d.program(kGuard), {.sentinels = true});
  CHECK(error_of(*sound).empty());
  CHECK(error_of(*sound).empty());
}

TEST_CASE("sentinels guard scratch and in-place chains that shrink") {
  std::vector<core::Node> nodes = {make_node("a", 90), make_node("b", 60, {0}), make_node("c", 30, {1}),
                                   make_node("d", 10, {2})};
  for (const std::size_t v : {1, 2}) {
    nodes[v].inplace = static_cast<NodeId>(v) - 1;
    nodes[v].scratch = -nodes[v].size;
  }
  nodes[3].scratch = 24;
  nodes[3].keep = true;
  const Graph graph = build_graph(nodes);
  Program program = compiled(graph, 1, kGuard);
  REQUIRE(output_of(program, 2).taken_bytes > 0);
  CHECK(output_of(program, 2).offset == output_of(program, 0).offset);
  const auto expected = execute(compiled(graph, 1));
  CHECK(execute(program, {.poison = true, .sentinels = true}) == expected);

  Program far_scratch = program;
  far_scratch.instructions[3].scratch.bytes += 1;
  const auto executor = runtime::host_executor(far_scratch, {.sentinels = true});
  CHECK(contains(error_of(*executor), "'d', wrote beyond the end of the buffer of node 'd'"));
}

TEST_CASE("sentinels need a program with guards") {
  CHECK_THROWS_AS(runtime::host_executor(Diamond().program(), {.sentinels = true}), core::InputError);
}

TEST_CASE("nodes of size 0 run, are read and are kept") {
  std::vector<core::Node> nodes = {make_node("empty"), make_node("reader", 16, {0}), make_node("sink", 0, {1})};
  nodes[1].keep = nodes[2].keep = true;
  const Graph graph = build_graph(nodes);
  const auto outputs = execute(compiled(graph, 1), {.poison = true});
  REQUIRE(outputs.size() == 2);
  CHECK(outputs[0].second.size() == 16);
  CHECK(outputs[1].second.empty());
}

TEST_CASE("a graph that needs no memory at all") {
  const Graph graph = build_graph({make_node("only")});
  const auto executor = runtime::host_executor(compiled(graph, 1), {.poison = true});
  executor->run();
  CHECK(executor->measured_peak_bytes() == 0);
  CHECK(executor->outputs().empty());
}

TEST_CASE("an absurd arena is refused, saying what was asked and what there is") {
  Program program = Diamond().program();
  program.arena_bytes = std::int64_t{1} << 60;
  CHECK(contains(tests::error_of<core::DeviceError>([&] { runtime::host_executor(program); }), "are free here"));
}

TEST_CASE("a program that reaches outside its arena is refused") {
  Program program = Diamond().program();
  output_of(program, 1).offset = program.arena_bytes;
  CHECK_THROWS_AS(runtime::host_executor(program), core::InputError);
  program = Diamond().program();
  program.inputs[0] = {Location::Kind::resident, 0, 3, 4, 4};
  CHECK_THROWS_AS(runtime::host_executor(program), core::InputError);
}

TEST_CASE("before_step sees every instruction, and op times are given when asked for") {
  const Perceptron p = perceptron();
  std::vector<NodeId> seen;
  std::int64_t recomputed = 0;
  ExecuteOptions options;
  options.before_step = [&](const Instruction& instruction) {
    seen.push_back(instruction.node);
    recomputed += instruction.recomputation ? 1 : 0;
  };
  const core::Schedule schedule = with_recomputation(p);
  const auto executor = runtime::host_executor(compiled(p.graph, schedule), options);
  const runtime::StepReport report = executor->run(true);
  CHECK(seen == schedule.steps);
  CHECK(recomputed == 2);
  CHECK(report.op_seconds.size() == schedule.steps.size());
  CHECK(executor->run().op_seconds.empty());
}

TEST_CASE("initial ids that are out of range are refused") {
  tests::check_line(tests::error_of([] { runtime::host_executor(compiled(lookup_out_of_range())); }),
                    {"node 'lookup' reads resident 'ids': value ", " is outside 0 to 2"});
}

TEST_CASE("a node that writes a resident is read from there") {
  core::GraphBuilder builder;
  const auto x =
      builder.add_resident({.name = "x", .shape = {6}, .role = Resident::Role::data, .init = Resident::Init::normal});
  const auto grad = builder.add_resident({.name = "g", .shape = {6}, .role = Resident::Role::weight_grad});
  Op scale = op_on(OpKind::scale, {6}, {Operand::resident(x)}, {.alpha = 2});
  scale.writes = grad;
  const NodeId written = add_op(builder, "written", scale);
  const Op again = op_on(OpKind::scale, {6}, {Operand::node(written)}, {.alpha = 3});
  builder.node(add_op(builder, "reader", again)).keep = true;
  const Graph graph = builder.build();
  const auto outputs = execute(compiled(graph));
  REQUIRE(outputs.size() == 2);
  const std::vector<float> first = as_floats(outputs[0].second), second = as_floats(outputs[1].second);
  const Tensor start = initial(graph, x, 1);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(first[i] == 2 * static_cast<float>(start.values[i]));
    CHECK(second[i] == 3 * first[i]);
  }
}

TEST_CASE("the measured peak is what was written, not what was planned") {
  const Diamond diamond;
  Program program = diamond.program();
  const std::int64_t needed = program.arena_bytes;
  program.arena_bytes += 4096;  // the plan now claims more bytes than the program uses
  const auto roomy = runtime::host_executor(program);
  roomy->run();
  CHECK(roomy->measured_peak_bytes() == needed);

  // The measured peak must include a write beyond all buffers.
  ExecuteOptions options;
  std::byte* base = nullptr;
  options.before_step = [&](const Instruction& instruction) {
    if (instruction.node == diamond.last && base != nullptr) base[needed + 1000] = std::byte{7};
  };
  const auto careless = runtime::host_executor(program, options);
  careless->run();
  const Location kept = careless->program().kept.front().location;
  base = const_cast<std::byte*>(careless->outputs().front().bytes.data()) - kept.offset;
  careless->run();
  CHECK(careless->measured_peak_bytes() == needed + 1001);
}

TEST_CASE("what nobody reads or keeps is digested, and the digest sees a clobbered input") {
  const Graph graph = build_graph({make_node("a", 64, {}), make_node("b", 64, {}), make_node("sink", 64, {0, 1})});
  Program program = compiled(graph, 1, 0);
  const auto good = runtime::host_executor(program);
  good->run();
  REQUIRE(good->sink_digests().size() == 1);
  CHECK(good->sink_digests().front().node == 2);
  // Places b over a, so that the sink reads b twice instead of a and b.
  output_of(program, 1).offset = output_of(program, 0).offset;
  for (Location& input : program.inputs) input.offset = output_of(program, 0).offset;
  const auto bad = runtime::host_executor(program);
  bad->run();
  CHECK_FALSE(bad->sink_digests() == good->sink_digests());
}

}  // namespace cairn::tests::executor_test
