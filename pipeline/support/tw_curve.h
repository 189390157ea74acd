#pragma once

#include <string>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/remat/kumar/tw_remat.h"

/// Two outputs of the solver `tw`: the curve over its parameter k, and a schedule that is written step by step.
namespace cairn::pipeline {

/// Returns CSV with a header and a line per point: k, length, steps, peak_bytes, cost, retained_steps, retained_cost.
/// Unknown values are empty.
std::string tw_curve_csv(const std::vector<solvers::TwPoint>& points);

/// Writes the schedule TWRemat(options.k) to a file step by step (solvers::stream_tw_remat()), because it may not fit
/// into memory.
solvers::TwPoint stream_tw_schedule(const core::Graph& graph, const solvers::TwRematOptions& options,
                                    const std::string& path);

}  // namespace cairn::pipeline
