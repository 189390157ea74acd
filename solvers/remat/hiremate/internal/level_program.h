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

/// Builds the integer linear program of a level for one budget, and translates its solution to a schedule. Level and
/// level_model.h explain compute nodes, phases, ways and data.
class Program {
 public:
  using Variable = LinearModel::Variable;

  Program(const Model& level, const LevelBudget& budget, const LevelSearch& search);
  /// Returns whether all rows were written. If not, there was too little time or memory, and the program is useless.
  bool complete() const { return complete_; }

  LevelAnswer read(const EngineAnswer& engine) const;

  /// Computes the values of all variables if exactly the given runs take place.
  std::vector<std::int64_t> values_of(const std::vector<LevelAnswer::Run>& runs) const;

  std::size_t memory_rows() const { return memory_.size(); }
  /// Adds to `linear` those memory rows (see MemoryRow) that were not added before and for which choose(phase, compute
  /// node) returns true. Returns how many rows were added.
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
  /// Returns for each compute node whether the answer violates one of its memory rows that were not added.
  std::vector<bool> broken_by(const EngineAnswer& engine) const;

  LinearModel linear;
  const Model& model;

 private:
  /// Stores a memory row, which requires that at most `most` bytes are in memory while compute node `node` runs in
  /// phase `phase`.
  struct MemoryRow {
    std::int32_t phase, node;
    std::vector<LinearTerm> terms;
    std::int64_t most;
    bool added = false;
  };

  /// Returns the variable that says whether the backward compute node k runs in way w. The same variable says whether
  /// the forward compute node of the same part saves its values in way w + 1. The forward node has one more way, the
  /// first, which saves nothing.
  Variable runs_backward(std::int32_t k, std::size_t w) const { return saved_[model.nodes[k].part][k][w + 1]; }

  /// Returns the compute nodes that can run in phase t, in the order in which they run.
  std::vector<std::int32_t> steps_of(std::int32_t t) const;
  bool can_run_again(std::int32_t t, std::int32_t k) const;

  /// Finds for each forward compute node the last phase in which running it again could be useful, and for each datum
  /// the last phase in which it could be read.
  void find_last_use();

  void add_runs();

  /// Adds the variables saved_[k][t][w]. Each says whether forward half k has run in way w, which saves values for the
  /// backward half, in phase t or an earlier phase.
  void add_saving();

  /// Returns whether the datum needs no variables. This is so if every solution has it in memory from the first run of
  /// its maker until its last reader has run, or until the end.
  bool constant(const Datum& datum) const;

  /// Returns the variable that says whether datum d is in memory before phase t, or kAbsent if no run could use d then.
  /// The datum must not be constant().
  Variable kept(std::int32_t t, std::size_t d) const;

  /// Returns the variables that say whether compute node k runs in phase t in a way that reads datum d.
  std::vector<Variable> readings(std::int32_t t, std::int32_t k, std::size_t d) const;

  /// Adds the variables kept_[t][d], which say whether datum d is in memory before phase t. Also adds one variable to
  /// needed_[t][d] for each reader of d. This variable says whether d is needed by that reader or by a later reader in
  /// phase t, or is in memory after the phase.
  void add_values(std::int32_t t);

  /// Returns the variable that says whether datum d is needed by compute node k, by a later one in phase t, or after
  /// the phase. With `strictly`, k itself does not count. Returns kAbsent if nothing can need d. The datum must not be
  /// constant().
  Variable needed_from(std::int32_t t, std::size_t d, std::int32_t k, bool strictly) const;

  /// Adds the bytes that forward half j has saved for its backward half by the end of phase t.
  void add_saved(std::int32_t j, std::int32_t t, LinearSum& held) const;

  /// Returns the bytes in memory, as a sum in which each variable occurs at most once. The bytes are those at the point
  /// of the run of compute node k in phase t at which the reads `still` are yet to come. Outputs and internal values of
  /// k are not counted.
  LinearSum held_at(std::int32_t t, std::int32_t k, std::span<const Way::Read> still) const;

  /// Returns the number of bytes of negative scratch in the level. Memory after a step can exceed the memory during the
  /// step by at most this number.
  std::int64_t negative_scratch() const;

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
  /// Variable of each run, indexed by [phase][compute node][way]. kAbsent: there is no such run.
  std::vector<std::vector<std::vector<Variable>>> run_;
  /// Variables that add_saving() describes. Indexed by [forward compute node][phase][way].
  std::vector<std::vector<std::vector<Variable>>> saved_;
  /// Variables that say whether a datum is in memory before a phase. Indexed by [phase][datum].
  std::vector<std::vector<Variable>> kept_;
  /// Indexed by [phase][datum]: each reader of the datum and its variable, which add_values() describes.
  std::vector<std::vector<std::vector<std::pair<std::int32_t, Variable>>>> needed_;
};

}  // namespace cairn::solvers::level
