#include "cairn/pipeline/run.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/precision.h"
#include "cairn/core/support/text.h"
#include "cairn/pipeline/backend.h"
#include "cairn/pipeline/request.h"
#include "cairn/python/src/answer.h"
#include "cairn/python/src/bindings.h"
#include "cairn/python/src/call.h"
#include "cairn/python/src/choice.h"
#include "cairn/report/pages.h"
#include "cairn/report/support/explanation.h"
#include "cairn/report/support/json.h"
#include "cairn/report/support/words.h"

namespace cairn::python {
namespace {

/// The Python class Executed: the baseline or the schedule of a run, with the result of its execution.
struct Executed {
  fit::Decision decision;
  std::optional<pipeline::Execution> execution;  ///< empty: memory did not suffice
};

/// The Python class RunResult: the result of executing a schedule and the baseline.
struct RunResult {
  std::shared_ptr<pipeline::Backend> backend;
  fit::Task task;
  core::Precision precision;
  fit::Decision decision;
  std::optional<fit::Answer> answer;  ///< empty: the caller gave the schedule
  pipeline::RunResult result;
  std::int64_t nodes_in_free_memory = 0;

  Executed baseline() const { return {result.baseline, result.baseline_run}; }
  Executed scheduled() const { return {decision, result.scheduled_run}; }
  pipeline::RunOutcome outcome() const {
    return {task, *backend, precision, decision, answer ? &*answer : nullptr, result, nodes_in_free_memory};
  }
  std::vector<solvers::Tradeoff> tradeoffs() const {
    return answer ? answer->found.solution.tradeoffs : std::vector<solvers::Tradeoff>();
  }
};

RunResult run(const core::Graph& given, const pipeline::Request& request, const SearchArguments& search,
              nb::handle schedule, const std::string& backend_name, const std::optional<std::string>& precision,
              int repeats, bool poison, bool sentinels, bool check, int streams, nb::object progress) {
  std::shared_ptr<pipeline::Backend> backend = pipeline::open_backend(backend_name);
  backend->require_streams(streams, request.overlap_steps, poison || sentinels);
  std::optional<core::Precision> stored;
  if (precision) stored = core::precision_from_string(*precision);
  pipeline::PreparedGraph graph = pipeline::prepare(*backend, given, stored);
  if (check && core::stores_bf16(graph.given))
    throw core::InputError(
        "check= compares with the host, which executes fp32 only; give the graph in fp32 and precision='bf16'");
  if (schedule.is_none() && !has_objective(request))
    throw core::InputError("run needs budget=, as 1.5GiB or 50%, or max_cost= or schedule=");
  Call call(std::move(progress));
  const std::int64_t guard_bytes = sentinels ? pipeline::kGuardBytes : 0;
  auto [task, decision, answer] = choose(*backend, graph.prepared, request, search, schedule, guard_bytes, call);
  std::int64_t nodes_in_free_memory = 0;
  if (auto faster = pipeline::use_free_memory(*backend, graph, task, decision, call.stop())) {
    nodes_in_free_memory = faster->nodes;
    graph = std::move(faster->graph);
    decision = std::move(faster->decision);
    task = pipeline::make_task(graph.prepared, "graph", request);
  }
  pipeline::RunOptions options{.seed = search.seed, .poison = poison, .repeats = repeats, .check_on_host = check};
  options.streams = streams;
  options.limit = {.seconds = search.options().limit.seconds, .stop = call.stop()};
  pipeline::RunResult result;
  call.run([&] { result = pipeline::run(*backend, graph, decision, options); });
  call.raise_pending();
  if (call.interrupted()) raise("Interrupted", "interrupted during the execution");
  if (const std::string defect = report::defect_of(result); !defect.empty()) throw core::DefectError(defect);
  return {std::move(backend), std::move(task),   graph.precision,     std::move(decision),
          std::move(answer),  std::move(result), nodes_in_free_memory};
}

void bind_executed(nb::module_& module) {
  nb::class_<Executed>(module, "Executed", "A schedule that was executed: promised and measured bytes, and its time.")
      .def_prop_ro(
          "schedule", [](const Executed& e) -> const core::Schedule& { return e.decision.schedule; },
          nb::rv_policy::reference_internal)
      .def_prop_ro(
          "plan", [](const Executed& e) -> const core::Plan& { return e.decision.executed_plan(); },
          nb::rv_policy::reference_internal)
      .def_prop_ro(
          "peak", [](const Executed& e) { return e.decision.evaluation.peak; }, "The peak of the schedule, in bytes.")
      .def_prop_ro(
          "predicted_peak", [](const Executed& e) { return e.decision.predicted_peak; },
          "The peak of the schedule with sizes rounded up to the alignment, in bytes.")
      .def_prop_ro(
          "planned", [](const Executed& e) { return e.decision.executed_plan().bytes; }, "Bytes of the arena.")
      .def_prop_ro(
          "measured",
          [](const Executed& e) {
            return e.execution ? std::optional(e.execution->measured_peak_bytes) : std::nullopt;
          },
          "Number of bytes of the arena up to the highest one that was written; None if the schedule was not executed\n"
          "because memory does not suffice.")
      .def_prop_ro("cost", [](const Executed& e) { return e.decision.evaluation.cost; })
      .def_prop_ro("recomputed", [](const Executed& e) { return e.decision.evaluation.recomputed; })
      .def_prop_ro(
          "seconds",
          [](const Executed& e) { return e.execution ? std::optional(e.execution->report.seconds) : std::nullopt; },
          "The median of `timings`.")
      .def_prop_ro("timings",
                   [](const Executed& e) {
                     std::vector<double> seconds;
                     if (!e.execution) return seconds;
                     for (const runtime::Timing& timing : e.execution->timings) seconds.push_back(timing.seconds);
                     return seconds;
                   })
      .def("__repr__", [](const Executed& e) {
        if (!e.execution)
          return fmt::format("<cairn.Executed planned {}, not executed>", e.decision.executed_plan().bytes);
        return fmt::format("<cairn.Executed planned {}, measured {}, {:.4g} s>", e.decision.executed_plan().bytes,
                           e.execution->measured_peak_bytes, e.execution->report.seconds);
      });
}

void bind_result(nb::module_& module) {
  nb::class_<RunResult>(module, "RunResult",
                        "A schedule executed beside the baseline, and compared with it bit by bit.")
      .def_prop_ro("baseline", &RunResult::baseline)
      .def_prop_ro("scheduled", &RunResult::scheduled)
      .def_prop_ro(
          "identical", [](const RunResult& r) { return r.result.identical(); },
          "Whether all kept outputs have the same bits. If they differ, the call raises DefectError. None if nothing "
          "was\n"
          "compared because memory does not suffice for the baseline.")
      .def_prop_ro("compared", [](const RunResult& r) { return report::compared_text(r.result.comparison); })
      .def_prop_ro("loss", [](const RunResult& r) { return r.result.loss; })
      .def_prop_ro("budget", [](const RunResult& r) { return r.task.problem.budget; })
      .def_prop_ro("backend", [](const RunResult& r) { return r.backend->name(); })
      .def_prop_ro("device", [](const RunResult& r) { return r.backend->device(); })
      .def_prop_ro("timing", [](const RunResult& r) { return report::timing_text(r.result); })
      .def(
          "to_json",
          [](const RunResult& r) {
            report::Json json = report::run_json(r.outcome());
            report::Explanation(r.task.problem.graph, &r.decision.schedule).add_to(json);
            return report::json_text(json);
          },
          "The object that `cairn run --json` prints, as text.")
      .def("report", file_of<RunResult>([](const RunResult& r) {
             return report::run_page(r.task.problem, *r.backend, r.decision, r.result, r.tradeoffs());
           }),
           "path"_a, kReport, "Writes the HTML page of `cairn run --report`.")
      .def("trace", file_of<RunResult>([](const RunResult& r) {
             return report::run_trace(r.task.problem.graph, r.decision, r.result);
           }),
           "path"_a, kTrace, "Writes a Chrome/Perfetto trace with measured times.")
      .def("__str__", [](const RunResult& r) { return report::run_table(r.outcome()); })
      .def("__repr__", [](const RunResult& r) {
        const auto& after = r.result.scheduled_run.report;
        if (!r.result.baseline_run)
          return fmt::format("<cairn.RunResult on {}: measured {}, {:.4g} s, not compared>", r.backend->name(),
                             core::format_bytes(r.result.scheduled_run.measured_peak_bytes), after.seconds);
        const auto& before = r.result.baseline_run->report;
        return fmt::format("<cairn.RunResult on {}: measured {} -> {}, {:.4g} s -> {:.4g} s, {}>", r.backend->name(),
                           core::format_bytes(r.result.baseline_run->measured_peak_bytes),
                           core::format_bytes(r.result.scheduled_run.measured_peak_bytes), before.seconds,
                           after.seconds, r.result.comparison.identical() ? "identical" : "different");
      });
}

}  // namespace

void bind_run(nb::module_& module) {
  bind_executed(module);
  bind_result(module);
  module.def("run", &run, "graph"_a, "request"_a, "search"_a, "schedule"_a.none(), "backend"_a, "precision"_a.none(),
             "repeats"_a, "poison"_a, "sentinels"_a, "check"_a, "streams"_a, "progress"_a.none());
}

}  // namespace cairn::python
