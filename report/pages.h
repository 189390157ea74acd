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
#include "cairn/report/html/report.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/fit/curve.h"
#include "cairn/solvers/fit/decision.h"
#include "cairn/solvers/fit/least_budget.h"
#include "cairn/solvers/fit/objective.h"
#include "cairn/solvers/fit/problem.h"

/// Reports of what is known without an execution. Those of a run, a curve and a sweep: run.h, pareto.h, sweep.h. Each
/// is one self-contained HTML page (report/report.h).
namespace cairn::report {

// --- parts that pages have in common ---

/// Adds a schedule beside the baseline and opens the page with it.
void add_schedule(Report& page, ReportSchedule schedule, const core::Evaluation& evaluation);
/// From the baseline's peak (or `from_bytes`) to that of the schedule, with the lower bound.
void add_memory_facts(Report& page, const fit::Problem& problem, std::int64_t peak,
                      std::optional<std::int64_t> from_bytes = std::nullopt);
void add_cost_fact(Report& page, const fit::Problem& problem, const core::Evaluation& evaluation);
/// The problem's budget, if it has one, and whether what was planned is within it; none: nothing was. `peak_bytes`:
/// what the budget is on instead, where it is not on plans.
void add_budget(Report& page, const fit::Problem& problem, std::optional<std::int64_t> planned_bytes,
                std::optional<std::int64_t> peak_bytes = std::nullopt);
/// Schedules that were met, with the one of the page marked.
ReportTradeoff tradeoff_of(const fit::Problem& problem, const std::vector<solvers::Tradeoff>& met, std::int64_t peak,
                           std::int64_t cost);

// --- pages ---

/// `within`: the cheapest known within the problem's budget, which the page is opened with; `facts` come behind those
/// of the graph.
std::string info_page(const fit::Problem& problem, const fit::LeastBudget& least,
                      const std::optional<fit::LeastBudget>& within, std::vector<ReportFact> facts = {});

/// The answer must have a schedule.
std::string solve_page(const fit::Task& task, std::string_view solver, const fit::Answer& answer);

/// How good a plan is.
struct PlanVerdict {
  std::string text;               ///< in a few words
  std::int64_t proved_bytes = 0;  ///< no plan is lower
  std::optional<std::int64_t> capacity_bytes;
  double seconds = 0;  ///< of the search
};
/// `name`: of the graph, where it has none. Throws InputError on an invalid schedule.
std::string plan_page(const core::Graph& graph, const core::Schedule& schedule, const core::Plan& plan,
                      const PlanVerdict& verdict, const std::string& name = {});
/// Of free-standing buffers.
std::string plan_page(const std::string& name, ReportBuffers buffers, const PlanVerdict& verdict);

/// The curve as a picture or a page shows it (report/report.h).
std::string curve_svg(const fit::Problem& problem, const fit::Curve& curve);
std::string curve_page(const fit::Problem& problem, std::string_view solver, const fit::Curve& curve);
/// One line a point under a header: budget_bytes, peak_bytes, planned_bytes, cost, cost_increase_pct, lower_bound_cost,
/// gap_pct, status, knee; empty where a point does not know.
std::string curve_csv(const fit::Problem& problem, const fit::Curve& curve);

/// Chrome/Perfetto trace of a run (core/formats/files.h): both executions with their measured times.
std::string run_trace(const core::Graph& graph, const fit::Decision& decision, const pipeline::RunResult& result);

/// One self-contained HTML page of a run (report/html/report.h). `tradeoffs`: other schedules known.
std::string run_page(const fit::Problem& problem, const pipeline::Backend& backend, const fit::Decision& decision,
                     const pipeline::RunResult& result, const std::vector<solvers::Tradeoff>& tradeoffs = {});

/// One self-contained HTML page of a sweep.
std::string sweep_page(const fit::Problem& problem, const pipeline::Swept& swept, const pipeline::SweepOrigin& origin);

}  // namespace cairn::report
