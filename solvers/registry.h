#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

/// An option that one solver alone has: a whole number in SolveOptions::own.
struct SolverOption {
  std::string_view name, unit;  ///< unit: what is counted; "0 or 1" for a switch
  std::int64_t initial = 0;     ///< where it is not given
  std::int64_t least = 0, most = 0;
  std::string_view help;
};

struct Capabilities {
  bool recomputes = true;        ///< a node may stand in its schedules more than once
  bool input_order = false;      ///< keeps to OrderRule::input where that is asked for
  bool max_occurrences = false;  ///< keeps to Scope::max_occurrences; what never recomputes does so anyway
  bool exact = false;            ///< proves its answer best within its scope, where it ends in time
  bool accelerator = false;      ///< SolveOptions::accelerator takes over some of its work
  bool decomposition = false;    ///< works on SolveOptions::decomposition where one is given
  bool any_means = false;        ///< asked for is the best answer by whatever means, not that of one algorithm
};

/// When `auto` calls a solver, and how long for.
struct AutoTurn {
  int turn = 0;              ///< ascending among those that recompute, then among the others; 0: never, unless `rest`
  double share = 0;          ///< of the limit that is then left, work and time alike
  bool rest = false;         ///< in stages and without recomputation, at the end, with all that is left
  double least_seconds = 0;  ///< not with less time left than this
  /// Before it first looks at the clock: of each node and edge. It is not called with less time than that.
  double setup_seconds = 0;
  core::ValueId most_values = 0;  ///< nor on graphs of more values; 0: any
};

/// What SolverInfo::graphs says of a solver of graphs some of whose nodes are marked backward.
inline constexpr std::string_view kTrainingGraphs = "training";

struct SolverInfo {
  std::string_view name;
  std::string_view paper;                                    ///< where the algorithm is from
  std::string_view guarantee;                                ///< what it promises, in one line
  Solution (*run)(const core::Graph&, const SolveOptions&);  ///< the solver; solve() calls it
  Capabilities can = {};
  Scope scope = kAnySchedule;  ///< where it looks, and so what its proofs are about, if more is asked for
  AutoTurn turn = {};
  std::string_view graphs = "any";  ///< which it takes; throws InputError for others; kTrainingGraphs, for one
  core::ValueId most_values = 0;    ///< it takes any graph of at most so many values; 0: that is not what matters
  std::span<const SolverOption> options = {};
  std::string (*missing)() = nullptr;  ///< for why_missing()

  /// Which engine is not installed and the command that installs it, in one line; empty where nothing is missing.
  std::string why_missing() const { return missing == nullptr ? std::string() : missing(); }
  /// Whether it can keep to the scope. Its own may be smaller.
  bool honours(const Scope& asked) const;
  /// Throws InputError where the engine is missing, the scope cannot be kept to or a given decomposition not used
  /// (naming solvers that can) or an option of its own is unknown or out of range.
  Solution solve(const core::Graph& graph, const SolveOptions& asked) const;
  /// Sets an option of its own from "name=value". Throws InputError that says which there are.
  void set_option(SolveOptions& into, std::string_view assignment) const;
};

/// Every solver, in the order in which people should meet them. The CLI, the tests and the benches read this table.
std::span<const SolverInfo> registry();
/// Throws InputError that suggests the nearest name.
const SolverInfo& find_solver(std::string_view name);

}  // namespace cairn::solvers
