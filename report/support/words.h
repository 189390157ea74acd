#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/plan.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/pipeline/device_memory.h"
#include "cairn/pipeline/info.h"
#include "cairn/pipeline/request.h"
#include "cairn/pipeline/run.h"
#include "cairn/pipeline/sweep.h"
#include "cairn/pipeline/train.h"
#include "cairn/solvers/common/bound.h"
#include "cairn/solvers/fit/curve.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/link_worth.h"
#include "cairn/solvers/fit/objective.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/registry.h"

/// Makes the sentences and tables about a problem (fit::Problem: a graph and a budget) and about the answer of a
/// search. core::option() spells the options in these texts, because the command has "--budget" where Python has
/// "budget".
namespace cairn::report {

/// Rows of a table; the first cell names the row.
using Rows = std::vector<std::vector<std::string>>;
/// Aligns the cells in columns. Underlines the first row if `header` is set.
std::string format_table(const Rows& rows, bool header = false);

// --- numbers ---

/// Formats a size with its exact number of bytes: "1.50 KiB (1536 bytes)", "20 bytes".
std::string bytes_text(std::int64_t bytes);
/// Formats a size: "1.50 KiB", "20 bytes".
std::string size_text(std::int64_t bytes);
/// Formats a size like size_text(), but rounds up, so that a user who types it as a budget gets at least `bytes`.
std::string size_to_type(std::int64_t bytes);
/// Returns whether `a` and `b` differ although size_text() returns the same text for both.
bool read_alike(std::int64_t a, std::int64_t b);
/// Formats a size with its percentage of Problem::hundred_percent: "1.50 KiB (75.0%)". If `in_full` is set, the form is
/// "1.50 KiB (75.0% of the baseline peak)". If `exact` is set, the form is "1.50 KiB (1536 bytes, 75.0%)".
std::string baseline_share_text(const fit::Problem& problem, std::int64_t bytes, bool in_full = false,
                                bool exact = false);
/// Formats a cost in the unit of the problem's graph: "12345 ns", "12345 cost units".
std::string cost_with_unit(const fit::Problem& problem, std::int64_t cost);
/// Formats a cost with its unit and the increase above the baseline: "12345 ns (+1.20%)".
std::string cost_and_increase(const fit::Problem& problem, std::int64_t cost);
/// Gives the baseline's cost and the source of the graph's costs.
std::string baseline_cost_text(const fit::Problem& problem);
/// Gives the baseline's peak and, if sizes are rounded up to `alignment` bytes, which size counts as 100% of memory.
std::string baseline_peak_text(const fit::Problem& problem, std::int64_t alignment);
/// Returns `bytes` in percent of Problem::hundred_percent.
double share_pct(const fit::Problem& problem, std::int64_t bytes);
/// Returns 100 * (value - base) / base; 0 if `base` is 0.
double increase_pct(std::int64_t value, std::int64_t base);
/// Returns by how many percent the time `value` is above the time `base`.
double percent_above(double value, double base);
/// Says how far above the optimum an answer can be: "at most 3.00% above the optimum". If `pct` is above 100, says
/// "more than twice what is proved".
std::string above_optimum_text(double pct);
/// Formats a gap between an answer and its bound: "3.00%". Returns "> 100%" for a larger gap, because the exact number
/// would say little about the answer.
std::string gap_text(double pct);
/// Formats a range: "1.50 KiB to 2.00 KiB", or "1.50 KiB" if both texts are equal.
std::string least_to_most(const std::string& least, const std::string& most);
/// Returns part / whole; 0 if `whole` is 0.
double fraction(std::int64_t part, std::int64_t whole);
/// Formats a count with its thousands separated: "12,345,678".
std::string count_text(std::int64_t count);

// --- bounds ---

/// Explains in one line why no schedule needs less than the problem's lower bound. Names a node and the tensors that it
/// needs in memory at the same time. If the bound exceeds the bytes of these tensors, adds that the search proved more.
std::string lower_bound_reason(const fit::Problem& problem);
/// Gives the lower bound and the node that sets it: "the lower bound is 1.50 KiB (75.0%), set by 'conv1'".
std::string bound_text(const fit::Problem& problem);
/// Returns "sizes are rounded up to --alignment 256" if rounding changed the problem's figures, else an empty text.
std::string rounding_text(const fit::Problem& problem);
/// Says in words why a search ended.
std::string stop_text(solvers::Stop stop);
/// Says to which schedules a scope, i.e. a set of schedules, is restricted: " without recomputation", " (input order
/// kept)", ... The text is empty if the scope has all schedules.
std::string scope_text(const solvers::Scope& scope);

// --- answers ---

/// The points of a curve beside its knee. A pointer is nullptr if there is no such point.
struct BesideKnee {
  const fit::CurvePoint *more_memory = nullptr, *less_memory = nullptr;
};
/// Returns the next point on each side of a curve's knee. The curve must have a knee.
BesideKnee beside_knee(const fit::Curve& curve);

/// Says what is proved about an answer with status `optimal`.
std::string proved_text(const fit::Task& task, const fit::Answer& answer);
/// Returns a row of a table. The row is named `proved` if the answer is proved to be optimal. Otherwise it is named
/// `gap`, and says by how much an optimal answer can be better at most.
std::vector<std::string> proof_row(const fit::Task& task, const fit::Answer& answer);
/// Returns what `cairn solve` prints about a successful answer, which must have a plan.
std::string answer_table(const fit::Task& task, std::string_view solver, const fit::Answer& answer,
                         const solvers::Certificate* certificate = nullptr);

/// Says which part of a makespan was added by recomputation, and in which part steps wait for copies: "12345 ns
/// (+8.64%): +7.51% recomputed, +1.13% waiting for copies".
std::string makespan_text(const fit::Problem& problem, const core::Evaluation& evaluation);
/// Says in a sentence how much memory or cost schedules save by using the link of the problem's graph: "offloading over
/// 25 GB/s saves 7.4% of the memory at no cost; below 62.0% recomputation costs less than waiting".
std::string link_worth_text(const fit::Problem& problem, const fit::LinkWorth& worth);
/// Says that a schedule is known for a budget of `bytes` of host memory.
std::string host_budget_text(std::int64_t bytes);
/// Returns the budgets that count for `cairn simulate`, such as "1.00 GiB" or "1.00 GiB, and 4.00 GiB on the host".
/// Empty if there are none.
std::string budgets_text(const fit::Problem& problem);
/// Returns rows about the link to host memory, the bytes that a schedule moves over the link, how busy the link is, and
/// the host memory that the schedule uses. `plan` is nullptr if the schedule has no plan. Returns no rows if the graph
/// knows no link.
Rows transfer_rows(const core::Graph& graph, const core::Schedule& schedule, const core::Plan* plan);

/// Returns what `cairn pareto` prints about a curve. `alignment` is that of the plans, in bytes.
std::string curve_table(const fit::Problem& problem, std::int64_t alignment, const fit::Curve& curve);

/// Returns the rows that `cairn info` prints about a graph and a budget. `device` is nullptr if no device was named.
Rows info_rows(const fit::Task& task, const pipeline::Info& info, const pipeline::DeviceAdvice* device);

/// Returns what `cairn measure` prints about measured costs.
std::string measurement_table(const std::string& name, const pipeline::PreparedGraph& given,
                              const pipeline::Backend& backend, const pipeline::Measurement& measurement,
                              const std::string& written_to);
/// Says what `cairn measure` did not measure, and which costs it uses instead. The text is empty if everything was
/// measured.
std::string unmeasured_text(const runtime::MeasuredGraph& result);

/// Says how far a plan can be above the least possible height.
std::string plan_quality(const fit::FoundPlan& result);
/// Returns the rows that `cairn plan` prints about a plan, which must fit into the capacity, if there is one.
Rows plan_rows(const fit::FoundPlan& result);
/// Says that buffers with these ids do not fit together: "3 buffers alone do not fit: a, b, c". Shows at most five ids.
std::string conflict_text(const std::vector<std::string>& ids);
/// Explains why no plan within the capacity is known. `name` is that of the input. `conflict` is a text that names
/// buffers that are proved not to fit together; it can be empty.
std::string no_plan_text(const std::string& name, const fit::FoundPlan& result, const std::string& conflict = "");

/// Returns what `cairn run` prints about a run.
std::string run_table(const pipeline::RunOutcome& outcome);

/// Says how a test of a trained model went: "loss 0.1143, accuracy 96.94%".
std::string test_text(const pipeline::TestResult& test);
/// Returns what `cairn train` prints about a training run.
std::string train_table(const pipeline::TrainOutcome& outcome);

/// Returns what `cairn simulate` prints about a sweep.
std::string sweep_table(const fit::Problem& problem, const pipeline::Swept& swept, const pipeline::SweepOrigin& origin);

// --- budgets ---

/// Says whether the budget is met, and how: "fits by another order, without recomputation".
std::string fit_text(const fit::Task& task, const pipeline::BudgetVerdict& verdict);
/// Says what the cheapest schedule known within the budget costs, and what is proved about the least cost.
std::string cost_text(const fit::Task& task, const pipeline::BudgetVerdict& verdict);
/// Gives the least budget known, its percentage of the baseline's peak, its solver and its cost.
std::string least_text(const fit::Task& task, const fit::LeastBudget& least);
/// Says why the budget is not met, or why that is not known.
std::string refusal_text(const fit::Task& task, const pipeline::Info& info);

// --- runs ---

/// Says what was compared, and how: "108 kept outputs (6.25 MiB) bit by bit, 2 digests of outputs that nobody reads or
/// keeps". A digest is a hash.
std::string compared_text(const pipeline::Comparison& comparison);

/// Describes outputs that differ from the outputs of the baseline or of the host, or a number of bytes on the host that
/// differs from the plan. Each of these is a defect of Cairn. The text is empty if there is no such defect.
std::string defect_of(const pipeline::RunResult& result);

/// Says which nodes run synthetic kernels, which compute no real results. The text is empty if none does.
std::string synthetic_note(const core::Graph& graph);

/// Says on how many GPU streams one execution of the schedule (a training step) runs, and how long it takes at least by
/// the graph's costs: on these streams, on one stream, and on any number of streams. Also says how many bytes
/// PlanOptions::overlap_steps adds to the plan. For example: "2; by the costs, a step takes at least 8 ms of 12 ms, on
/// any number of streams 6 ms".
std::string streams_text(const core::Graph& graph, const fit::Decision& decision, const runtime::Overlap& overlap);
/// Returns streams_text() without the number of streams.
std::string streams_note(const core::Graph& graph, const fit::Decision& decision, const runtime::Overlap& overlap);

/// Says where the costs that predict times come from.
std::string predicted_by(const core::Graph& graph);

/// Says how the times of a run were measured: "median of 7 executions each, alternating, after one to warm up".
std::string timing_text(const pipeline::RunResult& result);
/// Returns notes on the figures of a run, one line each, for example about synthetic kernels or a busy machine.
std::vector<std::string> notes_of(const core::Graph& graph, const pipeline::RunResult& result);

// --- devices ---

/// Gives the resident bytes and their kinds: "1.20 GiB (1288490188 bytes): weights 400.00 MiB, ...".
std::string resident_text(const pipeline::ResidentBytes& resident);
/// Says how the device's memory is divided if the arena takes `arena_bytes`.
std::string share_text(const pipeline::DeviceShare& share, std::int64_t arena_bytes);
/// Says that the device has no memory left for an arena.
std::string no_room_text(std::string_view name, const pipeline::DeviceShare& share);
/// Says that the device has no memory left for an arena, and what the user can change.
std::string no_room_text(const pipeline::NoRoomError& error);
/// Says which batch is the largest known to fit, and whether larger ones are known not to fit.
std::string batch_text(const fit::LargestBatch& found);

// --- requests that cannot be met ---

// These messages have several lines. The first line, the verdict, says what cannot be met. Long names in it are
// shortened. The other lines give the reason, and say what helps.

/// Largest length of a verdict, so that it fits into 160 columns behind the prefix "cairn: error: ".
inline constexpr std::size_t kVerdictColumns = 160 - std::string_view("cairn: error: ").size();

/// Returns `before`, the name in quotes, and `after`. Shortens the name if the verdict would exceed kVerdictColumns.
std::string verdict_text(std::string_view before, std::string_view name, std::string_view after);

std::string in_lines(std::initializer_list<std::string> parts);
/// Formats a budget. `beside` lists the other sizes that the same message names. If size_text() makes the same text of
/// the budget and of a different size in `beside`, adds the exact bytes of the budget.
std::string budget_text(const fit::Problem& problem, std::int64_t budget, std::initializer_list<std::int64_t> beside,
                        bool in_full = true);
/// Gives the least budget known to be feasible, in a form that a user can type, and the solver that meets it. If this
/// budget equals the lower bound `bound`, says so instead of giving a percentage.
std::string least_budget_text(const fit::Problem& problem, const fit::LeastBudget& least, std::int64_t bound);

/// Explains that no schedule fits. Gives the lower bound with its reason, and the least budget known to be feasible
/// with its solver. `proved` is a bound above the problem's budget. If this bound holds only for some schedules, says
/// for which schedules. Also says why all further schedules were not searched: the solver never finds them, or the
/// request excludes them. `asked` is the set of schedules that the request allows.
std::string infeasible_text(const fit::Problem& problem, const solvers::SolverInfo& solver, const solvers::Scope& asked,
                            const solvers::Bound& proved, const fit::LeastBudget& least);
/// Explains that no schedule was found, why the search ended, and what would help: more time, or the least budget known
/// to be feasible.
std::string not_found_text(const fit::Problem& problem, const fit::LeastBudget& least, solvers::Stop stop);
/// Returns the problem whose figures the messages about a failed search state. It is the task's problem with two
/// changes. Its lower bound is at least the bound that the search proved. Its sizes are rounded up to the alignment, as
/// in the search, if the search could have failed because of this rounding.
fit::Problem problem_of_failure(const fit::Task& task, const fit::Answer& answer);
/// Describes what an interrupted search has found: the peak of the best schedule, and whether this peak or the plan is
/// above the budget. Names `output`, the file with the schedule, or says how to get one if `output` is empty.
std::string best_so_far_text(const fit::Task& task, const fit::Answer& answer, const std::string& output);
/// Explains why no answer is known. Says what infeasible_text() or not_found_text() says, or that the plan or the cost
/// of the answer is too large. `other` is a text that says what else may help if only the plan does not fit.
std::string failure_text(const fit::Task& task, const solvers::SolverInfo& solver, const solvers::Scope& asked,
                         const fit::Answer& answer, const fit::LeastBudget& least, std::string_view other = {});
/// Explains that no schedule can be as cheap as the task requires (unaffordable()): "no schedule of 'g' costs 5 ns or
/// less: ...".
std::string unaffordable_text(const fit::Task& task);
/// Explains why no point of a curve is known.
std::string no_points_text(const fit::Problem& problem, const fit::Curve& curve);

}  // namespace cairn::report
