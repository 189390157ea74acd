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

/// The Python class LeastBudget: the least budget that was found, with its schedule and plan.
struct LeastBudget {
  fit::LeastBudget of;
  std::int64_t baseline_cost = 0;  ///< cost of a schedule in the graph's input order
};

/// The Python class Answer: the result of a search for a schedule.
struct Answer {
  fit::Task task;
  std::string solver;
  fit::Answer answer;
  fit::LeastBudget least;
  /// peak and cost of the answer's schedule, computed with the sizes of the graph that the caller gave
  core::Evaluation found;
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
  /// a node may occur at most this many times in a schedule; 0: any number of times
  std::int32_t max_occurrences = 0;
  /// options of the chosen solver that other solvers do not have: name -> value
  std::map<std::string, std::int64_t> own;

  /// Throws InputError if an argument has a bad value.
  solvers::SolveOptions options() const;
};

/// Makes `search` start from `given`, a schedule that Python passed. Returns the converted schedule, to which `search`
/// refers, so it must live as long as `search`. Returns nullptr if `given` is None. Throws InputError if `given` is not
/// a valid schedule of the graph, or not in search.scope (the set of schedules that the caller allows), or not in
/// solver.scope (the set of schedules that the solver can find).
std::unique_ptr<const GivenSchedule> start_from(solvers::SolveOptions& search, const solvers::SolverInfo& solver,
                                                const core::Graph& graph, nb::handle given);

/// Searches for an answer to the task. `start` is the schedule to start from, or None. Throws InputError for a bad
/// argument. Raises Python's InfeasibleError if the task's max_cost is below the cost of the baseline (unaffordable()).
Answer search_answer(fit::Task task, const SearchArguments& search, nb::handle start, Call& call);
/// Raises a Python exception if the search has not given an answer:
/// - the exception that a Python callback raised during the search;
/// - Interrupted after Ctrl-C;
/// - InfeasibleError or NotFoundError if no answer was found.
/// `asked` is the set of schedules that the caller allowed. If this function raises, `answered` must not be used
/// afterwards, because it may have been moved from.
void finish_search(Call& call, Answer& answered, const solvers::Scope& asked);

}  // namespace cairn::python
