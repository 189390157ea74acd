#pragma once

#include <string>

#include "cairn/cli/arguments.h"
#include "cairn/cli/output.h"

/// Implements --sweep and --stream, two options of `cairn solve --solver tw`.
namespace cairn::cli {

/// Computes length and memory of the schedules of TWRemat(k) for many k, writes this curve as CSV, and prints it.
/// Returns the exit code.
int write_tw_curve(const Console& console, const fit::Problem& problem, const solvers::SolveOptions& options,
                   const std::string& path);

/// Writes the schedule of TWRemat(k) to a file step by step, because it may not fit into memory. k is the solver's
/// option. Returns the exit code.
int stream_tw_schedule(const Console& console, const fit::Problem& problem, const solvers::SolveOptions& options,
                       const std::string& path);

}  // namespace cairn::cli
