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

/// The goal of a StageModel: a budget or a range of peaks, and limits on the schedules.
struct StageAim {
  /// Bytes within which the least cost is to be found; absent: the least peak is to be found.
  std::optional<std::int64_t> budget;
  /// Range in which the least peak lies.
  std::int64_t least_peak = 0, most_peak = 0;
  std::int32_t max_occurrences = 0;  ///< most runs of a node; 0: any number
  /// Whether there is a memory row for node v running again in stage t, at index t n + v; empty: there are none for
  /// such runs. A node's first run always has one. With some rows missing the program is a relaxation.
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
  /// Builds the program. Throws InputError if there would be more than `most_terms` terms. Incomplete if the watch runs
  /// out: see complete().
  StageModel(const core::Graph& graph, const StageAim& aim, std::size_t most_terms, core::Stopwatch& watch);

  bool complete() const { return complete_; }
  /// Whether some row reads 0 >= 1, so that no schedule fits.
  bool infeasible() const { return infeasible_; }
  const LinearModel& program() const { return program_; }
  /// Converts the program's objective to the cost of a schedule, or to its peak.
  std::int64_t objective(std::int64_t of_program) const { return fixed_ + unit_ * of_program; }

  core::Schedule schedule(std::span<const double> values) const;
  /// Makes a schedule that retains each value into each stage if `retains` says so for the variable's value, and runs
  /// the fewest nodes for these values and for the first runs: the second phase of the paper's rounding.
  core::Schedule least_runs(std::span<const double> values, const std::function<bool(double)>& retains) const;
  /// Finds the steps, as indices of StageAim::rows, that have no row and exceed `bytes`.
  std::vector<std::size_t> missing_rows(std::span<const double> values, double bytes) const;

  /// Computes the values of all variables for a schedule of the class; nothing is recomputed before it can be of use.
  std::vector<std::int64_t> values_of(const core::Schedule& schedule) const;

 private:
  /// An entry of the program: a variable, or a constant (kZero, kOne).
  using Entry = LinearModel::Variable;
  static constexpr Entry kZero = LinearSum::kZero, kOne = LinearSum::kOne;
  struct Value {
    core::ValueId id = core::kNoValue;
    std::int64_t size = 0;  ///< size in units, > 0
    std::int32_t producer = 0;
    std::int32_t last = 0;    ///< last stage into which retaining the value can be of use; n: the value is kept
    std::int32_t surely = 0;  ///< last stage into which the value is retained in any case
    std::int32_t first_stage = 0;
    Entry first_variable = kZero;       ///< variable for retaining into first_stage; those for later stages follow
    std::vector<std::int32_t> readers;  ///< nodes that read the value, ascending
  };
  struct Node {
    std::int64_t scratch = 0;  ///< scratch in units
    std::int32_t last = 0;     ///< last stage in which running the node again can be of use
    std::int32_t first_stage = 0;
    Entry first_variable = kZero;
    std::int32_t value_begin = 0, value_end = 0;
    std::vector<std::int32_t> inputs;  ///< indices of the values that the node reads
  };
  /// A variable `result` that equals max(a, b) in every solution that wastes nothing.
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
  /// Finds the first stage in which scratch and the values made so far and still of use may not fit into memory; before
  /// that stage nothing needs to run again.
  std::int32_t first_full_stage() const;
  void add_variables();
  /// Adds for each value the variables for whether it is needed before and after each step of the stage.
  void add_needs(std::int32_t stage);
  void add_memory_rows(std::int32_t stage);
  Entry either(Entry a, Entry b);
  /// Adds the row lower <= sum <= upper.
  void add_row(Sum sum, std::int64_t lower, std::int64_t upper);
  /// Finds for each stage the nodes that run again in it.
  std::vector<std::vector<std::int32_t>> reruns(const core::Schedule& schedule) const;

  const core::Graph& graph_;
  const StageAim aim_;
  std::int32_t n_;
  std::int64_t unit_ = 1, fixed_ = 0;  // unit and constant part of the objective
  // Unit of memory; most units of any schedule of interest; units that fit in any case.
  std::int64_t memory_unit_ = 0, capacity_ = 0, floor_ = 0;
  std::vector<Value> values_;  // values of more than 0 bytes, by producer
  std::vector<Node> nodes_;
  LinearModel program_;
  Entry peak_ = kZero;
  bool complete_ = false, infeasible_ = false;
  std::vector<Or> ors_;
  /// For each value, in the stage being added: the variables for whether it is needed after its i-th last reader there.
  /// The first entry says whether the value is retained into the next stage, the last one whether it is needed at all.
  std::vector<std::vector<Entry>> needed_;
};

}  // namespace cairn::solvers
