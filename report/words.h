#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/pipeline/device_memory.h"
#include "cairn/pipeline/info.h"
#include "cairn/pipeline/request.h"
#include "cairn/pipeline/run.h"
#include "cairn/pipeline/sweep.h"
#include "cairn/solvers/common/bound.h"
#include "cairn/solvers/fit/curve.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/objective.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/registry.h"

/// What is said to people of problems and answers. Options are named as the command's: `--time-limit`.
namespace cairn::report {

/// What tables are printed from; the first cell of a row names it.
using Rows = std::vector<std::vector<std::string>>;
/// Rows of cells in aligned columns; the first row is underlined when `header` is set.
std::string format_table(const Rows& rows, bool header = false);

// --- numbers ---

/// "1.50 KiB (1536 bytes)", "20 bytes".
std::string bytes_text(std::int64_t bytes);
/// "1.50 KiB", "20 bytes".
std::string size_text(std::int64_t bytes);
/// The same, but rounded up: typed as a budget it is `bytes` or more.
std::string size_to_type(std::int64_t bytes);
/// Whether two sizes that differ have one size_text.
bool read_alike(std::int64_t a, std::int64_t b);
/// A size with its share of Problem::hundred_percent: "1.50 KiB (75.0% of the baseline peak)", or shorter
/// "1.50 KiB (75.0%)"; `exact`: "1.50 KiB (1536 bytes, 75.0%)".
std::string baseline_share_text(const fit::Problem& problem, std::int64_t bytes, bool in_full = false,
                                bool exact = false);
/// "12345 ns", "12345 cost units": in the unit of the problem's graph.
std::string cost_with_unit(const fit::Problem& problem, std::int64_t cost);
/// That of the baseline, and where the graph's costs come from.
std::string baseline_cost_text(const fit::Problem& problem);
/// The baseline's peak and, where sizes are rounded up, what percentages are of.
std::string baseline_peak_text(const fit::Problem& problem, std::int64_t alignment);
/// Percent of Problem::hundred_percent.
double share_pct(const fit::Problem& problem, std::int64_t bytes);
/// 100 * (value - base) / base; 0 where base is 0.
double increase_pct(std::int64_t value, std::int64_t base);
/// The same of seconds.
double percent_above(double value, double base);
/// "at most 3.00% above the optimum" of what may be that much above it, or that it may be more than twice as much.
std::string above_optimum_text(double pct);
/// "3.00%", and "> 100%" above that: how far such an answer is from the best is not known.
std::string gap_text(double pct);
/// "1.50 KiB to 2.00 KiB", "1.50 KiB" where both are one.
std::string least_to_most(const std::string& least, const std::string& most);
/// part / whole; 0 where whole is 0.
double fraction(std::int64_t part, std::int64_t whole);
/// Counted in thousands: "12,345,678".
std::string count_text(std::int64_t count);

// --- bounds ---

/// Why no schedule has less than the problem's lower bound, in a line: the tensors that one node needs together, or
/// that the search proved more.
std::string lower_bound_reason(const fit::Problem& problem);
/// "the lower bound is 1.50 KiB (75.0%), set by 'conv1'".
std::string bound_text(const fit::Problem& problem);
/// "sizes are rounded up to --alignment 256" where the problem was and that changed its figures.
std::string rounding_text(const fit::Problem& problem);
/// Why a search came back, in words.
std::string stop_text(solvers::Stop stop);
/// " without recomputation", " (input order kept)", ...; empty for any schedule.
std::string scope_text(const solvers::Scope& scope);

// --- answers ---

/// The points on both sides of a curve's knee that need other memory; nullptr: there is none.
struct BesideKnee {
  const fit::CurvePoint *more_memory = nullptr, *less_memory = nullptr;
};
/// The curve must have a knee.
BesideKnee beside_knee(const fit::Curve& curve);

/// What a success's status `optimal` means.
std::string proved_text(const fit::Task& task, const fit::Answer& answer);
/// A row `proved` or `gap`.
std::vector<std::string> proof_row(const fit::Task& task, const fit::Answer& answer);
/// What `cairn solve` prints of a success, which must have a plan.
std::string answer_table(const fit::Task& task, std::string_view solver, const fit::Answer& answer);

/// What `cairn pareto` prints of a curve, whose plans have that alignment.
std::string curve_table(const fit::Problem& problem, std::int64_t alignment, const fit::Curve& curve);

/// What `cairn info` prints of a graph and a budget. `device`: nullptr where none was named.
Rows info_rows(const fit::Task& task, const pipeline::Info& info, const pipeline::DeviceAdvice* device);

/// What `cairn run` prints of a run.
std::string run_table(const pipeline::RunOutcome& outcome);

/// What `cairn simulate` prints of a sweep.
std::string sweep_table(const fit::Problem& problem, const pipeline::Swept& swept, const pipeline::SweepOrigin& origin);

// --- budgets ---

/// Whether and by what means the budget is met: "fits by another order, without recomputation".
std::string fit_text(const fit::Task& task, const pipeline::BudgetVerdict& verdict);
/// What the cheapest schedule within the budget costs, and what is proved of it.
std::string cost_text(const fit::Task& task, const pipeline::BudgetVerdict& verdict);
/// The least budget, with its share of the baseline, its solver and its cost.
std::string least_text(const fit::Task& task, const fit::LeastBudget& least);
/// Why the budget is not met, or not known to be.
std::string refusal_text(const fit::Task& task, const pipeline::Info& info);

// --- runs ---

/// What was compared, and how: "108 kept outputs (6.25 MiB) bit by bit, 2 digests of outputs that nobody reads or
/// keeps".
std::string compared_text(const pipeline::Comparison& comparison);

/// What Cairn must not let pass: outputs that are not the host's, or not the baseline's. Empty: there is none.
std::string defect_of(const pipeline::RunResult& result);

/// What must be said of an execution with synthetic kernels; empty where there are none.
std::string synthetic_note(const core::Graph& graph);

/// Where the costs come from that predict times, in words.
std::string predicted_by(const core::Graph& graph);

/// How the times of a run were taken, in words: "median of 7 executions each, by turns, after one to warm up".
std::string timing_text(const pipeline::RunResult& result);
/// What must be said of a run beside its figures, each in a line: synthetic kernels, a busy machine.
std::vector<std::string> notes_of(const core::Graph& graph, const pipeline::RunResult& result);

// --- devices ---

/// "1.20 GiB (1288490188 bytes): weights 400.00 MiB, ...".
std::string resident_text(const pipeline::ResidentBytes& resident);
/// How the device's memory is divided when the arena has that many bytes.
std::string share_text(const pipeline::DeviceShare& share, std::int64_t arena_bytes);
/// That the device has no room for an arena at all.
std::string no_room_text(std::string_view name, const pipeline::DeviceShare& share);
/// The same with what helps.
std::string no_room_text(const pipeline::NoRoomError& error);
std::string batch_text(const fit::LargestBatch& found);

// --- where there is none ---
// Texts of several lines: a verdict of at most kVerdictColumns, where names are abridged, then the reason and what
// helps.

/// What a terminal shows in a line, less what the command puts before it.
inline constexpr std::size_t kVerdictColumns = 160 - std::string_view("cairn: error: ").size();

/// `before`'NAME'`after`, the name as long as the verdict leaves room for.
std::string verdict_text(std::string_view before, std::string_view name, std::string_view after);

/// The parts that are not empty, each a line.
std::string in_lines(std::initializer_list<std::string> parts);
/// A budget; its bytes are exact where it reads as another size that is said `beside` it.
std::string budget_text(const fit::Problem& problem, std::int64_t budget, std::initializer_list<std::int64_t> beside,
                        bool in_full = true);
/// The least budget known feasible, as it is to be typed, and its solver. Its share is not said where it is `bound`.
std::string least_budget_text(const fit::Problem& problem, const fit::LeastBudget& least, std::int64_t bound);

/// That no schedule fits, the lower bound with its reason, and the least budget known feasible with its solver.
/// `proved` is a bound above the problem's budget. Where it is not of any schedule, the message says of which, and
/// whether the solver or what was asked for, `asked`, leaves out the others.
std::string infeasible_text(const fit::Problem& problem, const solvers::SolverInfo& solver, const solvers::Scope& asked,
                            const solvers::Bound& proved, const fit::LeastBudget& least);
/// That none was found, why the search ended, and what would help: the least budget known to do, or more time.
std::string not_found_text(const fit::Problem& problem, const fit::LeastBudget& least, solvers::Stop stop);
/// The problem as it was searched, with what was proved, for words about what does not fit.
fit::Problem problem_of_failure(const fit::Task& task, const fit::Answer& answer);
/// Why nothing that was asked for is known: one of the two above, or about plans and costs. `other`: what else may help
/// where a plan alone does not fit.
std::string failure_text(const fit::Task& task, const solvers::SolverInfo& solver, const solvers::Scope& asked,
                         const fit::Answer& answer, const fit::LeastBudget& least, std::string_view other = {});
/// "no schedule of 'g' costs 5 ns or less: ..." of a task that is unaffordable().
std::string unaffordable_text(const fit::Task& task);
/// Why no point of a curve is known.
std::string no_points_text(const fit::Problem& problem, const fit::Curve& curve);

}  // namespace cairn::report
