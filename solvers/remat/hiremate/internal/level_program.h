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

/// The integer linear program for one budget, and the meaning of its variables.
class Program {
 public:
  using Variable = LinearModel::Variable;

  Program(const Model& level, const LevelBudget& budget, const LevelSearch& search);
  /// Whether all rows were written; false: there was no time or memory for them.
  bool complete() const { return complete_; }

  LevelAnswer read(const EngineAnswer& engine) const;

  /// Computes the values of all variables for given runs.
  std::vector<std::int64_t> values_of(const std::vector<LevelAnswer::Run>& runs) const;

  std::size_t memory_rows() const { return memory_.size(); }
  /// Adds to `linear` the memory rows for which choose(phase, compute node) holds; returns their number.
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
  /// Finds the compute nodes whose memory row was not added so far and is violated by the answer.
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

  /// Variable for whether way w of the backward node k runs, in its phase. The first way of its forward node does not
  /// save, so ways of k start behind it.
  Variable runs_backward(std::int32_t k, std::size_t w) const { return saved_[model.nodes[k].part][k][w + 1]; }

  /// Lists the compute nodes that can run in a phase, in order.
  std::vector<std::int32_t> steps_of(std::int32_t t) const;
  bool can_run_again(std::int32_t t, std::int32_t k) const;

  /// Finds for each forward node the last phase in which it could be useful to run it again, and for each datum the
  /// last phase in which it could be read.
  void find_last_use();

  void add_runs();

  /// Adds saved_[k][t][w]: whether the values saved by way w of forward node k are in memory after k's place in phase
  /// t.
  void add_saving();

  bool constant(const Datum& datum) const;

  /// Variable for whether a datum that is not constant is in memory before phase t; kAbsent: the model has no choice.
  Variable kept(std::int32_t t, std::size_t d) const;

  /// Lists the variables of the runs of compute node k in phase t that read d.
  std::vector<Variable> readings(std::int32_t t, std::int32_t k, std::size_t d) const;

  /// Selects those of the given steps that read d.
  std::vector<std::int32_t> readers_among(const std::vector<std::int32_t>& steps, std::size_t d) const;

  /// Adds kept_[t][d], whether d is in memory before phase t, and needed_[t][d], whether d is needed at each of its
  /// readers' places in phase t, or later.
  void add_values(std::int32_t t);

  /// Returns the variable for whether d, which is not constant, is needed in phase t at the place of k or later
  /// (`strictly`: only later); kAbsent: it is not needed.
  Variable needed_from(std::int32_t t, std::size_t d, std::int32_t k, bool strictly) const;

  /// Bytes in memory: a certain part, and terms for bytes that are there if a variable is 1.
  struct Held {
    std::int64_t certain = 0;
    std::vector<LinearTerm> terms;  ///< bytes of each variable, every variable once
  };
  static void merge(std::vector<LinearTerm>& terms);

  /// Computes the bytes in memory beside the outputs and the inside of step k in phase t, when its reads `still` are to
  /// come.
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
  std::vector<std::vector<std::vector<Variable>>> run_;  ///< variable of a run, by [phase][compute node][way]
  /// Variable of saved values, by [forward compute node][phase][way].
  std::vector<std::vector<std::vector<Variable>>> saved_;
  /// Variable for a datum in memory before a phase, by [phase][datum].
  std::vector<std::vector<Variable>> kept_;
  std::vector<std::vector<std::vector<std::pair<std::int32_t, Variable>>>>
      needed_;  ///< readers of a datum with the variables for its need, by [phase][datum]
};

}  // namespace cairn::solvers::level
