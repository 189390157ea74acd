#include "cairn/pipeline/report/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "cairn/core/profile.h"
#include "cairn/core/text.h"
#include "cairn/pipeline/report/internal/charts.h"
#include "cairn/pipeline/report/internal/html.h"

namespace cairn::pipeline {
namespace {

using namespace html;

// --- charts --------------------------------------------------------------------------------------------------------

double end_time(const ReportRun& run) {
  return run.cost > 0 ? static_cast<double>(run.cost) : static_cast<double>(run.steps);
}

/// The largest value that a chart about bytes must show, with room above.
double bytes_top(std::int64_t most, const ReportData& data) {
  if (data.budget_bytes && *data.budget_bytes < 2 * most) most = std::max(most, *data.budget_bytes);
  return std::max(1.0, 1.06 * static_cast<double>(most));
}

std::string memory_chart(const ReportData& data) {
  if (data.baseline.memory.bytes.empty() || data.scheduled.memory.bytes.empty()) return "";
  const MemoryCurve baseline = thinned(data.baseline.memory), scheduled = thinned(data.scheduled.memory);
  const double baseline_end = end_time(data.baseline), scheduled_end = end_time(data.scheduled);
  Axes axes;
  axes.x_max = std::max({baseline_end, scheduled_end, 1.0});
  axes.y_max = bytes_top(std::max(*std::max_element(baseline.bytes.begin(), baseline.bytes.end()),
                                  *std::max_element(scheduled.bytes.begin(), scheduled.bytes.end())),
                         data);
  const std::string path = step_path(axes, scheduled, scheduled_end);
  std::string html =
      "<section><h2>Memory over time</h2><p class='note'>Bytes of the tensors that are alive; the longer curve pays in "
      "time for what it saves in memory.</p><div class='legend'><span><i style='background:var(--baseline)'></i>"
      "baseline</span><span><i style='background:var(--schedule)'></i>schedule</span></div>\n";
  html += svg_open(axes, "memory", "Memory over time of baseline and schedule");
  html += axis_lines(axes, data.scheduled.cost > 0 ? "time (cost)" : "step");
  html += fmt::format("<path class='area' d='{}V{:.1f}H{:.1f}Z'/>\n", path, axes.bottom, axes.left);
  html += fmt::format("<path class='curve baseline' d='{}'/>\n", step_path(axes, baseline, baseline_end));
  html += fmt::format("<path class='curve schedule' d='{}'/>\n", path);
  html += budget_line(axes, data.budget_bytes);
  const std::array<NamedCurve, 2> curves{
      {{"baseline", &baseline, baseline_end}, {"schedule", &scheduled, scheduled_end}}};
  html += curve_cursor(axes) + "</svg>\n" + curve_data(axes, curves);
  return html + "</section>\n";
}

std::string buffer_text(const ReportBuffer& buffer) {
  return fmt::format("{}\n{}, {}\nsteps {} to {}\noffset {}", escaped(buffer.name), kind_name(buffer.kind),
                     core::format_bytes(buffer.size), buffer.first, buffer.last, grouped(buffer.offset));
}

std::string plan_chart(const ReportData& data) {
  if (data.buffers.empty()) return "";
  Axes axes;
  axes.height = 460;
  axes.bottom = 420;
  axes.x_max = static_cast<double>(std::max<std::int64_t>(1, data.scheduled.steps));
  axes.y_max = bytes_top(data.arena_bytes, data);
  std::string html = "<section><h2>Where every tensor lives</h2>";
  html += fmt::format("<p class='note'>Address over time: one rectangle a buffer of the arena ({}).{}</p>",
                      core::format_bytes(data.arena_bytes), rectangles_note(data.buffers.size()));
  html += "<div class='legend'>";
  for (std::size_t k = 0; k < 5; ++k) {
    const auto kind = static_cast<ReportBuffer::Kind>(k);
    if (std::none_of(data.buffers.begin(), data.buffers.end(), [&](const auto& b) { return b.kind == kind; })) continue;
    html += fmt::format("<span><i style='background:var(--{0})'></i>{0}</span>", kind_name(kind));
  }
  html += "</div>\n" + svg_open(axes, "plan", "Address over time of every buffer");
  html += axis_lines(axes, "step");
  std::vector<Rectangle> rectangles;
  for (const ReportBuffer& b : data.buffers) {
    rectangles.push_back({b.first, std::min(b.last + 1, data.scheduled.steps), b.offset, b.size});
  }
  html += rectangles_svg(
      axes, rectangles, [&](std::size_t i) { return std::string(kind_name(data.buffers[i].kind)); },
      [&](std::size_t i) { return buffer_text(data.buffers[i]); });
  return html + budget_line(axes, data.budget_bytes) + "</svg></section>\n";
}

std::string pareto_chart(const ReportData& data) {
  if (data.pareto.empty()) return "";
  using Point = ReportData::ParetoPoint;
  std::vector<Point> points = data.pareto;
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::pair(a.peak_bytes, a.cost) < std::pair(b.peak_bytes, b.cost);
  });
  const Point baseline{data.baseline.predicted_peak_bytes, data.baseline.cost};
  const Point chosen{data.scheduled.predicted_peak_bytes, data.scheduled.cost};
  const auto peak = [](const Point& point) { return static_cast<double>(point.peak_bytes); };
  const auto extra = [&](const Point& point) {
    return std::max(0.0, percent_of(point.cost - baseline.cost, baseline.cost));
  };

