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

/// Improves windows of a schedule exactly. A window is a range of consecutive steps. LiveSetSearch finds the cheapest
/// steps within the budget that lead from the values in memory before the window to the values required after it. These
/// steps can run the nodes of the window and a few other nodes. The other nodes make values that are in memory before
/// the window, or inputs for making these values again. With OrderRule::input, first runs stay in the input order. If
/// the Scope of the search (bound.h) allows the schedule, it allows the result, too. Pinned nodes run once.
///
/// Results are deterministic for a seed. Reuses memory from call to call, so each thread needs its own object.
class WindowSearch {
 public:
  /// Prepares the search. `budget` is in bytes. `memory_bytes` limits the memory of one run of LiveSetSearch. The graph
  /// must outlive the object. Throws std::logic_error for OrderRule::stages, because this rule also restricts the order
  /// of nodes that run again, which LiveSetSearch cannot do.
  WindowSearch(const core::Graph& graph, const Scope& scope, std::int64_t budget, std::uint64_t seed,
               std::int64_t memory_bytes);

  /// Says what improve_window() has done with a window.
  enum class Outcome : std::uint8_t {
    improved,  ///< the window was replaced: it is cheaper or, if it exceeded the budget, has a lower peak
    moved,     ///< the window was replaced by other steps of the same cost
    /// the window is unchanged, and it is proved that the nodes that the search may run form no better window
    proved,
    cut_short,  ///< the window is unchanged, because the search was ended before it found or proved anything
  };

  /// Picks a window around a step of high memory, around a recomputation, or anywhere, and improves it. The schedule
  /// must be valid, and the Scope of the search must allow it. Returns whether the window was improved: it is cheaper
  /// or, if it exceeded the budget, has a lower peak. If not, it may still have been replaced by steps of the same
  /// cost: no more steps than before, with a peak within the budget. Takes O(T + sum of in-degrees) time for T steps,
  /// plus the search.
  bool improve(std::vector<core::NodeId>& steps, core::Stopwatch& watch);

  /// Improves the window of the steps [begin, end) of the schedule. The search may reach at most `most_states` states.
  Outcome improve_window(std::vector<core::NodeId>& steps, std::size_t begin, std::size_t end, std::int64_t most_states,
                         core::Stopwatch& watch);

  double length() const { return length_; }  ///< typical length of the windows to pick, in steps
  std::int64_t windows() const { return windows_; }
  std::int64_t states() const { return states_; }

 private:
  /// Stores the lifetime of an output of a step. The output is in memory during the steps [made, last].
  struct Life {
    core::ValueId value;
    std::int32_t made, last;
  };
  /// Stores a window's steps, and the sets of values in memory before and after these steps.
  struct Ends {
    std::int32_t begin = 0, end = 0;
    std::int64_t cost = 0;
    std::int64_t peak = 0;  ///< peak during the window's steps
    std::vector<core::NodeId> nodes;
    std::vector<core::ValueId> before;  ///< values in memory before the window's first step
    std::vector<core::ValueId> after;   ///< values that must be in memory after the window's last step
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
  void replace(std::vector<core::NodeId>& steps);
  std::pair<std::size_t, std::size_t> pick();

  const core::Graph& graph_;
  const Scope scope_;
  const std::int64_t budget_, memory_bytes_;
  core::Random random_;
  double length_;           ///< length of windows for which the search usually finishes, in steps
  double most_states_;      ///< largest number of states of a search; rises with each search that improves nothing
  std::int64_t slack_ = 0;  ///< cost of the window minus the cost of the nodes that must run in it
  std::int64_t windows_ = 0, states_ = 0;

  // The next members describe the current schedule.
  std::vector<core::NodeId> steps_;
  std::vector<Life> lives_;               ///< lifetimes of the outputs of all steps, in the order of the steps
  std::vector<std::int64_t> during_;      ///< bytes in memory, indexed by step
  std::vector<std::int32_t> recomputed_;  ///< steps that run their node again
  /// - first_[v]: first step that runs node v.
  /// - count_[v]: number of occurrences of node v in the schedule.
  std::vector<std::int32_t> first_, count_;
  std::vector<std::int32_t> life_of_;  ///< index in lives_ of the latest lifetime of each value, indexed by value

  // The next members describe the current window.
  Ends ends_;
  /// Whether each value is in Ends::before (is_before_) and in Ends::after (is_after_).
  std::vector<std::uint8_t> is_before_, is_after_;
  std::vector<std::int32_t> inside_;  ///< number of a node's occurrences in the window, indexed by node
  std::vector<core::NodeId> nodes_;
  /// - allowed_[v]: whether the search may run node v.
  /// - in_rest_[v]: whether every solution runs node v in the window.
  std::vector<std::uint8_t> allowed_, in_rest_;
  /// Whether a node may run only once in the window, because of Scope::max_occurrences. Indexed by node.
  std::vector<std::uint8_t> barred_;
  std::vector<core::ValueId> values_;      ///< values that the search may make or drop
  std::vector<std::int32_t> number_;       ///< index of a value in values_, or -1; indexed by value
  std::vector<std::int32_t> node_number_;  ///< index of an allowed node in nodes_; indexed by node
  std::int64_t fixed_bytes_ = 0;           ///< bytes of the values that stay in memory during the whole window
  std::vector<core::NodeId> found_;        ///< steps of the latest solution
  std::int64_t found_cost_ = 0;
  bool found_any_ = false, proved_ = false;
  /// Values whose producers the search might run again. The first number of a pair is the cost of running the producer,
  /// divided by the value's bytes and multiplied by a random factor.
  std::vector<std::pair<double, core::ValueId>> candidates_;
  std::vector<core::NodeId> stack_;
  Engine<Set64> small_;
  Engine<Set128> large_;
};

}  // namespace cairn::solvers
