#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cairn::pipeline {

/// What is known of the curve from memory to cost of one graph.
struct ParetoReport {
  std::string graph;    ///< its name
  std::string solver;   ///< its name
  std::string version;  ///< of Cairn; may be empty
  std::int64_t nodes = 0, edges = 0;
  std::int64_t baseline_peak_bytes = 0, baseline_cost = 0;
  std::int64_t lower_bound_bytes = 0;  ///< no schedule has less
  double seconds = 0;                  ///< of the search

  struct Point {
    std::int64_t budget_bytes = 0;
    std::string status;
    std::int64_t lower_bound_cost = 0;  ///< of every schedule within the budget
    bool known = false;                 ///< whether there is a schedule, which the rest is about
    std::int64_t memory_bytes = 0, peak_bytes = 0, cost = 0, recomputed = 0;
    double gap_pct = 0;
  };
  std::vector<Point> points;        ///< by descending budget
  std::optional<std::size_t> knee;  ///< of points
  std::string knee_definition;
  bool peak_only = false;  ///< budgets are on peaks, nothing is planned
};

/// The picture alone, an SVG file: extra cost over memory as steps, and what is proved of it.
std::string pareto_svg(const ParetoReport& report);
/// One self-contained HTML page: no network, light and dark.
std::string pareto_report(const ParetoReport& report);

}  // namespace cairn::pipeline
