#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/runtime/executor.h"
#include "cairn/runtime/internal/liveness.h"
#include "cairn/runtime/program.h"

/// What the executors of all machines share.
namespace cairn::runtime {

/// Throws InputError where an instruction reaches outside the arena or names no resident, or where sentinels are asked
/// for and the program has no guards. O(T + operands).
void check_program(const Program& program, const ExecuteOptions& options);

/// StepReport::measured_peak_bytes: `given` is the highest address that a kernel was given, `written` the bytes of the
/// arena up to the highest one that lost its paint.
std::int64_t measured_peak_bytes(const Program& program, bool poison, std::int64_t given, std::int64_t written);

/// One entry for every node that nobody reads and nobody keeps, ascending.
std::vector<SinkDigest> sinks_of(const core::Graph& graph);

/// What is wrong when a guard is found overwritten after an instruction.
std::string broken_guard_message(const Program& program, const Instruction& instruction, const Guard& guard);

}  // namespace cairn::runtime
