#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct CheckmateOptions : SolveOptions {
  /// Engine for checkmate():
  /// - 0: HiGHS if it is installed, otherwise CP-SAT. CP-SAT may run after HiGHS to confirm the optimum.
  /// - 1: HiGHS.
  /// - 2: CP-SAT.
  int engine = 0;
  int threads = 0;  ///< number of threads of CP-SAT; 0: one for each core. HiGHS uses one thread
};

/// Finds the cheapest schedule within the budget among the schedules in stages (OrderRule::stages), or proves that
/// there is none. This is Checkmate (Jain et al. 2020). Without a budget, or if no schedule is within the budget, finds
/// the least peak of schedules in stages, and the least cost at that peak. Solves a mixed-integer program. Its
/// variables say which node runs in which stage, and which value is retained into which stage; docs/remat/stages.md has
/// the rows. The program counts memory exactly as the evaluation of a schedule does. So its optimum is the optimum of
/// the schedules in stages.
///
/// For n nodes and m inputs the program has O(n (n + m)) variables. It has as many terms, plus n terms for each memory
/// row. Takes exponential time. A tenth of the limit is spent on a local search among the schedules in stages. The
/// local search gives the engine its first schedule, and is the answer if the limit ends the engine early. In that
/// case, bounds that the engine has proved still hold. Throws InputError if the program is too large for
/// SolveOptions::memory_bytes.
Solution checkmate(const core::Graph& graph, const CheckmateOptions& options);

/// Solves the linear relaxation of the program of checkmate() and rounds the solution in two phases (section 5 of the
/// paper). First rounds the variables of retained values at thresholds (0.5 first) and by random draws. Afterwards
/// chooses the fewest runs that the retained values allow. A rounded schedule can exceed the budget. If all rounded
/// schedules do, the status is not_found, and the answer has the schedule that exceeds the budget least. The bound on
/// the cost is the optimum of the relaxation. Takes polynomial time and needs HiGHS. Throws InputError as checkmate()
/// does.
Solution checkmate_lp(const core::Graph& graph, const CheckmateOptions& options);

}  // namespace cairn::solvers