  Axes axes{.x_max = std::max({1.0, peak(baseline), peak(chosen)}), .y_max = std::max(1.0, extra(chosen))};
  axes.x_unit = Unit::bytes;
  axes.y_unit = Unit::percent;
  for (const Point& point : points) {
    axes.x_max = std::max(axes.x_max, peak(point));
    axes.y_max = std::max(axes.y_max, extra(point));
  }
  axes.x_max *= 1.04;
  axes.y_max *= 1.08;

  const auto dot = [&](std::string_view css, double radius, std::string_view name, const Point& point) {
    return fmt::format(
        "<circle class='point{}' cx='{:.1f}' cy='{:.1f}' r='{}'><title>{}{}\ncost {} ({})</title></circle>\n", css,
        axes.x(peak(point)), axes.y(extra(point)), radius, name, core::format_bytes(point.peak_bytes),
        grouped(point.cost), change(baseline.cost, point.cost));
  };
  // The line joins the points that no other one beats in both respects.
  std::string path, dots;
  double least = std::numeric_limits<double>::infinity();
  for (const Point& point : points) {
    dots += dot("", 3.2, "", point);
    if (extra(point) >= least) continue;
    least = extra(point);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", axes.x(peak(point)), axes.y(extra(point)));
  }
  std::string html =
      "<section><h2>What memory costs</h2><p class='note'>Extra cost over peak memory of the schedules that were "
      "found; "
      "the ring is this one, the grey dot the baseline.</p>\n";
  html += svg_open(axes, "pareto", "Extra cost over peak memory") + axis_lines(axes, "peak memory");
  html += fmt::format("<path class='front' d='{}'/>\n{}", path, dots);
  html += dot(" start", 5, "baseline: ", baseline) + dot(" chosen", 5.5, "schedule: ", chosen);
  return html + "</svg></section>\n";
}

// --- words and numbers ---------------------------------------------------------------------------------------------

std::string tiles(const ReportData& data) {
  const ReportRun &before = data.baseline, &after = data.scheduled;
  const bool fits = !data.budget_bytes || after.predicted_peak_bytes <= *data.budget_bytes;
  std::string html = "<div class='tiles'>";
  html += tile("Peak memory", change(before.predicted_peak_bytes, after.predicted_peak_bytes),
               fmt::format("{} \u2192 {}", core::format_bytes(before.predicted_peak_bytes),
                           core::format_bytes(after.predicted_peak_bytes)));
  html += tile("Cost", change(before.cost, after.cost),
               fmt::format("{} of {} steps recompute", grouped(after.recomputed), grouped(after.steps)));
  if (data.budget_bytes) {
    html += tile("Budget", core::format_bytes(*data.budget_bytes), fits ? "met" : "exceeded", fits ? "" : "bad");
  }
  if (data.identical) {
    html += tile("Results", *data.identical ? "identical" : "different",
                 data.compared.empty() ? "every output, bit by bit" : escaped(data.compared),
                 *data.identical ? "good" : "bad");
  }
  return html + "</div>\n";
}

std::string bytes_cell(std::optional<std::int64_t> bytes) {
  if (!bytes) return "<td>\u2013</td>";
  return fmt::format("<td title='{} bytes'>{}</td>", *bytes, core::format_bytes(*bytes));
}

