#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// An option that only one solver has. The value is a whole number. SolveOptions::own holds it under the option's name.
struct SolverOption {
  std::string_view name, unit;  ///< name: name of the option; unit: unit of the number, or "0 or 1" for a switch
  std::int64_t initial = 0;     ///< default value
  std::int64_t least = 0, most = 0;
  std::string_view help;
};

struct Capabilities {
  bool recomputes = true;    ///< whether the solver's schedules may run a node more than once
  bool input_order = false;  ///< whether the solver can keep to OrderRule::input
  /// Whether the solver can keep to Scope::max_occurrences. A solver that never recomputes need not set this.
  bool max_occurrences = false;
  bool exact = false;        ///< whether the solver proves that no answer in its scope is better, if the limit suffices
  bool accelerator = false;  ///< whether the solver can run part of its work on SolveOptions::accelerator
  bool decomposition = false;  ///< whether the solver uses SolveOptions::decomposition, if given
  /// Whether the solver combines many algorithms to find the best answer, instead of using a single one.
  bool any_means = false;
};

/// When `auto` calls a solver, and which share of the limit the solver gets.
struct AutoTurn {
  /// Position in the order of calls. Solvers that recompute and other solvers are ordered separately. 0: `auto` does
  /// not call the solver, unless `rest` is set.
  int turn = 0;
  /// Fraction of the limit (time and work) that the solver gets. It refers to what is left of the limit at the solver's
  /// turn.
  double share = 0;
  /// Whether the solver is called at the end with the rest of the limit. This applies only to scopes with stages or
  /// without recomputation.
  bool rest = false;
  double least_seconds = 0;  ///< the solver is not called if fewer seconds are left
  /// Seconds until the solver first reads the clock, per node and edge of the graph. The solver is not called if its
  /// share of the time is shorter than this setup.
  double setup_seconds = 0;
  /// Largest number of values of a graph for which `auto` calls the solver. 0: there is no such limit.
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
  /// Scope in which the solver searches. Its proofs hold for this scope, or for the intersection with the scope asked
  /// for.
  Scope scope = kAnySchedule;
  AutoTurn turn = {};
  /// Kind of graphs that the solver accepts, for example kTrainingGraphs. The solver throws InputError for other
  /// graphs.
  std::string_view graphs = "any";
  /// A graph with at most this number of values is accepted even if it is not of the kind `graphs`. 0: only graphs of
  /// that kind are accepted.
  core::ValueId most_values = 0;
  std::span<const SolverOption> options = {};
  std::string (*missing)() = nullptr;  ///< implementation of why_missing(); nullptr: the solver needs no engine

  /// Returns one line that names the missing engine and the command that installs it. The line is empty if nothing is
  /// missing.
  std::string why_missing() const { return missing == nullptr ? std::string() : missing(); }
  /// Returns whether the solver can limit its answers to the scope `asked`. The solver need not search the whole scope.
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
