#include "cairn/report/html/support/words.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "cairn/core/support/text.h"

namespace cairn::report {

std::string cost_unit_of(const core::Graph& graph) { return core::to_string(graph.cost_unit()); }

namespace html {

std::string grouped(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string change(std::int64_t from, std::int64_t to) {
  if (from == 0) return to == 0 ? "0.0%" : "\u2013";
  const double percent = 100 * static_cast<double>(to - from) / static_cast<double>(from);
  return fmt::format("{}{:.1f}%", percent < 0 ? "\u2212" : "+", std::abs(percent));
}

std::string share(std::int64_t part, std::int64_t whole) {
  return fmt::format("{:.3g}%", whole == 0 ? 0.0 : 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string cost_text(std::int64_t cost, const std::string& unit) {
  if (unit != "ns") return grouped(cost) + (unit.empty() ? "" : " " + unit);
  static constexpr std::array<std::pair<double, const char*>, 4> kUnits{
      {{1e9, "s"}, {1e6, "ms"}, {1e3, "\u00b5s"}, {1, "ns"}}};
  const auto value = static_cast<double>(cost);
  for (const auto& [size, name] : kUnits) {
    if (std::abs(value) >= size) return fmt::format("{:.4g} {}", value / size, name);
  }
  return "0 ns";
}

std::string from_to(std::int64_t from_bytes, std::int64_t to_bytes) {
  return fmt::format("{} \u2192 {}", core::format_bytes(from_bytes), core::format_bytes(to_bytes));
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : core::printable(text)) {
    if (c == '&') {
      safe += "&amp;";
    } else if (c == '<') {
      safe += "&lt;";
    } else {
      safe += c;
    }
  }
  return safe;
}

Report of_graph(std::string command, const core::Graph& graph, const std::string& name) {
  Report page;
  page.title = name.empty() ? "unnamed graph" : name;
  page.command = std::move(command);
  page.graph = graph;
  page.cost_unit = cost_unit_of(graph);
  page.summary = fmt::format("{} nodes, {} edges", grouped(graph.node_count()), grouped(graph.edge_count()));
  page.schedules.push_back({"baseline", core::baseline_schedule(graph), {}});
  return page;
}

}  // namespace html
}  // namespace cairn::report
