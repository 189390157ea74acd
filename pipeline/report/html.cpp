#include "cairn/pipeline/report/internal/html.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "cairn/core/text.h"

namespace cairn::pipeline::html {
namespace {

constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark;
  --bg: #f7f7f5; --card: #ffffff; --ink: #1d2127; --soft: #68707b; --line: #e2e3e0; --grid: #ecedea;
  --forward: #3f7cbf; --backward: #e08a3c; --recomputed: #b8408f; --kept: #3d9970; --scratch: #98a1ac;
  --baseline: #9aa2ad; --schedule: #2a6fbb; --budget: #cf3f3f; --good: #2c8a57; --bad: #cf3f3f;
  --class0: #5470c6; --class1: #2f93b0; --class2: #35a08a; --class3: #6aa84f; --class4: #c9a227; --class5: #de7e3b;
  --class6: #c9567c; --class7: #8c64b5; }
@media (prefers-color-scheme: dark) { :root {
  --bg: #14171b; --card: #1c2026; --ink: #e8eaed; --soft: #98a1ac; --line: #2c323a; --grid: #262b32;
  --forward: #5b9be0; --backward: #e69a55; --recomputed: #d668b1; --kept: #52b788; --scratch: #6d7682;
  --baseline: #7d8692; --schedule: #6bb0f5; --budget: #ef6b6b; --good: #5cc48d; --bad: #ef6b6b;
  --class0: #7b93e0; --class1: #4fb0cc; --class2: #55bda6; --class3: #88c46e; --class4: #dcbb4c; --class5: #ec9a5f;
  --class6: #de7a9b; --class7: #a987cf; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 2.5rem 1.25rem; background: var(--bg); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1060px; margin: 0 auto; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0; font-weight: 650; letter-spacing: -0.01em;
  overflow-wrap: anywhere; }
h2 { font-size: 1.02rem; margin: 0 0 .15rem; font-weight: 620; }
.sub, .note, footer { color: var(--soft); }
.sub { margin: .35rem 0 1.6rem; }
.note { margin: 0 0 .9rem; font-size: .88rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 1.15rem 1.3rem 1.2rem;
  margin-top: 1rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 1rem; }
.tiles section { margin: 0; }
.tile-name { font-size: .84rem; color: var(--soft); }
.tile-value { font-size: 1.62rem; font-weight: 640; letter-spacing: -0.015em; line-height: 1.3;
  font-variant-numeric: tabular-nums; }
.tile-note { font-size: .84rem; color: var(--soft); font-variant-numeric: tabular-nums; }
.good { color: var(--good); } .bad { color: var(--bad); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .42rem .2rem .42rem 1.2rem; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
thead th { color: var(--soft); font-weight: 550; font-size: .86rem; }
tbody th { font-weight: 450; }
tbody tr:last-child > * { border-bottom: 0; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font-size: 11.5px; font-family: inherit; font-variant-numeric: tabular-nums; }
.grid { stroke: var(--grid); } .axis { stroke: var(--line); }
.curve { fill: none; stroke-width: 1.6; stroke-linejoin: round; vector-effect: non-scaling-stroke; }
.curve.baseline { stroke: var(--baseline); } .curve.schedule { stroke: var(--schedule); }
.area { fill: var(--schedule); opacity: .13; }
.bar { fill: var(--schedule); opacity: .8; } .bar:hover { opacity: 1; }
.start-line { stroke: var(--baseline); stroke-width: 1.4; }
.limit { stroke: var(--budget); stroke-width: 1.4; stroke-dasharray: 6 4; }
svg text.limit-name { fill: var(--budget); }
svg :is(.limit-name, .arena-name, .bound-name) { paint-order: stroke; stroke: var(--card); stroke-width: 3px; }
.cursor { stroke: var(--soft); stroke-dasharray: 2 3; visibility: hidden; }
.buffer { stroke: var(--card); stroke-width: .5; } .buffer.thin { stroke: none; } .buffer:hover { stroke: var(--ink); stroke-width: 1.6; }
.forward { fill: var(--forward); } .backward { fill: var(--backward); } .recomputed { fill: var(--recomputed); }
.kept { fill: var(--kept); } .scratch { fill: var(--scratch); } .others { fill: var(--soft); opacity: .45; }
.class0 { fill: var(--class0); } .class1 { fill: var(--class1); } .class2 { fill: var(--class2); }
.class3 { fill: var(--class3); } .class4 { fill: var(--class4); } .class5 { fill: var(--class5); }
.class6 { fill: var(--class6); } .class7 { fill: var(--class7); }
.conflict { stroke: var(--bad); stroke-width: 1.8; } .faint { opacity: .25; }
.tight { fill: var(--budget); opacity: .2; pointer-events: none; } .forbidden { fill: var(--ink); opacity: .3; }
.arena { stroke: var(--schedule); stroke-width: 1.4; } svg text.arena-name { fill: var(--schedule); }
.bound { fill: none; stroke: var(--good); stroke-width: 1.4; stroke-dasharray: 2 3; } svg text.bound-name { fill: var(--good); }
.wall { stroke: var(--ink); stroke-width: 1.6; }
.front { fill: none; stroke: var(--schedule); stroke-width: 1.4; opacity: .7; }
.point { fill: var(--schedule); } .point.start { fill: var(--baseline); }
.point.chosen { fill: var(--card); stroke: var(--schedule); stroke-width: 2.4; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.15rem; font-size: .86rem; color: var(--soft);
  margin: 0 0 .6rem; }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: .4rem;
  vertical-align: -1px; }
#tip { position: fixed; pointer-events: none; visibility: hidden; background: var(--ink); color: var(--bg);
  padding: .35rem .6rem; border-radius: 7px; font-size: .84rem; line-height: 1.4; white-space: pre;
  font-variant-numeric: tabular-nums; z-index: 1; }
footer { margin-top: 1.3rem; font-size: .84rem; }
)css";

/// 2500000 -> "2.5M"; for axes.
std::string short_number(double value) {
  static constexpr std::array<std::string_view, 7> kUnits{"", "k", "M", "G", "T", "P", "E"};
  std::size_t unit = 0;
  while (std::abs(value) >= 1000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.4g}{}", value, kUnits[unit]);
}

std::string short_bytes(double bytes) {
  static constexpr std::array<std::string_view, 7> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", bytes, kUnits[unit]);
}

/// The least of 1, 2, 5, 10, ... that divides [0, max] into at most `most` parts.
double decimal_step(double max, int most) {
  double step = std::pow(10, std::floor(std::log10(max / most)));
  for (const double factor : {2.0, 2.5, 2.0}) {
    if (max / step > most) step *= factor;
  }
  return step;
}

/// Ticks at multiples of this divide [0, max] into at most `most` parts.
double tick_step(Unit unit, double max, int most) {
  if (unit != Unit::bytes) return decimal_step(max, most);
  double step = std::max(1.0, std::exp2(std::floor(std::log2(max / most))));
  while (max / step > most) step *= 2;
  return step;
}

std::string tick_text(Unit unit, double value) {
  if (unit == Unit::bytes) return short_bytes(value);
  return unit == Unit::percent ? fmt::format("+{:.4g}%", value) : short_number(value);
}

}  // namespace

