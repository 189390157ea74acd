#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// An option that only one solver has: a whole number in SolveOptions::own.
struct SolverOption {
  std::string_view name, unit;  ///< unit: what the number counts; "0 or 1" for a switch
  std::int64_t initial = 0;     ///< default value
  std::int64_t least = 0, most = 0;
  std::string_view help;
};

struct Capabilities {
  bool recomputes = true;        ///< its schedules may run a node more than once
  bool input_order = false;      ///< keeps to OrderRule::input on request
  bool max_occurrences = false;  ///< keeps to Scope::max_occurrences; a solver that never recomputes does so anyway
  bool exact = false;            ///< proves its answer best within its scope, if it ends in time
  bool accelerator = false;      ///< can hand some of its work to SolveOptions::accelerator
  bool decomposition = false;    ///< uses SolveOptions::decomposition where one is given
  bool any_means = false;        ///< looks for the best answer by any means, not by one algorithm
};

/// When `auto` calls a solver, and how long for.
struct AutoTurn {
  int turn = 0;              ///< order of calls, counted apart for solvers that recompute; 0: not called, unless `rest`
  double share = 0;          ///< fraction of the limit then left, of work and time alike
  bool rest = false;         ///< called last, with all that is left, in stages or without recomputation
  double least_seconds = 0;  ///< not called with less time left
  /// Seconds per node and edge before the solver first looks at the clock; with less time than that it is not called.
  double setup_seconds = 0;
  core::ValueId most_values = 0;  ///< not called on graphs of more values; 0: no limit
};

/// Value of SolverInfo::graphs for a solver that takes only graphs with nodes marked backward.
inline constexpr std::string_view kTrainingGraphs = "training";

struct SolverInfo {
  std::string_view name;
  std::string_view paper;                                    ///< source of the algorithm
  std::string_view guarantee;                                ///< the promise, in one line
  Solution (*run)(const core::Graph&, const SolveOptions&);  ///< the solver; solve() calls it
  Capabilities can = {};
  Scope scope = kAnySchedule;  ///< where the solver looks and what its proofs are about, if less than asked for
  AutoTurn turn = {};
  std::string_view graphs = "any";  ///< kind of graphs taken, e.g. kTrainingGraphs; InputError for others
  core::ValueId most_values = 0;    ///< graphs of at most so many values are taken whatever their kind; 0: none
  std::span<const SolverOption> options = {};
  std::string (*missing)() = nullptr;  ///< implements why_missing()

  /// Says in one line which engine is not installed and which command installs it; empty if nothing is missing.
  std::string why_missing() const { return missing == nullptr ? std::string() : missing(); }
  /// Whether the solver can keep to the scope. The solver's own scope may be smaller.
  bool honours(const Scope& asked) const;
  /// Runs the solver. Throws InputError if the engine is missing, if the scope cannot be kept to or the given
  /// decomposition cannot be used (naming solvers that can), or if an own option is unknown or out of range.
  Solution solve(const core::Graph& graph, const SolveOptions& asked) const;
  /// Sets one of the solver's own options from "name=value". Throws InputError that lists the options.
  void set_option(SolveOptions& into, std::string_view assignment) const;
};

/// Every solver, in the order in which users should meet them. The CLI, the tests and the benches read this table.
std::span<const SolverInfo> registry();
/// Returns the solver of that name. Throws InputError that suggests the nearest name.
const SolverInfo& find_solver(std::string_view name);

}  // namespace cairn::solvers
