#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// An option that only one solver has: a whole number that SolveOptions::own holds under the option's name.
struct SolverOption {
  std::string_view name, unit;  ///< name; unit that the number counts, "0 or 1" for a switch
  std::int64_t initial = 0;     ///< default value
  std::int64_t least = 0, most = 0;
  std::string_view help;
};

struct Capabilities {
  bool recomputes = true;    ///< whether its schedules may run a node more than once
  bool input_order = false;  ///< whether it keeps to OrderRule::input on request
  /// Whether it keeps to Scope::max_occurrences; a solver that never recomputes does so anyway.
  bool max_occurrences = false;
  bool exact = false;          ///< whether it proves its answer best within its scope, if it ends in time
  bool accelerator = false;    ///< whether it can hand some of its work to SolveOptions::accelerator
  bool decomposition = false;  ///< whether it uses SolveOptions::decomposition where one is given
  bool any_means = false;      ///< whether it looks for the best answer by any means, not by one algorithm
};

/// The turn of a solver when `auto` calls solvers: when it is called, and with which share of the limit.
struct AutoTurn {
  int turn = 0;              ///< order of calls, counted apart for solvers that recompute; 0: not called, unless `rest`
  double share = 0;          ///< fraction that it gets of the limit left at its turn, of work and time alike
  bool rest = false;         ///< whether it is called last with all that is left, in stages or without recomputation
  double least_seconds = 0;  ///< seconds below which it is not called
  /// Seconds, for each node and each edge, until the solver first looks at the clock. The solver is not called if its
  /// share of time is less than this times the number of nodes and edges.
  double setup_seconds = 0;
  core::ValueId most_values = 0;  ///< most values of a graph on which it is called; 0: no limit
};

/// Value of SolverInfo::graphs for a solver that takes only graphs with nodes marked backward.
inline constexpr std::string_view kTrainingGraphs = "training";

struct SolverInfo {
  std::string_view name;
  std::string_view paper;                                    ///< source of the algorithm
  std::string_view guarantee;                                ///< promise that the algorithm gives, in one line
  Solution (*run)(const core::Graph&, const SolveOptions&);  ///< function of the solver; solve() calls it
  Capabilities can = {};
  /// Scope in which the solver looks and for which its proofs hold, if narrower than the scope asked for.
  Scope scope = kAnySchedule;
  AutoTurn turn = {};
  /// Kind of graphs that the solver takes, e.g. kTrainingGraphs; InputError for others.
  std::string_view graphs = "any";
  core::ValueId most_values = 0;  ///< most values of a graph that is taken whatever its kind; 0: none
  std::span<const SolverOption> options = {};
  std::string (*missing)() = nullptr;  ///< function behind why_missing(); nullptr: no engine is needed

  /// Describes in one line which engine is not installed and which command installs it; empty if nothing is missing.
  std::string why_missing() const { return missing == nullptr ? std::string() : missing(); }
  /// Whether the solver can keep to the scope. The solver's own scope may be smaller.
  bool honours(const Scope& asked) const;
  /// Runs the solver. Throws InputError if the engine is missing, if the scope cannot be kept to or the given
  /// decomposition cannot be used (naming solvers that can), or if an own option is unknown or out of range.
  Solution solve(const core::Graph& graph, const SolveOptions& asked) const;
  /// Sets one of the solver's own options, given as "name=value". Throws InputError that lists the options.
  void set_option(SolveOptions& into, std::string_view assignment) const;
};

/// Returns every solver, in the order in which users should meet them. The CLI, the tests and the benches read this
/// table.
std::span<const SolverInfo> registry();
/// Returns the solver called `name`. Throws InputError that suggests the nearest name.
const SolverInfo& find_solver(std::string_view name);

}  // namespace cairn::solvers
