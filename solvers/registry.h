#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// An option that only one solver has. Its value is a whole number, which SolveOptions::own holds under the option's
/// name.
struct SolverOption {
  std::string_view name, unit;  ///< name of the option; unit of the number, "0 or 1" for a switch
  std::int64_t initial = 0;     ///< default value
  std::int64_t least = 0, most = 0;
  std::string_view help;
};

struct Capabilities {
  bool recomputes = true;    ///< whether the solver's schedules may run a node more than once
  bool input_order = false;  ///< whether the solver can keep to OrderRule::input
  /// Whether the solver can keep to Scope::max_occurrences. Need not be set for a solver that never recomputes.
  bool max_occurrences = false;
  bool exact = false;          ///< whether the solver proves its answer best within its scope, if it ends in time
  bool accelerator = false;    ///< whether the solver can run part of its work on SolveOptions::accelerator
  bool decomposition = false;  ///< whether the solver uses SolveOptions::decomposition, if given
  bool any_means = false;      ///< whether the solver combines all algorithms to find the best answer, rather than one
};

/// When `auto` calls a solver, and with which share of the limit.
struct AutoTurn {
  /// Position in the order of calls, which are ordered separately for solvers that recompute and for others; 0: `auto`
  /// does not call the solver, unless `rest`.
  int turn = 0;
  double share = 0;  ///< fraction of the limit left at its turn that the solver gets, both of time and of work
  /// Whether the solver is called at the end with the rest of the limit, in scopes with stages or without
  /// recomputation.
  bool rest = false;
  double least_seconds = 0;  ///< the solver is not called if fewer seconds are left
  /// Seconds until the solver first reads the clock, divided by the number of nodes and edges. The solver is not called
  /// if its share of the time is shorter than this setup.
  double setup_seconds = 0;
  /// Largest number of values of a graph for which `auto` calls the solver; 0: no limit.
  core::ValueId most_values = 0;
};

/// Value of SolverInfo::graphs for a solver that accepts only graphs with nodes marked backward.
inline constexpr std::string_view kTrainingGraphs = "training";

struct SolverInfo {
  std::string_view name;
  std::string_view paper;                                    ///< source of the algorithm
  std::string_view guarantee;                                ///< guarantee of the algorithm, in one line
  Solution (*run)(const core::Graph&, const SolveOptions&);  ///< function of the solver, which solve() calls
  Capabilities can = {};
  /// Scope in which the solver searches and for which its proofs hold. If the scope asked for is narrower, the
  /// intersection of both counts.
  Scope scope = kAnySchedule;
  AutoTurn turn = {};
  /// Kind of graphs that the solver accepts, e.g. kTrainingGraphs. The solver throws InputError for other graphs.
  std::string_view graphs = "any";
  /// Graphs with at most this number of values are accepted whatever their kind; 0: no such graphs.
  core::ValueId most_values = 0;
  std::span<const SolverOption> options = {};
  std::string (*missing)() = nullptr;  ///< implementation of why_missing(); nullptr: the solver needs no engine

  /// Returns one line that names the engine that is not installed and the command that installs it. Empty if nothing is
  /// missing.
  std::string why_missing() const { return missing == nullptr ? std::string() : missing(); }
  /// Returns whether the solver can keep to the scope `asked`. The solver may search only a part of that scope.
  bool honours(const Scope& asked) const;
  /// Runs the solver. Throws InputError in these cases:
  /// - The solver's engine is missing.
  /// - The solver cannot keep to the scope. The message names the solvers that can.
  /// - A decomposition is given that the solver does not use. The message names the solvers that use one.
  /// - An own option is unknown or out of range.
  Solution solve(const core::Graph& graph, const SolveOptions& asked) const;
  /// Sets one of the solver's own options from a text "name=value". Throws InputError that lists the options if the
  /// name or the value is wrong.
  void set_option(SolveOptions& into, std::string_view assignment) const;
};

/// Returns all solvers, in the order in which documentation and commands list them. The CLI, the tests and the benches
/// use this table.
std::span<const SolverInfo> registry();
/// Returns the solver called `name`. Throws InputError that suggests the nearest name if there is no such solver.
const SolverInfo& find_solver(std::string_view name);

}  // namespace cairn::solvers
