#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cairn/core/schedule.h"
#include "cairn/pipeline/request.h"
#include "cairn/python/src/bindings.h"
#include "cairn/python/src/call.h"
#include "cairn/solvers/fit/objective.h"

namespace cairn::python {

namespace nb = nanobind;

/// The Python class LeastBudget.
struct LeastBudget {
  fit::LeastBudget of;
  std::int64_t baseline_cost = 0;  ///< cost of a schedule in the graph's input order
};

/// The Python class Answer.
struct Answer {
  fit::Task task;
  std::string solver;
  fit::Answer answer;
  fit::LeastBudget least;
  core::Evaluation found;  ///< peak and cost of the answer's schedule, with the sizes of the given graph
  bool interrupted = false;

  bool shown() const { return answer.has_schedule(); }
  LeastBudget least_budget() const { return {least, task.problem.baseline.cost}; }
};

/// Arguments of all searches. Names and meanings are those of the options of the command `cairn`.
struct SearchArguments {
  std::string solver = "auto";
  std::optional<double> time_limit;  ///< seconds
  std::optional<std::int64_t> work_limit;
  std::uint64_t seed = 0;
  std::int64_t memory = 0;  ///< bytes; 0: the default of SolveOptions
  std::string order = "free";
  std::int32_t max_occurrences = 0;         ///< 0: any number
  std::map<std::string, std::int64_t> own;  ///< options that only the chosen solver has

  /// Throws InputError if an argument has a bad value.
  solvers::SolveOptions options() const;
};

/// Makes `given`, a schedule that Python passed, the schedule from which `search` starts. `search` refers to the
/// result, which must therefore live as long as `search`. Returns nullptr if `given` is None. Throws InputError if
/// `given` is not a valid schedule of the graph. Also throws InputError if `given` is not in search.scope, which is the
/// set of schedules that the caller allows, or not in solver.scope, which is the set of schedules that the solver can
/// find.
std::unique_ptr<const GivenSchedule> start_from(solvers::SolveOptions& search, const solvers::SolverInfo& solver,
                                                const core::Graph& graph, nb::handle given);

/// Searches for an answer to the task. `start` is the schedule to start from, or None. Throws InputError for a bad
/// argument. Raises Python's InfeasibleError if max_cost is below the baseline's cost (unaffordable()).
Answer search_answer(fit::Task task, const SearchArguments& search, nb::handle start, Call& call);
/// Raises a Python exception if the search has not given an answer:
/// - the exception that a Python callback raised during the search;
/// - Interrupted after Ctrl-C;
/// - InfeasibleError or NotFoundError if no answer was found.
/// `asked` is the set of schedules that the caller allowed. If this function raises, `answered` must not be used
/// afterwards, because it may have been moved from.
void finish_search(Call& call, Answer& answered, const solvers::Scope& asked);

}  // namespace cairn::python
