#include "cairn/solvers/common/bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace cairn::solvers {

std::string_view to_string(Stop stop) {
  static constexpr std::array<std::string_view, 5> kNames{"ended", "proved", "stagnated", "limit", "interrupted"};
  return kNames[static_cast<std::size_t>(stop)];
}

std::string_view to_string(Status status) {
  static constexpr std::array<std::string_view, 4> kNames{"optimal", "feasible", "infeasible", "not_found"};
  return kNames[static_cast<std::size_t>(status)];
}

bool Scope::contains(const Scope& inner) const {
  const bool often = max_occurrences == 0 || (inner.max_occurrences > 0 && inner.max_occurrences <= max_occurrences);
  return often && order <= inner.order;
}

bool Scope::contains(const core::Graph& graph, const core::Schedule& schedule) const {
  if (*this == kAnySchedule) return true;
  std::vector<std::int32_t> occurrences(static_cast<std::size_t>(graph.node_count()), 0);
  std::vector<std::int32_t> rank(occurrences.size(), 0);
  for (std::size_t i = 0; i < rank.size(); ++i) rank[graph.input_order()[i]] = static_cast<std::int32_t>(i);
  // `firsts` is the number of first runs so far. If the previous step was a repeated run, `last` is the position of its
  // node in the input order; otherwise `last` is -1.
  std::int32_t firsts = 0, last = -1;
  for (const core::NodeId v : schedule.steps) {
    if (++occurrences[v] > max_occurrences && max_occurrences > 0) return false;
    const bool first = occurrences[v] == 1;
    if (first && rank[v] != firsts++ && order != OrderRule::free) return false;
    if (order == OrderRule::stages && rank[v] <= last) return false;
    last = first ? -1 : rank[v];
  }
  return order != OrderRule::stages || last == -1;
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
  const std::string kept = scope.order == OrderRule::input ? "input order kept" : "input order kept in every stage";
  return occurrences.empty() ? kept : kept + ", " + occurrences;
}

}  // namespace cairn::solvers
