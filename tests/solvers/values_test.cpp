// Tests solvers and the planner on graphs whose nodes have several outputs, or are pinned, i.e. may run only once.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/plan.h"
#include "cairn/core/profile.h"
#include "cairn/solvers/order/internal/papers/node_sum.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/solvers/registry.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/measured.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::solvers::values_test {
namespace {

using core::Graph;
using core::Schedule;
using tests::Random;
namespace reference = core::reference;

Graph random_values(Random& random, core::NodeId max_nodes) {
  return tests::random_graph(random, {.max_nodes = max_nodes, .several_outputs = true, .pinned = random.chance(50)});
}

TEST_CASE("every solver keeps to the definitions where nodes have several outputs or are pinned") {
  tests::for_each_seed(400, [&](Random& random) {
    const Graph graph = random_values(random, 12);
    for (const SolverInfo& solver : registry()) {
      if (solver.graphs != "any" && graph.value_count() > solver.most_values) continue;
      if (!solver.why_missing().empty()) continue;
      INFO(solver.name);
      SolveOptions options{.limit = {.work = 200'000}};
      if (random.chance(70)) options.budget = tests::any_budget(random, graph);
      const Solution solution = solver.solve(graph, options);
      tests::require_measured(graph, solution);
      REQUIRE(solution.peak_bound.value >= reference::peak_lower_bound(graph));
      REQUIRE(solution.peak_bound.value <= solution.least_peak);
    }
  });
}

TEST_CASE("order and exact find the least peak without recomputation where outputs die apart") {
  int classes = 0;
  tests::for_each_seed(3000, [&](Random& random) {
    const Graph graph = random_values(random, 9);
    const std::int64_t least = reference::least_peak_without_recomputation(graph);
    for (const SolverInfo& solver : registry()) {
      if (solver.can.recomputes || !solver.can.exact) continue;
      INFO(solver.name);
      Solution solution;
      try {
        solution = solver.solve(graph, {});
      } catch (const core::InputError&) {
        REQUIRE(solver.graphs != "any");  // the solver is for a class that does not contain the graph
        continue;
      }
      classes += solver.graphs != "any" ? 1 : 0;
      REQUIRE(solution.status == Status::optimal);
      REQUIRE(solution.peak == least);
      REQUIRE(reference::peak(graph, solution.schedule) == least);
    }
  });
  CHECK(classes > 500);
}

/// Returns a random graph of a few nodes, several of which often read the same outputs. In its StepGraph, such outputs
/// are freed by a step that runs no node (a release) and comes after all their readers.
Graph outputs_read_alike(Random& random) {
  core::GraphBuilder builder("read alike");
  std::vector<core::OutputRef> made;
  const std::int64_t nodes = random.between(4, 8);
  for (core::NodeId v = 0; v < nodes; ++v) {
    core::Node node{.name = "n" + std::to_string(v)};
    for (const core::OutputRef& x : made) {
      if (random.chance(45)) node.inputs.push_back(x);
    }
    const std::int64_t count = random.between(1, 2);
    for (std::int64_t i = 0; i < count; ++i) {
      node.outputs.push_back({.size = random.between(0, 2), .keep = random.chance(15)});
      made.push_back({v, static_cast<std::int32_t>(i)});
    }
    builder.add(std::move(node));
  }
  return builder.build();
}

TEST_CASE("a step that only frees what several nodes read may be where paths meet") {
  tests::for_each_seed(6000, [&](Random& random) {
    const Graph graph = outputs_read_alike(random);
    const std::int64_t least = reference::least_peak_without_recomputation(graph);
    const Solution solution = find_solver("order").solve(graph, {});
    REQUIRE(reference::peak(graph, solution.schedule) == least);
    REQUIRE(solution.status == Status::optimal);
  });
  // Node n3 is on a path that ends at the release of the two outputs of n2, i.e. at the step that only frees them. The
  // solver must still find the least peak, 4 bytes.
  core::GraphBuilder builder("meets at a release");
  builder.add({.name = "n1"});
  builder.add({.name = "n2", .outputs = {{.size = 1}, {.size = 1}}});
  builder.add({.name = "n3", .inputs = {{1, 1}, {1, 0}}});
  builder.add({.name = "n4", .inputs = {{1, 0}, {1, 1}}, .outputs = {{.size = 1, .keep = true}}});
  builder.add({.name = "n5", .inputs = {{1, 1}, {0, 0}}, .outputs = {{.size = 0}, {.size = 2}}});
  const Graph graph = builder.build();
  const Solution solution = find_solver("order").solve(graph, {});
  CHECK(reference::peak(graph, solution.schedule) == 4);
}

/// Returns the peak of the graph with sizes rounded up to the alignment. Scratch is first corrected, such that no
/// node's scratch subtracts more bytes than the node's outputs share with its inputs in place.
std::int64_t most_of_plan(const Graph& graph, const Schedule& schedule, std::int64_t alignment) {
  const Graph aligned = core::align_sizes(graph, alignment);
  std::vector<std::int64_t> scratch;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    std::int64_t taken_over = 0;
    for (const core::ValueId x : aligned.outputs(v)) {
      const core::ValueId taken = aligned.inplace(x);
      if (taken == core::kNoValue || aligned.readers(taken).size() > 1 || aligned.value_kept(taken)) continue;
      taken_over += std::min(aligned.value_size(x), aligned.value_size(taken));
    }
    scratch.push_back(std::max(aligned.scratch(v), -taken_over));
  }
  return core::evaluate(aligned.with_scratch(scratch), schedule).peak;
}

TEST_CASE("plans hold every output apart, and overwrite what they may") {
  std::int64_t in_place = 0, further = 0;
  tests::for_each_seed(3000, [&](Random& random) {
    const Graph graph = random_values(random, 12);
    const Schedule schedule = tests::random_schedule(random, graph);
    const std::int64_t alignment = random.chance(50) ? 1 : 8;
    const core::Plan plan = plan_memory(graph, schedule, {.alignment = alignment});
    REQUIRE(core::check_plan(graph, schedule, plan).empty());
    // Without recomputation, the lower bound of a plan is at most the peak that most_of_plan() returns.
    const Schedule once = tests::random_schedule(random, graph, 0);
    REQUIRE(plan_memory(graph, once, {.alignment = alignment}).lower_bound <= most_of_plan(graph, once, alignment));
    // Every output that has bytes must have a buffer with the same lifetime. The buffers are sorted by step and output.
    auto buffer = plan.buffers.begin();
    for (const core::Lifetime& life : reference::lifetimes(graph, schedule)) {
      const core::ValueId x = graph.value({life.node, life.output});
      if (graph.value_size(x) == 0) continue;
      buffer = std::find_if(buffer, plan.buffers.end(), [](const core::Buffer& b) { return !b.scratch; });
      REQUIRE(buffer != plan.buffers.end());
      REQUIRE(core::OutputRef(buffer->node, buffer->output) == core::OutputRef(life.node, life.output));
      REQUIRE(buffer->first == life.first);
      REQUIRE(buffer->last == life.last);
      REQUIRE(buffer->size == core::align_up(graph.value_size(x), alignment));
      in_place += buffer->alias_of != core::OutputRef() ? 1 : 0;
      further += buffer->output > 0 ? 1 : 0;
      ++buffer;
    }
    REQUIRE(std::all_of(buffer, plan.buffers.end(), [](const core::Buffer& b) { return b.scratch; }));
    // Two buffers that are live at once may overlap only if one of them overwrites the other in place.
    for (const core::Buffer& a : plan.buffers) {
      for (const core::Buffer& b : plan.buffers) {
        if (&a == &b || a.last < b.first || b.last < a.first) continue;
        if (a.offset + a.size <= b.offset || b.offset + b.size <= a.offset) continue;
        const auto taken = [](const core::Buffer& by, const core::Buffer& from) {
          return !from.scratch && by.alias_of == core::OutputRef(from.node, from.output) && from.last == by.first;
        };
        REQUIRE((taken(a, b) || taken(b, a)));
      }
    }
    core::Plan wrong = plan;
    const auto larger =
        std::find_if(wrong.buffers.begin(), wrong.buffers.end(), [](const core::Buffer& b) { return b.output > 0; });
    if (larger == wrong.buffers.end()) return;
    larger->output = 0;
    REQUIRE_FALSE(core::check_plan(graph, schedule, wrong).empty());
  });
  CHECK(in_place > 300);
  CHECK(further > 3000);
}

TEST_CASE("Algorithm 3 on several outputs: the same peak in the node-sum graph") {
  tests::for_each_seed(3000, [&](Random& random) {
    const Graph graph = random_values(random, 10);
    const solvers::NodeSumReduction reduction = solvers::reduce_to_node_sum(graph);
    const Schedule schedule = tests::random_schedule(random, graph, 0);
    const auto order = solvers::to_node_sum(graph, reduction, schedule);
    REQUIRE(solvers::is_schedule(reduction.graph, order));
    REQUIRE(solvers::peak(reduction.graph, order) == reference::peak(graph, schedule));
    REQUIRE(solvers::from_node_sum(reduction, order) == schedule);
  });
}

}  // namespace
}  // namespace cairn::solvers::values_test
