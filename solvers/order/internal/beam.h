#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/order/internal/step_graph.h"

namespace cairn::solvers {

/// Beam search for an order whose peak does not exceed a limit. It searches over topological cuts: sets of steps that
/// have run, with all their predecessors. The beam of round k consists of cuts of k steps. Of all cuts that can be
/// reached within the limit, the `width` cuts of least memory are kept.
///
/// If some step fits and leaves memory no higher, no other step is tried. This loses no order within the limit. The
/// reason is that memory is a submodular function of the cut: the more steps have run, the fewer bytes a further step
/// adds. So in any order within the limit, this step can be moved to the present position without exceeding the limit.
/// If the search never had to leave out a cut, its answer is proved, even the answer that no order exists.
///
/// A backward search goes from the cut of all steps to the empty cut. In reverse, a step first takes `drop` and
/// afterwards gives back `rise`. An output appears with the first of its readers instead of disappearing with the last.
/// So the backward problem has the same form, except for the moment at which the bytes of an output count. Either
/// direction can be far easier than the other.
class Beam {
 public:
  enum class Outcome : std::uint8_t {
    running,    ///< `watch` expired; the next advance() continues from there
    found,      ///< order() is within the limit
    none,       ///< proved: no order is within the limit
    truncated,  ///< no order was found, but some cuts were left out, so an order may exist
  };

  Beam(const StepGraph& graph, bool backward, std::int32_t width);

  /// Begins a search for an order with a peak of at most `limit` bytes.
  void start(std::int64_t limit);
  /// Continues the search. A unit of work is one step tried on one cut.
  Outcome advance(core::Stopwatch& watch);
  /// Returns the order found.
  std::vector<StepId> order() const;

 private:
  /// Zobrist hash of a set of steps, computed twice with different random numbers. Equal hashes can be taken for equal
  /// cuts: among 10^6 cuts of one beam, two different cuts have the same hash with probability 10^-27.
  struct Hash {
    std::uint64_t low = 0, high = 0;
    bool operator==(const Hash&) const = default;
  };
  /// A cut. Its lists are stored in Level::entries, one after another:
  /// - ready steps;
  /// - pairs (step, readers left) for outputs that only some of their readers have read;
  /// - pairs (step, blockers left) for steps of which only some blockers have run, where a blocker is a step that must
  /// run before.
  /// The lengths of the lists depend on the width of the cut, not on the number of steps.
  struct State {
    Hash hash;
    std::int64_t memory = 0;
    std::size_t begin = 0;
    std::int32_t ready = 0, read = 0, blocked = 0;
    std::int32_t trace = -1;
  };
  struct Level {
    std::vector<State> states;
    std::vector<std::int32_t> entries;
    void clear() { states.clear(), entries.clear(); }
  };
  struct Candidate {
    Hash hash;
    std::int64_t memory = 0;
    std::int32_t parent = 0, step = 0;
  };
  struct Trace {
    std::int32_t parent = -1, step = 0;
  };

  void load(const State& state);
  void unload(const State& state);
  void expand(std::int32_t parent);
  void drop_equal();
  void keep_best();
  void run(const State& parent, const Candidate& candidate);

  std::span<const StepId> blocked_by(StepId s) const {
    return backward_ ? graph_->predecessors(s) : graph_->successors(s);
  }
  std::span<const StepId> reads(StepId s) const {
    return {reads_.data() + reads_begin_[s], reads_.data() + reads_begin_[s + 1]};
  }

  const StepGraph* graph_;
  bool backward_;
  std::int32_t width_;
  std::int64_t memory_ = 0;  ///< bytes in memory at the cut where the search starts
  std::vector<std::int32_t> reads_begin_{0};
  std::vector<StepId> reads_;  ///< for each step, the predecessors that have an output
  /// - readers_: for each step, the number of steps that must run before the step's output is released.
  /// - blockers_: for each step, the number of steps that must run before the step itself.
  std::vector<std::int32_t> readers_, blockers_;
  std::int64_t limit_ = 0;
  std::int32_t done_ = 0;      ///< number of steps run in every state of the current beam
  std::int32_t expanded_ = 0;  ///< number of states of the current beam whose successors are in candidates_
  bool truncated_ = false;
  std::vector<Hash> zobrist_;  ///< random hash of each step
  /// - readers_left_: for each step, the number of its readers that have not run in the loaded state.
  /// - blockers_left_: for each step, the number of its blockers that have not run in the loaded state.
  /// A step that is not in the state's lists has the same values as in the empty cut.
  std::vector<std::int32_t> readers_left_, blockers_left_;
  Level level_, next_level_;
  std::vector<Candidate> candidates_;
  std::vector<std::int32_t> table_;
  std::vector<Trace> trace_;
};

}  // namespace cairn::solvers
