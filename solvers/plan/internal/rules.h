#pragma once

#include <cstdint>

#include "cairn/solvers/plan/internal/instance.h"

/// Consequences of fixed offsets and forbidden addresses before anything is placed.
namespace cairn::solvers::plan {

/// Checks fixed buffers. Throws InputError if two of them overlap in time and addresses, or one touches forbidden
/// addresses; the message names both by index. O(b log b).
void check_fixed(const PlanProblem& problem, const Instance& instance);

/// Computes a lower bound of a plan's height: room for max_live bytes beside the forbidden addresses, and for every
/// fixed block. O(b).
std::int64_t height_bound(const Instance& instance, std::int64_t max_live);

}  // namespace cairn::solvers::plan
