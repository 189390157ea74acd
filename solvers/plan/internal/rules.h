#pragma once

#include <cstdint>

#include "cairn/solvers/plan/internal/instance.h"

/// What fixed offsets and forbidden addresses imply before any block is placed.
namespace cairn::solvers::plan {

/// Checks the buffers with fixed offsets. Throws InputError if two of them use the same byte at the same step, or if
/// one uses forbidden addresses. The message names the buffers by index. O(b log b) for b buffers.
void check_fixed(const PlanProblem& problem, const Instance& instance);

/// Computes a lower bound on the height of every plan, in bytes. A plan of this height has room for `max_live` bytes
/// (the largest number of bytes that are live at one step) outside the forbidden addresses, and for every block with a
/// fixed offset. O(b) for b blocks.
std::int64_t height_bound(const Instance& instance, std::int64_t max_live);

}  // namespace cairn::solvers::plan
