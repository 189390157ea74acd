#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/remat/kumar/tw_remat.h"

/// Two outputs of the solver `tw`: the curve of all values of its parameter k, and a schedule that is written to a file
/// without being stored in memory.
namespace cairn::pipeline {

/// Returns the curve as CSV with a header and one line per point: k, length, steps, peak_bytes, cost, retained_steps,
/// retained_cost. Unknown values are empty.
std::string tw_curve_csv(const std::vector<solvers::TwPoint>& points);

/// Writes TWRemat(options.k) to a schedule file step by step, so that the schedule need not fit into memory
/// (solvers::stream_tw_remat()).
solvers::TwPoint stream_tw_schedule(const core::Graph& graph, const solvers::TwRematOptions& options,
                                    const std::string& path);

}  // namespace cairn::pipeline
