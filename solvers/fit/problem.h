#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/core/graph.h"
#include "cairn/core/profile.h"

/// Schedules whose plan, not only whose peak, fits: the folder between the solvers, which know peaks, and the planner,
/// which knows addresses. A problem is here; objective.h searches whatever is asked for.
namespace cairn::fit {

/// What a graph is called in every table, message and page: its own name or, where it has none, that of its file.
std::string graph_name(const core::Graph& graph, std::string_view file);

/// A graph with what is known of it before any search. Bytes; cost in the graph's unit.
struct Problem {
  core::Graph graph;
  std::string name;              ///< graph_name
  core::Evaluation baseline;     ///< of the input order
  std::int64_t lower_bound = 0;  ///< of the peak of any schedule; of the plan where it is about plans
  bool about_plans = false;
  /// What percentages of budgets and plans are of: the baseline's peak with sizes rounded up to the plans' alignment.
  std::int64_t hundred_percent = 0;
  /// By how much a plan may be below its schedule's peak: where a node in place says less of its scratch than it saves.
  std::int64_t plan_slack = 0;
  std::optional<std::int64_t> budget;  ///< of the peak
  std::int64_t rounded_to = 1;         ///< above 1: sizes were rounded up to this, and baseline or bound rose by it

  /// `budget_text` is a budget as people write it, a percentage being of hundred_percent (core::parse_budget); empty:
  /// none. `alignment`: of the plans. Throws InputError. O(n + m).
  explicit Problem(core::Graph graph, std::string_view budget_text = {}, std::string_view fallback_name = {},
                   std::int64_t alignment = 1);
  /// The same with sizes rounded up, as a plan with that alignment needs them.
  Problem rounded_up(std::int64_t alignment) const;
  /// Of the plan of any schedule.
  std::int64_t plan_bound() const { return lower_bound - plan_slack; }
  /// The same with a lower bound of plans, for words about what these need.
  Problem of_plans() const {
    Problem problem = *this;
    problem.lower_bound = plan_bound();
    problem.about_plans = true;
    return problem;
  }
  /// Whether no size differs, so that bounds of either hold for both.
  bool same_sizes(const Problem& other) const;
};

}  // namespace cairn::fit
