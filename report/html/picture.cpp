// Draws pictures as SVG files, which need no script.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "cairn/core/support/text.h"
#include "cairn/report/html/report.h"
#include "cairn/report/html/support/words.h"

namespace cairn::report {
namespace {

constexpr std::string_view kPictureStyle = R"css(
text { fill: #5f6772; font: 11.5px system-ui, sans-serif; } .ground { fill: #ffffff; } .axis { stroke: #dfe1de; }
.grid { stroke: #ebecea; } .profile { fill: none; stroke: #858e9a; stroke-width: 1; opacity: 0.55; } .curve { fill: none; stroke: #2468b4; stroke-width: 1.6; stroke-linejoin: round; }
.bound { fill: none; stroke: #23794b; stroke-width: 1.4; stroke-dasharray: 2 3; } .start { stroke: #858e9a; }
.point { fill: #2468b4; } .point.marked { fill: #ffffff; stroke: #2468b4; stroke-width: 2.4; }
.impossible { fill: #5f6772; opacity: 0.13; } text.bound-name { fill: #23794b; stroke: none; } text.found { fill: #2468b4; }
@media (prefers-color-scheme: dark) { text { fill: #a0a9b4; } .ground { fill: #1c2026; } .axis { stroke: #323943; }
.grid { stroke: #272c34; } .curve { stroke: #6bb0f5; } .bound { stroke: #5cc48d; } .point { fill: #6bb0f5; }
.point.marked { fill: #1c2026; stroke: #6bb0f5; } text.bound-name { fill: #5cc48d; } text.found { fill: #6bb0f5; } }
)css";

constexpr double kWidth = 1000, kHeight = 400, kLeft = 66, kRight = 984, kTop = 28, kBottom = 346;

template <class Number>
double real(Number value) {
  return static_cast<double>(value);
}

/// Returns the least distance between marks that divides the range into at most `most` parts. It is a power of two if
/// `binary` is set, else 1, 2 or 5 times a power of ten.
double tick_step(double range, int most, bool binary) {
  if (!(range > 0)) return 1;
  if (binary) return std::exp2(std::ceil(std::log2(range / most)));
  const double power = std::pow(10, std::floor(std::log10(range / most)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power * most >= range) return factor * power;
  }
  return 10 * power;
}

struct ByteUnit {
  std::string_view name;
  double bytes = 1;
};
ByteUnit unit_of(double most) {
  static constexpr std::array<std::string_view, 7> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  double bytes = 1;
  for (; most / bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes *= 1024;
  return {kUnits[unit], bytes};
}

std::string picture_begin(std::string_view label) {
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} {1}' width='{0}' height='{1}' role='img' "
      "aria-label='{2}'>\n<style>{3}</style>\n<rect class='ground' width='{0}' height='{1}'/>\n",
      kWidth, kHeight, label, kPictureStyle);
}

/// Computes the range that the picture shows: x in bytes, y in percent by which the cost is above the baseline's cost.
struct Frame {
  const ReportTradeoff& tradeoff;
  /// The points that no other point equals or beats in both memory and cost, by ascending memory.
  std::vector<ReportPoint> front;
  double x_min = 0, x_max = 1;
  double y_max = 1;
  std::int64_t above = 0;  ///< number of points above y_max

  explicit Frame(const ReportTradeoff& shown) : tradeoff(shown) {
    std::vector<ReportPoint> all = shown.found;
    all.push_back(shown.baseline);
    std::sort(all.begin(), all.end(), [](const ReportPoint& a, const ReportPoint& b) {
      return a.bytes != b.bytes ? a.bytes < b.bytes : a.cost < b.cost;
    });
    for (const ReportPoint& point : all) {
      if (front.empty() || point.cost < front.back().cost) front.push_back(point);
    }
    double low = real(front.front().bytes), high = real(all.back().bytes);
    for (const ReportPoint& point : shown.without_transfers) {
      high = std::max(high, real(point.bytes));
      low = std::min(low, real(point.bytes));
    }
    for (const ReportPoint& point : shown.proved) {  // includes budgets for which only a bound is known
      high = std::max(high, real(point.bytes));
      low = std::min(low, real(point.bytes));
    }
    const double spread = std::max({high - low, 0.02 * high, 1.0});
    if (shown.lower_bound_bytes > 0 && low - real(shown.lower_bound_bytes) < 0.5 * spread)
      low = std::min(low, real(shown.lower_bound_bytes));
    x_min = std::max(0.0, low - 0.05 * spread);
    x_max = high + 0.04 * spread;
    // A few very high points would make the rest of the curve flat, so the range of costs is limited.
    std::vector<double> costs;
    for (const ReportPoint& point : front) costs.push_back(percent(point.cost));
    for (const ReportPoint& point : shown.without_transfers) costs.push_back(percent(point.cost));
    std::sort(costs.begin(), costs.end());
    const double usual = std::max(2.0, 4 * costs[costs.size() / 2]);
    y_max = std::max(0.5, costs.back() > 2 * usual ? usual : costs.back());
    above = std::count_if(costs.begin(), costs.end(), [&](double cost) { return cost > y_max; });
    y_max *= 1.08;
  }
  double percent(std::int64_t cost) const {
    const double base = real(tradeoff.baseline.cost);
    return base > 0 ? 100 * (real(cost) - base) / base : 0;
  }
  double x(double bytes) const { return kLeft + (kRight - kLeft) * (bytes - x_min) / (x_max - x_min); }
  double x(std::int64_t bytes) const { return x(real(bytes)); }
  double y_at(double value) const { return std::max(kTop, kBottom - (kBottom - kTop) * value / y_max); }
  double y(std::int64_t cost) const { return y_at(percent(cost)); }
};

std::string grid_line(double y, const std::string& label) {
  return fmt::format(
      "<line class='grid' x1='{0}' x2='{1}' y1='{2:.1f}' y2='{2:.1f}'/><text x='{3}' y='{4:.1f}' "
      "text-anchor='end'>{5}</text>\n",
      kLeft, kRight, y, kLeft - 9, y + 4, label);
}

std::string axes(const Frame& frame) {
  std::string svg;
  const double y_step = tick_step(frame.y_max, 6, false);
  for (double value = 0; value <= frame.y_max; value += y_step)
    svg += grid_line(frame.y_at(value), fmt::format("{}{:.4g}%", value > 0 ? "+" : "", value));
  const auto [unit, size] = unit_of(frame.x_max);
  const double x_step = size * tick_step((frame.x_max - frame.x_min) / size, 9, true);
  for (double value = std::ceil(frame.x_min / x_step) * x_step; value <= frame.x_max; value += x_step)
    svg += fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='middle'>{:.5g}</text>\n", frame.x(value), kBottom + 18,
                       value / size);
  svg += fmt::format("<line class='axis' x1='{0}' x2='{1}' y1='{2}' y2='{2}'/>", kLeft, kRight, kBottom);
  svg += fmt::format("<text x='{}' y='{}' text-anchor='end'>{} ({})</text>\n", kRight, kBottom + 38,
                     frame.tradeoff.memory, unit);
  return svg + fmt::format("<text x='8' y='{}'>extra cost (%)</text>\n", kTop - 12);
}

/// Draws the schedules without transfers as a dashed line.
std::string second_curve(const Frame& frame) {
  std::vector<ReportPoint> points = frame.tradeoff.without_transfers;
  if (points.empty()) return "";
  std::ranges::stable_sort(points, {}, &ReportPoint::bytes);
  std::string path = fmt::format("M{:.1f} {}", frame.x(points.front().bytes), kTop);
  for (std::size_t k = 0; k < points.size(); ++k)
    path += fmt::format("V{:.1f}H{:.1f}", frame.y(points[k].cost),
                        k + 1 < points.size() ? frame.x(points[k + 1].bytes) : kRight);
  return fmt::format("<path class='profile' stroke-dasharray='6 4' d='{}'><title>without transfers</title></path>\n",
                     path);
}

}  // namespace

std::string tradeoff_svg(const ReportTradeoff& tradeoff) {
  const Frame frame(tradeoff);
  std::string svg = picture_begin("Cost over memory");
  if (real(tradeoff.lower_bound_bytes) > frame.x_min)
    svg += fmt::format(
        "<rect class='impossible' x='{}' y='{}' width='{:.1f}' height='{}'><title>no schedule has less than "
        "{}</title></rect>\n",
        kLeft, kTop, frame.x(tradeoff.lower_bound_bytes) - kLeft, kBottom - kTop,
        core::format_bytes(tradeoff.lower_bound_bytes));
  svg += axes(frame);
  const double baseline = frame.x(tradeoff.baseline.bytes);
  svg += fmt::format(
      "<line class='start' x1='{0:.1f}' x2='{0:.1f}' y1='{1}' y2='{2}'/><text x='{3:.1f}' y='{4}' "
      "text-anchor='end'>baseline</text>\n",
      baseline, kTop, kBottom, baseline - 5, kTop + 10);
  // A bound for a budget also holds for every smaller budget, so the line continues to the left until the next bound.
  std::vector<ReportPoint> proved = tradeoff.proved;
  std::sort(proved.begin(), proved.end(), [](const ReportPoint& a, const ReportPoint& b) { return a.bytes > b.bytes; });
  std::string bound;
  for (const ReportPoint& point : proved)
    bound += fmt::format("{}{:.1f}{}{:.1f}", bound.empty() ? "M" : "H", frame.x(point.bytes), bound.empty() ? " " : "V",
                         frame.y(point.cost));
  if (!bound.empty()) svg += fmt::format("<path class='bound' d='{}H{}'/>\n", bound, kLeft);
  // A schedule of the front is the cheapest one for every budget from its own memory up to the memory of the next
  // cheaper schedule.
  std::string curve = fmt::format("M{:.1f} {}", frame.x(frame.front.front().bytes), kTop);
  for (std::size_t k = 0; k < frame.front.size(); ++k)
    curve += fmt::format("V{:.1f}H{:.1f}", frame.y(frame.front[k].cost),
                         k + 1 < frame.front.size() ? frame.x(frame.front[k + 1].bytes) : kRight);
  svg += fmt::format("<path class='curve' d='{}'/>\n", curve);
  svg += second_curve(frame);
  std::string marked;
  for (const ReportPoint& point : tradeoff.found) {
    const double x = frame.x(point.bytes), y = frame.y(point.cost);
    svg +=
        fmt::format("<circle class='point{}' cx='{:.1f}' cy='{:.1f}' r='{}'><title>{}, cost {} ({})</title></circle>\n",
                    point.marked ? " marked" : "", x, y, point.marked ? 5.5 : 3.2, core::format_bytes(point.bytes),
                    point.cost, html::change(tradeoff.baseline.cost, point.cost));
    if (point.marked)
      marked += fmt::format("<text class='found' x='{:.1f}' y='{:.1f}'>{}: {}, {}</text>\n", x + 10,
                            std::max(y - 9, kTop + 24), point.name, core::format_bytes(point.bytes),
                            html::change(tradeoff.baseline.cost, point.cost));
  }
  svg += marked;
  const double names = std::min(kRight, baseline) - 12;
  svg += fmt::format(
      "<text class='found' x='{0:.1f}' y='{1}' text-anchor='end'>schedules found</text>\n"
      "<text class='bound-name' x='{0:.1f}' y='{2}' text-anchor='end'>{3}</text>\n"
      "<text x='{0:.1f}' y='{4}' text-anchor='end'>{5}</text>\n",
      names, kTop + 32, kTop + 50,
      !tradeoff.without_transfers.empty() ? "dashed: without transfers"
      : proved.empty()                    ? ""
                                          : "proved: no schedule costs less",
      kTop + 68,
      frame.above > 0 ? fmt::format("{} {} above the picture", frame.above, frame.above > 1 ? "points" : "point") : "");
  return svg + "</svg>\n";
}

std::string profiles_svg(const std::vector<ReportProfile>& profiles) {
  std::int64_t most = 1;
  std::size_t points = 2;
  for (const ReportProfile& profile : profiles) {
    for (const std::int64_t bytes : profile.bytes) most = std::max(most, bytes);
    points = std::max(points, profile.bytes.size());
  }
  const double y_max = 1.04 * real(most);
  const auto y = [&](double bytes) { return kBottom - (kBottom - kTop) * bytes / y_max; };
  const auto x = [&](std::size_t k) { return kLeft + (kRight - kLeft) * real(k) / real(points - 1); };
  std::string svg = picture_begin("Memory profiles");
  const auto [unit, size] = unit_of(y_max);
  const double step = size * tick_step(y_max / size, 8, true);
  for (double value = 0; value <= y_max; value += step) svg += grid_line(y(value), fmt::format("{:.5g}", value / size));
  svg += fmt::format(
      "<text x='8' y='{}'>memory ({})</text>\n<text x='{}' y='{}' text-anchor='end'>valleys and peaks "
      "in their order</text>\n",
      kTop - 12, unit, kRight, kBottom + 38);
  for (std::size_t i = profiles.size(); i-- > 0;) {
    std::string path;
    for (std::size_t k = 0; k < profiles[i].bytes.size(); ++k)
      path += fmt::format("{}{:.1f} {:.1f}", k == 0 ? "M" : "L", x(k), y(real(profiles[i].bytes[k])));
    if (profiles[i].bytes.size() == 1) path += fmt::format("H{}", kRight);
    svg += fmt::format("<path class='{}' d='{}'><title>{}</title></path>\n", i == 0 ? "curve" : "profile", path,
                       profiles[i].name);
  }
  return svg + "</svg>\n";
}

namespace {

/// Draws copies as bars between the heights `top` and `bottom`. If there are more than kMostBars copies, draws the
/// longest ones.
std::string bars(std::vector<ReportSpan> copies, const ReportTransfers& transfers, const char* style, double top,
                 double bottom) {
  constexpr std::size_t kMostBars = 3000;
  constexpr double kLeast = 0.6;  // least width of a bar, so that it can be seen
  std::ranges::stable_sort(copies, [](const auto& a, const auto& b) { return a.end - a.begin > b.end - b.begin; });
  if (copies.size() > kMostBars) copies.resize(kMostBars);
  const double scale = (kRight - kLeft) / std::max(1.0, real(transfers.end));
  std::string svg;
  for (const ReportSpan& copy : copies)
    svg += fmt::format(
        "<rect class='{}' x='{:.2f}' y='{:.1f}' width='{:.2f}' height='{:.1f}'><title>{}: {}</title></rect>\n", style,
        kLeft + scale * real(copy.begin), top, std::max(kLeast, scale * real(copy.end - copy.begin)), bottom - top,
        html::escaped(copy.name), html::cost_text(copy.end - copy.begin, transfers.cost_unit));
  return svg;
}

}  // namespace

std::string transfers_svg(const ReportTransfers& transfers) {
  constexpr double kLane = 22, kFloor = kBottom - 3 * kLane;
  std::int64_t most = 1;
  for (const auto& [time, bytes] : transfers.host) most = std::max(most, bytes);
  const double y_max = 1.04 * real(most), end = std::max(1.0, real(transfers.end));
  const auto y = [&](double bytes) { return kFloor - (kFloor - kTop) * bytes / y_max; };
  const auto x = [&](std::int64_t time) { return kLeft + (kRight - kLeft) * real(time) / end; };
  std::string svg = picture_begin("Host memory and copies over time");
  svg += bars(transfers.waits, transfers, "impossible", kTop, kBottom);
  const auto [unit, size] = unit_of(y_max);
  const double step = size * tick_step(y_max / size, 5, true);
  for (double value = 0; value <= y_max; value += step) svg += grid_line(y(value), fmt::format("{:.5g}", value / size));
  std::string curve = fmt::format("M{} {:.1f}", kLeft, y(0));
  for (const auto& [time, bytes] : transfers.host) curve += fmt::format("H{:.1f}V{:.1f}", x(time), y(real(bytes)));
  svg += fmt::format("<path class='curve' d='{}H{}'/>\n", curve, kRight);
  const auto lane = [&](int k, std::string_view name, const std::vector<ReportSpan>& copies) {
    const double bottom = kFloor + (k + 1) * 1.4 * kLane;
    svg += fmt::format("<text x='{}' y='{:.1f}' text-anchor='end'>{}</text>\n", kLeft - 9, bottom - 5, name);
    svg += bars(copies, transfers, "point", bottom - kLane + 4, bottom);
  };
  lane(0, "to host", transfers.to_host);
  lane(1, "to device", transfers.to_device);
  svg += fmt::format("<line class='axis' x1='{0}' x2='{1}' y1='{2}' y2='{2}'/>", kLeft, kRight, kBottom);
  svg += fmt::format(
      "<text x='8' y='{}'>host memory ({})</text>\n<text x='{}' y='{}'>0</text>\n<text x='{}' y='{}' "
      "text-anchor='end'>{}{}</text>\n",
      kTop - 12, unit, kLeft, kBottom + 18, kRight, kBottom + 18, html::cost_text(transfers.end, transfers.cost_unit),
      transfers.waits.empty() ? "" : "; grey: a step waits for a copy");
  return svg + "</svg>\n";
}

std::string losses_svg(const ReportLosses& losses) {
  double most = 1e-12;
  for (const double loss : losses.training) most = std::max(most, loss);
  for (const auto& [step, loss] : losses.tests) most = std::max(most, loss);
  const double y_max = 1.04 * most, steps = std::max(1.0, real(losses.steps));
  const auto y = [&](double loss) { return kBottom - (kBottom - kTop) * loss / y_max; };
  const auto x = [&](double step) { return kLeft + (kRight - kLeft) * step / steps; };
  std::string svg = picture_begin("Loss over the steps of a training");
  for (double value = 0, by = tick_step(y_max, 6, false); value <= y_max; value += by)
    svg += grid_line(y(value), fmt::format("{:.4g}", value));
  for (double step = 0, by = tick_step(steps, 9, false); step <= steps; step += by)
    svg += fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='middle'>{:.6g}</text>\n", x(step), kBottom + 18, step);
  svg += fmt::format("<line class='axis' x1='{0}' x2='{1}' y1='{2}' y2='{2}'/>", kLeft, kRight, kBottom);
  svg += fmt::format("<text x='{}' y='{}' text-anchor='end'>step</text>\n<text x='8' y='{}'>loss</text>\n", kRight,
                     kBottom + 38, kTop - 12);
  std::string curve;
  for (std::size_t k = 0; k < losses.training.size(); ++k)
    curve += fmt::format("{}{:.1f} {:.1f}", curve.empty() ? "M" : "L",
                         x((real(k) + 0.5) * steps / real(losses.training.size())), y(losses.training[k]));
  svg += fmt::format("<path class='curve' d='{}'/>\n", curve);
  for (const auto& [step, loss] : losses.tests)
    svg += fmt::format(
        "<circle class='point marked' cx='{:.1f}' cy='{:.1f}' r='5.5'><title>test after step {}: "
        "{:.4f}</title></circle>\n",
        x(real(step)), y(loss), step, loss);
  return svg + "</svg>\n";
}

}  // namespace cairn::report
