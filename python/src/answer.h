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
  std::int64_t baseline_cost = 0;  ///< cost of the graph's input order
};

/// The Python class Answer.
struct Answer {
  fit::Task task;
  std::string solver;
  fit::Answer answer;
  fit::LeastBudget least;
  core::Evaluation found;  ///< evaluation of the schedule on the given graph
  bool interrupted = false;

  /// Returns whether there is a schedule to show.
  bool shown() const { return answer.has_schedule(); }
};

/// Arguments that all searches share. They have the names and meanings of the command's options.
struct SearchArguments {
  std::string solver = "auto";
  std::optional<double> time_limit;  ///< seconds
  std::optional<std::int64_t> work_limit;
  std::uint64_t seed = 0;
  std::int64_t memory = 0;  ///< bytes; 0: the default of SolveOptions
  std::string order = "free";
  std::int32_t max_occurrences = 0;         ///< 0: any number
  std::map<std::string, std::int64_t> own;  ///< options that only the chosen solver has

  /// Converts the arguments to the solver's options. Throws InputError if an argument has a bad value.
  solvers::SolveOptions options() const;
};

/// Reads the schedule from which a search starts, and makes it the start of `search`. Returns nothing if `given` is
/// None. Throws InputError if `given` is not a valid schedule in the scopes of `search` and of the solver. The caller
/// must keep the result as long as `search`.
std::unique_ptr<const GivenSchedule> start_from(solvers::SolveOptions& search, const solvers::SolverInfo& solver,
                                                const core::Graph& graph, nb::handle given);

/// Searches for an answer to the task. Throws InputError for a bad argument, and InfeasibleError if the task is
/// unaffordable(). `start` is the Python argument `start`, or None.
Answer search_answer(fit::Task task, const SearchArguments& search, nb::handle start, Call& call);
/// Raises the exception that a callback raised. After Ctrl-C, raises Interrupted. If there is no answer, raises an
/// exception that says why. If this function raises an exception, `answered` must not be used afterwards, because it
/// may have been moved from.
void finish_search(Call& call, Answer& answered, const solvers::Scope& asked);

}  // namespace cairn::python
