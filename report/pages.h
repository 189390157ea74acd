#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/pipeline/backend.h"
#include "cairn/pipeline/run.h"
#include "cairn/pipeline/sweep.h"
#include "cairn/pipeline/train.h"
#include "cairn/report/html/report.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/fit/curve.h"
#include "cairn/solvers/fit/decision.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/link_worth.h"
#include "cairn/solvers/fit/objective.h"
#include "cairn/solvers/fit/problem.h"

/// Makes the HTML pages of --report: about a graph, a schedule, a plan, a curve of cost over memory, a run, or a sweep
/// over many schedules. Each page is one self-contained file (report/html/report.h). Also makes the other files that
/// show a curve or a run: SVG, CSV and traces.
namespace cairn::report {

// --- figures that several pages have ---

/// Adds a schedule, which the page shows beside the baseline. The page opens with this schedule.
void add_schedule(Report& page, ReportSchedule schedule, const core::Evaluation& evaluation);
/// Adds two figures. The first compares `peak`, the schedule's peak, with the baseline's peak, or with `from_bytes` if
/// given. The second is the lower bound on the peak of every schedule, which the pictures also show as a line.
void add_memory_facts(Report& page, const fit::Problem& problem, std::int64_t peak,
                      std::optional<std::int64_t> from_bytes = std::nullopt);
/// Adds the cost of the schedule, compared with that of the baseline.
void add_cost_fact(Report& page, const fit::Problem& problem, const core::Evaluation& evaluation);
/// Adds the number of GPU streams on which one execution of the schedule runs, the best time that they allow, and the
/// bytes that PlanOptions::overlap_steps adds to the plan. Adds nothing if there is only one stream.
void add_streams_fact(Report& page, const core::Graph& graph, const fit::Decision& decision,
                      const std::optional<runtime::Overlap>& overlap);
/// Adds the problem's budget, if it has one, and whether the schedule meets it. `planned_bytes` is the height of the
/// schedule's plan, or none if nothing was planned. `peak_bytes`, the schedule's peak, must be given if the budget
/// limits the peak instead of the plan.
void add_budget(Report& page, const fit::Problem& problem, std::optional<std::int64_t> planned_bytes,
                std::optional<std::int64_t> peak_bytes = std::nullopt);
/// Adds figures, a picture over time and tables about the transfers of a schedule: the copies, the times in which steps
/// wait for copies, and the host memory that the schedule and `plan` use. `plan` is nullptr if the schedule has no
/// plan. Adds nothing if the graph knows no link to host memory or the schedule has no transfers.
void add_transfers(Report& page, const core::Graph& graph, const core::Schedule& schedule, const core::Plan* plan);
/// Returns a picture of cost over memory. The picture marks the schedule with the given peak and cost. Its other points
/// are `met`, the schedules that a search has met.
ReportTradeoff tradeoff_of(const fit::Problem& problem, const std::vector<solvers::Tradeoff>& met, std::int64_t peak,
                           std::int64_t cost);

// --- pages ---

/// Returns the page of `cairn info`. If `within`, the cheapest schedule known within the budget, is given, the page
/// opens with this schedule. `facts` are added behind the facts about the graph.
std::string info_page(const fit::Problem& problem, const fit::LeastBudget& least,
                      const std::optional<fit::LeastBudget>& within, std::vector<ReportFact> facts = {});

/// Returns the page of `cairn solve`. The answer must have a schedule.
std::string solve_page(const fit::Task& task, std::string_view solver, const fit::Answer& answer);

/// What is proved about the height of a plan.
struct PlanVerdict {
  std::string text;                            ///< the verdict in a few words
  std::int64_t proved_bytes = 0;               ///< lower bound on the height of every plan
  std::optional<std::int64_t> capacity_bytes;  ///< largest height that was allowed; none: not limited
  double seconds = 0;                          ///< duration of the search
};
/// Returns the page about the plan of a schedule. `name` is the title of the page if the graph has no name. Throws
/// InputError on an invalid schedule.
std::string plan_page(const core::Graph& graph, const core::Schedule& schedule, const core::Plan& plan,
                      const PlanVerdict& verdict, const std::string& name = {});
/// Returns the page about a plan of buffers that belong to no graph.
std::string plan_page(const std::string& name, ReportBuffers buffers, const PlanVerdict& verdict);

/// Points to a curve of schedules without transfers, which is shown beside a curve of schedules with transfers, and to
/// a comparison of both. Does not own them.
struct WithoutLink {
  const fit::Curve* curve = nullptr;
  const fit::LinkWorth* worth = nullptr;
};
/// Returns the curve as an SVG picture. If `beside` is given, the picture also has the curve without transfers, as a
/// dashed line.
std::string curve_svg(const fit::Problem& problem, const fit::Curve& curve, const WithoutLink* beside = nullptr);
/// Returns the page about a curve. The page contains the picture that curve_svg() returns.
std::string curve_page(const fit::Problem& problem, std::string_view solver, const fit::Curve& curve,
                       const WithoutLink* beside = nullptr);
/// Returns the curve as CSV, with a header and one line per point: budget_bytes, peak_bytes, planned_bytes, cost,
/// cost_increase_pct, lower_bound_cost, gap_pct, status, knee. Values that are not known for a point are empty. If
/// `beside` is given, the points of the curve without transfers follow, and a last column, with_link, is 1 for the
/// points of `curve` and 0 for the points without transfers.
std::string curve_csv(const fit::Problem& problem, const fit::Curve& curve, const WithoutLink* beside = nullptr);

/// Returns a Chrome/Perfetto trace of a run (report/perfetto.h) with both executions and their measured times.
std::string run_trace(const core::Graph& graph, const fit::Decision& decision, const pipeline::RunResult& result);

/// Returns the page of a run. `tradeoffs` has the peaks and costs of further schedules that the search has met.
std::string run_page(const fit::Problem& problem, const pipeline::Backend& backend, const fit::Decision& decision,
                     const pipeline::RunResult& result, const std::vector<solvers::Tradeoff>& tradeoffs = {});

/// Returns the page of a training run.
std::string train_page(const pipeline::TrainOutcome& outcome);

/// Returns the page of a sweep, which evaluates many schedules.
std::string sweep_page(const fit::Problem& problem, const pipeline::Swept& swept, const pipeline::SweepOrigin& origin);

}  // namespace cairn::report
