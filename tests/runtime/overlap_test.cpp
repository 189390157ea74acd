// Compares overlap() with the definition of a conflict between two instructions. Also executes programs in other
// orders.
#include "cairn/runtime/overlap.h"

#include <algorithm>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/runtime/support/execution.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/graphs.h"
#include "cairn/tests/runtime/updated_models.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests::overlap_test {
namespace {

using core::Graph;
using core::Schedule;
using runtime::Instruction;
using runtime::Location;
using runtime::Overlap;
using runtime::Program;

/// A range of bytes that an instruction reads or writes. `space` is -1 for the arena, or the index of a resident
/// tensor.
struct Access {
  std::int64_t space, begin, end;
  bool writes;
};

std::vector<Access> accesses_of(const Program& program, const Instruction& instruction) {
  std::vector<Access> accesses;
  const auto add = [&](const Location& location, bool writes) {
    if (location.kind == Location::Kind::arena)
      accesses.push_back({-1, location.offset, location.offset + location.reserved, writes});
    if (location.kind == Location::Kind::resident) accesses.push_back({location.resident, 0, location.bytes, writes});
  };
  const auto inputs = program.inputs_of(instruction);
  for (const Location& input : inputs) add(input, false);
  for (const auto& output : program.outputs_of(instruction)) add(output, true);
  add(instruction.scratch, true);
  if (const Op* op = program.graph.op(instruction.node)) {
    for (const std::size_t i : core::updated_args(op->kind)) add(inputs[i], true);
  }
  return accesses;
}

bool share_bytes(const Access& a, const Access& b) {
  return a.space == b.space && std::max(a.begin, b.begin) < std::min(a.end, b.end);
}

/// Returns whether the instruction `later` must run after the instruction `earlier`.
bool conflict(const Program& program, std::size_t earlier, std::size_t later) {
  const Instruction &from = program.instructions[earlier], &to = program.instructions[later];
  for (const Access& a : accesses_of(program, from)) {
    for (const Access& b : accesses_of(program, to)) {
      if ((a.writes || b.writes) && share_bytes(a, b)) return true;
    }
  }
  const auto sinks = runtime::sinks_of(program.graph);
  if (from.node == to.node && std::ranges::count(sinks, from.node, &runtime::SinkDigest::node) > 0) return true;
  const auto before = program.graph.predecessors(to.node);
  if (std::ranges::find(before, from.node) == before.end()) return false;
  for (std::size_t i = earlier + 1; i < later; ++i) {
    if (program.instructions[i].node == from.node)
      // If the node runs again in between, `later` reads the result of that run, not of `earlier`.
      return false;
  }
  return true;
}

using Matrix = std::vector<std::vector<bool>>;

/// Returns, for each instruction, which earlier instructions have surely ended when it begins. The order comes from the
/// streams and from the waits. The wait number `dropped` is left out.
Matrix ended_before(const Overlap& overlap, std::size_t dropped) {
  const std::size_t count = overlap.stream.size();
  Matrix ended(count, std::vector<bool>(count));
  const auto follow = [&](std::size_t step, std::size_t before) {
    ended[step][before] = true;
    for (std::size_t i = 0; i < before; ++i) ended[step][i] = ended[step][i] || ended[before][i];
  };
  for (std::size_t step = 0; step < count; ++step) {
    for (std::size_t i = step; i-- > 0;) {
      if (overlap.stream[i] != overlap.stream[step]) continue;
      follow(step, i);
      break;
    }
    for (std::size_t w = overlap.wait_begin[step]; w < overlap.wait_begin[step + 1]; ++w) {
      if (w != dropped) follow(step, static_cast<std::size_t>(overlap.waits[w]));
    }
  }
  return ended;
}
constexpr auto kNothing = static_cast<std::size_t>(-1);

/// Returns the number of conflicts whose two instructions are not ordered by the streams and the waits.
std::int64_t unordered(const Program& program, const Overlap& overlap, std::size_t dropped = kNothing) {
  const Matrix ended = ended_before(overlap, dropped);
  std::int64_t count = 0;
  for (std::size_t later = 0; later < ended.size(); ++later) {
    for (std::size_t earlier = 0; earlier < later; ++earlier)
      count += !ended[later][earlier] && conflict(program, earlier, later) ? 1 : 0;
  }
  return count;
}

/// Returns the program with its instructions in a random order that the streams and the waits permit.
Program in_random_order(Random& random, const Program& program, const Overlap& overlap) {
  Program result = program;
  result.instructions.clear();
  result.inputs.clear();
  const std::size_t count = program.instructions.size();
  std::vector<bool> done(count);
  while (result.instructions.size() < count) {
    std::vector<std::size_t> ready;
    for (std::int32_t s = 0; s < overlap.streams; ++s) {
      for (std::size_t i = 0; i < count; ++i) {
        if (done[i] || overlap.stream[i] != s) continue;
        const auto waits = overlap.waits_of(static_cast<std::int64_t>(i));
        if (std::ranges::all_of(waits, [&](std::int64_t w) { return done[static_cast<std::size_t>(w)]; }))
          ready.push_back(i);
        break;
      }
    }
    REQUIRE(!ready.empty());
    const std::size_t next = random.pick(ready);
    done[next] = true;
    Instruction& instruction = result.instructions.emplace_back(program.instructions[next]);
    // The host's executor expects the lists of inputs in the order of the instructions.
    const auto inputs = program.inputs_of(instruction);
    instruction.input_begin = static_cast<std::uint32_t>(result.inputs.size());
    result.inputs.insert(result.inputs.end(), inputs.begin(), inputs.end());
  }
  return result;
}

Program planned(const Graph& graph, const Schedule& schedule, std::int64_t alignment, std::int64_t overlap_steps = 0) {
  return runtime::compile(
      graph, schedule,
      solvers::plan_memory(graph, schedule,
                           {.alignment = alignment, .overlap_steps = overlap_steps, .limit = {.work = 0}}));
}

/// Returns the program with a graph without edges, so that only shared addresses put its instructions in an order.
Program without_edges(const Program& program) {
  core::GraphBuilder builder(program.graph);
  for (core::NodeId v = 0; v < builder.node_count(); ++v) {
    core::Node& node = builder.node(v);
    node.op.reset();
    node.inputs.clear();
    node.inplace = {};
    node.scratch = std::max<std::int64_t>(node.scratch, 0);
    for (core::Output& output : node.outputs) output.inplace = {};
  }
  Program result = program;
  result.graph = builder.build();
  return result;
}

void check_orders(Random& random, const Program& program, int orders) {
  const Results expected = results_of(program);
  for (int streams = 1; streams <= 4; ++streams) {
    const Overlap overlap = runtime::overlap(program, streams);
    for (int i = 0; i < orders; ++i) {
      CAPTURE(streams, i);
      REQUIRE(results_of(in_random_order(random, program, overlap)) == expected);
    }
  }
}

Graph chains(int count, int length) {
  std::vector<core::Node> nodes;
  for (int c = 0; c < count; ++c) {
    for (int i = 0; i < length; ++i) {
      const auto before = static_cast<core::NodeId>(nodes.size()) - 1;
      nodes.push_back(
          make_node("n" + std::to_string(nodes.size()), 8, i == 0 ? std::vector<core::NodeId>() : std::vector{before}));
    }
  }
  return build_graph(nodes);
}

}  // namespace

