#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cairn/solvers/common/solution.h"

namespace cairn::solvers {

using SolverFunction = Solution (*)(const core::Graph&, const SolveOptions&);

enum class Family : std::uint8_t {
  remat,  ///< may recompute
  order   ///< every node once: solvers/order/order.h
};

struct SolverInfo {
  std::string_view name;
  std::string_view paper;      ///< where the algorithm is from
  std::string_view guarantee;  ///< what it promises, in one line
  SolverFunction solve;
  Family family = Family::remat;
  std::string_view graphs = "any";  ///< which it takes; throws InputError for others
};

/// Every solver, in the order in which people should meet them. The CLI, the tests and the benches read this table.
std::span<const SolverInfo> registry();
/// Throws InputError that suggests the nearest name.
const SolverInfo& find_solver(std::string_view name);

}  // namespace cairn::solvers
