#pragma once

#include <span>
#include <string_view>

#include "solvers/solution.h"

namespace cairn::solvers {

using SolverFunction = Solution (*)(const core::Graph&, const SolveOptions&);

struct SolverInfo {
  std::string_view name;
  std::string_view paper;      ///< where the algorithm is from
  std::string_view guarantee;  ///< what it promises, in one line
  SolverFunction solve;
};

/// Every solver, in the order in which people should meet them. The CLI, the tests and the benches read this table.
std::span<const SolverInfo> registry();
/// Throws InputError that suggests the nearest name.
const SolverInfo& find_solver(std::string_view name);

}  // namespace cairn::solvers
