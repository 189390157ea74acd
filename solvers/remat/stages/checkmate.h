#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct CheckmateOptions : SolveOptions {
  /// Engine for checkmate():
  /// - 0: HiGHS if it is installed, otherwise CP-SAT. CP-SAT may run after HiGHS to confirm the optimum.
  /// - 1: HiGHS.
  /// - 2: CP-SAT.
  int engine = 0;
  int threads = 0;  ///< number of threads of CP-SAT; 0: one for each core. HiGHS always uses one thread
};

/// Finds the cheapest schedule within the budget among the schedules in stages (OrderRule::stages), or proves that no
/// such schedule exists. In a schedule in stages, the first runs are in the input order, and between two first runs,
/// each node runs again at most once, also in the input order. This is Checkmate (Jain et al. 2020). Without a budget,
/// or if no schedule is within the budget, finds the least peak of schedules in stages. Without a budget, also finds
/// the least cost at that peak.
///
/// Solves a mixed-integer program. Its variables say which node runs in which stage, and which value is retained from
/// one stage to the next; docs/remat/stages.md lists the constraints. The program counts memory exactly, so its optimum
/// is the optimum of the schedules in stages. For n nodes and m inputs it has O(n (n + m)) variables. Its constraints
/// have O(n (n + m)) terms in total, plus O(n) terms for each constraint that limits memory. Takes exponential time.
///
/// A tenth of the limit is spent on a local search among the schedules in stages. This search gives the engine its
/// first schedule. If the limit ends the engine early, the answer is the best schedule that is known then, with the
/// bounds that the engine has proved. Throws InputError if the program is too large for SolveOptions::memory_bytes.
Solution checkmate(const core::Graph& graph, const CheckmateOptions& options);

/// Solves the linear relaxation of the program of checkmate() and rounds its solution in two phases (section 5 of Jain
/// et al. 2020). The first phase rounds the variables of retained values, at thresholds (0.5 first) and by random
/// draws. The second phase chooses the fewest runs that the retained values allow. A rounded schedule can exceed the
/// budget. If all of them do, the status is not_found, and the answer has the schedule that exceeds the budget least.
/// The bound on the cost is the optimum of the relaxation. Takes polynomial time and needs HiGHS. Throws InputError as
/// checkmate() does.
Solution checkmate_lp(const core::Graph& graph, const CheckmateOptions& options);

}  // namespace cairn::solvers
