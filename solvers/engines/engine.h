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

/// Work (core::Limit) that a second of an engine stands for, by CP-SAT's deterministic clock.
inline constexpr double kEngineWorkPerSecond = 5e7;

enum class EngineStatus : std::uint8_t { optimal, feasible, infeasible, unknown };

/// What an engine is told beside the model.
struct EngineOptions {
  core::Limit limit;  ///< a finite work limit means one thread and the same answer on every machine
  int threads = 0;    ///< 0: one a core
  std::uint64_t seed = 0;
  /// A value for each variable, kNoHint for some, or none at all; need not be feasible.
  std::vector<std::int64_t> hint;
  static constexpr std::int64_t kNoHint = CpModel::kNoHint;
  /// Whenever a better solution is known. HiGHS calls it while it runs, on the caller's thread; CP-SAT's C functions
  /// hand out none before the end.
  std::function<void(const std::vector<double>& values, double objective)> incumbent;
  /// Called now and then while an integer program is being solved, with the least whole number that its objective can
  /// be, as EngineAnswer::whole_bound(); false ends the search. HiGHS only.
  std::function<bool(std::int64_t whole_bound)> progress;
};

struct EngineAnswer {
  EngineStatus status = EngineStatus::unknown;
  std::vector<double> values;  ///< of each variable, where status is optimal or feasible
  double objective = 0;
  double bound = 0;         ///< no solution has less; -infinity: not known
  double tolerance = 0;     ///< relative: what `bound` may be off by
  double best_seconds = 0;  ///< when the solution was found
  std::int64_t work = 0;    ///< about node visits
  bool interrupted = false;

  bool solved() const { return status == EngineStatus::optimal || status == EngineStatus::feasible; }
  /// The value of a variable that is whole.
  std::int64_t whole(std::int32_t variable) const;
  /// The least whole number that an objective of whole numbers can be, by `bound` with the engine's tolerance allowed
  /// for.
  std::int64_t whole_bound() const;
};

/// Which library is not there and the command that installs it, in one line; empty where it is.
std::string highs_missing();
std::string cp_sat_missing();

/// HiGHS. Throws InputError where it is missing, std::runtime_error where it fails. Tolerances: solutions may miss a
/// row by 1e-7 of its largest term or so; check what they mean.
EngineAnswer solve_milp(const LinearModel& model, const EngineOptions& options);
/// The same without whole variables: `values` are those of the relaxation, `bound` its optimum.
EngineAnswer solve_relaxation(const LinearModel& model, const EngineOptions& options);

/// CP-SAT; exact. Throws as solve_milp.
EngineAnswer solve_cp(const CpModel& model, const EngineOptions& options);
/// CP-SAT on a linear program all of whose variables have finite bounds; all are whole then.
EngineAnswer solve_cp(const LinearModel& model, const EngineOptions& options);

}  // namespace cairn::solvers
