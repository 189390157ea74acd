#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/engines/linear_model.h"

namespace cairn::solvers {

/// The aim of a StageModel.
struct StageAim {
  /// Bytes within which to find the least cost; absent: least peak.
  std::optional<std::int64_t> budget;
  /// Range of the least peak.
  std::int64_t least_peak = 0, most_peak = 0;
  std::int32_t max_occurrences = 0;  ///< most runs of a node; 0: any number
  /// Whether there is a memory row for node v running again in stage t, at index t n + v; empty: for none. A node's
  /// first run always has one. With some rows missing the program is a relaxation.
  std::vector<bool> rows;
};

/// The program of checkmate(): R[t][v] (node v runs in stage t), S[t][x] (value x is retained into stage t) and, for
/// each value, whether it is still needed after each of its readers. Stages and nodes are numbered along the input
/// order.
///
/// Memory is exact: in a solution that retains nothing in vain, a value is in memory at a step if and only if something
/// at that step or later reads it or it is retained into the next stage. This is the negation of the paper's FREE, and
/// needs no product to be linear.
class StageModel {
 public:
  /// Throws InputError if there would be more than `most_terms` terms. Incomplete if the watch runs out: see
  /// complete().
  StageModel(const core::Graph& graph, const StageAim& aim, std::size_t most_terms, core::Stopwatch& watch);

  bool complete() const { return complete_; }
  /// Whether some row says 0 >= 1: nothing fits.
  bool infeasible() const { return infeasible_; }
  const LinearModel& program() const { return program_; }
  /// The cost of a schedule, or its peak, given the program's objective.
  std::int64_t objective(std::int64_t of_program) const { return fixed_ + unit_ * of_program; }

  core::Schedule schedule(std::span<const double> values) const;
  /// Retains each value into each stage if `retains` says so for the variable's value, and runs the fewest nodes for
  /// that and for the first runs: the second phase of the paper's rounding.
  core::Schedule least_runs(std::span<const double> values, const std::function<bool(double)>& retains) const;
  /// Steps, as in StageAim::rows, that have no row and exceed that many bytes.
  std::vector<std::size_t> missing_rows(std::span<const double> values, double bytes) const;

  /// The values of all variables for a schedule of the class; nothing is recomputed before it can be of use.
  std::vector<std::int64_t> values_of(const core::Schedule& schedule) const;

 private:
  /// A variable, or a constant.
  using Entry = LinearModel::Variable;
  static constexpr Entry kZero = LinearSum::kZero, kOne = LinearSum::kOne;
  struct Value {
    core::ValueId id = core::kNoValue;
    std::int64_t size = 0;  ///< in units, > 0
    std::int32_t producer = 0;
    std::int32_t last = 0;    ///< last stage into which retaining it can be of use; n: it is kept
    std::int32_t surely = 0;  ///< retained in any case into its stages up to this one
    std::int32_t first_stage = 0;
    Entry first_variable = kZero;       ///< retained(first_stage, .), then one a stage
    std::vector<std::int32_t> readers;  ///< ascending
  };
  struct Node {
    std::int64_t scratch = 0;  ///< in units
    std::int32_t last = 0;     ///< last stage in which running it again can be of use
    std::int32_t first_stage = 0;
    Entry first_variable = kZero;
    std::int32_t value_begin = 0, value_end = 0;
    std::vector<std::int32_t> inputs;  ///< indices of values
  };
  /// result = max(a, b) in every solution that wastes nothing.
  struct Or {
    Entry result, a, b;
  };
  using Sum = LinearSum;

  std::size_t step(std::int32_t stage, std::int32_t v) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(n_) + static_cast<std::size_t>(v);
  }
  Entry run(std::int32_t stage, std::int32_t v) const;
  Entry retained(std::int32_t stage, const Value& x) const;

  void describe_graph();
  void find_last_uses();
  /// The first stage in which scratch and the values made so far and still of use may not fit into memory; before it
  /// nothing needs to run again.
  std::int32_t first_full_stage() const;
  void add_variables();
  /// Adds, for each value, whether it is needed before and after each step of the stage.
  void add_needs(std::int32_t stage);
  void add_memory_rows(std::int32_t stage);
  Entry either(Entry a, Entry b);
  /// Adds lower <= sum <= upper.
  void add_row(Sum sum, std::int64_t lower, std::int64_t upper);
  /// For each stage, the nodes that run again in it.
  std::vector<std::vector<std::int32_t>> reruns(const core::Schedule& schedule) const;

  const core::Graph& graph_;
  const StageAim aim_;
  std::int32_t n_;
  std::int64_t unit_ = 1, fixed_ = 0;                        // of the objective
  std::int64_t memory_unit_ = 0, capacity_ = 0, floor_ = 0;  // in units: of any schedule of interest; what fits anyhow
  std::vector<Value> values_;                                // values of more than 0 bytes, by producer
  std::vector<Node> nodes_;
  LinearModel program_;
  Entry peak_ = kZero;
  bool complete_ = false, infeasible_ = false;
  std::vector<Or> ors_;
  /// For each value, in the stage being added: whether it is needed after its i-th last reader there. The first entry
  /// says whether it is retained into the next stage, the last one whether it is needed at all.
  std::vector<std::vector<Entry>> needed_;
};

}  // namespace cairn::solvers
