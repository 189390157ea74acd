#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/schedule.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/common/bound.h"
#include "cairn/solvers/remat/exact/live_set_search.h"

namespace cairn::solvers {

/// Re-optimises stretches (windows) of a schedule exactly. What is in memory before the window's first step and what
/// must be in memory after its last one stay as they are; in between LiveSetSearch finds the cheapest steps within the
/// budget, over the window's nodes and over those that it might pay to run again: producers of what is in memory
/// before, and what they need. With OrderRule::input first runs keep their order. Keeps the scope; pinned nodes run
/// once.
///
/// Keeps its memory from call to call. Deterministic for a seed. Not thread-safe: one a thread.
class WindowSearch {
 public:
  /// `budget` in bytes; `memory_bytes`: for the search's states. The graph must outlive it. Throws std::logic_error for
  /// OrderRule::stages: a stage cannot be re-optimised by itself.
  WindowSearch(const core::Graph& graph, const Scope& scope, std::int64_t budget, std::uint64_t seed,
               std::int64_t memory_bytes);

  /// What became of a window.
  enum class Outcome : std::uint8_t {
    improved,   ///< cheaper now; or of a lower peak, where it exceeded the budget
    moved,      ///< of the same cost, but other steps
    proved,     ///< nothing better between its ends with the nodes allowed, and nothing was changed
    cut_short,  ///< too large for the search, which gave up
  };

  /// Picks one window of the valid schedule, which must be within the scope: at random, around a step of high memory or
  /// around a recomputation, as long as the search is likely to finish. True if the schedule is better now: cheaper, or
  /// of a lower peak in the window where that exceeds the budget. It may be another one of the same cost, no longer and
  /// no higher, where that is false. O(T + sum of in-degrees), and the search.
  bool improve(std::vector<core::NodeId>& steps, core::Stopwatch& watch);

  /// The same with the window of steps [begin, end). `most_states`: that the search may reach.
  Outcome improve_window(std::vector<core::NodeId>& steps, std::size_t begin, std::size_t end, std::int64_t most_states,
                         core::Stopwatch& watch);

  double length() const { return length_; }          ///< of windows, about, in steps
  std::int64_t windows() const { return windows_; }  ///< searched so far
  std::int64_t states() const { return states_; }    ///< reached so far

 private:
  /// An output of a step: in memory during the steps [made, last].
  struct Life {
    core::ValueId value;
    std::int32_t made, last;
  };
  /// Between which live sets a window lies.
  struct Ends {
    std::int32_t begin = 0, end = 0;
    std::int64_t cost = 0;              ///< of its steps
    std::int64_t peak = 0;              ///< during its steps
    std::vector<core::NodeId> nodes;    ///< its steps
    std::vector<core::ValueId> before;  ///< values in memory before its first step
    std::vector<core::ValueId> after;   ///< and after its last one
  };
  template <class Set>
  struct Engine {
    LiveSetProblem<Set> problem;
    LiveSetSearch<Set> search;
  };

  void analyse(const std::vector<core::NodeId>& steps);
  void find_ends(std::int32_t begin, std::int32_t end);
  bool is_goal(core::NodeId v) const;
  bool in_order(core::NodeId v) const;
  std::int64_t find_rest();
  bool allow_producer(core::ValueId x, std::int64_t most_cost);
  bool allow_nodes(std::int64_t slack);
  bool number_values();
  template <class Set>
  void state_problem(LiveSetProblem<Set>& problem);
  bool bar_what_runs_too_often();
  template <class Set>
  void solve(Engine<Set>& engine, const LiveSetLimits& limits, core::Stopwatch& watch);
  void solve(std::int64_t budget, std::int64_t most_cost, std::int64_t most_states, core::Stopwatch& watch);
  Outcome lower_window(std::vector<core::NodeId>& steps, std::int64_t most_states, core::Stopwatch& watch);
  std::int64_t cost_of(const std::vector<core::NodeId>& steps) const;
  void replace(std::vector<core::NodeId>& steps);
  std::pair<std::size_t, std::size_t> pick();

  const core::Graph& graph_;
  const Scope scope_;
  const std::int64_t budget_, memory_bytes_;
  core::Random random_;
  double length_;           ///< of windows: what the search mostly finishes
  double most_states_;      ///< that a search may reach: more where windows bring nothing
  std::int64_t slack_ = 0;  ///< cost of the window beyond what must run there
  std::int64_t windows_ = 0, states_ = 0;

  // The schedule as it is.
  std::vector<core::NodeId> steps_;
  std::vector<Life> lives_;                  ///< of the steps' outputs, by step
  std::vector<std::int64_t> during_;         ///< bytes
  std::vector<std::int32_t> recomputed_;     ///< steps whose node stood before
  std::vector<std::int32_t> first_, count_;  ///< of each node: its first step, its occurrences
  std::vector<std::int32_t> life_of_;        ///< of each value: its last life so far

  // The window.
  Ends ends_;
  std::vector<std::uint8_t> is_before_, is_after_;  ///< of each value
  std::vector<std::int32_t> inside_;                ///< of each node: its occurrences in the window
  std::vector<core::NodeId> nodes_;                 ///< that may run
  std::vector<std::uint8_t> allowed_, in_rest_;     ///< of each node
  std::vector<std::uint8_t> barred_;                ///< of each node: it ran too often
  std::vector<core::ValueId> values_;               ///< that come and go
  std::vector<std::int32_t> number_;                ///< of each value in values_, or -1
  std::vector<std::int32_t> node_number_;           ///< of the nodes allowed, in nodes_
  std::int64_t fixed_bytes_ = 0;                    ///< of values that stay
  std::vector<core::NodeId> found_;                 ///< steps to replace it
  std::int64_t found_cost_ = 0;
  bool found_any_ = false, proved_ = false;
  std::vector<std::pair<double, core::ValueId>> candidates_;  ///< values whose producers might run again
  std::vector<core::NodeId> stack_;
  Engine<Set64> small_;
  Engine<Set128> large_;
};

}  // namespace cairn::solvers
