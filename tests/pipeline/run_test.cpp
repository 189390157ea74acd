// Tests the functions of the folder pipeline. They plan a graph within a budget, execute it, and compare the outputs.
#include "cairn/pipeline/run.h"

#include <atomic>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/pipeline/graph_source.h"
#include "cairn/report/pages.h"
#include "cairn/report/support/words.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/transfers.h"

namespace cairn::run_test {
namespace {

pipeline::GraphSource small_ffn() {
  pipeline::GraphSource source{"ffn", {}};
  source.options.values = {{"batch", 4}, {"layers", 3}, {"width", 16}, {"inputs", 8}, {"outputs", 4}};
  return source;
}

fit::FitOptions quick() { return {.search = {.limit = {.work = 20'000}}}; }

/// Returns a graph whose second half reads the tensors of its first half in reverse order, as a backward pass does. The
/// nodes have no ops, so their scratch is the number given here.
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

/// A backend that works like the host's, but has only `bytes` bytes for arenas.
class SmallHost : public pipeline::Backend {
 public:
  explicit SmallHost(std::int64_t bytes) : bytes_(bytes) {}
  std::string name() const override { return host_->name(); }
  std::string device() const override { return host_->device(); }
  core::Graph prepare(const core::Graph& graph, core::Precision precision) override {
    return host_->prepare(graph, precision);
  }
  void require_memory(const core::Graph& graph, std::int64_t arena_bytes, std::int64_t least_bytes) override {
    host_->require_memory(graph, arena_bytes, least_bytes);
    residents_ = graph.residents().size();
    if (arena_bytes > bytes_) throw core::MemoryError("the arena does not fit");
  }
  std::unique_ptr<runtime::Executor> load(const pipeline::ExecuteRequest& request) override {
    if (request.plan.bytes > bytes_) throw core::MemoryError("the arena does not fit");
    return host_->load(request);
  }
  bool times_ops_for_free() const override { return host_->times_ops_for_free(); }
  runtime::TimedWork time_step(const core::Graph& graph, core::Precision precision,
                               const std::function<bool()>& expired) override {
    return host_->time_step(graph, precision, expired);
  }
  double seconds_of_timing() const override { return host_->seconds_of_timing(); }
  std::int64_t cache_bytes() const override { return host_->cache_bytes(); }
  /// Returns the number of residents of the graph that was last passed to require_memory().
  std::size_t residents() const { return residents_; }

 private:
  std::size_t residents_ = 0;
  std::unique_ptr<pipeline::Backend> host_ = pipeline::open_backend("host");
  std::int64_t bytes_;
};

}  // namespace

TEST_CASE("a decision fits as planned, and its outputs are the baseline's") {
  const auto backend = pipeline::open_backend("host");
  for (const auto& graph : {pipeline::prepare(*backend, small_ffn()), pipeline::prepare(*backend, hourglass())}) {
    const fit::Problem problem(graph.prepared, "80%");
    const fit::Decision decision = fit::decide(problem, "auto", quick());
    CHECK(decision.executed_plan().bytes <= *problem.budget);
    CHECK(decision.executed_plan().alignment == 256);
    CHECK(core::check_plan(graph.prepared, decision.schedule, decision.executed_plan()).empty());
    const pipeline::RunResult result = pipeline::run(*backend, graph, decision, {.check_on_host = true});
    CHECK(result.comparison.identical());
    CHECK(result.comparison.outputs > 0);
    CHECK(result.host_check->close);
    CHECK(result.scheduled_run.measured_peak_bytes <= decision.executed_plan().bytes);
    CHECK(report::run_page(problem, *backend, decision, result).starts_with("<!DOCTYPE html>"));
  }
}

TEST_CASE("a schedule with transfers is executed with its copies, and takes the planned bytes on both sides") {
  const auto backend = pipeline::open_backend("host");
  tests::Random random(1);
  for (const auto& graph : {pipeline::prepare(*backend, small_ffn()), pipeline::prepare(*backend, hourglass())}) {
    const fit::Problem problem(graph.prepared, "100%");
    core::Schedule schedule =
        tests::with_transfers(random, graph.prepared, core::baseline_schedule(graph.prepared), 60);
    REQUIRE(schedule.transfers.fetches.size() > 1);
    const fit::Decision decision = fit::decide_on(graph.prepared, "given", std::move(schedule), {.alignment = 256});
    pipeline::RunResult result = pipeline::run(*backend, graph, decision, {.poison = true, .repeats = 1});
    CHECK(result.identical() == true);
    CHECK(result.scheduled_run.measured_peak_bytes == decision.executed_plan().bytes);
    CHECK(decision.executed_plan().host_bytes > 0);
    CHECK(result.scheduled_run.host_planned_bytes == decision.executed_plan().host_bytes);
    CHECK(result.scheduled_run.host_measured_bytes == decision.executed_plan().host_bytes);
    CHECK(result.baseline_run->host_measured_bytes == 0);
    CHECK(report::defect_of(result).empty());
    CHECK(tests::contains(report::run_page(problem, *backend, decision, result), "measured on the host"));
    result.scheduled_run.host_measured_bytes -= 1;
    CHECK(tests::contains(report::defect_of(result), "the copies on the host took"));
  }
}

TEST_CASE("random delays of copies change no bit of an execution") {
  const auto backend = pipeline::open_backend("host");
  const pipeline::PreparedGraph graph = pipeline::prepare(*backend, small_ffn());
  tests::Random random(2);
  const core::Schedule schedule =
      tests::with_transfers(random, graph.prepared, core::baseline_schedule(graph.prepared), 60);
  const core::Plan plan = solvers::plan_memory(graph.prepared, schedule, {.alignment = 256});
  pipeline::ExecuteRequest request{.graph = graph.prepared, .schedule = schedule, .plan = plan};
  const pipeline::Execution expected = backend->execute(request);
  request.half_duplex = true;
  for (request.copy_delay_seed = 1; request.copy_delay_seed < 9; ++request.copy_delay_seed)
    CHECK(pipeline::compare(graph.prepared, expected, backend->execute(request)).identical());
}

TEST_CASE("what memory has no room for is known before any search") {
  const auto host = pipeline::open_backend("host");
  const auto graph = pipeline::prepare(*host, small_ffn());
  const auto problem = [&](const std::string& budget) { return fit::Problem(graph.prepared, budget).rounded_up(256); };
  const fit::Problem whole = problem("100%"), most = problem("200%"), none = problem("");
  REQUIRE(whole.plan_bound() < whole.baseline.peak);
  // Memory suffices for an arena as large as the lower bound, but not for the baseline. So it does not suffice for
  // budgets of at least the baseline's peak either. A lower budget, or none, may still be met, so it is not refused.
  SmallHost small(whole.plan_bound());
  CHECK_THROWS_AS(pipeline::require_memory(small, graph.prepared, whole), core::MemoryError);
  CHECK_THROWS_AS(pipeline::require_memory(small, graph.prepared, most), core::MemoryError);
  CHECK_NOTHROW(pipeline::require_memory(small, graph.prepared, none));
  CHECK(small.residents() > 0);
  CHECK_NOTHROW(pipeline::require_memory(small, graph.prepared, problem(std::to_string(whole.plan_bound()))));
  CHECK(pipeline::SideBySide(small, graph, 256, 0, {}).why_no_baseline() == "the arena does not fit");
  // If memory suffices for the baseline's arena, it suffices for every budget, because a run never needs a larger
  // arena.
  SmallHost larger(whole.baseline.peak);
  CHECK_NOTHROW(pipeline::require_memory(larger, graph.prepared, most));
  SmallHost tiny(whole.plan_bound() - 1);
  CHECK_THROWS_AS(pipeline::require_memory(tiny, graph.prepared, none), core::MemoryError);
  CHECK_THROWS_AS(host->require_memory(graph.prepared, std::int64_t{1} << 60, 0), core::MemoryError);
}

TEST_CASE("where there is no memory for the baseline the schedule is executed alone, and nothing is said to be equal") {
  const auto host = pipeline::open_backend("host");
  const auto graph = pipeline::prepare(*host, small_ffn());
  const fit::Problem problem(graph.prepared, "80%");
  const fit::Decision decision = fit::decide(problem, "auto", quick());
  const pipeline::RunResult whole = pipeline::run(*host, graph, decision);
  REQUIRE(whole.identical() == true);
  CHECK(whole.why_no_baseline.empty());

  SmallHost small(decision.executed_plan().bytes);
  const pipeline::RunResult alone = pipeline::run(small, graph, decision, {.check_on_host = true});
  CHECK_FALSE(alone.baseline_run);
  CHECK_FALSE(alone.identical());
  CHECK(alone.comparison.outputs == 0);
  CHECK(alone.why_no_baseline == "the arena does not fit");
  CHECK_FALSE(alone.interleaved);
  CHECK(alone.warmed_up);
  CHECK(alone.scheduled_run.timings.size() >= 3);
  CHECK(alone.loss == whole.loss);
  CHECK(alone.host_check->close);
  CHECK(pipeline::compare(graph.prepared, alone.scheduled_run, whole.scheduled_run).identical());
  CHECK(report::timing_text(alone).find(", of the schedule alone, ") != std::string::npos);
  CHECK(report::notes_of(graph.prepared, alone).front() ==
        "the baseline was not executed, and nothing compared with it: the arena does not fit");
  const std::string page = report::run_page(problem, small, decision, alone);
  CHECK(page.find("not compared") != std::string::npos);
  CHECK(page.find("identical") == std::string::npos);
  CHECK(report::run_trace(graph.prepared, decision, alone).find("baseline") == std::string::npos);

  SmallHost smaller(decision.executed_plan().bytes - 1);
  CHECK_THROWS_AS(pipeline::run(smaller, graph, decision), core::DeviceError);
  pipeline::SideBySide both(small, graph, 256, 0, {});
  CHECK(both.warm_up(1e9) == 0);
}

TEST_CASE("a short step is not disturbed by what any wake-up takes, a long one is by what preempts it") {
  const auto spread = [](double least, double others) {
    pipeline::Execution execution;
    execution.timings = {{.seconds = least}, {.seconds = others}, {.seconds = others}};
    return pipeline::spread_of(execution);
  };
  CHECK(spread(5e-6, 60e-6).disturbed == 0);
  CHECK(spread(5e-6, 60e-6).most == 60e-6);
  CHECK(spread(5e-6, 5e-3).disturbed == 2);
  CHECK(spread(2e-3, 5e-3).disturbed == 2);
  CHECK(spread(2e-3, 3e-3).disturbed == 0);
}

TEST_CASE("a decision with guards is planned without them, and run with them") {
  const auto backend = pipeline::open_backend("host");
  const auto graph = pipeline::prepare(*backend, hourglass());
  fit::FitOptions options = quick();
  options.plan.guard_bytes = 256;
  const fit::Problem problem(graph.prepared, "90%");
  const fit::Decision decision = fit::decide(problem, "auto", options);
  CHECK(decision.memory() <= *problem.budget);
  CHECK(decision.executed_plan().bytes > decision.memory());
  CHECK(pipeline::run(*backend, graph, decision, {.poison = true}).comparison.identical());
}

TEST_CASE("where nothing fits, one line says what is known") {
  const fit::Problem problem(hourglass(), "100");
  tests::check_says(tests::error_of<core::Error>([&] { fit::decide(problem, "auto", quick()); }),
                    {"the lower bound is 3072 bytes", "the least budget known to suffice is"});
  CHECK_THROWS_AS(fit::decide(fit::Problem(hourglass())), core::InputError);
}

TEST_CASE("a raised stop flag ends a run") {
  const std::atomic<bool> stop = true;
  const auto backend = pipeline::open_backend("host");
  const auto graph = pipeline::prepare(*backend, hourglass());
  const auto baseline = fit::decide_on_baseline(graph.prepared, {.alignment = 256});
  CHECK_THROWS_AS(pipeline::run(*backend, graph, baseline, {.limit = {.stop = &stop}}), core::InterruptedError);
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
  CHECK_THROWS_AS(pipeline::compare(graph, a, b), core::DefectError);
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

TEST_CASE("baseline and schedule are executed by turns, after one execution each to warm up") {
  const auto backend = pipeline::open_backend("host");
  const auto graph = pipeline::prepare(*backend, small_ffn());
  const auto decision = fit::decide_on_baseline(graph.prepared, {.alignment = 256});
  std::string order;  // one letter for each execution that begins: B for the baseline, S for the schedule
  const auto progress = [&](const pipeline::RunProgress& at) {
    if (at.step == 0 && (order.empty() || order.back() != (at.baseline ? 'B' : 'S'))) order += at.baseline ? 'B' : 'S';
    CHECK(at.steps == graph.prepared.node_count());
  };
  const auto result = pipeline::run(*backend, graph, decision, {.repeats = 3, .progress = progress});
  CHECK(order == "BSBSBSBS");
  CHECK(result.interleaved);
  CHECK(result.warmed_up);
  for (const pipeline::Execution* execution : {&*result.baseline_run, &result.scheduled_run}) {
    REQUIRE(execution->timings.size() == 3);
    const pipeline::Spread spread = pipeline::spread_of(*execution);
    CHECK(spread.least <= execution->report.seconds);
    CHECK(execution->report.seconds <= spread.most);
    CHECK(execution->report.op_seconds.size() == static_cast<std::size_t>(graph.prepared.node_count()));
  }
  CHECK(report::timing_text(result) == "median of 3 executions each, alternating, after one to warm up");

  // Without `repeats`, there are at least three executions. If the time limit has passed, only one execution takes
  // place, because its outputs are needed.
  CHECK(pipeline::run(*backend, graph, decision).baseline_run->timings.size() >= 3);
  const auto late = pipeline::run(*backend, graph, decision, {.limit = {.seconds = -1}});
  CHECK(late.baseline_run->timings.size() == 1);
  CHECK_FALSE(late.warmed_up);
  CHECK(late.comparison.identical());
}

TEST_CASE("a baseline that was begun before the schedule was known is not executed once more to warm up") {
  const auto backend = pipeline::open_backend("host");
  const auto graph = pipeline::prepare(*backend, small_ffn());
  const auto decision = fit::decide_on_baseline(graph.prepared, {.alignment = 256});
  std::int64_t begun = 0;  // number of executions of the baseline that have begun
  const auto progress = [&](const pipeline::RunProgress& at) { begun += at.baseline && at.step == 1 ? 1 : 0; };
  pipeline::SideBySide both(*backend, graph, 256, 0, {.repeats = 2, .progress = progress});
  CHECK(both.warm_up(1e9) > 0);
  CHECK(begun == 1);
  const pipeline::RunResult result = both.run(decision);
  CHECK(begun == 3);
  CHECK(result.warmed_up);
  CHECK(result.comparison.identical());

  // A warm-up that is cut off after its first step still returns an estimate of how long an execution takes. The
  // baseline is then executed as if there had been no warm-up.
  begun = 0;
  pipeline::SideBySide cut(*backend, graph, 256, 0, {.repeats = 2, .progress = progress});
  CHECK(cut.warm_up(-1) > 0);
  CHECK(begun == 0);
  const pipeline::RunResult whole = cut.run(decision);
  CHECK(begun == 3);
  CHECK(whole.comparison.identical());
  CHECK(whole.baseline_run->timings.size() == 2);
}

TEST_CASE("synthetic kernels are told, with how many nodes they execute, and what they leave is called digests") {
  const auto backend = pipeline::open_backend("host");
  const core::Graph real = small_ffn().build(), synthetic = hourglass();
  CHECK(report::synthetic_note(real).empty());
  CHECK(pipeline::kernels_of(real) == "real");
  CHECK(report::synthetic_note(synthetic) == "synthetic kernels: memory is real, arithmetic is not");
  CHECK(pipeline::kernels_of(synthetic) == "synthetic");

  core::GraphBuilder builder(real);
  const core::NodeId extra = builder.add({.name = "extra", .size = 64, .keep = true, .inputs = {0}});
  builder.add({.name = "unread", .size = 64, .inputs = {extra}});
  const auto mixed = pipeline::prepare(*backend, builder.build());
  const std::string note = report::synthetic_note(mixed.prepared);
  CHECK(note == "synthetic kernels on 2 of " + std::to_string(mixed.prepared.node_count()) +
                    " nodes: memory is real, arithmetic is not");
  CHECK(pipeline::kernels_of(mixed.prepared) == "mixed");

  const auto decision = fit::decide_on_baseline(mixed.prepared, {.alignment = 256});
  const auto result = pipeline::run(*backend, mixed, decision, {.repeats = 1});
  CHECK(result.comparison.synthetic == 1);
  CHECK(result.comparison.sinks == 1);
  CHECK(result.comparison.digests() == 2);
  CHECK(report::notes_of(mixed.prepared, result).front() == note);
  const std::string text = report::compared_text(result.comparison);
  CHECK(text.find("1 of them digests of synthetic kernels") != std::string::npos);
  CHECK(text.find("1 digests of outputs that nobody reads or keeps") != std::string::npos);
  const fit::Problem problem(mixed.prepared, "100%");
  CHECK(report::run_page(problem, *backend, decision, result).find(note) != std::string::npos);
}

TEST_CASE("costs predict times only where they are times, and of this machine only where they were measured on it") {
  const auto backend = pipeline::open_backend("host");
  const auto given = pipeline::prepare(*backend, small_ffn());
  const auto decision = fit::decide_on_baseline(given.prepared, {.alignment = 256});
  CHECK(pipeline::predicted_seconds(given.prepared, decision) ==
        Approx(static_cast<double>(decision.evaluation.cost) * 1e-9));
  CHECK_FALSE(pipeline::predicts(given.prepared, *backend, given.precision));
  CHECK_FALSE(pipeline::predicted_seconds(hourglass(), decision));

  const pipeline::Measurement measured = pipeline::measure(*backend, given);
  CHECK(measured.result.unmeasured.empty());
  CHECK(measured.timings >= 5 * measured.result.distinct_ops);
  CHECK(pipeline::predicts(measured.result.graph, *backend, given.precision));
}

TEST_CASE("a measurement ends when it is told to, and tells how far it is") {
  const auto backend = pipeline::open_backend("host");
  const auto given = pipeline::prepare(*backend, small_ffn());
  std::vector<pipeline::MeasureProgress> seen;
  const auto measured =
      pipeline::measure(*backend, given,
                        {.progress = [&](const pipeline::MeasureProgress& progress) { seen.push_back(progress); },
                         .expired = [&] { return seen.size() > 2; }});
  REQUIRE(seen.size() == 3);
  CHECK(measured.result.measured_ops == 2);
  CHECK(measured.result.unmeasured.size() > 0);
  CHECK_FALSE(seen[0].remaining);
  CHECK(*seen[1].remaining > 0);
  CHECK(seen[2].measured == 2);
  CHECK(seen[2].ops == measured.result.distinct_ops);
}

}  // namespace cairn::run_test
