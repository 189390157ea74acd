#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "cairn/pipeline/device_memory.h"
#include "cairn/pipeline/info.h"
#include "cairn/pipeline/least_budget.h"
#include "cairn/pipeline/objective.h"
#include "cairn/pipeline/pareto.h"
#include "cairn/pipeline/problem.h"

/// What `--json` prints, and Python's to_json() returns.
namespace cairn::pipeline {

using Json = nlohmann::ordered_json;

/// The number, or null.
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// The keys that `info`, `solve`, `run` and `simulate` have in common.
Json describe(const Problem& problem);
/// Adds why the lower bound holds, and the least budget known feasible with the solver that meets it.
void add_limits(Json& json, const Problem& problem, const LeastBudget& least);
/// Adds what the answer was searched for and what is proved of it: objective, max_cost, status, stopped, scope,
/// lower_bound_scope, lower_bound_cost and its scope, gap_pct, gap_of, proved.
void add_proof(Json& json, const Task& task, const Answer& answer);
/// All that `cairn solve` says of an answer but Explanation's keys.
Json answer_json(const Task& task, std::string_view solver, const Answer& answer, const LeastBudget& least,
                 bool interrupted);
/// All that `cairn pareto` says of a curve, whose plans have that alignment.
Json curve_json(const Problem& problem, std::string_view solver, std::int64_t alignment, const Curve& curve,
                bool interrupted);
Json to_json(const ResidentBytes& resident);
/// All that `cairn info` says of a graph and a budget but Explanation's keys and those of devices and decompositions.
Json info_json(const Task& task, const Info& info);

}  // namespace cairn::pipeline