TEST_CASE("overlap: streams and waits order every conflict, and no wait is superfluous") {
  Random random(41);
  std::int64_t waits = 0;
  for (int i = 0; i < 400; ++i) {
    const Graph graph = random_graph(random, any_graph(random));
    const Program program = planned(graph, random_schedule(random, graph), random.chance(50) ? 1 : 16);
    const auto streams = static_cast<int>(random.between(1, 4));
    const Overlap overlap = runtime::overlap(program, streams);
    REQUIRE(overlap.stream.size() == program.instructions.size());
    CHECK(unordered(program, overlap) == 0);
    const Program bare = without_edges(program);
    CHECK(unordered(bare, runtime::overlap(bare, streams)) == 0);
    for (std::size_t step = 0; step < overlap.stream.size(); ++step) {
      CHECK((overlap.stream[step] >= 0 && overlap.stream[step] < streams));
      for (const std::int64_t awaited : overlap.waits_of(static_cast<std::int64_t>(step))) {
        CHECK(awaited < static_cast<std::int64_t>(step));
        CHECK(overlap.stream[static_cast<std::size_t>(awaited)] != overlap.stream[step]);
      }
    }
    for (std::size_t w = 0; w < overlap.waits.size(); ++w) CHECK(unordered(program, overlap, w) > 0);
    waits += std::ssize(overlap.waits);
    CHECK(overlap.critical_path <= overlap.makespan);
    CHECK(overlap.makespan <= overlap.cost);
    CHECK(overlap.critical_path == runtime::overlap(program, 1).critical_path);
  }
  CHECK(waits > 400);
}

TEST_CASE("overlap: conflicts of models that update weights are ordered") {
  Random random(42);
  for (const Graph& graph : updated_models()) {
    if (graph.name() != "ffn") continue;
    for (const Schedule& schedule : {core::baseline_schedule(graph), recomputing_schedule(random, graph)}) {
      const Program program = planned(graph, schedule, 256);
      CHECK(unordered(program, runtime::overlap(program, 2)) == 0);
      CHECK(unordered(program, runtime::overlap(program, 3)) == 0);
    }
  }
}