std::string table(const ReportData& data) {
  const ReportRun &before = data.baseline, &after = data.scheduled;
  std::string rows;
  const auto row = [&rows](std::string_view name, std::string_view cells) {
    rows += fmt::format("<tr><th>{}</th>{}</tr>\n", name, cells);
  };
  const auto bytes_row = [&](std::string_view name, std::optional<std::int64_t> from, std::optional<std::int64_t> to) {
    row(name,
        bytes_cell(from) + bytes_cell(to) + fmt::format("<td>{}</td>", from && to ? change(*from, *to) : "\u2013"));
  };
  const auto number_row = [&](std::string_view name, std::int64_t from, std::int64_t to, std::string_view difference) {
    row(name, fmt::format("<td>{}</td><td>{}</td><td>{}</td>", grouped(from), grouped(to), difference));
  };
  const auto seconds = [](std::optional<double> s) { return s ? fmt::format("{:.3f} s", *s) : "\u2013"; };

  bytes_row("Predicted peak", before.predicted_peak_bytes, after.predicted_peak_bytes);
  bytes_row("Planned arena", before.planned_bytes, after.planned_bytes);
  bytes_row("Measured high-water mark", before.measured_peak_bytes, after.measured_peak_bytes);
  number_row(data.cost_unit.empty() ? "Cost" : fmt::format("Cost, {}", escaped(data.cost_unit)), before.cost,
             after.cost, change(before.cost, after.cost));
  row("Time", fmt::format("<td>{}</td><td>{}</td><td>{}</td>", seconds(before.seconds), seconds(after.seconds),
                          before.seconds && after.seconds && *before.seconds > 0
                              ? fmt::format("\u00d7{:.2f}", *after.seconds / *before.seconds)
                              : "\u2013"));
  number_row("Steps", before.steps, after.steps, change(before.steps, after.steps));
  number_row("Recomputed operations", before.recomputed, after.recomputed, "");
  row("Resident (weights, gradients, state)",
      bytes_cell(data.resident_bytes) + bytes_cell(data.resident_bytes) + "<td></td>");
  return fmt::format(
      "<section><h2>Numbers</h2><p class='note'>Resident bytes stand beside the budget: they are there under every "
      "schedule.</p><div class='scroll'><table><thead><tr><th></th><th>baseline</th><th>schedule</th><th>change</th>"
      "</tr></thead><tbody>\n{}</tbody></table></div></section>\n",
      rows);
}

}  // namespace

MemoryCurve memory_curve(const core::Graph& graph, const core::Schedule& schedule) {
  const std::vector<std::int64_t> profile = core::Evaluator(graph).profile(schedule.steps);
  std::int64_t cost = 0;
  for (const core::NodeId v : schedule.steps) cost += graph.cost(v);
  MemoryCurve curve;
  double now = 0;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const double duration = cost > 0 ? static_cast<double>(graph.cost(schedule.steps[i])) : 1.0;
    curve.time.insert(curve.time.end(), {now, now + duration});
    curve.bytes.insert(curve.bytes.end(), {profile[2 * i + 1], profile[2 * i + 2]});
    now += duration;
  }
  return curve;
}

std::vector<ReportBuffer> report_buffers(const core::Graph& graph, const core::Schedule& schedule,
                                         const core::Plan& plan) {
  std::vector<std::uint8_t> done(static_cast<std::size_t>(graph.node_count()), 0), again;
  for (const core::Lifetime& life : core::lifetimes(graph, schedule)) {
    again.push_back(done[life.node]);
    done[life.node] = 1;
  }
  std::vector<ReportBuffer> buffers;
  buffers.reserve(plan.buffers.size());
  for (const core::Buffer& buffer : plan.buffers) {
    using Kind = ReportBuffer::Kind;
    const bool recomputed = buffer.first >= 0 && buffer.first < schedule.length() && again[buffer.first] != 0;
    const Kind kind = buffer.scratch                     ? Kind::scratch
                      : buffer.last >= schedule.length() ? Kind::kept
                      : recomputed                       ? Kind::recomputed
                      : graph.backward(buffer.node)      ? Kind::backward
                                                         : Kind::forward;
    buffers.push_back({graph.name(buffer.node), kind, buffer.first, std::min(buffer.last, schedule.length() - 1),
                       buffer.offset, buffer.size});
  }
  return buffers;
}

std::string html_report(const ReportData& data) {
  std::string html = page_begin(data.graph);
  html += fmt::format("<p class='sub'>{} nodes, {} edges \u00b7 solver {}{}</p>\n", grouped(data.nodes),
                      grouped(data.edges), escaped(data.solver),
                      data.device.empty() ? "" : " \u00b7 " + escaped(data.device));
  for (const std::string& note : data.notes) html += fmt::format("<p class='note'>{}</p>\n", escaped(note));
  html += tiles(data) + memory_chart(data) + plan_chart(data) + pareto_chart(data) + table(data);
  return html + page_end(data.version, kCurveScript);
}

}  // namespace cairn::pipeline
