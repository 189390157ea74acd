#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cairn::pipeline {

/// What a sweep over many schedules of one graph found. Empty lists leave their picture or table out.
struct SweepReport {
  std::string graph;    ///< its name
  std::string source;   ///< of the candidates, in words
  std::string device;   ///< what it ran on; may be empty
  std::string version;  ///< of Cairn; may be empty
  std::int64_t nodes = 0, edges = 0;
  std::int64_t candidates = 0, invalid = 0;
  std::int64_t baseline_peak_bytes = 0, baseline_cost = 0;
  std::int64_t lower_bound_bytes = 0;
  std::optional<std::int64_t> budget_bytes;
  std::int64_t within_budget = 0;  ///< valid candidates
  double mean_peak_bytes = 0;

  struct Candidate {
    std::int64_t peak_bytes = 0;
    std::int64_t cost = 0;
    std::int64_t index = 0;
  };
  std::vector<Candidate> top;     ///< best first
  std::vector<Candidate> pareto;  ///< by ascending peak, descending cost

  /// Peaks: counts[b] of them in [from + b * width, from + (b + 1) * width) bytes.
  std::int64_t histogram_from = 0, histogram_width = 1;
  std::vector<std::int64_t> histogram;
  std::vector<std::pair<std::string, std::int64_t>> quantiles;  ///< name and bytes
};

/// One self-contained HTML page: no network, light and dark.
std::string sweep_report(const SweepReport& report);

}  // namespace cairn::pipeline
