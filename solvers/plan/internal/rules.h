#pragma once

#include <cstdint>

#include "cairn/solvers/plan/internal/instance.h"

/// Consequences of fixed offsets and forbidden addresses that hold before anything is placed.
namespace cairn::solvers::plan {

/// Checks the fixed buffers. Throws InputError if two of them overlap in time and addresses, or if one touches
/// forbidden addresses. The message names the buffers by index. O(b log b).
void check_fixed(const PlanProblem& problem, const Instance& instance);

/// Computes a lower bound on the height of a plan. A plan has to leave room for max_live bytes outside the forbidden
/// addresses, and it contains every fixed block. O(b).
std::int64_t height_bound(const Instance& instance, std::int64_t max_live);

}  // namespace cairn::solvers::plan
