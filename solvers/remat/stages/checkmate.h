#pragma once

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

struct CheckmateOptions : SolveOptions {
  int engine = 0;   ///< engine for checkmate(): 1 HiGHS, 2 CP-SAT; 0: HiGHS if installed, and CP-SAT may confirm
  int threads = 0;  ///< number of threads of CP-SAT; 0: one a core. HiGHS uses one
};

/// Finds the cheapest schedule within the budget among those in stages (OrderRule::stages), or the proof that there is
/// none: Checkmate (Jain et al. 2020). If there is none, and without a budget, finds the least peak of schedules in
/// stages, then the least cost at that peak. Solves a mixed-integer program over two questions: which node runs in
/// which stage, and which value is retained into which stage; docs/remat/stages.md has the rows. Its memory equals that
/// of the schedule's evaluation, so its optimum is that of the class.
///
/// For n nodes and m inputs the program has O(n (n + m)) variables, and as many terms plus n more for each memory row;
/// exponential time. A tenth of the limit goes into a local search within the class, which gives the engine its first
/// schedule, and the answer if the limit ends the program early; bounds hold then, too. Throws InputError if the
/// program is too large for SolveOptions::memory_bytes.
Solution checkmate(const core::Graph& graph, const CheckmateOptions& options);

/// Solves the linear relaxation of checkmate()'s program and rounds it in two phases (section 5 of the paper): retained
/// values are rounded at thresholds (0.5 first) and by random draws, then the fewest runs for them follow. A rounded
/// schedule may exceed the budget; if all do, the answer is not_found with the one of least excess. The bound on the
/// cost is the relaxation's. Polynomial time; needs HiGHS. Throws InputError as checkmate.
Solution checkmate_lp(const core::Graph& graph, const CheckmateOptions& options);

}  // namespace cairn::solvers
