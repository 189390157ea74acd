#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/core/graph.h"
#include "cairn/core/profile.h"

/// A problem to solve. This folder finds schedules whose plan, not only whose peak, fits: it joins the solvers, which
/// know peaks, and the planner, which knows addresses. objective.h searches for any objective.
namespace cairn::fit {

/// Returns the name of a graph for every table, message and page: its own name or, if it has none, that of its file.
std::string graph_name(const core::Graph& graph, std::string_view file);

/// A graph with its budget and with what is known before any search. Sizes are in bytes, costs in the graph's unit.
struct Problem {
  core::Graph graph;
  std::string name;              ///< name of the graph (graph_name)
  core::Evaluation baseline;     ///< measures of the input order
  std::int64_t lower_bound = 0;  ///< lower bound of the peak of any schedule; if about_plans, of any plan
  bool about_plans = false;
  /// Bytes that percentages of budgets and plans refer to: the baseline's peak with sizes rounded up to the plans'
  /// alignment.
  std::int64_t hundred_percent = 0;
  /// Bytes by which a plan may lie below its schedule's peak, because a node in place declares less scratch than it
  /// saves.
  std::int64_t plan_slack = 0;
  std::optional<std::int64_t> budget;  ///< most bytes of the peak
  /// Above 1: sizes were rounded up to multiples of it, and baseline or bound rose thereby.
  std::int64_t rounded_to = 1;

  /// Parses `budget_text`, a budget as people write it (core::parse_budget); a percentage refers to hundred_percent;
  /// empty: no budget. `alignment`: of the plans. Throws InputError. O(n + m).
  explicit Problem(core::Graph graph, std::string_view budget_text = {}, std::string_view fallback_name = {},
                   std::int64_t alignment = 1);
  /// A copy with sizes rounded up, as a plan with that alignment needs them. O(1) for the alignment of the constructor,
  /// else O(n + m).
  Problem rounded_up(std::int64_t alignment) const;
  /// Lower bound of the bytes of any schedule's plan.
  std::int64_t plan_bound() const { return lower_bound - plan_slack; }
  /// Copies the problem with a lower bound of plans instead of peaks, for messages about what plans need.
  Problem of_plans() const {
    Problem problem = *this;
    problem.lower_bound = plan_bound();
    problem.about_plans = true;
    return problem;
  }
  /// Whether all sizes are equal in both problems, so that bounds of either hold for both.
  bool same_sizes(const Problem& other) const;

 private:
  std::int64_t alignment_ = 1;              ///< alignment of the constructor
  std::shared_ptr<const Problem> rounded_;  ///< rounded_up(alignment_) without its budget; nullptr: alignment 1
};

}  // namespace cairn::fit
