#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cairn/cli/arguments.h"
#include "cairn/cli/objective.h"
#include "cairn/cli/output.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/fit/decision.h"
#include "cairn/solvers/fit/objective.h"
#include "cairn/solvers/plan/planner.h"

/// How `run` and `train` choose the schedule that they execute: from a file, or by a search.
namespace cairn::cli {

/// The arguments of a command that executes a schedule.
struct ChoiceArguments {
  Console console;
  GraphArguments graph;
  SolverArguments search;
  BackendChoice backend;
  ObjectiveArguments objective;
  std::string schedule, output;
  StartArgument start;
  AlignmentChoice alignment;
  bool sentinels = false;
  int streams = 1;

  /// Adds --streams and --overlap-steps.
  void add_streams_to(CLI::App& app);
  solvers::PlanOptions plan_options(const core::Graph& executed) const;
  /// Throws InputError if --schedule is given together with options of a search.
  void require_one_choice() const;
  /// Throws InputError if the backend has fewer streams, or if the options that concern streams contradict each other.
  void require_streams(const pipeline::Backend& opened, bool poison) const;
};

/// The schedule to execute. `answer` is that of the search; none if the user gave the schedule.
struct Choice {
  fit::Decision decision;
  std::optional<fit::Answer> answer;

  std::vector<solvers::Tradeoff> tradeoffs() const {
    return answer ? answer->found.solution.tradeoffs : std::vector<solvers::Tradeoff>();
  }
};

/// Writes the schedule to the file `arguments.output`, if there is one, with the fingerprint of the graph as it was
/// given. The fingerprint of the prepared graph is not used, because it depends on the backend.
void write_schedule(const core::Graph& given, const ChoiceArguments& arguments, const core::Schedule& schedule,
                    const std::string& solver, const std::optional<core::Plan>& plan);

/// Reads the schedule that `arguments` name. It must have been made for the given graph, or for the prepared graph,
/// whose scratch may differ. Throws Failure if it needs more than the problem's budget.
Choice read_choice(const fit::Problem& problem, const core::Graph& given, const ChoiceArguments& arguments);

/// Searches for a schedule. `executing` is the number of seconds to leave for executions. Throws Failure, which
/// explains why, if none is found or the search is interrupted; the best schedule so far is written then.
Choice search_choice(const fit::Task& task, const core::Graph& given, const ChoiceArguments& arguments,
                     double executing);

}  // namespace cairn::cli
