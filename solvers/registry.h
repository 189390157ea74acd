#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// Describes an option of a single solver. The option's value is a whole number, which SolveOptions::own stores under
/// the option's name.
struct SolverOption {
  std::string_view name, unit;       ///< the option's name, and the unit of its value ("0 or 1" if it is a switch)
  std::int64_t initial = 0;          ///< default value
  std::int64_t least = 0, most = 0;  ///< smallest and largest value allowed
  std::string_view help;
  /// Stores a value of the option in the structure of the solver's options, which derives from SolveOptions.
  void (*store)(SolveOptions& own, std::int64_t value) = nullptr;
};

/// Stores the options of a solver in `own`, the structure of its options: for each option the value in
/// SolveOptions::own, or else the default.
void store_own(std::span<const SolverOption> options, SolveOptions& own);

struct Capabilities {
  bool recomputes = true;    ///< whether the solver's schedules may run a node more than once
  bool input_order = false;  ///< whether the solver can keep to OrderRule::input
  /// Whether the solver can keep to Scope::max_occurrences. This is not read if the solver never recomputes.
  bool max_occurrences = false;
  /// Whether the solver, given enough time, proves that its answer is the best of the schedules that it searches (see
  /// SolverInfo::scope).
  bool exact = false;
  bool accelerator = false;    ///< whether the solver can run part of its work on SolveOptions::accelerator
  bool decomposition = false;  ///< whether the solver uses SolveOptions::decomposition, if given
  /// Whether the solver combines many algorithms to find the best answer, as `auto` does, instead of using a single
  /// one.
  bool any_means = false;
};

/// Says when and how long `auto` (internal/auto.h) runs the solver. `auto` is the solver that calls other solvers.
struct AutoTurn {
  /// Position in the sequence in which `auto` calls solvers. All solvers that recompute are called before all that do
  /// not; `turn` sorts the solvers within each of these two groups. 0: `auto` does not call the solver, unless `rest`
  /// is set.
  int turn = 0;
  /// Fraction of the remaining time and work that the solver gets when it is called.
  double share = 0;
  /// Whether the solver is called at the end, with all the time and work that is left. Has an effect only if the scope
  /// has OrderRule::stages or allows no recomputation. In other scopes, the search of `auto` gets this time.
  bool rest = false;
  double least_seconds = 0;  ///< the solver is called only if at least this much time is left
  /// The solver spends `setup_seconds * (number of nodes + number of edges)` seconds before it first checks its limit.
  /// It is not called with a shorter limit, because it would exceed that limit.
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
  /// Scope in which the solver searches, i.e. the set of schedules that it considers, given by a rule for the order and
  /// a largest number of runs of a node. A proof of the solver holds for the schedules that are both in this scope and
  /// in the scope asked for.
  Scope scope = kAnySchedule;
  AutoTurn turn = {};
  /// Kind of graphs that the solver accepts, for example kTrainingGraphs; "any": all graphs. The solver throws
  /// InputError for graphs of another kind.
  std::string_view graphs = "any";
  /// A graph with at most this number of values is accepted even if it is not of the kind `graphs`. 0: only graphs of
  /// that kind are accepted.
  core::ValueId most_values = 0;
  std::span<const SolverOption> options = {};
  std::string (*missing)() = nullptr;  ///< implementation of why_missing(); nullptr: the solver needs no engine

  /// Returns one line that names the missing engine and the command that installs it. The line is empty if nothing is
  /// missing.
  std::string why_missing() const { return missing == nullptr ? std::string() : missing(); }
  /// Returns whether the solver can be restricted to schedules of the scope `asked`. It need not search all of them.
  bool honours(const Scope& asked) const;
  /// Runs the solver. Throws InputError in these cases:
  /// - The solver's engine is missing.
  /// - The solver cannot keep to the scope. The message names the solvers that can.
  /// - A decomposition is given that the solver does not use. The message names the solvers that use one.
  /// - An option in SolveOptions::own is unknown or out of range.
  Solution solve(const core::Graph& graph, const SolveOptions& asked) const;
  /// Parses a text "name=value" and stores this option of the solver in `into`. Throws InputError if the name or the
  /// value is wrong; the message lists the solver's options.
  void set_option(SolveOptions& into, std::string_view assignment) const;
};

/// Returns all solvers, in the order in which documentation and commands list them. The CLI, the tests and the benches
/// use this table.
std::span<const SolverInfo> registry();
/// Returns the solver called `name`. Throws InputError that suggests the nearest name if there is no such solver.
const SolverInfo& find_solver(std::string_view name);

}  // namespace cairn::solvers
