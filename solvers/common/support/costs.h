#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>

#include "cairn/core/graph.h"
#include "cairn/core/support/saturating.h"

namespace cairn::solvers {

/// Returns the total cost of the steps, or the largest int64 if the cost exceeds it.
inline std::int64_t cost_of(const core::Graph& graph, std::span<const core::NodeId> steps) {
  std::int64_t cost = 0;
  for (const core::NodeId v : steps) cost = core::saturating_add(cost, graph.cost(v));
  return cost;
}

/// Returns the greatest common divisor of the costs of all nodes, at least 1.
inline std::int64_t cost_unit(const core::Graph& graph) {
  std::int64_t unit = 0;
  for (const core::NodeId v : graph.input_order()) unit = std::gcd(unit, graph.cost(v));
  return std::max<std::int64_t>(unit, 1);
}

/// Returns the greatest common divisor of the sizes of all values and of all scratch, in bytes, at least 1.
inline std::int64_t size_unit(const core::Graph& graph) {
  std::int64_t unit = 0;
  for (core::ValueId x = 0; x < graph.value_count(); ++x) unit = std::gcd(unit, graph.value_size(x));
  for (const core::NodeId v : graph.input_order()) unit = std::gcd(unit, graph.scratch(v));
  return std::max<std::int64_t>(unit, 1);
}

}  // namespace cairn::solvers
