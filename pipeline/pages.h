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
#include "cairn/pipeline/least_budget.h"
#include "cairn/pipeline/objective.h"
#include "cairn/pipeline/problem.h"
#include "cairn/pipeline/report/report.h"
#include "cairn/solvers/common/solution.h"

/// Reports of what is known without an execution. Those of a run, a curve and a sweep: run.h, pareto.h, sweep.h. Each
/// is one self-contained HTML page (report/report.h).
namespace cairn::pipeline {

// --- parts that pages have in common ---

/// Adds a schedule beside the baseline and opens the page with it.
void add_schedule(Report& page, ReportSchedule schedule, const core::Evaluation& evaluation);
/// From the baseline's peak (or `from_bytes`) to that of the schedule, with the lower bound.
void add_memory_facts(Report& page, const Problem& problem, std::int64_t peak,
                      std::optional<std::int64_t> from_bytes = std::nullopt);
void add_cost_fact(Report& page, const Problem& problem, const core::Evaluation& evaluation);
/// The problem's budget, if it has one, and whether what was planned is within it; none: nothing was. `peak_bytes`:
/// what the budget is on instead, where it is not on plans.
void add_budget(Report& page, const Problem& problem, std::optional<std::int64_t> planned_bytes,
                std::optional<std::int64_t> peak_bytes = std::nullopt);
/// Schedules that were met, with the one of the page marked.
ReportTradeoff tradeoff_of(const Problem& problem, const std::vector<solvers::Tradeoff>& met, std::int64_t peak,
                           std::int64_t cost);

// --- pages ---

/// `within`: the cheapest known within the problem's budget, which the page is opened with; `facts` come behind those
/// of the graph.
std::string info_page(const Problem& problem, const LeastBudget& least, const std::optional<LeastBudget>& within,
                      std::vector<ReportFact> facts = {});

/// The answer must have a schedule.
std::string solve_page(const Task& task, std::string_view solver, const Answer& answer);

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

}  // namespace cairn::pipeline
