#include "cairn/solvers/fit/curve.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "cairn/core/support/text.h"
#include "cairn/report/html/report.h"
#include "cairn/report/html/support/words.h"
#include "cairn/report/pages.h"
#include "cairn/report/support/words.h"

namespace cairn::report {
namespace {

ReportTradeoff tradeoff_of(const fit::Problem& problem, const fit::Curve& curve, const WithoutLink* beside) {
  ReportTradeoff tradeoff;
  for (std::size_t i = 0; beside != nullptr && i < beside->curve->points.size(); ++i) {
    const fit::CurvePoint& point = beside->curve->points[i];
    if (point.known()) tradeoff.without_transfers.push_back({point.memory(), point.evaluation.cost});
  }
  tradeoff.memory = curve.peak_only ? "peak memory" : "planned memory";
  tradeoff.baseline = {problem.baseline.peak, problem.baseline.cost, "baseline"};
  tradeoff.lower_bound_bytes = problem.lower_bound;
  if (curve.knee) tradeoff.note = fmt::format("The ring is the knee: {}.", fit::kKneeDefinition);
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const fit::CurvePoint& point = curve.points[i];
    // If the schedules may use a link, the proved lower bounds are hardly above the baseline's cost, so the picture
    // leaves them out.
    if (beside == nullptr) tradeoff.proved.push_back({point.budget, point.cost_bound.value});
    if (!point.known()) continue;
    tradeoff.found.push_back(
        {point.memory(), point.evaluation.cost, curve.knee == i ? "knee" : "schedule",
         fmt::format("{}; budget {}", solvers::to_string(point.status), core::format_bytes(point.budget)),
         curve.knee == i});
  }
  return tradeoff;
}

ReportTable table_of(const fit::Problem& problem, const fit::Curve& curve, const std::string& cost_unit) {
  ReportTable table{"The points",
                    "",
                    {"budget", "of the baseline", curve.peak_only ? "peak" : "planned", "peak", "cost", "extra cost",
                     "at least", "gap", "status"},
                    {}};
  for (const fit::SamePoints& same : fit::same_points(curve.points)) {
    const fit::CurvePoint &point = curve.points[same.first], &least = curve.points[same.last];
    const std::int64_t base = problem.baseline.cost;
    const bool knee = same.contains(curve.knee);
    std::vector<std::string> cells = {
        least_to_most(core::format_bytes(least.budget), core::format_bytes(point.budget)) + (knee ? " (knee)" : ""),
        least_to_most(html::share(least.budget, problem.hundred_percent),
                      html::share(point.budget, problem.hundred_percent))};
    if (point.known()) {
      const core::Evaluation& found = point.evaluation;
      cells.insert(cells.end(),
                   {core::format_bytes(point.memory()), core::format_bytes(found.peak),
                    html::cost_text(found.cost, cost_unit), fmt::format("{:+.2f}%", fit::gap_pct(found.cost, {base})),
                    fmt::format("{:+.2f}%", fit::gap_pct(point.cost_bound.value, {base})),
                    gap_text(fit::gap_pct(found.cost, point.cost_bound))});
    } else {
      cells.insert(cells.end(), 6, "\u2013");
    }
    cells.emplace_back(solvers::to_string(point.status));
    table.rows.push_back({std::move(cells), knee});
  }
  return table;
}

/// Adds the schedules of all points to the page if they have at most kMostSteps steps together, else only the knee's
/// schedule.
void add_schedules(const fit::Curve& curve, Report& page) {
  constexpr std::int64_t kMostSteps = 40'000;  // steps of all schedules together
  std::int64_t steps = 0;
  for (const fit::CurvePoint& point : curve.points) steps += point.known() ? point.schedule.length() : 0;
  std::size_t found = 0;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const fit::CurvePoint& point = curve.points[i];
    if (!point.known()) continue;
    ReportPoint& shown = page.tradeoff->found[found++];
    if (steps > kMostSteps && curve.knee != i) continue;
    shown.schedule = static_cast<std::int32_t>(page.schedules.size());
    if (curve.knee == i) page.shown = shown.schedule;
    page.schedules.push_back({fmt::format("{}{}", core::format_bytes(point.memory()), curve.knee == i ? " (knee)" : ""),
                              point.schedule, point.plan});
  }
}

}  // namespace

