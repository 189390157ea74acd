#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/plan/internal/instance.h"

namespace cairn::solvers::plan {

struct Packing {
  std::int64_t height = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> offsets;
  bool timed_out = false;  ///< whether the limit ended the search
};

/// Searches for a low packing by the methods of greedy_plan(), until the height is at most `target` bytes. `bound` is a
/// lower bound on the height. `loads` has the number of live bytes at each step.
Packing pack(const Instance& instance, std::int64_t bound, std::int64_t target, const std::vector<std::int64_t>& loads,
             core::Stopwatch& watch);

}  // namespace cairn::solvers::plan
