#pragma once

#include <string>

#include "cairn/cli/arguments.h"
#include "cairn/cli/output.h"

/// Implements --sweep and --stream, two options of `cairn solve --solver tw`.
namespace cairn::cli {

/// Computes the length and the memory of the schedules of TWRemat(k), the algorithm of the solver `tw`, for many values
/// of its parameter k. Writes these as CSV to `path` and prints them. Returns the exit code.
int write_tw_curve(const Console& console, const fit::Problem& problem, const solvers::SolveOptions& options,
                   const std::string& path);

/// Writes the schedule of TWRemat(k), the algorithm of the solver `tw`, to a file. Writes step by step, because the
/// schedule may not fit into memory. k is an option of the solver. Returns the exit code.
int stream_tw_schedule(const Console& console, const fit::Problem& problem, const solvers::SolveOptions& options,
                       const std::string& path);

}  // namespace cairn::cli
