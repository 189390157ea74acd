#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/engines/engine.h"
#include "cairn/solvers/remat/hiremate/internal/level_model.h"
#include "cairn/solvers/remat/hiremate/level.h"

namespace cairn::solvers::level {

/// The integer linear program of a level for one budget, and the meaning of its variables.
class Program {
 public:
  using Variable = LinearModel::Variable;

  Program(const Model& level, const LevelBudget& budget, const LevelSearch& search);
  /// Returns whether all rows were written. If not, there was too little time or memory.
  bool complete() const { return complete_; }

  LevelAnswer read(const EngineAnswer& engine) const;

  /// Computes the values of all variables that describe the given runs.
  std::vector<std::int64_t> values_of(const std::vector<LevelAnswer::Run>& runs) const;

  std::size_t memory_rows() const { return memory_.size(); }
  /// Adds memory rows to `linear`: those for which choose(phase, compute node) returns true and which were not added
  /// before. Returns how many were added.
  template <class Choose>
  std::size_t add_memory_rows(const Choose& choose) {
    std::size_t added = 0;
    for (MemoryRow& row : memory_) {
      if (row.added || !choose(row.phase, row.node)) continue;
      linear.add_row(row.terms, -LinearModel::kInfinity, row.most);
      row.added = true;
      ++added;
    }
    return added;
  }
  /// Returns for each compute node whether the answer violates a memory row of the node that was not added yet.
  std::vector<bool> broken_by(const EngineAnswer& engine) const;

  LinearModel linear;
  const Model& model;

 private:
  /// A row that limits the bytes at a compute node in a phase to `most`.
  struct MemoryRow {
    std::int32_t phase, node;
    std::vector<LinearTerm> terms;
    std::int64_t most;
    bool added = false;
  };

  /// Returns the variable that says whether way w of the backward node k runs in its phase. This is the variable of the
  /// corresponding saving way of the forward node. The index of that way is w + 1, because the forward node's first way
  /// saves nothing.
  Variable runs_backward(std::int32_t k, std::size_t w) const { return saved_[model.nodes[k].part][k][w + 1]; }

  /// Returns the compute nodes that can run in phase t, in order.
  std::vector<std::int32_t> steps_of(std::int32_t t) const;
  bool can_run_again(std::int32_t t, std::int32_t k) const;

  /// Finds for each forward node the last phase in which running it again could be useful. Finds for each datum the
  /// last phase in which it could be read.
  void find_last_use();

  void add_runs();

  /// Adds the variables saved_[k][t][w]. Each says whether the values saved by way w of forward node k are in memory in
  /// phase t after the time at which k can run.
  void add_saving();

  bool constant(const Datum& datum) const;

  /// Returns the variable that says whether a datum is in memory before phase t. The datum must not be constant.
  /// Returns kAbsent if the datum would be of no use in memory at that time.
  Variable kept(std::int32_t t, std::size_t d) const;

  /// Returns the variables of the runs of compute node k in phase t that read d.
  std::vector<Variable> readings(std::int32_t t, std::int32_t k, std::size_t d) const;

  /// Selects from the given steps those that read d.
  std::vector<std::int32_t> readers_among(const std::vector<std::int32_t>& steps, std::size_t d) const;

  /// Adds the variables kept_[t][d], which say whether d is in memory before phase t. Adds the variables needed_[t][d],
  /// which say whether one of the readers of d, or a later reader, needs d in phase t.
  void add_values(std::int32_t t);

  /// Returns the variable that says whether compute node k or a later one needs d in phase t. With `strictly`, only
  /// later nodes than k count. d must not be constant. Returns kAbsent if d is not needed.
  Variable needed_from(std::int32_t t, std::size_t d, std::int32_t k, bool strictly) const;

  /// Bytes in memory. This is a constant plus, for each variable that is 1, a number of bytes.
  struct Held {
    std::int64_t certain = 0;
    std::vector<LinearTerm> terms;  ///< bytes for each variable; each variable occurs once
  };
  static void merge(std::vector<LinearTerm>& terms);

  /// Computes the bytes in memory at one point of the run of compute node k in phase t, when the reads `still` are yet
  /// to come. Does not count outputs and internal values of k.
  Held held_at(std::int32_t t, std::int32_t k, std::span<const Way::Read> still) const;

  bool goes_on();

  void add_memory(std::int32_t t);

  void add_between();

  LevelBudget budget_;
  bool corrections_, again_;
  core::Stopwatch building_;
  bool complete_ = true;
  std::size_t memory_terms_ = 0;
  std::vector<MemoryRow> memory_;
  std::vector<std::int32_t> last_use_, last_read_;
  /// Variable of each run, indexed by [phase][compute node][way].
  std::vector<std::vector<std::vector<Variable>>> run_;
  /// Variable that says whether the values that a way of a forward compute node saves are in memory after its place in
  /// a phase, indexed by [forward compute node][phase][way].
  std::vector<std::vector<std::vector<Variable>>> saved_;
  /// Variable that says whether a datum is in memory before a phase, indexed by [phase][datum].
  std::vector<std::vector<Variable>> kept_;
  std::vector<std::vector<std::vector<std::pair<std::int32_t, Variable>>>>
      needed_;  ///< readers of a datum, each with the variable for whether the datum is needed, by [phase][datum]
};

}  // namespace cairn::solvers::level