TEST_CASE("overlap: an update waits for every op that reads what it changes") {
  core::GraphBuilder builder("update");
  const auto add = [&](const char* name, Shape shape) {
    return Operand::resident(builder.add_resident({.name = name, .shape = std::move(shape)}));
  };
  const Operand w = add("w", {4}), m = add("m", {4}), rate = add("rate", {1});
  add_op(builder, "reader of w", op_on(OpKind::relu, {4}, {w}));
  add_op(builder, "reader of m", op_on(OpKind::relu, {4}, {m}));
  const Operand gradient = Operand::node(add_op(builder, "gradient", op_on(OpKind::scale, {4}, {w}, {.alpha = 2})));
  Op op = op_on(OpKind::sgd, {4}, {gradient, w, m, rate});
  op.writes = w.index;
  const core::NodeId update = add_op(builder, "update", op);
  builder.node(update).pinned = true;
  for (core::NodeId v = 0; v <= update; ++v) builder.node(v).cost = 1;
  const Graph graph = builder.build();
  const Program program = planned(graph, core::baseline_schedule(graph), 256, 10);
  const Overlap overlap = runtime::overlap(program, 4);
  CHECK(unordered(program, overlap) == 0);
  CHECK(overlap.stream == std::vector<std::int32_t>{0, 1, 2, 2});
  CHECK(std::ranges::equal(overlap.waits_of(3), std::vector<std::int64_t>{1, 0}));
  CHECK(overlap.makespan == 2);
}

TEST_CASE("overlap: every order that streams and waits allow gives the same bits, with synthetic kernels") {
  Random random(43);
  for (int i = 0; i < 100; ++i) {
    const Graph graph = random_graph(random, any_graph(random));
    check_orders(random, planned(graph, random_schedule(random, graph), 8), 3);
  }
}

TEST_CASE("overlap: every order that streams and waits allow gives the same bits, with real ops") {
  Random random(44);
  const Perceptron p = perceptron();
  check_orders(random, planned(p.graph, with_recomputation(p), 256), 10);
  const Graph unet = tiny_model("unet");
  check_orders(random, planned(unet, random_schedule(random, unet, 20), 256), 3);
  for (const Graph& graph : updated_models())
    check_orders(random, planned(graph, core::baseline_schedule(graph), 256), 2);
}

TEST_CASE("overlap: a step on one stream has no waits, and chains use as many streams as there are") {
  for (const int streams : {1, 2, 3, 4, 8}) {
    const Graph graph = chains(4, 6);
    const Overlap overlap = runtime::overlap(planned(graph, core::baseline_schedule(graph), 8, 100), streams);
    CHECK(overlap.streams == streams);
    CHECK(overlap.cost == 24);
    CHECK(overlap.critical_path == 6);
    CHECK(overlap.waits.empty());
    CHECK(overlap.makespan == 6 * std::max(1, (4 + streams - 1) / streams));
  }
  const Graph graph = chains(1, 1);
  const Program program = planned(graph, core::baseline_schedule(graph), 8);
  CHECK_THROWS_AS(runtime::overlap(program, 0), core::InputError);
  CHECK_THROWS_AS(runtime::overlap(program, runtime::kMostStreams + 1), core::InputError);
  CHECK_NOTHROW(runtime::overlap(program, runtime::kMostStreams));
}

TEST_CASE("overlap: within overlap_steps, an instruction waits only for those whose outputs it reads") {
  Random random(45);
  std::int64_t without = 0;
  for (int i = 0; i < 300; ++i) {
    const Graph graph = random_graph(random, any_graph(random, {.in_place = false}));
    const Schedule schedule = random_schedule(random, graph);
    const std::int64_t steps = random.between(1, 6);
    const auto near_conflicts = [&](const Program& program) {
      std::int64_t count = 0;
      for (std::size_t later = 0; later < program.instructions.size(); ++later) {
        const std::size_t first = later - std::min(later, static_cast<std::size_t>(steps));
        for (std::size_t earlier = first; earlier < later; ++earlier) {
          for (const Access& b : accesses_of(program, program.instructions[later])) {
            if (!b.writes) continue;
            for (const Access& a : accesses_of(program, program.instructions[earlier]))
              count += share_bytes(a, b) ? 1 : 0;
          }
        }
      }
      return count;
    };
    CHECK(near_conflicts(planned(graph, schedule, 8, steps)) == 0);
    without += near_conflicts(planned(graph, schedule, 8));
  }
  CHECK(without > 300);
}

}  // namespace cairn::tests::overlap_test
