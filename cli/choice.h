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

/// These functions choose the schedule that `run` and `train` execute: they read it from a file, or search for it.
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
  /// Throws InputError if the backend `opened` has fewer GPU streams than --streams asks for, or if the options about
  /// streams contradict each other.
  void require_streams(const pipeline::Backend& opened, bool poison) const;
};

/// The schedule to execute. `answer` is the answer of the search, or nothing if the user gave the schedule.
struct Choice {
  fit::Decision decision;
  std::optional<fit::Answer> answer;

  std::vector<solvers::Tradeoff> tradeoffs() const {
    return answer ? answer->found.solution.tradeoffs : std::vector<solvers::Tradeoff>();
  }
};

/// Writes the schedule to the file `arguments.output`, unless this path is empty. The file contains the fingerprint of
/// `given`, the graph before it was prepared for a backend, because the fingerprint of the prepared graph depends on
/// the backend.
void write_schedule(const core::Graph& given, const ChoiceArguments& arguments, const core::Schedule& schedule,
                    const std::string& solver, const std::optional<core::Plan>& plan);

/// Reads the schedule file that `arguments` name. The schedule must have been made for the graph `given`, or for the
/// graph that was prepared for the backend, whose nodes may have more or less scratch. Throws Failure if the schedule
/// needs more than the problem's budget.
Choice read_choice(const fit::Problem& problem, const core::Graph& given, const ChoiceArguments& arguments);

/// Searches for a schedule. `executing` is the number of seconds of the time limit to leave for executions. If no
/// schedule is found, or the search is interrupted, writes the best schedule so far and throws a Failure that says why.
Choice search_choice(const fit::Task& task, const core::Graph& given, const ChoiceArguments& arguments,
                     double executing);

}  // namespace cairn::cli
