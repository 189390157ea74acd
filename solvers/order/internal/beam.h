#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/order/internal/step_graph.h"

namespace cairn::solvers {

/// Beam search over topological cuts for an order whose peak does not exceed a limit. A level holds cuts of equally
/// many steps; of the cuts that can be reached within the limit, the `width` of least memory are kept. A step that
/// leaves memory no higher runs at once and alone: the bytes that a step adds to a cut's memory are least on the
/// largest cut, so in any order within the limit the step may as well run now. A search that never had to leave out a
/// cut proves its answer, either way.
///
/// A backward search goes from the full cut to the empty one. Reversed, a step takes `drop` and gives back `rise`, and
/// an output comes with the first of its readers instead of going with the last: the same problem except for the time
/// at which the output's bytes count. Either direction may be far easier than the other.
class Beam {
 public:
  enum class Outcome : std::uint8_t {
    running,    ///< `watch` expired; advance() continues from there
    found,      ///< order() is within the limit
    none,       ///< proved: no order is within the limit
    truncated,  ///< no order was found, but some cuts were left out, so one may exist
  };

  Beam(const StepGraph& graph, bool backward, std::int32_t width);

  /// Begins a search for an order with a peak of at most `limit` bytes.
  void start(std::int64_t limit);
  /// Continues the search. A unit of work is one step tried on a cut.
  Outcome advance(core::Stopwatch& watch);
  /// Returns the order found.
  std::vector<StepId> order() const;

 private:
  /// Zobrist hash of a set of steps, computed twice with different numbers, so that equal hashes can be taken for equal
  /// cuts (among 10^6 at a level, two different cuts agree with probability 10^-27).
  struct Hash {
    std::uint64_t low = 0, high = 0;
    bool operator==(const Hash&) const = default;
  };
  /// A cut. Its lists lie in a Level's `entries`: ready steps; then pairs (step, readers left) for the outputs of which
  /// some readers have run but not all; then pairs (step, blockers left) for the steps of which some blockers have run
  /// but not all. Their length depends on the width of the cut, not on the number of steps.
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
  std::int64_t memory_ = 0;  ///< memory in bytes at the cut where the search starts
  std::vector<std::int32_t> reads_begin_{0};
  std::vector<StepId> reads_;  ///< predecessors that have an output, by step
  /// By step: the number of steps that must run until its output is released; the number that must run before the step
  /// itself.
  std::vector<std::int32_t> readers_, blockers_;
  std::int64_t limit_ = 0;
  std::int32_t done_ = 0;      ///< number of steps run in every state of the level
  std::int32_t expanded_ = 0;  ///< number of states of the level whose successors are in candidates_
  bool truncated_ = false;
  std::vector<Hash> zobrist_;  ///< random hash of each step
  /// Readers and blockers left of each step in the loaded state; for steps not in its lists, as at the start.
  std::vector<std::int32_t> readers_left_, blockers_left_;
  Level level_, next_level_;
  std::vector<Candidate> candidates_;
  std::vector<std::int32_t> table_;
  std::vector<Trace> trace_;
};

}  // namespace cairn::solvers
