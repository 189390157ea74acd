#pragma once

#include <string>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/remat/kumar/tw_remat.h"

/// These functions write two outputs of the solver `tw`, whose parameter k trades memory for steps: the curve of length
/// and memory over k, and the schedule for one k.
namespace cairn::pipeline {

/// Returns CSV with a header and a line for each point: k, length, steps, peak_bytes, cost, retained_steps,
/// retained_cost (see solvers::TwPoint). Unknown values are empty.
std::string tw_curve_csv(const std::vector<solvers::TwPoint>& points);

/// Writes the schedule TWRemat(options.k) to a file step by step (solvers::stream_tw_remat()), because it may not fit
/// into memory.
solvers::TwPoint stream_tw_schedule(const core::Graph& graph, const solvers::TwRematOptions& options,
                                    const std::string& path);

}  // namespace cairn::pipeline
