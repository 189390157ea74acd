#pragma once

#include <cstdint>

#include "cairn/solvers/plan/internal/instance.h"

/// What fixed offsets and forbidden addresses imply before anything is placed.
namespace cairn::solvers::plan {

/// Throws InputError where two buffers that are fixed overlap in time and addresses, or a fixed one touches forbidden
/// addresses; both are named by their index. O(b log b).
void check_fixed(const PlanProblem& problem, const Instance& instance);

/// No plan is lower: it has room for max_live bytes beside the forbidden ones, and for every fixed block. O(b).
std::int64_t height_bound(const Instance& instance, std::int64_t max_live);

}  // namespace cairn::solvers::plan
