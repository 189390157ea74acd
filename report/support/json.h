#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/core/graph.h"
#include "cairn/core/link.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"
#include "cairn/pipeline/device_memory.h"
#include "cairn/pipeline/info.h"
#include "cairn/pipeline/run.h"
#include "cairn/pipeline/sweep.h"
#include "cairn/pipeline/train.h"
#include "cairn/solvers/fit/curve.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/link_worth.h"
#include "cairn/solvers/fit/objective.h"
#include "cairn/solvers/fit/problem.h"

/// These functions make the JSON that `--json` prints and that to_json() returns in Python.
namespace cairn::report {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string json_text(const Json& object);

/// Adds the number of GPU streams on which one execution of the schedule runs, the best time that they allow, and the
/// bytes that PlanOptions::overlap_steps adds to the plan.
void add_streams(Json& json, const fit::Decision& decision, const std::optional<runtime::Overlap>& overlap);

/// Returns the content of the file that `solve --certificate` writes (docs/remat/certificate.md). It includes the
/// answer's schedule if there is one.
Json certificate_file(const fit::Task& task, const fit::Answer& answer, const solvers::Certificate& certificate);
/// Returns the key `certificate` of the output of `solve`.
Json certificate_json(const fit::Task& task, const fit::Answer& answer, const solvers::Certificate& certificate);

/// Returns the keys that the outputs of `info`, `solve`, `run` and `simulate` have in common.
Json describe(const fit::Problem& problem);
/// Adds the reason for the lower bound, the least budget known to be feasible, and the solver that found it.
void add_limits(Json& json, const fit::Problem& problem, const fit::LeastBudget& least);
/// Adds the objective of the search and what is proved about the answer. Sets the keys objective, max_cost, status,
/// stopped, scope, lower_bound_scope, lower_bound_cost, gap_pct, gap_of, proved, and the key for the scope of
/// lower_bound_cost.
void add_proof(Json& json, const fit::Task& task, const fit::Answer& answer);
/// Adds the link to host memory, the bytes that the schedule moves over the link, the parts of the makespan, and the
/// bytes on the host. `schedule` or `plan` can be nullptr; the keys that need it are null then. Adds nothing if the
/// graph knows no link.
void add_transfers(Json& json, const core::Graph& graph, const core::Schedule* schedule, const core::Plan* plan);
/// Adds the link, and the memory and cost that schedules of the graph save by using it.
void add_link_worth(Json& json, const fit::Problem& problem, const fit::LinkWorth& worth);
/// Returns the keys that describe a link.
Json to_json(const core::Link& link);
/// Returns all that `cairn solve` reports about an answer, except Explanation's keys.
Json answer_json(const fit::Task& task, std::string_view solver, const fit::Answer& answer,
                 const fit::LeastBudget& least, bool interrupted);
/// Returns all that `cairn pareto` reports about a curve. `alignment` is that of the plans, in bytes.
Json curve_json(const fit::Problem& problem, std::string_view solver, std::int64_t alignment, const fit::Curve& curve,
                bool interrupted);
/// Returns what `cairn info` prints under the key `least_budget`. `baseline_cost` is the cost of the graph's input
/// order.
Json least_budget_json(const fit::LeastBudget& least, std::int64_t baseline_cost);
Json to_json(const pipeline::ResidentBytes& resident);
Json to_json(const fit::LargestBatch& found);
/// Returns the size of the device's memory, how this memory is divided and, if known, the smallest device that suffices
/// and the largest batch that fits.
Json to_json(const pipeline::DeviceAdvice& device);
/// Returns all that `cairn info` reports about a graph and a budget, except Explanation's keys and those of
/// decompositions. `device` is nullptr if no device was named.
Json info_json(const fit::Task& task, const pipeline::Info& info, const pipeline::DeviceAdvice* device,
               bool interrupted);
/// Returns all that `cairn plan` reports about a schedule's plan.
Json plan_json(const core::Graph& graph, const core::Schedule& schedule, const fit::FoundPlan& found);
/// Returns the keys that are reported for every plan, even if its buffers belong to no graph.
Json plan_json(const fit::FoundPlan& found);
/// Returns what `cairn measure` reports about the costs of a graph of this name.
Json measurement_json(const std::string& name, const pipeline::PreparedGraph& given, const pipeline::Backend& backend,
                      const pipeline::Measurement& measurement);
/// Returns all that `cairn train` reports.
Json train_json(const pipeline::TrainOutcome& outcome);
/// Returns all that `cairn simulate` reports.
Json sweep_json(const fit::Problem& problem, const pipeline::Swept& swept, const pipeline::SweepOrigin& origin);
/// Returns all that `cairn run` reports, except Explanation's keys.
Json run_json(const pipeline::RunOutcome& outcome);

}  // namespace cairn::report
