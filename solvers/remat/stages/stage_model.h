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

struct StageAim {
  /// Budget in bytes within which the cost is minimised. Absent: the peak is minimised.
  std::optional<std::int64_t> budget;
  /// Bounds on the least peak, in bytes. Used if the peak is minimised.
  std::int64_t least_peak = 0, most_peak = 0;
  std::int32_t max_occurrences = 0;  ///< largest number of runs of a node; 0: any number
  /// Which repeated runs have a memory row. A row is a linear constraint of the program; a memory row keeps the memory
  /// during a run within the budget or, if the peak is minimised, within the peak. Indexed by `t * n + v` for stage t,
  /// node v and n nodes. Empty: no repeated run has a memory row. First runs always have one. If some rows are missing,
  /// the program is a relaxation.
  std::vector<bool> rows;
};

/// Builds the integer program of checkmate(). Nodes are numbered along the input order. Stage t of a schedule ends with
/// the first run of node t; nodes of lower numbers can run again before that, in ascending order. The variable R[t][v]
/// says whether node v runs in stage t. The variable S[t][x] says whether value x is retained into stage t, which means
/// that it is in memory when the stage begins. Further variables say, for each stage, each value and each reader of the
/// value, whether the value is still needed when it is the reader's turn. That is so if this reader or a later reader
/// of the stage reads it, or if it is retained into the next stage.
///
/// In a solution that retains no value without use, memory is counted exactly. A value is in memory at a step if and
/// only if this step or a later step of the stage reads it, or it is retained into the next stage. The variables for
/// "needed" are the negation of FREE in the paper (Jain et al. 2020). Unlike FREE, they are expressed without a
/// linearised product.
class StageModel {
 public:
  /// Builds the program. Throws InputError if it would have more than `most_terms` terms. If the watch expires, the
  /// program is incomplete (see complete()).
  StageModel(const core::Graph& graph, const StageAim& aim, std::size_t most_terms, core::Stopwatch& watch);

  bool complete() const { return complete_; }
  /// Returns the program. If it is infeasible(), no schedule is within the limits.
  const LinearModel& program() const { return program_; }
  /// Converts the objective of the program to the cost of a schedule or, if the peak is minimised, to its peak.
  std::int64_t objective(std::int64_t of_program) const { return fixed_ + unit_ * of_program; }

  core::Schedule schedule(std::span<const double> values) const;
  /// Makes a schedule. Value x is retained into stage t if `retains(values[S[t][x]])` is true. The schedule runs the
  /// fewest nodes that provide the retained values and allow all first runs. This is the second phase of the rounding
  /// of Jain et al. 2020.
  core::Schedule least_runs(std::span<const double> values, const std::function<bool(double)>& retains) const;
  /// Finds the repeated runs that have no memory row although more than `bytes` are in memory during the run, for the
  /// given values of the variables. Returns them as indices of StageAim::rows.
  std::vector<std::size_t> missing_rows(std::span<const double> values, double bytes) const;

  /// Computes the values of all variables for a schedule in stages. Leaves out its repeated runs that are never useful.
  std::vector<std::int64_t> values_of(const core::Schedule& schedule) const;

 private:
  /// Stands for an entry of the program: a variable, or a constant (kZero, kOne).
  using Entry = LinearModel::Variable;
  static constexpr Entry kZero = LinearSum::kZero, kOne = LinearSum::kOne;
  struct Value {
    core::ValueId id = core::kNoValue;
    std::int64_t size = 0;  ///< size in units of memory_unit_, > 0
    std::int32_t producer = 0;
    std::int32_t last = 0;    ///< last stage into which it can be useful to retain the value; n: the value is kept
    std::int32_t surely = 0;  ///< last stage into which the value is always retained
    std::int32_t first_stage = 0;
    /// Variable that says whether the value is retained into first_stage. The variables of the later stages follow it.
    Entry first_variable = kZero;
    std::vector<std::int32_t> readers;  ///< nodes that read the value, ascending
  };
  struct Node {
    std::int64_t scratch = 0;  ///< scratch in units of memory_unit_
    std::int32_t last = 0;     ///< last stage in which it can be useful to run the node again
    std::int32_t first_stage = 0;
    Entry first_variable = kZero;
    std::int32_t value_begin = 0, value_end = 0;
    std::vector<std::int32_t> inputs;  ///< indices of the values that the node reads
  };
  /// A variable `result` that stands for "a or b". In every solution in which no variable is larger than necessary, it
  /// equals max(a, b).
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
  /// Finds the first stage in which scratch and all values that can still be useful take more than floor_. Before that
  /// stage, all these values can stay in memory, so no node needs to run again.
  std::int32_t first_full_stage() const;
  void add_variables();
  /// Adds the variables that say, for each value and each of its readers in this stage, whether this reader, a later
  /// one or the next stage needs the value.
  void add_needs(std::int32_t stage);
  void add_memory_rows(std::int32_t stage);
  Entry either(Entry a, Entry b);
  void add_row(Sum sum, std::int64_t lower, std::int64_t upper);
  std::vector<std::vector<std::int32_t>> reruns(const core::Schedule& schedule) const;

  const core::Graph& graph_;
  const StageAim aim_;
  std::int32_t n_;
  std::int64_t unit_ = 1, fixed_ = 0;  // the cost or peak of a schedule is `fixed_ + unit_ * objective of the program`
  // - memory_unit_: unit of memory in bytes.
  // - capacity_: largest memory in units that a useful schedule can have.
  // - floor_: a run needs a memory row only if more than this memory, in units, can be in use during the run. It is the
  //   budget or, if the peak is minimised, the lower bound on the least peak.
  std::int64_t memory_unit_ = 1, capacity_ = 0, floor_ = 0;
  std::vector<Value> values_;  // values of more than 0 bytes, in the order of their producers
  std::vector<Node> nodes_;
  LinearModel program_;
  Entry peak_ = kZero;
  bool complete_ = false;
  std::vector<Or> ors_;
  /// Entries for the stage that is being added. needed_[x][i] says whether value x is needed by one of its last i
  /// readers in the stage or by the next stage. So needed_[x][0] says whether x is retained into the next stage, and
  /// the last entry whether x is needed at all. add_memory_rows() pops an entry whenever it passes a reader.
  std::vector<std::vector<Entry>> needed_;
};

}  // namespace cairn::solvers
