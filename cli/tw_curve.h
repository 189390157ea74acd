#pragma once

#include <string>

#include "cairn/cli/arguments.h"
#include "cairn/cli/output.h"

/// What `cairn solve --solver tw` can do in addition to finding one schedule.
namespace cairn::cli {

/// Writes a curve as CSV and prints it. The curve shows the length of the schedule TWRemat(k) against its memory.
/// Returns the exit code.
int write_tw_curve(const Console& console, const fit::Problem& problem, const solvers::SolveOptions& options,
                   const std::string& path);

/// Writes the schedule TWRemat(k) to a file step by step, so that it need not fit into memory. k is the solver's
/// option. Returns the exit code.
int stream_tw_schedule(const Console& console, const fit::Problem& problem, const solvers::SolveOptions& options,
                       const std::string& path);

}  // namespace cairn::cli
