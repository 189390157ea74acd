#include "cairn/solvers/common/bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace cairn::solvers {

std::string_view to_string(Status status) {
  switch (status) {
    case Status::optimal:
      return "optimal";
    case Status::feasible:
      return "feasible";
    case Status::infeasible:
      return "infeasible";
    case Status::not_found:
      return "not_found";
  }
  return "unknown";
}

bool Scope::contains(const Scope& inner) const {
  const bool often = max_occurrences == 0 || (inner.max_occurrences > 0 && inner.max_occurrences <= max_occurrences);
  return often && (order == OrderRule::free || order == inner.order);
}

bool Scope::contains(const core::Graph& graph, const core::Schedule& schedule) const {
  if (*this == kAnySchedule) return true;
  std::vector<std::int32_t> occurrences(static_cast<std::size_t>(graph.node_count()), 0);
  std::size_t firsts = 0;
  for (const core::NodeId v : schedule.steps) {
    if (++occurrences[v] > max_occurrences && max_occurrences > 0) return false;
    if (occurrences[v] == 1 && graph.input_order()[firsts++] != v && order == OrderRule::input) return false;
  }
  return true;
}

Scope intersection(const Scope& a, const Scope& b) {
  const auto either = [](std::int32_t x, std::int32_t y) { return x == 0 || y == 0 ? std::max(x, y) : std::min(x, y); };
  return {std::max(a.order, b.order), either(a.max_occurrences, b.max_occurrences)};
}

std::string describe(const Scope& scope) {
  std::string occurrences;
  if (scope.max_occurrences == 1) occurrences = "without recomputation";
  if (scope.max_occurrences > 1) occurrences = fmt::format("at most {} occurrences of a node", scope.max_occurrences);
  if (scope.order == OrderRule::free) return occurrences.empty() ? "any schedule" : occurrences;
  return occurrences.empty() ? "input order kept" : "input order kept, " + occurrences;
}

}  // namespace cairn::solvers
