#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/core/graph.h"
#include "cairn/core/profile.h"

/// Defines the problem to solve. The folder solvers/fit/ finds schedules whose plans fit into a budget. A plan assigns
/// an address to every buffer of a schedule, and can need more memory than the schedule's peak. The folder combines the
/// solvers, which only look at peaks, with the planner. The entry point of the folder is objective.h.
namespace cairn::fit {

/// Returns the name of a graph for display. The result is the graph's own name or, if the graph has no name, the name
/// of its file.
std::string graph_name(const core::Graph& graph, std::string_view file);

/// Holds a graph, its budget, and what is known before any search. Sizes are in bytes, costs in the graph's unit.
struct Problem {
  core::Graph graph;
  std::string name;
  core::Evaluation baseline;  ///< measures of the input order, in which every node runs once
  /// lower bound on the peak of every schedule or, if about_plans is set, on the bytes of every plan
  std::int64_t lower_bound = 0;
  bool about_plans = false;  ///< whether lower_bound is a bound on plans; set by of_plans()
  /// Number of bytes that counts as 100% when budgets and plans are given in percent. It is the baseline's peak with
  /// sizes rounded up to the alignment of plans.
  std::int64_t hundred_percent = 0;
  /// Largest number of bytes by which a plan can be lower than its schedule's peak. If an in-place node overwrites an
  /// input, the peak counts the sizes of input and output, and adds the node's scratch. The plan counts only the larger
  /// of the two sizes. A graph can give the node a negative scratch, so that the peak does not count the smaller size
  /// either. The slack is 0 if every in-place node has such a scratch. Otherwise, it is the largest number of bytes
  /// that the peak counts too much at any node.
  std::int64_t plan_slack = 0;
  std::optional<std::int64_t> budget;  ///< largest peak or plan allowed, in bytes
  /// Alignment to which sizes were rounded up, if rounding changed the baseline's peak or the lower bound; otherwise 1.
  std::int64_t rounded_to = 1;

  /// Makes a problem of a graph. `budget_text` is a budget in the syntax of core::parse_budget(), in which a percentage
  /// refers to hundred_percent. An empty text means that there is no budget. `fallback_name` is the name if the graph
  /// has none. `alignment` is the alignment of plans in bytes. Throws InputError if the text is not a budget. O(nodes +
  /// edges).
  explicit Problem(core::Graph graph, std::string_view budget_text = {}, std::string_view fallback_name = {},
                   std::int64_t alignment = 1);
  /// Returns a copy with sizes rounded up to the alignment, as planners round them. O(1) for the alignment that was
  /// given to the constructor, otherwise O(nodes + edges).
  Problem rounded_up(std::int64_t alignment) const;
  /// Returns a lower bound, in bytes, on the plans of all schedules.
  std::int64_t plan_bound() const { return lower_bound - plan_slack; }
  /// Returns the largest peak of a schedule whose plan can fit into `bytes` bytes.
  std::int64_t peak_within(std::int64_t bytes) const;
  /// Returns a copy whose lower bound refers to plans instead of peaks, for messages about what plans need.
  Problem of_plans() const {
    Problem problem = *this;
    problem.lower_bound = plan_bound();
    problem.about_plans = true;
    return problem;
  }
  /// Returns whether all sizes are equal in both problems. If so, a bound that is proved for one problem also holds for
  /// the other.
  bool same_sizes(const Problem& other) const;

 private:
  std::int64_t alignment_ = 1;  ///< alignment given to the constructor
  /// Result of rounded_up(alignment_), but without a budget; nullptr if the alignment is 1.
  std::shared_ptr<const Problem> rounded_;
};

}  // namespace cairn::fit
