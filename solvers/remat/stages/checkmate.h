#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct CheckmateOptions : SolveOptions {
  int engine = 0;   ///< of checkmate: 1 HiGHS, 2 CP-SAT; 0: HiGHS if it is installed; CP-SAT may confirm
  int threads = 0;  ///< of CP-SAT; 0: one a core. HiGHS has one
};

/// Checkmate (Jain et al. 2020): the cheapest schedule within the budget among those in stages (OrderRule::stages), or
/// the proof that there is none; then, as without a budget, the least peak in that class, and the least cost at it. A
/// mixed-integer program over which node runs in which stage and which value is retained into which;
/// docs/remat/stages.md has the rows. Its memory is what the schedule's evaluation says, so its optimum is that of the
/// class.
///
/// For n nodes and m inputs O(n (n + m)) variables, and as many terms with n more for each memory row; exponential
/// time. A tenth of the limit goes into a local search within the class, which gives the engine its first schedule, and
/// the answer where the limit ends the program early; bounds hold then, too. Throws InputError where the program is too
/// large for SolveOptions::memory_bytes.
Solution checkmate(const core::Graph& graph, const CheckmateOptions& options);

/// The same program's linear relaxation, with the two-phase rounding of the paper's section 5: what is retained is
/// rounded at thresholds (0.5 first) and by random draws, then the least that must run for it follows. Nothing makes
/// the rounded schedule keep to the budget: where none does, the answer is not_found with that of the least excess. The
/// bound on the cost is the relaxation's. Polynomial time; needs HiGHS. Throws InputError as checkmate.
Solution checkmate_lp(const core::Graph& graph, const CheckmateOptions& options);

}  // namespace cairn::solvers
