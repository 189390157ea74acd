#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/engines/cp_model.h"
#include "cairn/solvers/engines/linear_model.h"

/// Engines that solve linear and constraint programs. None is linked: their libraries are opened when first needed,
/// from the folder that CAIRN_ENGINES names, from where scripts/install_engines.sh puts them, or from the system.
namespace cairn::solvers {

/// Units of work (core::Limit) that stand for one second of an engine, by CP-SAT's deterministic clock.
inline constexpr double kEngineWorkPerSecond = 5e7;

enum class EngineStatus : std::uint8_t { optimal, feasible, infeasible, unknown };

/// Options of a call of an engine, besides the model.
struct EngineOptions {
  core::Limit limit;  ///< a finite work limit means one thread and the same answer on every machine
  int threads = 0;    ///< number of threads; 0: one a core
  std::uint64_t seed = 0;
  /// First solution to try: a value for each variable, kNoHint for variables without one. May be empty or not feasible.
  std::vector<std::int64_t> hint;
  static constexpr std::int64_t kNoHint = CpModel::kNoHint;
  /// Called with each better solution. HiGHS calls it while it runs, on the caller's thread; CP-SAT's C functions
  /// report no solution before the end.
  std::function<void(const std::vector<double>& values, double objective)> incumbent;
  /// Called now and then while an integer program is being solved, with the least whole number that its objective can
  /// be (see EngineAnswer::whole_bound()); false ends the search. HiGHS only.
  std::function<bool(std::int64_t whole_bound)> progress;
};

struct EngineAnswer {
  EngineStatus status = EngineStatus::unknown;
  std::vector<double> values;  ///< value of each variable, if status is optimal or feasible
  double objective = 0;
  double bound = 0;         ///< lower bound of the objective; -infinity: not known
  double tolerance = 0;     ///< relative error that `bound` may have
  double best_seconds = 0;  ///< time at which the solution was found
  std::int64_t work = 0;    ///< work done, in units of about a node visit
  bool interrupted = false;

  bool solved() const { return status == EngineStatus::optimal || status == EngineStatus::feasible; }
  /// Returns the value of a variable that must be whole.
  std::int64_t whole(std::int32_t variable) const;
  /// Returns the least whole number that an objective of whole numbers can be: `bound` rounded up, less what the
  /// engine's tolerance allows.
  std::int64_t whole_bound() const;
};

/// Describes in one line which library is missing and which command installs it; empty if HiGHS can be used.
std::string highs_missing();
std::string cp_sat_missing();

/// Solves an integer program with HiGHS. Throws InputError if HiGHS is missing, std::runtime_error if it fails.
/// Solutions may violate a row by about 1e-7 of its largest term (the engine's tolerance), so check what they mean.
EngineAnswer solve_milp(const LinearModel& model, const EngineOptions& options);
/// Solves the program with HiGHS without requiring whole values: `values` are those of the linear relaxation, `bound`
/// is its optimum. Throws as solve_milp.
EngineAnswer solve_relaxation(const LinearModel& model, const EngineOptions& options);

/// Solves a constraint program exactly with CP-SAT. Throws as solve_milp.
EngineAnswer solve_cp(const CpModel& model, const EngineOptions& options);
/// Solves a linear program with CP-SAT. All its variables must have finite bounds, and all count as whole. Throws as
/// solve_milp.
EngineAnswer solve_cp(const LinearModel& model, const EngineOptions& options);

}  // namespace cairn::solvers
