#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/bound.h"
#include "cairn/solvers/engines/linear_model.h"

namespace cairn::solvers {

class StagePrices;

/// A known cost has this value if no schedule within the budget is known.
inline constexpr std::int64_t kUnknownCost = std::numeric_limits<std::int64_t>::max();

/// Finds a path of the graph with the most nodes. Of several such paths, prefers one whose nodes need many bytes while
/// they run. Takes O(n + m) time for n nodes and m edges.
std::vector<core::NodeId> longest_chain(const core::Graph& graph);

/// Selects at most `most` nodes of a chain (see FirstRunStages). Divides the chain into `most` parts of about equal
/// length, and takes from each part the node that needs the most bytes for inputs, outputs and scratch.
std::vector<core::NodeId> thin_chain(const core::Graph& graph, std::vector<core::NodeId> chain, std::size_t most);

/// Returns the chain that cost_bound() uses for an order rule. For OrderRule::free, this is a longest path of the
/// graph. For every other rule, it is the whole input order.
std::vector<core::NodeId> chain_for(const core::Graph& graph, OrderRule order);

/// Collects facts that hold for all schedules within a budget that cost less than a known cost. A chain c_0, ...,
/// c_(K-1) is a list of nodes whose first runs must come in this order. These first runs divide a schedule into stages
/// 0 to K. Stage t begins after the first run of c_(t-1) and ends with the first run of c_t. Stage K is the rest of the
/// schedule. docs/remat/bound.md has the proofs.
class FirstRunStages {
 public:
  /// Says in which stages a node can run.
  struct Node {
    /// The first run of the node is in one of the stages `first` to `due`.
    std::int32_t first = 0;
    std::int32_t due = 0;
    std::int32_t last = 0;  ///< last stage in which the node may have to run again
    bool once = false;      ///< whether the node runs only once, because it is pinned or too expensive to run again
  };
  /// States when a value can be in memory. Only the times of the first runs of the chain's nodes are considered. The
  /// number t stands for the first run of c_t, and K stands for the end of the schedule.
  struct Value {
    /// The value is in memory at no time t outside of [from, until].
    std::int32_t from = 0, until = -1;
    /// The value is in memory at each time t in [surely_from, surely_until].
    std::int32_t surely_from = 0, surely_until = -1;
  };

  /// Describes the schedules within the budget that cost less than `known_cost`. If `known_cost` is kUnknownCost,
  /// describes all schedules within the budget. The nodes of the chain must be distinct. O(n + m) for n nodes and m
  /// edges.
  FirstRunStages(const core::Graph& graph, std::vector<core::NodeId> chain, std::int64_t budget,
                 std::int64_t known_cost);

  const core::Graph& graph() const { return graph_; }
  std::int32_t chain_length() const { return static_cast<std::int32_t>(chain_.size()); }
  const std::vector<core::NodeId>& chain() const { return chain_; }
  core::NodeId chain(std::int32_t stage) const { return chain_[stage]; }
  /// Returns the index of node v in the chain, or -1 if v is not in the chain.
  std::int32_t place(core::NodeId v) const { return place_[v]; }
  const Node& node(core::NodeId v) const { return nodes_[v]; }
  const Value& value(core::ValueId x) const { return values_[x]; }
  std::int64_t budget() const { return budget_; }
  std::int64_t base_cost() const { return base_cost_; }  ///< cost of running each node once
  std::int64_t cost_unit() const { return cost_unit_; }  ///< greatest common divisor of all costs, at least 1
  /// Returns the size of the relaxation (the simpler problem of cost_bound.h). This is the number of pairs of a node
  /// and a stage in which it can run, plus the number of pairs of a value and a first run during which it can be in
  /// memory.
  std::int64_t size() const;
  /// Returns whether value x must be in memory during the first run of c_t (for t = K: at the end). This is so if x is
  /// an input or output of c_t, if x is surely in memory there (see Value), or if x is kept and t = K.
  bool forced(std::int32_t t, core::ValueId x) const;
  /// Returns whether the values for which forced(t, x) holds are within the budget for every t. If not, there is no
  /// schedule within the budget that costs less than the known cost. O(n + m) for n nodes and m edges.
  bool fits() const;

 private:
  void find_first_runs();
  void find_last_uses(std::int64_t known_cost);

  const core::Graph& graph_;
  std::vector<core::NodeId> chain_;
  const std::int64_t budget_, base_cost_, cost_unit_;
  std::vector<std::int32_t> place_;
  std::vector<core::NodeId> topological_;
  std::vector<Node> nodes_;
  std::vector<Value> values_;
};

/// Builds FirstRunStages for a chain. If FirstRunStages::size() exceeds `allowed`, leaves out nodes of the chain until
/// the size is at most `allowed`. Returns nothing if the watch expires. Takes O(n + m) time for each chain that it
/// tries, for n nodes and m edges.
std::optional<FirstRunStages> stages_of_size(const core::Graph& graph, std::vector<core::NodeId> chain,
                                             std::int64_t budget, std::int64_t known_cost, std::int64_t allowed,
                                             core::Stopwatch& watch);

/// Builds a linear program. Each schedule that FirstRunStages describes is one of its solutions, so the optimum is at
/// most the cost of each of these schedules. The variable R[t][v] says whether node v runs in stage t. The variable
/// A[t][x] says whether value x is in memory during the first run of c_t.
class StageProgram {
 public:
  /// Builds the program. If `prices` (stage_prices.h) is given, leaves out the variables that the prices prove to be 0
  /// in all schedules that cost at most `most_extra` times FirstRunStages::cost_unit() more than running each node
  /// once. In this case, the optimum is a bound only for these schedules.
  explicit StageProgram(const FirstRunStages& stages, const StagePrices* prices = nullptr, std::int64_t most_extra = 0);

  /// Returns the program. If it is infeasible(), there is no schedule of the kind that FirstRunStages describes.
  const LinearModel& model() const { return model_; }
  /// Converts the objective of the program to the cost of a schedule.
  std::int64_t cost(std::int64_t objective) const { return fixed_cost_ + stages_.cost_unit() * objective; }

  /// Makes a schedule from a solution of the program. In each stage, the nodes run in the input order, and c_t runs
  /// last. The schedule is valid but can exceed the budget.
  core::Schedule schedule(std::span<const double> values) const;

 private:
  using Entry = LinearModel::Variable;
  static constexpr Entry kZero = LinearSum::kZero, kOne = LinearSum::kOne;
  using Sum = LinearSum;

  Entry run(std::int32_t stage, core::NodeId v) const;
  Entry held(std::int32_t stage, core::ValueId x) const;
  void add_variables();
  void add_links();
  void add_memory_rows();

  const FirstRunStages& stages_;
  const StagePrices* prices_;
  const std::int64_t most_extra_;
  const core::Graph& graph_;
  LinearModel model_;
  std::int64_t fixed_cost_ = 0;
  // run_begin_[v] and held_begin_[x]: the first variable of node v and of value x. The variables of the later stages
  // follow it, in the order of the stages.
  std::vector<Entry> run_begin_, held_begin_;
};

}  // namespace cairn::solvers
