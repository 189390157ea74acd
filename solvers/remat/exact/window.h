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
  /// `budget`: in bytes; `memory_bytes`: for the search's states. The graph must outlive the object. Throws
  /// std::logic_error for OrderRule::stages: a stage cannot be re-optimised by itself.
  WindowSearch(const core::Graph& graph, const Scope& scope, std::int64_t budget, std::uint64_t seed,
               std::int64_t memory_bytes);

  /// Result for one window.
  enum class Outcome : std::uint8_t {
    improved,   ///< cheaper now; or of a lower peak, if it exceeded the budget
    moved,      ///< other steps of the same cost
    proved,     ///< nothing better exists between its ends with the nodes allowed; unchanged
    cut_short,  ///< too large for the search, which gave up
  };

  /// Picks one window of the valid schedule, which must be within the scope: at random, around a step of high memory or
  /// around a recomputation, no longer than the search is likely to finish. Returns true if the schedule is better now:
  /// cheaper, or of a lower peak in the window if that exceeded the budget. If false, the schedule may have changed to
  /// one of the same cost, no longer and no higher. O(T + sum of in-degrees), plus the search.
  bool improve(std::vector<core::NodeId>& steps, core::Stopwatch& watch);

  /// Likewise for the window of steps [begin, end). `most_states`: most states that the search may reach.
  Outcome improve_window(std::vector<core::NodeId>& steps, std::size_t begin, std::size_t end, std::int64_t most_states,
                         core::Stopwatch& watch);

  double length() const { return length_; }          ///< typical length of windows, in steps
  std::int64_t windows() const { return windows_; }  ///< number searched so far
  std::int64_t states() const { return states_; }    ///< number reached so far

 private:
  /// An output of a step: in memory during the steps [made, last].
  struct Life {
    core::ValueId value;
    std::int32_t made, last;
  };
  /// The live sets between which a window lies.
  struct Ends {
    std::int32_t begin = 0, end = 0;
    std::int64_t cost = 0;              ///< of its steps
    std::int64_t peak = 0;              ///< during its steps
    std::vector<core::NodeId> nodes;    ///< its steps
    std::vector<core::ValueId> before;  ///< values in memory before its first step
    std::vector<core::ValueId> after;   ///< values that must be in memory after its last step
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
  double length_;           ///< of windows that the search mostly finishes
  double most_states_;      ///< that a search may reach; more where windows bring nothing
  std::int64_t slack_ = 0;  ///< cost of the window beyond that of nodes that must run there
  std::int64_t windows_ = 0, states_ = 0;

  // The current schedule.
  std::vector<core::NodeId> steps_;
  std::vector<Life> lives_;                  ///< of the steps' outputs, by step
  std::vector<std::int64_t> during_;         ///< bytes
  std::vector<std::int32_t> recomputed_;     ///< steps whose node ran before
  std::vector<std::int32_t> first_, count_;  ///< by node: its first step, its number of occurrences
  std::vector<std::int32_t> life_of_;        ///< by value: its last life so far

  // The window.
  Ends ends_;
  std::vector<std::uint8_t> is_before_, is_after_;  ///< by value
  std::vector<std::int32_t> inside_;                ///< by node: its occurrences in the window
  std::vector<core::NodeId> nodes_;                 ///< nodes that may run
  std::vector<std::uint8_t> allowed_, in_rest_;     ///< by node
  std::vector<std::uint8_t> barred_;                ///< by node: it ran too often
  std::vector<core::ValueId> values_;               ///< values that are made or dropped
  std::vector<std::int32_t> number_;                ///< by value: index in values_, or -1
  std::vector<std::int32_t> node_number_;           ///< by allowed node: index in nodes_
  std::int64_t fixed_bytes_ = 0;                    ///< bytes of values that stay
  std::vector<core::NodeId> found_;                 ///< steps to replace the window's
  std::int64_t found_cost_ = 0;
  bool found_any_ = false, proved_ = false;
  std::vector<std::pair<double, core::ValueId>> candidates_;  ///< values whose producers might run again
  std::vector<core::NodeId> stack_;
  Engine<Set64> small_;
  Engine<Set128> large_;
};

}  // namespace cairn::solvers
