#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/engines/cp_model.h"
#include "cairn/solvers/engines/linear_model.h"

/// Engines that solve linear and constraint programs. Cairn does not link them. It opens their libraries on first use,
/// from the folder that CAIRN_ENGINES names, from where scripts/install_engines.sh puts them, or from the system.
namespace cairn::solvers {

/// Number of units of work (core::Limit) that correspond to one second of an engine. The seconds are those of CP-SAT's
/// deterministic clock.
inline constexpr double kEngineWorkPerSecond = 5e7;

enum class EngineStatus : std::uint8_t { optimal, feasible, infeasible, unknown };

/// Options of a call of an engine, besides the model.
struct EngineOptions {
  /// Limit of the call. A finite work limit implies one thread and the same answer on every machine.
  core::Limit limit;
  int threads = 0;  ///< number of threads; 0: one per core
  std::uint64_t seed = 0;
  /// First solution to try. It has one entry for each variable: a value, or kNoHint. The hint may be empty or
  /// infeasible.
  std::vector<std::int64_t> hint;
  static constexpr std::int64_t kNoHint = CpModel::kNoHint;
  /// Called with each better solution. HiGHS calls it during the search, on the caller's thread. CP-SAT calls it only
  /// at the end, because its C functions report no solution earlier.
  std::function<void(const std::vector<double>& values, double objective)> incumbent;
  /// Called now and then while an integer program is being solved, with the current EngineAnswer::whole_bound(). If it
  /// returns false, the search ends. Only HiGHS calls it.
  std::function<bool(std::int64_t whole_bound)> progress;
};

struct EngineAnswer {
  EngineStatus status = EngineStatus::unknown;
  std::vector<double> values;  ///< value of each variable, if status is optimal or feasible
  double objective = 0;
  double bound = 0;         ///< lower bound of the objective; -infinity: none is known
  double tolerance = 0;     ///< relative error that `bound` may have
  double best_seconds = 0;  ///< time at which the solution was found
  std::int64_t work = 0;    ///< work done, in units of about one node visit
  bool interrupted = false;

  bool solved() const { return status == EngineStatus::optimal || status == EngineStatus::feasible; }
  /// Returns the value of a variable that must be whole.
  std::int64_t whole(std::int32_t variable) const;
  /// Returns a lower bound on the objective as a whole number; valid if the objective only takes whole numbers. This is
  /// `bound`, lowered by the engine's tolerance and rounded up.
  std::int64_t whole_bound() const;
};

/// Returns one line that names the missing library and the command that installs it. Returns an empty text if HiGHS can
/// be used.
std::string highs_missing();
/// Returns one line that names the missing library and the command that installs it. Returns an empty text if CP-SAT
/// can be used.
std::string cp_sat_missing();

/// Solves an integer program with HiGHS. Throws InputError if HiGHS is missing, and std::runtime_error if it fails.
/// HiGHS tolerates that a solution violates a row by about 1e-7 of the row's largest term. So the caller must check
/// whatever it builds from a solution.
EngineAnswer solve_milp(const LinearModel& model, const EngineOptions& options);
/// Solves the linear relaxation of the program with HiGHS, in which no variable has to be whole. `values` are those of
/// the relaxation, and `bound` is its optimum. Throws as solve_milp() does.
EngineAnswer solve_relaxation(const LinearModel& model, const EngineOptions& options);

/// Solves a constraint program exactly with CP-SAT. Throws as solve_milp() does.
EngineAnswer solve_cp(const CpModel& model, const EngineOptions& options);
/// Solves a linear program with CP-SAT, which requires every variable to be whole. All variables must have finite
/// bounds. Throws as solve_milp() does.
EngineAnswer solve_cp(const LinearModel& model, const EngineOptions& options);

}  // namespace cairn::solvers
