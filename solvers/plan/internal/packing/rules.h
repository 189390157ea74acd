#pragma once

#include <cstdint>

#include "cairn/solvers/plan/internal/instance.h"

/// Checks fixed offsets and forbidden addresses before any block is placed, and derives a lower bound from them.
namespace cairn::solvers::plan {

/// Throws InputError if two buffers with fixed offsets use the same byte at the same step, or if a buffer with a fixed
/// offset uses forbidden addresses. The message names the buffers by index. O(b log b) for b buffers.
void check_fixed(const PlanProblem& problem, const Instance& instance);

/// Returns a lower bound on the height of every plan, in bytes. The bound is the least height below which every block
/// with a fixed offset has room and at least `max_live` bytes are not forbidden. `max_live` is the largest number of
/// bytes that are live at one step. O(b) for b blocks.
std::int64_t height_bound(const Instance& instance, std::int64_t max_live);

}  // namespace cairn::solvers::plan