std::string curve_svg(const fit::Problem& problem, const fit::Curve& curve, const WithoutLink* beside) {
  return tradeoff_svg(tradeoff_of(problem, curve, beside));
}

std::string curve_page(const fit::Problem& problem, std::string_view solver, const fit::Curve& curve,
                       const WithoutLink* beside) {
  Report page = html::of_graph("cairn pareto", problem.graph, problem.name);
  page.summary += fmt::format(" \u00b7 solver {} \u00b7 {:.1f} s", solver, curve.seconds);
  page.tradeoff = tradeoff_of(problem, curve, beside);
  page.tradeoff_first = true;
  if (curve.knee) {
    const fit::CurvePoint& knee = curve.points[*curve.knee];
    const std::int64_t cost = knee.evaluation.cost;
    page.facts.push_back({"Memory at the knee", html::change(problem.hundred_percent, knee.memory()),
                          html::from_to(problem.hundred_percent, knee.memory())});
    page.facts.push_back({"Extra cost at the knee", html::change(problem.baseline.cost, cost),
                          above_optimum_text(fit::gap_pct(cost, knee.cost_bound))});
  }
  page.facts.push_back({"Least memory reached", core::format_bytes(curve.least_memory),
                        html::share(curve.least_memory, problem.hundred_percent) + " of the baseline\u2019s peak"});
  page.facts.push_back({"Lower bound", core::format_bytes(problem.lower_bound), "no schedule has less"});
  page.facts.push_back({"Baseline", core::format_bytes(problem.baseline.peak),
                        "cost " + html::cost_text(problem.baseline.cost, page.cost_unit)});
  page.levels.push_back({"lower bound", problem.lower_bound, ReportLevel::Kind::bound});
  page.tables.push_back(table_of(problem, curve, page.cost_unit));
  if (beside != nullptr) {
    page.notes.push_back(link_worth_text(problem, *beside->worth));
    page.pictures.push_back({"With and without transfers", core::describe(problem.graph.host_memory().value().link),
                             tradeoff_svg(*page.tradeoff)});
    ReportTable table = table_of(problem, *beside->curve, page.cost_unit);
    table.title = "The points without transfers";
    page.tables.push_back(std::move(table));
  }
  add_schedules(curve, page);
  return report_page(page);
}

namespace {

void add_csv(std::string& csv, const fit::Problem& problem, const fit::Curve& curve, std::string_view last) {
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const fit::CurvePoint& point = curve.points[i];
    csv += fmt::format("{},", point.budget);
    if (point.known()) {
      csv += fmt::format("{},{},{},{:.4f},{},{:.4f},", point.evaluation.peak,
                         curve.peak_only ? "" : std::to_string(point.memory()), point.evaluation.cost,
                         fit::gap_pct(point.evaluation.cost, {problem.baseline.cost}), point.cost_bound.value,
                         fit::gap_pct(point.evaluation.cost, point.cost_bound));
    } else {
      csv += fmt::format(",,,,{},,",
                         point.status == solvers::Status::infeasible ? "" : std::to_string(point.cost_bound.value));
    }
    csv += fmt::format("{},{}{}\n", solvers::to_string(point.status), curve.knee == i ? 1 : 0, last);
  }
}

}  // namespace

std::string curve_csv(const fit::Problem& problem, const fit::Curve& curve, const WithoutLink* beside) {
  std::string csv = fmt::format(
      "budget_bytes,peak_bytes,planned_bytes,cost,cost_increase_pct,lower_bound_cost,gap_pct,status,knee{}\n",
      beside != nullptr ? ",with_link" : "");
  add_csv(csv, problem, curve, beside != nullptr ? ",1" : "");
  if (beside != nullptr) add_csv(csv, problem, *beside->curve, ",0");
  return csv;
}

}  // namespace cairn::report
