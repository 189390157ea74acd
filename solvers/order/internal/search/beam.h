#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/solvers/order/internal/reduction/step_graph.h"

namespace cairn::solvers {

/// Searches for an order whose peak is at most a given limit (in bytes) by beam search. A state is a topological cut: a
/// set of steps that contains all predecessors of its steps. The beam of round k consists of cuts of k steps. Of the
/// cuts that can be reached from the previous beam within the limit, the `width` cuts with the least memory are kept.
///
/// If a step can run next within the limit and leaves memory no higher than before it, no other step is tried from that
/// cut. Any order within the limit that goes through the cut can be changed so that this step comes next, because
/// memory is a submodular function of the cut: the more steps have run, the fewer bytes a further step adds. If no beam
/// had more than `width` cuts, the answer is proved, even if the answer is that no order is within the limit.
///
/// A backward search goes from the cut of all steps to the empty cut. Backwards, a step first adds `drop` bytes and
/// afterwards removes `rise` bytes, and an output is added with the first of its readers instead of removed after the
/// last. On some graphs, one direction is far easier than the other.
class Beam {
 public:
  enum class Outcome : std::uint8_t {
    running,    ///< `watch` expired; the next call of advance() continues the search
    found,      ///< an order within the limit was found: order()
    none,       ///< it is proved that no order is within the limit
    truncated,  ///< no order was found, but one may exist, because cuts were left out
  };

  Beam(const StepGraph& graph, bool backward, std::int32_t width);

  void start(std::int64_t limit);
  /// Continues the search until it ends or `watch` expires. A unit of work is one step tried from one cut.
  Outcome advance(core::Stopwatch& watch);
  std::vector<StepId> order() const;

 private:
  /// Zobrist hash of a set of steps, computed twice with different random numbers. Cuts with equal hashes are treated
  /// as equal. Among 10^6 different cuts, two have the same hash with a probability of about 10^-27.
  struct Hash {
    std::uint64_t low = 0, high = 0;
    bool operator==(const Hash&) const = default;
  };
  /// Describes a cut. Its lists are stored in Level::entries, one after another:
  /// - the steps that can run next (`ready` entries);
  /// - pairs (step, number of readers that have not run), for outputs that some, but not all, of their readers have
  /// read (`read` pairs);
  /// - pairs (step, number of blockers that have not run), for steps of which some, but not all, blockers have run
  /// (`blocked` pairs). A blocker of a step is a step that must run before it.
  ///
  /// All other steps are in no list, so the lists are short even if the graph has many steps.
  struct State {
    Hash hash;
    std::int64_t memory = 0;
    std::size_t begin = 0;
    std::int32_t ready = 0, read = 0, blocked = 0;
    std::int32_t trace = -1;
  };
  /// Stores the cuts of one beam. The lists of each cut are in `entries` (see State).
  struct Level {
    std::vector<State> states;
    std::vector<std::int32_t> entries;
    void clear() { states.clear(), entries.clear(); }
  };
  /// A cut of the next beam: running `step` after the cut `parent` of the current beam leads to it.
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

  const StepGraph* graph_;
  bool backward_;
  std::int32_t width_;
  std::int64_t memory_ = 0;  ///< bytes in memory at the cut from which the search starts
  Lists reads_;              ///< for each step, the predecessors that have an output
  /// - readers_: for each step, the number of its successors; its output is freed when all of them have run.
  /// - blockers_: for each step, the number of steps that must run before the step itself.
  std::vector<std::int32_t> readers_, blockers_;
  std::int64_t limit_ = 0;
  std::int32_t done_ = 0;
  std::int32_t expanded_ = 0;  ///< number of states of the current beam whose successors are in candidates_
  bool truncated_ = false;
  std::vector<Hash> zobrist_;
  /// - readers_left_: for each step, the number of its readers that have not run in the loaded state.
  /// - blockers_left_: for each step, the number of its blockers that have not run in the loaded state.
  /// Steps that are in none of the state's lists have their initial numbers.
  std::vector<std::int32_t> readers_left_, blockers_left_;
  Level level_, next_level_;
  std::vector<Candidate> candidates_;
  std::vector<std::int32_t> table_;
  std::vector<Trace> trace_;  ///< for each state, the index of its parent's entry, and the step that ran
};

}  // namespace cairn::solvers
