#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct CheckmateOptions : SolveOptions {
  int engine = 0;   ///< for checkmate(): 1 HiGHS, 2 CP-SAT; 0: HiGHS if installed; CP-SAT may confirm
  int threads = 0;  ///< for CP-SAT; 0: one a core. HiGHS uses one
};

/// Checkmate (Jain et al. 2020): the cheapest schedule within the budget among those in stages (OrderRule::stages), or
/// the proof that there is none. In the latter case, and without a budget: the least peak in that class, then the least
/// cost at it. A mixed-integer program over which node runs in which stage and which value is retained into which;
/// docs/remat/stages.md has the rows. Its memory equals that of the schedule's evaluation, so its optimum is that of
/// the class.
///
/// For n nodes and m inputs O(n (n + m)) variables, and as many terms plus n more for each memory row; exponential
/// time. A tenth of the limit goes into a local search within the class, which gives the engine its first schedule, and
/// the answer if the limit ends the program early; bounds hold then, too. Throws InputError if the program is too large
/// for SolveOptions::memory_bytes.
Solution checkmate(const core::Graph& graph, const CheckmateOptions& options);

/// The same program's linear relaxation, with the two-phase rounding of the paper's section 5: retained values are
/// rounded at thresholds (0.5 first) and by random draws, then the fewest runs for them follow. The rounded schedule
/// may exceed the budget: if all do, the answer is not_found with the one of least excess. The bound on the cost is the
/// relaxation's. Polynomial time; needs HiGHS. Throws InputError as checkmate.
Solution checkmate_lp(const core::Graph& graph, const CheckmateOptions& options);

}  // namespace cairn::solvers
