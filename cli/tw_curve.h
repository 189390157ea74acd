#pragma once

#include <string>

#include "cairn/cli/arguments.h"
#include "cairn/cli/output.h"

/// What `cairn solve --solver tw` does beside finding one schedule.
namespace cairn::cli {

/// Writes the curve from memory to length of TWRemat(k) as CSV and prints it. Returns the exit code.
int write_tw_curve(const Console& console, const fit::Problem& problem, const solvers::SolveOptions& options,
                   const std::string& path);

/// Writes TWRemat(k), k being the solver's option, to a schedule file step by step, however long it is.
int stream_tw_schedule(const Console& console, const fit::Problem& problem, const solvers::SolveOptions& options,
                       const std::string& path);

}  // namespace cairn::cli
