#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/engines/linear_model.h"

namespace cairn::solvers {

class ChainPrices;

/// Stands for the cost of a known schedule if no schedule is known.
inline constexpr std::int64_t kUnknownCost = std::numeric_limits<std::int64_t>::max();

/// Finds a path with the largest number of nodes in the graph. Among such paths, finds one whose steps hold the most
/// bytes. O(n + m).
std::vector<core::NodeId> longest_chain(const core::Graph& graph);

/// Selects at most `most` nodes of a chain. Divides the chain into `most` parts of equal length. From each part,
/// selects the node during whose run the most bytes must be in memory.
std::vector<core::NodeId> thin_chain(const core::Graph& graph, std::vector<core::NodeId> chain, std::size_t most);

/// Facts about all schedules within a budget that cost less than a known cost. A chain c_0, ..., c_(K-1) is a list of
/// nodes that must run for the first time in this order. The first runs of the chain divide a schedule into stages.
/// Stage t begins after the first run of c_(t-1) and ends with the first run of c_t. Stage K is the rest of the
/// schedule. docs/remat/bound.md has the proofs.
class ChainStages {
 public:
  /// The stages in which a node may run.
  struct Node {
    std::int32_t first = 0;  ///< first, due: range of stages in which the node's first run can be
    std::int32_t due = 0;
    std::int32_t last = 0;  ///< stage after which there is no need to run the node again
    bool once = false;      ///< whether the node runs only once, because it is pinned or too expensive to run again
  };
  /// The first runs of the chain during which a value can be in memory. Index K stands for the end of the schedule.
  struct Value {
    /// from, until: range of first runs; outside this range, the value is never in memory.
    std::int32_t from = 0, until = -1;
    /// surely_from, surely_until: range of first runs; within this range, the value is always in memory.
    std::int32_t surely_from = 0, surely_until = -1;
  };

  /// Describes the schedules that cost less than `known_cost`. kUnknownCost stands for all schedules. The nodes of the
  /// chain must be distinct. O(n + m).
  ChainStages(const core::Graph& graph, std::vector<core::NodeId> chain, std::int64_t budget, std::int64_t known_cost);

  const core::Graph& graph() const { return graph_; }
  std::int32_t chain_length() const { return static_cast<std::int32_t>(chain_.size()); }
  const std::vector<core::NodeId>& chain() const { return chain_; }
  core::NodeId chain(std::int32_t stage) const { return chain_[stage]; }
  /// Returns the index of the node in the chain, or -1 if the node is not in the chain.
  std::int32_t place(core::NodeId v) const { return place_[v]; }
  const Node& node(core::NodeId v) const { return nodes_[v]; }
  const Value& value(core::ValueId x) const { return values_[x]; }
  std::int64_t budget() const { return budget_; }
  std::int64_t base_cost() const { return base_cost_; }  ///< cost of running each node once
  std::int64_t cost_unit() const { return cost_unit_; }  ///< number >= 1 that divides all costs
  /// Returns the number of pairs of a stage and a node that can run there, plus the number of pairs of a stage and a
  /// value that can be in memory there.
  std::int64_t size() const;
  /// Returns whether x is in memory during the first run of c_t in every solution of the relaxation. This is so in two
  /// cases: x is known to be held, or x is an input or output of c_t.
  bool forced(std::int32_t t, core::ValueId x) const;
  /// Returns whether, in every stage, the values for which forced() holds are within the budget. O(n + m).
  bool fits() const;

 private:
  void find_first_runs();
  void find_last_uses(std::int64_t known_cost);

  const core::Graph& graph_;
  std::vector<core::NodeId> chain_;
  std::int64_t budget_, base_cost_ = 0, cost_unit_ = 0;
  std::vector<std::int32_t> place_;
  std::vector<core::NodeId> topological_;
  std::vector<Node> nodes_;
  std::vector<Value> values_;
};

/// A linear program that is a relaxation of all schedules described by ChainStages. The variable R[t][v] says whether
/// node v runs in stage t. The variable A[t][x] says whether value x is in memory during the first run of c_t. The
/// optimum is at most the cost of every such schedule.
class ChainProgram {
 public:
  /// Builds the program. If `prices` is given, leaves out the variables that the prices prove to be 0 in all schedules
  /// that cost at most `most_extra` units more than running each node once. In this case, the optimum is a bound only
  /// for these schedules.
  explicit ChainProgram(const ChainStages& stages, const ChainPrices* prices = nullptr, std::int64_t most_extra = 0);

  /// Returns whether some row reads 0 >= 1. If so, there is no such schedule.
  bool infeasible() const { return infeasible_; }
  const LinearModel& model() const { return model_; }
  /// Converts the objective of the program to the cost of a schedule.
  std::int64_t cost(std::int64_t objective) const { return fixed_cost_ + stages_.cost_unit() * objective; }

  /// Makes a schedule from a solution. Each stage runs its nodes in the input order, and the stage's node of the chain
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
  void add_row(const Sum& sum, std::int64_t lower, std::int64_t upper);

  const ChainStages& stages_;
  const ChainPrices* prices_;
  const std::int64_t most_extra_;
  const core::Graph& graph_;
  LinearModel model_;
  std::int64_t fixed_cost_ = 0;
  // - run_begin_: variable of the first stage of each node.
  // - held_begin_: variable of the first stage of each value.
  std::vector<Entry> run_begin_, held_begin_;
  bool infeasible_ = false;
};

}  // namespace cairn::solvers
