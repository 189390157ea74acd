#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/engines/cp_model.h"
#include "cairn/solvers/engines/linear_model.h"

/// This file declares how Cairn calls two engines: HiGHS, which solves linear programs, and CP-SAT, which solves
/// constraint programs. Cairn is not linked to the engines' libraries. It opens a library when the engine is first used
/// (library.h).
namespace cairn::solvers {

/// Number of units of work (core::Limit) that correspond to one second of CP-SAT's deterministic clock.
inline constexpr double kEngineWorkPerSecond = 5e7;

enum class EngineStatus : std::uint8_t { optimal, feasible, infeasible, unknown };

struct EngineOptions {
  /// Limit of the call. Under a work limit, the engine uses one thread, and the answer is the same on every machine.
  core::Limit limit;
  int threads = 0;  ///< 0: one per core
  std::uint64_t seed = 0;
  /// First solution to try. The list is either empty or has one entry per variable: a value, or CpModel::kNoHint for
  /// none. The solution need not be feasible.
  std::vector<std::int64_t> hint;
  /// Called with each solution that is better than the previous ones. HiGHS calls it during the search, on the caller's
  /// thread. CP-SAT calls it only at the end, because its C interface reports no solution earlier.
  std::function<void(const std::vector<double>& values, double objective)> incumbent;
  /// Called several times while HiGHS solves an integer program, with the current EngineAnswer::whole_bound(). If it
  /// returns false, the search ends. CP-SAT does not call it.
  std::function<bool(std::int64_t whole_bound)> progress;
};

struct EngineAnswer {
  EngineStatus status = EngineStatus::unknown;
  std::vector<double> values;  ///< one per variable, if status is optimal or feasible
  double objective = 0;
  double bound = 0;         ///< lower bound on the objective; -infinity: none is known
  double tolerance = 0;     ///< largest relative error of `bound`
  double best_seconds = 0;  ///< seconds from the start of the call until the solution was found
  std::int64_t work = 0;    ///< work done, in units of about one visit of a node of the graph
  bool interrupted = false;

  bool solved() const { return status == EngineStatus::optimal || status == EngineStatus::feasible; }
  std::int64_t whole(std::int32_t variable) const;
  /// Returns `bound`, lowered by `tolerance` and rounded up. This is a valid lower bound if the objective of every
  /// solution is a whole number.
  std::int64_t whole_bound() const;
};

/// Returns one line that names the missing library and the command that installs it, or an empty text if the engine can
/// be used.
std::string highs_missing();
std::string cp_sat_missing();

/// Solves an integer program with HiGHS. A solution can violate a row by about 1e-7 of the row's largest term, which is
/// the tolerance of HiGHS. So the caller must check what it derives from a solution. Throws InputError if HiGHS is
/// missing, and std::runtime_error if HiGHS fails.
EngineAnswer solve_milp(const LinearModel& model, const EngineOptions& options);
/// Solves with HiGHS the linear relaxation of the program, in which no variable has to be whole. EngineAnswer::bound is
/// the optimum of the relaxation, lowered by a tolerance. Throws as solve_milp() does.
EngineAnswer solve_relaxation(const LinearModel& model, const EngineOptions& options);

/// Solves a constraint program with CP-SAT. Throws InputError if CP-SAT is missing or the program is too large for it,
/// and std::runtime_error if the engine's answer is malformed.
EngineAnswer solve_cp(const CpModel& model, const EngineOptions& options);
/// Solves a linear program with CP-SAT, which treats every variable as whole. Throws as solve_cp() for a constraint
/// program does, and std::logic_error if a variable has an infinite bound.
EngineAnswer solve_cp(const LinearModel& model, const EngineOptions& options);

}  // namespace cairn::solvers
