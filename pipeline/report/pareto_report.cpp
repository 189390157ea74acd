#include "cairn/pipeline/report/pareto_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "cairn/core/text.h"
#include "cairn/pipeline/report/internal/html.h"

namespace cairn::pipeline {
namespace {

using namespace html;

/// The picture stands alone in a file: what of the pages' style it needs.
constexpr std::string_view kPictureStyle = R"css(
text { fill: #68707b; font: 11.5px system-ui, sans-serif; } .ground { fill: #ffffff; } .axis { stroke: #e2e3e0; }
.grid { stroke: #ecedea; } .curve { fill: none; stroke: #2a6fbb; stroke-width: 1.6; stroke-linejoin: round; }
.bound { fill: none; stroke: #2c8a57; stroke-width: 1.4; stroke-dasharray: 2 3; } .start-line { stroke: #9aa2ad; }
.point { fill: #2a6fbb; } .point.chosen { fill: #ffffff; stroke: #2a6fbb; stroke-width: 2.4; }
.bound-name { fill: #2c8a57; } .arena-name { fill: #2a6fbb; }
@media (prefers-color-scheme: dark) { text { fill: #98a1ac; } .ground { fill: #1c2026; } .axis { stroke: #2c323a; }
.grid { stroke: #262b32; } .curve { stroke: #6bb0f5; } .bound { stroke: #5cc48d; } .point { fill: #6bb0f5; }
.point.chosen { fill: #1c2026; stroke: #6bb0f5; } .bound-name { fill: #5cc48d; } .arena-name { fill: #6bb0f5; } }
)css";

using Point = ParetoReport::Point;

Axes curve_axes(const ParetoReport& report) {
  Axes axes;
  axes.height = 400;
  axes.bottom = 352;
  axes.top = 24;
  axes.x_unit = Unit::bytes;
  axes.y_unit = Unit::percent;
  double low = real(report.baseline_peak_bytes), high = low;
  for (const Point& point : report.points) {
    low = std::min(low, real(point.known ? std::min(point.budget_bytes, point.memory_bytes) : point.budget_bytes));
    high = std::max(high, real(point.budget_bytes));
    const std::int64_t cost = point.known ? point.cost : point.lower_bound_cost;
    axes.y_max = std::max(axes.y_max, percent_of(cost - report.baseline_cost, report.baseline_cost));
  }
  const double margin = std::max(1.0, 0.04 * (high - low));
  axes.x_min = std::max(0.0, low - margin);
  axes.x_max = high + margin;
  axes.y_max *= 1.08;
  return axes;
}

/// Axes, steps, points and names; everything but the element around them.
std::string curve_chart(const ParetoReport& report, const Axes& axes) {
  const auto height = [&](std::int64_t cost) {
    return axes.y(std::max(0.0, percent_of(cost - report.baseline_cost, report.baseline_cost)));
  };
  std::string svg = axis_lines(axes, "memory");
  svg += fmt::format("<text x='{:.1f}' y='{:.1f}'>cost above the baseline's</text>\n", axes.left - 60, axes.top - 10);
  const double baseline = axes.x(real(report.baseline_peak_bytes));
  svg += fmt::format(
      "<line class='start-line' x1='{0:.1f}' x2='{0:.1f}' y1='{1:.1f}' y2='{2:.1f}'><title>peak of the "
      "baseline: {3}</title></line>\n",
      baseline, axes.top, axes.bottom, core::format_bytes(report.baseline_peak_bytes));
  svg += fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='end'>baseline</text>\n", baseline - 5, axes.top + 10);

  // What is proved under a budget holds under every smaller one, down to the next.
  std::string bound, curve, dots;
  for (const Point& point : report.points) {
    const double x = axes.x(real(point.budget_bytes));
    if (bound.empty()) {
      bound = fmt::format("M{:.1f} {:.1f}", x, height(point.lower_bound_cost));
    } else {
      bound += fmt::format("H{:.1f}V{:.1f}", x, height(point.lower_bound_cost));
    }
  }
  // A schedule serves every budget from its own memory on, up to where a cheaper one fits.
  for (const Point& point : report.points) {
    if (!point.known) continue;
    const double x = axes.x(real(point.memory_bytes)), y = height(point.cost);
    curve +=
        curve.empty() ? fmt::format("M{:.1f} {:.1f}H{:.1f}", axes.right, y, x) : fmt::format("V{:.1f}H{:.1f}", y, x);
  }
  for (std::size_t i = 0; i < report.points.size(); ++i) {
    const Point& point = report.points[i];
    if (!point.known) continue;
    const bool knee = report.knee == i;
    dots += fmt::format(
        "<circle class='point{}' cx='{:.1f}' cy='{:.1f}' r='{}'><title>{}{} {}, budget {}\ncost {} ({}), {} "
        "recomputed\n{}, "
        "at most {:.2f}% above the least</title></circle>\n",
        knee ? " chosen" : "", axes.x(real(point.memory_bytes)), height(point.cost), knee ? 5.5 : 3.2,
        knee ? "knee: " : "", core::format_bytes(point.memory_bytes), report.peak_only ? "of peak" : "planned",
        core::format_bytes(point.budget_bytes), grouped(point.cost), change(report.baseline_cost, point.cost),
        grouped(point.recomputed), escaped(point.status), point.gap_pct);
    if (knee)
      dots += fmt::format("<text class='arena-name' x='{:.1f}' y='{:.1f}'>knee: {}, {}</text>\n",
                          axes.x(real(point.memory_bytes)) + 9, height(point.cost) - 8,
                          core::format_bytes(point.memory_bytes), change(report.baseline_cost, point.cost));
  }
  if (!bound.empty()) svg += fmt::format("<path class='bound' d='{}H{:.1f}'/>\n", bound, axes.left);
  if (!curve.empty()) svg += fmt::format("<path class='curve schedule' d='{}'/>\n", curve);
  const double names = std::min(axes.right, baseline) - 12;
  svg += fmt::format(
      "<text class='arena-name' x='{0:.1f}' y='{1:.1f}' text-anchor='end'>schedules found</text>\n"
      "<text class='bound-name' x='{0:.1f}' y='{2:.1f}' text-anchor='end'>proved: no schedule costs less</text>\n",
      names, axes.top + 32, axes.top + 50);
  return svg + dots;
}

std::string memory_cell(std::int64_t bytes) {
  return fmt::format("<td title='{} bytes'>{}</td>", bytes, core::format_bytes(bytes));
}

std::string points_table(const ParetoReport& report) {
  const auto increase = [&](std::int64_t cost) {
    return fmt::format("+{:.2f}%", percent_of(cost - report.baseline_cost, report.baseline_cost));
  };
  std::string rows;
  for (std::size_t i = 0; i < report.points.size(); ++i) {
    const Point& point = report.points[i];
    rows += fmt::format("<tr><th title='{} bytes'>{}{}</th><td>{:.1f}%</td>", point.budget_bytes,
                        core::format_bytes(point.budget_bytes), report.knee == i ? " (knee)" : "",
                        percent_of(point.budget_bytes, report.baseline_peak_bytes));
    if (point.known) {
      rows += (report.peak_only ? "<td>\u2013</td>" : memory_cell(point.memory_bytes)) + memory_cell(point.peak_bytes);
      rows += fmt::format("<td>{}</td><td>{}</td><td>{}</td><td>{:.2f}%</td>", grouped(point.cost),
                          increase(point.cost), increase(point.lower_bound_cost), point.gap_pct);
    } else {
      for (int cell = 0; cell < 6; ++cell) rows += "<td>\u2013</td>";
    }
    rows += fmt::format("<td>{}</td></tr>\n", escaped(point.status));
  }
  return fmt::format(
      "<section><h2>The points</h2><div class='scroll'><table><thead><tr><th>budget</th><th>of baseline</th>"
      "<th>planned</th><th>peak</th><th>cost</th><th>increase</th><th>at least</th><th>gap</th>"
      "<th>status</th></tr></thead><tbody>\n{}</tbody></table></div></section>\n",
      rows);
}

}  // namespace

std::string pareto_svg(const ParetoReport& report) {
  const Axes axes = curve_axes(report);
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} {1}' width='{0}' height='{1}' role='img' "
      "aria-label='Cost over memory'>\n<style>{2}</style>\n<rect class='ground' width='{0}' height='{1}'/>\n{3}"
      "</svg>\n",
      axes.width, axes.height, kPictureStyle, curve_chart(report, axes));
}

std::string pareto_report(const ParetoReport& report) {
  std::string html = page_begin(report.graph);
  html += fmt::format("<p class='sub'>{} nodes, {} edges \u00b7 solver {} \u00b7 {:.1f} s</p>\n", grouped(report.nodes),
                      grouped(report.edges), escaped(report.solver), report.seconds);
  html += "<div class='tiles'>";
  if (report.knee) {
    const Point& knee = report.points[*report.knee];
    html += tile("The knee", change(report.baseline_peak_bytes, knee.memory_bytes),
                 fmt::format("{} \u2192 {}", core::format_bytes(report.baseline_peak_bytes),
                             core::format_bytes(knee.memory_bytes)));
    html += tile("costs", change(report.baseline_cost, knee.cost),
                 fmt::format("at most {:.2f}% above the least", knee.gap_pct));
  }
  html += tile("No schedule has less than", core::format_bytes(report.lower_bound_bytes), "of memory");
  html += "</div>\n";
  const Axes axes = curve_axes(report);
  html += fmt::format(
      "<section><h2>What memory costs</h2><p class='note'>Extra cost of the cheapest schedule that was found within "
      "each "
      "budget, and below it what is proved: the least lies between the two lines.{}</p>\n",
      report.knee ? fmt::format(" The ring is the knee: {}.", escaped(report.knee_definition)) : "");
  html += svg_open(axes, "pareto", "Extra cost over memory") + curve_chart(report, axes) + "</svg></section>\n";
  return html + points_table(report) + page_end(report.version);
}

}  // namespace cairn::pipeline
