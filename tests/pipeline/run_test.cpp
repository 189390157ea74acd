// The library's front door: from a graph and a budget to outputs that are compared.
#include "cairn/pipeline/run.h"

#include <algorithm>
#include <atomic>

#include "cairn/core/formats/files.h"
#include "cairn/tests/catch.h"

namespace {

using namespace cairn;

pipeline::GraphSource small_ffn() {
  pipeline::GraphSource source{"ffn", {}};
  source.options.values = {{"batch", 4}, {"layers", 3}, {"width", 16}, {"inputs", 8}, {"outputs", 4}};
  return source;
}

pipeline::FitOptions quick() { return {.search = {.limit = {.work = 20'000}}}; }

/// Forwards and backwards through the same tensors; synthetic, so scratch is that which is given here.
core::Graph hourglass() {
  core::GraphBuilder builder("hourglass");
  for (int i = 0; i < 12; ++i) {
    core::Node node{.name = "n" + std::to_string(i), .size = 1000, .cost = 1, .scratch = i == 3 ? 7 : 0};
    if (i > 0) node.inputs = {i - 1};
    if (i >= 6) node.inputs.push_back(11 - i);
    builder.add(node);
  }
  return builder.build();
}

}  // namespace

TEST_CASE("a decision fits as planned, and its outputs are the baseline's") {
  const auto backend = pipeline::open_backend("host");
  for (const auto& graph : {pipeline::prepare(*backend, small_ffn()), pipeline::prepare(*backend, hourglass())}) {
    const pipeline::Problem problem(graph.prepared, "80%");
    const pipeline::Decision decision = pipeline::decide(problem, "auto", quick());
    CHECK(decision.plan.bytes <= *problem.budget);
    CHECK(decision.plan.alignment == 256);
    CHECK(core::check_plan(graph.prepared, decision.schedule, decision.plan).empty());
    const pipeline::RunResult result = pipeline::run(*backend, graph, decision, {.check_on_host = true});
    CHECK(result.comparison.identical());
    CHECK(result.comparison.outputs > 0);
    CHECK(result.host_check->close);
    CHECK(result.scheduled_run.report.measured_peak_bytes <= decision.plan.bytes);
    CHECK(pipeline::run_page(problem, *backend, decision, result).starts_with("<!DOCTYPE html>"));
  }
}

TEST_CASE("a decision with guards is planned without them, and run with them") {
  const auto backend = pipeline::open_backend("host");
  const auto graph = pipeline::prepare(*backend, hourglass());
  pipeline::FitOptions options = quick();
  options.plan.guard_bytes = 256;
  const pipeline::Problem problem(graph.prepared, "90%");
  const pipeline::Decision decision = pipeline::decide(problem, "auto", options);
  CHECK(decision.budgeted_bytes <= *problem.budget);
  CHECK(decision.plan.bytes > decision.budgeted_bytes);
  CHECK(pipeline::run(*backend, graph, decision, {.poison = true}).comparison.identical());
}

TEST_CASE("where nothing fits, one line says what is known") {
  const pipeline::Problem problem(hourglass(), "100");
  std::string message;
  try {
    pipeline::decide(problem, "auto", quick());
  } catch (const core::Error& error) {
    message = error.what();
  }
  CHECK(message.find("the lower bound is 3072 bytes") != std::string::npos);
  CHECK(message.find("the least budget known feasible is") != std::string::npos);
  CHECK_THROWS_AS(pipeline::decide(pipeline::Problem(hourglass())), core::InputError);
}

TEST_CASE("a raised stop flag ends a run") {
  const std::atomic<bool> stop = true;
  const auto backend = pipeline::open_backend("host");
  const auto graph = pipeline::prepare(*backend, hourglass());
  const auto baseline = pipeline::decide_on_baseline(graph.prepared, {.alignment = 256});
  CHECK_THROWS_AS(pipeline::run(*backend, graph, baseline, {.stop = &stop}), core::InterruptedError);
}

TEST_CASE("compare names the outputs whose bits differ") {
  const core::Graph graph = hourglass();
  pipeline::Execution a, b;
  a.outputs = b.outputs = {{0, 0, std::vector<std::byte>(4)}, {2, 0, std::vector<std::byte>(4)}};
  a.sinks = b.sinks = {{11, 0, 5}};
  CHECK(pipeline::compare(graph, a, b).identical());
  b.outputs[1].bytes[3] = std::byte{1};
  b.sinks[0].digest = 6;
  CHECK(pipeline::compare(graph, a, b).different == std::vector<std::string>{"n2", "n11"});
  b.outputs.pop_back();
  CHECK_THROWS_AS(pipeline::compare(graph, a, b), pipeline::DefectError);
}

TEST_CASE("a backend's scratch is an overlay, and schedules of either graph are accepted") {
  const core::Graph graph = hourglass();
  std::vector<std::int64_t> scratch(static_cast<std::size_t>(graph.node_count()), 64);
  const core::Graph prepared = graph.with_scratch(scratch);
  CHECK(prepared.fingerprint() != graph.fingerprint());
  const core::Schedule schedule = core::baseline_schedule(graph);
  for (const core::Graph& made_for : {graph, prepared}) {
    const std::string text = core::schedule_to_json(made_for, schedule, "");
    CHECK(core::parse_schedule(text, "s", graph, prepared.fingerprint()).schedule.steps == schedule.steps);
  }
  scratch[0] = 65;
  const std::string other = core::schedule_to_json(graph.with_scratch(scratch), schedule, "");
  CHECK_THROWS_AS(core::parse_schedule(other, "s", graph, prepared.fingerprint()), core::InputError);
}
