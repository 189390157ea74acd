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

/// Re-optimises windows (stretches of steps) of a schedule exactly. The values in memory before the window's first step
/// and those required after its last one stay the same. In between LiveSetSearch finds the cheapest steps within the
/// budget. It may use the window's nodes and those that it might pay to run again: producers of values in memory before
/// the window, and what they need. With OrderRule::input first runs keep their order. Keeps the scope; pinned nodes run
/// once.
///
/// Keeps its memory from call to call. Deterministic for a seed. Not thread-safe: use one a thread.
class WindowSearch {
 public:
  /// Prepares the search. `budget`: in bytes; `memory_bytes`: for the search's states. The graph must outlive the
  /// object. Throws std::logic_error for OrderRule::stages: a stage cannot be re-optimised by itself.
  WindowSearch(const core::Graph& graph, const Scope& scope, std::int64_t budget, std::uint64_t seed,
               std::int64_t memory_bytes);

  /// Result for one window.
  enum class Outcome : std::uint8_t {
    improved,   ///< the window is cheaper now; or of a lower peak, if it exceeded the budget
    moved,      ///< the window has other steps of the same cost now
    proved,     ///< unchanged: nothing better exists between the window's ends with the nodes allowed
    cut_short,  ///< unchanged: the window was too large for the search, which gave up
  };

  /// Picks one window of the valid schedule, which must be within the scope: at random, around a step of high memory or
  /// around a recomputation, no longer than the search is likely to finish. Returns true if the schedule is better now:
  /// cheaper, or of a lower peak in the window if that exceeded the budget. If false, the schedule may have changed to
  /// one of the same cost, no longer and no higher. O(T + sum of in-degrees), plus the search.
  bool improve(std::vector<core::NodeId>& steps, core::Stopwatch& watch);

  /// Improves the window of steps [begin, end) of the schedule. `most_states`: most states that the search may reach.
  Outcome improve_window(std::vector<core::NodeId>& steps, std::size_t begin, std::size_t end, std::int64_t most_states,
                         core::Stopwatch& watch);

  double length() const { return length_; }          ///< typical length of windows, in steps
  std::int64_t windows() const { return windows_; }  ///< number of windows searched so far
  std::int64_t states() const { return states_; }    ///< number of states reached so far

 private:
  /// The lifetime of an output of a step: in memory during the steps [made, last].
  struct Life {
    core::ValueId value;
    std::int32_t made, last;
  };
  /// The window's steps, and the sets of live values between which they lie.
  struct Ends {
    std::int32_t begin = 0, end = 0;
    std::int64_t cost = 0;              ///< cost of the window's steps
    std::int64_t peak = 0;              ///< peak during the window's steps
    std::vector<core::NodeId> nodes;    ///< nodes of the window's steps
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
  std::int64_t cost_of(const std::vector<core::NodeId>& steps) const;
  void replace(std::vector<core::NodeId>& steps);
  std::pair<std::size_t, std::size_t> pick();

  const core::Graph& graph_;
  const Scope scope_;
  const std::int64_t budget_, memory_bytes_;
  core::Random random_;
  double length_;           ///< length of windows that the search mostly finishes, in steps
  double most_states_;      ///< most states that a search may reach; more where windows bring nothing
  std::int64_t slack_ = 0;  ///< cost of the window beyond that of the nodes that must run there
  std::int64_t windows_ = 0, states_ = 0;

  // The current schedule.
  std::vector<core::NodeId> steps_;
  std::vector<Life> lives_;                  ///< lifetimes of the steps' outputs, by step
  std::vector<std::int64_t> during_;         ///< bytes in memory during each step
  std::vector<std::int32_t> recomputed_;     ///< steps whose node has run before
  std::vector<std::int32_t> first_, count_;  ///< first step of a node and number of its occurrences, by node
  std::vector<std::int32_t> life_of_;        ///< last life so far of a value, by value

  // The window.
  Ends ends_;
  std::vector<std::uint8_t> is_before_, is_after_;  ///< whether a value is in Ends::before, or in Ends::after; by value
  std::vector<std::int32_t> inside_;                ///< number of a node's occurrences in the window, by node
  std::vector<core::NodeId> nodes_;                 ///< nodes that the search may run
  /// Whether a node is allowed; whether it must run in any case; by node.
  std::vector<std::uint8_t> allowed_, in_rest_;
  std::vector<std::uint8_t> barred_;       ///< whether a node runs too often already, by node
  std::vector<core::ValueId> values_;      ///< values that the search may make or drop
  std::vector<std::int32_t> number_;       ///< index of a value in values_, or -1; by value
  std::vector<std::int32_t> node_number_;  ///< index of an allowed node in nodes_, by node
  std::int64_t fixed_bytes_ = 0;           ///< bytes of values that stay in memory
  std::vector<core::NodeId> found_;        ///< steps found, to replace the window's
  std::int64_t found_cost_ = 0;
  bool found_any_ = false, proved_ = false;
  std::vector<std::pair<double, core::ValueId>> candidates_;  ///< values whose producers might run again
  std::vector<core::NodeId> stack_;
  Engine<Set64> small_;
  Engine<Set128> large_;
};

}  // namespace cairn::solvers
