#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/cli/arguments.h"
#include "cairn/cli/command.h"
#include "cairn/cli/output.h"
#include "cairn/core/graph.h"
#include "cairn/pipeline/device_memory.h"
#include "cairn/report/support/explanation.h"
#include "cairn/report/support/json.h"
#include "cairn/report/support/words.h"
#include "cairn/solvers/fit/objective.h"

/// This header declares the options with which `solve`, `run` and other commands say what to search for, and the error
/// if nothing is found.
namespace cairn::cli {

/// The options --device-memory and --context-memory, from which the budget is computed.
struct DeviceArguments {
  std::string memory, context;  ///< values of the two options; empty: not given

  void add_to(CLI::App& app);
  bool given() const { return !memory.empty(); }
  /// Throws InputError if a text is not a size, or if only --context-memory is given.
  std::optional<pipeline::DeviceMemory> given_memory() const;
};

/// The options --budget, --device-memory, --context-memory, --max-cost, --link and --host-budget, and the values of two
/// options that only some commands have (--peak-only, --overlap-steps).
struct ObjectiveArguments {
  std::string budget, max_cost;
  DeviceArguments device;
  std::string link, host_budget;
  bool peak_only = false;
  std::int64_t overlap_steps = 0;  ///< steps for which plans leave the addresses of a freed buffer unused

  /// Adds the options to the command. `help` is the help text of --budget.
  void add_to(CLI::App& app, const std::string& help);
  bool given() const { return !budget.empty() || !max_cost.empty() || device.given(); }
  /// Makes the task of finding a schedule of the graph. If neither a budget nor a largest cost is given, the objective
  /// of the solver `auto` is the knee of the curve of cost over memory, and the objective of every other solver is the
  /// least peak. Throws InputError if an option is not acceptable, and Failure if no schedule can be as cheap as
  /// --max-cost requires.
  fit::Task task(core::Graph graph, const std::string& name, const AlignmentChoice& alignment,
                 const SolverArguments& search) const;
};

/// Adds --link and --host-budget.
void add_link(CLI::App& app, std::string& link, std::string& host_budget);
/// Prints a warning if the graph has a link to host memory but its costs have no unit of time. The warning calls the
/// graph `name`.
void warn_of_costs(const core::Graph& graph, const std::string& name);
/// Adds --peak-only.
void add_peak_only(CLI::App& app, bool& peak_only);
/// Adds --explain.
void add_explain(CLI::App& app, bool& explain);

using report::add_proof;
using report::Explanation;
using report::to_json;

/// Returns a schedule of the task's graph that an earlier command has stored (pipeline::ScheduleCache): the one with
/// the lowest plan. Returns nothing if the solver does not combine several algorithms, if the objective is about the
/// peak of the schedule and not about its plan, or if the graph has a link to host memory. Also returns nothing if
/// there is a work limit, because the answer under a work limit must not depend on earlier commands.
std::optional<fit::LeastBudget> remembered(const fit::Task& task, const SolverArguments& search);
/// Stores `least` for later commands, unless a schedule with a lower plan is already stored. Returns the schedule with
/// the lower plan.
fit::LeastBudget remember(const fit::Task& task, const SolverArguments& search, fit::LeastBudget least);
/// Searches as fit::search() does. Unless the objective is the knee of the curve, passes the schedule that remembered()
/// returns to the search.
fit::Answer search(const fit::Task& task, const SolverArguments& arguments, const solvers::SolveOptions& search,
                   const std::function<void(const fit::CurveProgress&)>& progress = {});

/// Returns a Failure that explains why no schedule that meets the request is known. `output` is the file to which the
/// best schedule so far was written, or empty. `other` is a text that says what else may help if the peak of the
/// schedule fits into the budget and only its plan does not. `json` becomes Failure::details. If the budget of host
/// memory is too small, also searches briefly for a budget of host memory that suffices.
Failure failure_of(const fit::Task& task, const SolverArguments& search, const fit::Answer& answer,
                   const fit::LeastBudget& least, const std::string& output, std::string_view other, Json json);

}  // namespace cairn::cli