std::string page_begin(std::string_view graph) {
  const std::string name = escaped(graph.empty() ? "unnamed graph" : graph);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
      "content='width=device-width, initial-scale=1'><title>{} \u00b7 Cairn</title>\n<style>{}</style></head>\n"
      "<body><main>\n<h1>{}</h1>\n",
      name, kStyle, name);
}

std::string page_end(std::string_view version, std::string_view script) {
  return fmt::format("<footer>Cairn {}</footer>\n</main><div id='tip'></div>\n<script>{}</script></body></html>\n",
                     escaped(version), script);
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return safe;
}

std::string grouped(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, "\u2009");
  return digits;
}

double percent_of(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string change(std::int64_t from, std::int64_t to) {
  if (from == 0) return to == 0 ? "0.0%" : "n/a";
  const double percent = percent_of(to - from, from);
  return fmt::format("{}{:.1f}%", percent < 0 ? "\u2212" : "+", std::abs(percent));
}

std::string axis_lines(const Axes& axes, std::string_view x_name) {
  std::string svg;
  const double y_step = tick_step(axes.y_unit, axes.y_max, 6);
  for (double value = 0; value <= axes.y_max; value += y_step) {
    svg += fmt::format(
        "<line class='grid' x1='{0:.1f}' x2='{1:.1f}' y1='{2:.1f}' y2='{2:.1f}'/><text x='{3:.1f}' y='{4:.1f}' "
        "text-anchor='end'>{5}</text>\n",
        axes.left, axes.right, axes.y(value), axes.left - 9, axes.y(value) + 4, tick_text(axes.y_unit, value));
  }
  const double x_step = tick_step(axes.x_unit, axes.x_max - axes.x_min, 9);
  const double first = std::ceil(axes.x_min / x_step);
  const auto ticks = static_cast<int>((axes.x_max - first * x_step) / x_step + 1e-3);
  for (int tick = 0; tick <= ticks; ++tick) {
    const double value = (first + tick) * x_step;
    svg += fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='middle'>{}</text>\n", axes.x(value), axes.bottom + 18,
                       tick_text(axes.x_unit, value));
  }
  svg += fmt::format("<line class='axis' x1='{0:.1f}' x2='{1:.1f}' y1='{2:.1f}' y2='{2:.1f}'/>", axes.left, axes.right,
                     axes.bottom);
  return svg +
         fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='end'>{}</text>\n", axes.right, axes.bottom + 36, x_name);
}

std::string level_line(const Axes& axes, std::int64_t bytes, std::string_view name, std::string_view css,
                       double share) {
  if (static_cast<double>(bytes) > axes.y_max) return "";
  const double y = axes.y(static_cast<double>(bytes));
  return fmt::format(
      "<line class='{0}' x1='{1:.1f}' x2='{2:.1f}' y1='{3:.1f}' y2='{3:.1f}'/><text class='{0}-name' x='{4:.1f}' "
      "y='{5:.1f}' text-anchor='end'>{6} {7}</text>\n",
      css, axes.left, axes.right, y, axes.left + share * (axes.right - axes.left), y - 5, name,
      core::format_bytes(bytes));
}

std::string budget_line(const Axes& axes, std::optional<std::int64_t> budget_bytes) {
  return budget_bytes ? level_line(axes, *budget_bytes, "budget", "limit") : "";
}

std::string svg_open(const Axes& axes, std::string_view id, std::string_view label) {
  return fmt::format("<svg id='{}' viewBox='0 0 {} {}' role='img' aria-label='{}'>\n", id, axes.width, axes.height,
                     label);
}

std::string tile(std::string_view name, std::string_view value, std::string_view note, std::string_view css) {
  return fmt::format(
      "<section><div class='tile-name'>{}</div><div class='tile-value {}'>{}</div><div "
      "class='tile-note'>{}</div></section>\n",
      name, css, value, note);
}

}  // namespace cairn::pipeline::html
