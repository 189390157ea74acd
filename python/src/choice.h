#pragma once

#include <cstdint>
#include <optional>

#include "cairn/pipeline/backend.h"
#include "cairn/pipeline/request.h"
#include "cairn/python/src/answer.h"
#include "cairn/solvers/fit/decision.h"

namespace cairn::python {

/// A schedule to execute, and what it was chosen for.
struct Choice {
  fit::Task task;
  fit::Decision decision;
  std::optional<fit::Answer> answer;  ///< none: the schedule was not searched for
};

/// Returns whether the request says what a search is to find: a budget, a device or a largest cost.
bool has_objective(const pipeline::Request& request);

/// Chooses the schedule with which `backend` will execute `graph`, and plans it with `guard_bytes` bytes behind every
/// buffer. Takes `schedule` if it is not None. Otherwise, searches for a schedule if the request has an objective, and
/// takes the baseline if it has none. Raises what search_answer() and finish_search() raise, NotFoundError if the plan
/// of the given schedule is above the budget, and DeviceError if memory does not suffice.
Choice choose(pipeline::Backend& backend, const core::Graph& prepared, const pipeline::Request& request,
              const SearchArguments& search, nb::handle schedule, std::int64_t guard_bytes, Call& call);

}  // namespace cairn::python
