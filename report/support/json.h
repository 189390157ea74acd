#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/pipeline/device_memory.h"
#include "cairn/pipeline/info.h"
#include "cairn/pipeline/run.h"
#include "cairn/pipeline/sweep.h"
#include "cairn/solvers/fit/curve.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/objective.h"
#include "cairn/solvers/fit/problem.h"

/// What `--json` prints, and Python's to_json() returns.
namespace cairn::report {

using Json = nlohmann::ordered_json;

/// The number, or null.
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// As it is printed; bytes that are no UTF-8 are replaced.
std::string json_text(const Json& object);

/// The keys that `info`, `solve`, `run` and `simulate` have in common.
Json describe(const fit::Problem& problem);
/// Adds why the lower bound holds, and the least budget known feasible with the solver that meets it.
void add_limits(Json& json, const fit::Problem& problem, const fit::LeastBudget& least);
/// Adds what the answer was searched for and what is proved of it: objective, max_cost, status, stopped, scope,
/// lower_bound_scope, lower_bound_cost and its scope, gap_pct, gap_of, proved.
void add_proof(Json& json, const fit::Task& task, const fit::Answer& answer);
/// All that `cairn solve` says of an answer but Explanation's keys.
Json answer_json(const fit::Task& task, std::string_view solver, const fit::Answer& answer,
                 const fit::LeastBudget& least, bool interrupted);
/// All that `cairn pareto` says of a curve, whose plans have that alignment.
Json curve_json(const fit::Problem& problem, std::string_view solver, std::int64_t alignment, const fit::Curve& curve,
                bool interrupted);
/// The object `least_budget` of `cairn info`. `baseline_cost`: of the graph's input order.
Json least_budget_json(const fit::LeastBudget& least, std::int64_t baseline_cost);
Json to_json(const pipeline::ResidentBytes& resident);
Json to_json(const fit::LargestBatch& found);
/// What it takes, how it is divided and, where those are known, the least device and the largest batch.
Json to_json(const pipeline::DeviceAdvice& device);
/// All that `cairn info` says of a graph and a budget but Explanation's keys and those of decompositions. `device`:
/// nullptr where none was named.
Json info_json(const fit::Task& task, const pipeline::Info& info, const pipeline::DeviceAdvice* device,
               bool interrupted);
/// All that `cairn plan` says of a schedule's plan.
Json plan_json(const core::Graph& graph, const core::Schedule& schedule, const fit::FoundPlan& found);
/// The part of it that holds for free-standing buffers as well.
Json plan_json(const fit::FoundPlan& found);
/// All that `cairn simulate` says.
Json sweep_json(const fit::Problem& problem, const pipeline::Swept& swept, const pipeline::SweepOrigin& origin);
/// All that `cairn run` says but Explanation's keys.
Json run_json(const pipeline::RunOutcome& outcome);

}  // namespace cairn::report
