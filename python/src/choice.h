#pragma once

#include <cstdint>
#include <optional>

#include "cairn/pipeline/backend.h"
#include "cairn/pipeline/request.h"
#include "cairn/python/src/answer.h"
#include "cairn/solvers/fit/decision.h"

namespace cairn::python {

/// A schedule to execute with its plan, and the task for which it was chosen.
struct Choice {
  fit::Task task;
  fit::Decision decision;
  std::optional<fit::Answer> answer;  ///< empty if there was no search
};

/// Returns whether the request has a goal for a search: a budget, a device or a largest cost.
bool has_objective(const pipeline::Request& request);

/// Chooses the schedule with which `backend` will execute the graph `prepared`, and plans it with `guard_bytes` bytes
/// behind every buffer. Takes `schedule` if it is not None. Otherwise, searches for a schedule if
/// has_objective(request), and else takes the baseline, i.e. the order of the graph. Raises the exceptions of
/// search_answer() and finish_search(); NotFoundError if the plan of the given schedule needs more bytes than the
/// budget; and DeviceError if the device's memory does not suffice.
Choice choose(pipeline::Backend& backend, const core::Graph& prepared, const pipeline::Request& request,
              const SearchArguments& search, nb::handle schedule, std::int64_t guard_bytes, Call& call);

}  // namespace cairn::python
