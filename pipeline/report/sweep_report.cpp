#include "cairn/pipeline/report/sweep_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cairn/core/text.h"
#include "cairn/pipeline/report/internal/html.h"

namespace cairn::pipeline {
namespace {

using namespace html;

/// A vertical line with a name at its top.
std::string mark(const Axes& axes, std::string_view css, std::string_view name, std::int64_t bytes) {
  const double x = axes.x(real(bytes));
  if (x < axes.left || x > axes.right) return "";
  return fmt::format(
      "<line class='{0}' x1='{1:.1f}' x2='{1:.1f}' y1='{2:.1f}' y2='{3:.1f}'><title>{4}: {5}</title></line>\n", css, x,
      axes.top, axes.bottom, name, core::format_bytes(bytes));
}

std::string histogram_chart(const SweepReport& report) {
  if (report.histogram.empty()) return "";
  const std::int64_t from = report.histogram_from, width = report.histogram_width;
  Axes axes;
  axes.x_min = real(from);
  axes.x_max = real(from) + real(width) * real(static_cast<std::int64_t>(report.histogram.size()));
  axes.y_max = 1.06 * std::max(1.0, real(*std::max_element(report.histogram.begin(), report.histogram.end())));
  axes.x_unit = Unit::bytes;
  axes.y_unit = Unit::number;
  std::string html = fmt::format(
      "<section><h2>Peaks of all candidates</h2><p class='note'>How many candidates have a peak in each range of {}.{}"
      "</p>\n",
      core::format_bytes(width), report.budget_bytes ? " The dashed line is the budget." : "");
  html += svg_open(axes, "histogram", "Candidates by peak memory") + axis_lines(axes, "peak memory");
  const std::int64_t valid = report.candidates - report.invalid;
  for (std::size_t b = 0; b < report.histogram.size(); ++b) {
    const std::int64_t count = report.histogram[b], begin = from + static_cast<std::int64_t>(b) * width;
    if (count == 0) continue;
    const double left = axes.x(real(begin)), right = axes.x(real(begin + width)), top = axes.y(real(count));
    html += fmt::format(
        "<rect class='bar' x='{:.2f}' y='{:.2f}' width='{:.2f}' height='{:.2f}'><title>{} to {}\n{} candidates "
        "({:.3g}%)</title></rect>\n",
        left, top, std::max(0.5, right - left - 1), axes.bottom - top, core::format_bytes(begin),
        core::format_bytes(begin + width), grouped(count), percent_of(count, valid));
  }
  html += mark(axes, "start-line", "baseline", report.baseline_peak_bytes);
  if (report.budget_bytes) html += mark(axes, "limit", "budget", *report.budget_bytes);
  return html + "</svg></section>\n";
}

std::string pareto_chart(const SweepReport& report) {
  if (report.pareto.empty()) return "";
  const auto extra = [&](std::int64_t cost) {
    return std::max(0.0, percent_of(cost - report.baseline_cost, report.baseline_cost));
  };
  Axes axes;
  axes.x_unit = Unit::bytes;
  axes.y_unit = Unit::percent;
  const double low = real(std::min(report.pareto.front().peak_bytes, report.baseline_peak_bytes));
  const double high = real(std::max(report.pareto.back().peak_bytes, report.baseline_peak_bytes));
  const double margin = std::max(1.0, 0.04 * (high - low));
  axes.x_min = std::max(0.0, low - margin);
  axes.x_max = high + margin;
  axes.y_max = 1.08 * std::max(1.0, extra(report.pareto.front().cost));
  const auto dot = [&](std::string_view css, std::string_view name, std::int64_t peak, std::int64_t cost) {
    return fmt::format(
        "<circle class='point{}' cx='{:.1f}' cy='{:.1f}' r='{}'><title>{}{}\ncost {} ({})</title></circle>\n", css,
        axes.x(real(peak)), axes.y(extra(cost)), css.empty() ? "3.2" : "5", name, core::format_bytes(peak),
        grouped(cost), change(report.baseline_cost, cost));
  };
  std::string path, dots;
  for (const auto& point : report.pareto) {
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", axes.x(real(point.peak_bytes)),
                        axes.y(extra(point.cost)));
    dots += dot("", fmt::format("candidate {}: ", point.index), point.peak_bytes, point.cost);
  }
  std::string html =
      "<section><h2>What memory costs</h2><p class='note'>Extra cost over peak memory of the candidates that no other "
      "one beats in both; the grey dot is the baseline.</p>\n";
  html += svg_open(axes, "pareto", "Extra cost over peak memory") + axis_lines(axes, "peak memory");
  html += fmt::format("<path class='front' d='{}'/>\n{}", path, dots);
  return html + dot(" start", "baseline: ", report.baseline_peak_bytes, report.baseline_cost) + "</svg></section>\n";
}

std::string bytes_cell(std::int64_t bytes) {
  return fmt::format("<td title='{} bytes'>{}</td>", bytes, core::format_bytes(bytes));
}

std::string top_table(const SweepReport& report) {
  if (report.top.empty()) return "";
  std::string rows;
  for (const auto& candidate : report.top) {
    rows += fmt::format("<tr><th>{}</th>{}<td>{}</td><td>{}</td><td>{}</td></tr>\n", candidate.index,
                        bytes_cell(candidate.peak_bytes), change(report.baseline_peak_bytes, candidate.peak_bytes),
                        grouped(candidate.cost), change(report.baseline_cost, candidate.cost));
  }
  return fmt::format(
      "<section><h2>The best</h2><div class='scroll'><table><thead><tr><th>candidate</th><th>peak</th>"
      "<th>against the baseline</th><th>cost</th><th>against the baseline</th></tr></thead><tbody>\n{}</tbody></table>"
      "</div></section>\n",
      rows);
}

std::string quantile_table(const SweepReport& report) {
  if (report.quantiles.empty()) return "";
  std::string rows;
  for (const auto& [name, bytes] : report.quantiles) {
    rows += fmt::format("<tr><th>{}</th>{}<td>{}</td></tr>\n", escaped(name), bytes_cell(bytes),
                        change(report.baseline_peak_bytes, bytes));
  }
  return fmt::format(
      "<section><h2>Numbers</h2><div class='scroll'><table><thead><tr><th></th><th>peak</th><th>against the "
      "baseline</th></tr></thead><tbody>\n{}</tbody></table></div></section>\n",
      rows);
}

std::string tiles(const SweepReport& report) {
  const std::int64_t valid = report.candidates - report.invalid;
  std::string html = "<div class='tiles'>";
  if (!report.top.empty()) {
    const std::int64_t peak = report.top.front().peak_bytes;
    html += tile("Least peak", change(report.baseline_peak_bytes, peak),
                 fmt::format("{} \u2192 {}", core::format_bytes(report.baseline_peak_bytes), core::format_bytes(peak)));
    html += tile("Mean peak", core::format_bytes(static_cast<std::int64_t>(report.mean_peak_bytes)),
                 fmt::format("lower bound {}", core::format_bytes(report.lower_bound_bytes)));
  }
  html += tile("Candidates", grouped(report.candidates), fmt::format("{} of them valid", grouped(valid)));
  if (report.budget_bytes) {
    html += tile("Within the budget", fmt::format("{:.3g}%", percent_of(report.within_budget, valid)),
                 fmt::format("{} of {}", grouped(report.within_budget), core::format_bytes(*report.budget_bytes)));
  }
  return html + "</div>\n";
}

}  // namespace

std::string sweep_report(const SweepReport& report) {
  std::string html = page_begin(report.graph);
  html +=
      fmt::format("<p class='sub'>{} nodes, {} edges \u00b7 {}{}</p>\n", grouped(report.nodes), grouped(report.edges),
                  escaped(report.source), report.device.empty() ? "" : " \u00b7 " + escaped(report.device));
  html += tiles(report) + histogram_chart(report) + pareto_chart(report) + top_table(report) + quantile_table(report);
  return html + page_end(report.version);
}

}  // namespace cairn::pipeline
