#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"

/// An exact search for the cheapest steps that lead from one set of values in memory to another set. exact_remat() uses
/// it for a whole graph. WindowSearch uses it for a range of steps of a schedule.
namespace cairn::solvers {

/// A set of numbers from 0 to 63, one bit for each number.
using Set64 = std::uint64_t;
/// A set of numbers from 0 to 127, one bit for each number.
__extension__ using Set128 = unsigned __int128;

template <class Set>
inline constexpr std::int32_t kMostInSet = sizeof(Set) * 8;

template <class Set>
constexpr Set single(std::int32_t i) {
  return Set{1} << i;
}
template <class Set>
constexpr bool has(Set set, std::int32_t i) {
  return (set >> i & 1) != 0;
}
constexpr std::int32_t size_of(Set64 set) { return std::popcount(set); }
constexpr std::int32_t size_of(Set128 set) {
  return std::popcount(static_cast<Set64>(set)) + std::popcount(static_cast<Set64>(set >> 64));
}
/// Returns the lowest number of a non-empty set.
constexpr std::int32_t lowest(Set64 set) { return std::countr_zero(set); }
constexpr std::int32_t lowest(Set128 set) {
  const auto low = static_cast<Set64>(set);
  return low != 0 ? std::countr_zero(low) : 64 + std::countr_zero(static_cast<Set64>(set >> 64));
}
/// Returns the highest number of a non-empty set.
constexpr std::int32_t highest(Set64 set) { return 63 - std::countl_zero(set); }
constexpr std::int32_t highest(Set128 set) {
  const auto high = static_cast<Set64>(set >> 64);
  return high != 0 ? 127 - std::countl_zero(high) : highest(static_cast<Set64>(set));
}
template <class Set, class Visit>
void for_each_in(Set set, const Visit& visit) {
  for (; set != 0; set &= set - 1) visit(lowest(set));
}

/// A problem for the search: steps that lead from one set of values in memory to another set. Nodes are numbered in a
/// topological order, values by descending size.
template <class Set>
struct LiveSetProblem {
  struct Node {
    Set inputs = 0, outputs = 0;  ///< values that the node reads and makes; outputs that nothing needs may be omitted
    std::int64_t during = 0;      ///< bytes of all outputs and of scratch while the node runs
    std::int64_t cost = 0;
  };
  std::vector<Node> nodes;
  std::vector<std::int64_t> sizes;      ///< sizes of the values, descending
  std::vector<std::int32_t> producers;  ///< node that makes each value; -1: no node of the problem makes it
  Set start = 0;                        ///< values in memory before the first step
  Set target = 0;                       ///< values required in memory after the last step
  Set goals = 0;                        ///< nodes that must run even if none of their values are needed
  Set once = 0;                         ///< nodes that may run at most once
  Set in_order = 0;                     ///< goals whose first runs must be in ascending order

  void clear() {
    nodes.clear();
    sizes.clear();
    producers.clear();
    start = target = goals = once = in_order = 0;
  }
};

inline constexpr std::int64_t kAnyCost = std::numeric_limits<std::int64_t>::max();

struct LiveSetLimits {
  std::int64_t budget = 0;  ///< bytes in memory during any step
  /// Largest cost of a solution that the caller wants.
  std::int64_t most_cost = kAnyCost;
  /// Whether the costs of the steps do not matter. If true, any steps within the budget suffice.
  bool free_of_cost = false;
  /// Largest number of states that the search may reach.
  std::int64_t most_states = std::numeric_limits<std::int64_t>::max();
  std::int64_t memory_bytes = std::int64_t{1} << 30;
  /// Whether to find any solution first and improve it afterwards. If the limit ends the search, it returns the best
  /// solution so far.
  bool anytime = false;
  /// Seed that selects one of several cheapest solutions. With 0, the state reached last among equal states is expanded
  /// first.
  std::uint64_t seed = 0;
};

/// A best-first search (A*) over the contents of memory. A state consists of the values in memory and of those nodes of
/// `goals` and `once` that have run. A transition runs a node, and before that drops an inclusion-minimal set of values
/// to make room. Values are dropped only when memory would be exceeded. So a state is left out if a state expanded
/// earlier has no higher cost and holds all values of this state.
///
/// The lower bound on the remaining cost is the cost of the nodes that must still run: goals, producers of required
/// values that are missing, producers of the missing inputs of these, and so on. The difference between `most_cost` and
/// the bound decides which other nodes can still run. A value is removed from the state if all nodes that read it can
/// no longer run. A value that cannot be made again is not dropped.
///
/// An anytime search has one queue for each number of nodes that must still run. It takes the state of the lowest bound
/// from each queue in turn (cyclic best-first search, Morrison et al. 2017). So it soon finds a solution. The cost of
/// this solution limits the rest of the search.
///
/// Reuses its memory from run to run. Deterministic.
template <class Set>
class LiveSetSearch {
 public:
  struct Result {
    bool found = false;
    /// Whether it is proved that no solution is cheaper or, if there is no solution, that none costs at most most_cost.
    bool proved = false;
    std::vector<std::int32_t> steps;  ///< nodes to run in order, if a solution was found
    std::int64_t cost = 0;            ///< cost of the steps
    /// Lower bound on the cost of every solution within the budget. Not valid if the limit ended an anytime search.
    std::int64_t cost_bound = 0;
    std::int64_t states = 0;  ///< number of states reached
  };

  /// Solves a problem. Charges the watch one unit for each node of each expanded state, and one unit for each set
  /// dropped.
  Result run(const LiveSetProblem<Set>& problem, const LiveSetLimits& limits, core::Stopwatch& watch);

 private:
  using Node = typename LiveSetProblem<Set>::Node;

  struct State {
    Set memory = 0;  ///< set of values in memory
    /// Set of the nodes of `goals` and `once` that have run.
    Set ran = 0;
    bool operator==(const State&) const = default;  // NOLINT
  };
  struct Arrival {
    State state;
    Set rest = 0;   ///< set of nodes that every completion runs
    Set extra = 0;  ///< set of the other nodes that a completion within most_cost can run
    std::int64_t cost = 0, rest_cost = 0;
    std::int32_t from = -1, node = -1;
  };
  struct Entry {
    std::int64_t bound;  ///< lower bound of the cost of any completion
    std::int32_t left;   ///< number of nodes that must still run
    std::uint32_t tie;
    std::int32_t arrival;
    bool operator<(const Entry& other) const {
      if (bound != other.bound) return bound > other.bound;
      if (left != other.left) return left > other.left;
      return tie < other.tie;
    }
  };
  struct Seen {
    Set memory;
    std::int64_t cost;
  };
  /// A hash index from items to their numbers. It can be emptied in O(1).
  class Index {
   public:
    void clear();
    /// Finds the entered number for which is_it(number) holds. If there is no such number, enters `number`. Returns the
    /// slot of the number, and whether `number` was entered.
    template <class IsIt, class HashOf>
    std::pair<std::int32_t*, bool> find_or_enter(std::uint64_t hash, std::int32_t number, const IsIt& is_it,
                                                 const HashOf& hash_of_number);

   private:
    struct Slot {
      std::uint32_t stamp = 0;
      std::int32_t number = 0;
    };
    std::vector<Slot> slots_, old_;
    std::uint32_t stamp_ = 0;
    std::size_t entered_ = 0;
  };

  static std::uint64_t hash_of(Set set);
  static std::uint64_t hash_of(const State& state) { return hash_of(state.memory) * 31 ^ hash_of(~state.ran); }

  Result search(const LiveSetProblem<Set>& problem, const LiveSetLimits& limits, core::Stopwatch& watch);
  bool next_entry(Entry& entry);
  void prepare(const LiveSetProblem<Set>& problem, const LiveSetLimits& limits);
  std::int64_t cost_of(std::int32_t v) const { return limits_.free_of_cost ? 0 : problem_->nodes[v].cost; }
  std::int64_t bytes(Set values) const;
  Set inputs_of(Set nodes) const;
  std::int64_t slack_of(const Arrival& arrival) const;
  bool too_many_states() const;
  bool add_to_rest(Arrival& arrival, Set missing_values) const;
  Set extra_nodes(const Arrival& arrival, Set needed) const;
  Set affordable(std::int64_t cost) const;
  bool enter(const Arrival& arrival, std::uint64_t hash);
  void arrive(Arrival& arrival, Set needed);
  std::int32_t without_useless_values(std::int32_t index);
  bool dominated(const Arrival& arrival);
  void expand(std::int32_t index);
  bool frees_what_it_takes(const Arrival& arrival, std::int32_t v, Set wanted) const;
  void run_node(std::int32_t index, std::int32_t v);
  void drop_from(Set candidates, std::int64_t candidate_bytes, std::int64_t excess, Set dropped, Set made_again,
                 std::int64_t slack);
  void drop_and_arrive(Set dropped);

  const LiveSetProblem<Set>* problem_ = nullptr;
  LiveSetLimits limits_;
  core::Stopwatch* watch_ = nullptr;
  std::int64_t most_arrivals_ = 0;
  bool stopped_ = false;  ///< whether the search was ended by the limit or for lack of memory
  Set weightless_ = 0;    ///< set of the values of size 0, which are never dropped
  Set remembered_ = 0;    ///< set of the nodes whose run is part of a state
  std::vector<Set> successors_, readers_;
  /// Costs in ascending order. Each has the set of nodes of at most that cost.
  std::vector<std::pair<std::int64_t, Set>> by_cost_;
  std::vector<Arrival> arrivals_;
  Index known_;   ///< index of the cheapest arrival at each state
  Index groups_;  ///< index of the expanded states, by the nodes that have run
  std::vector<Set> group_ran_;
  std::vector<std::vector<Seen>> closed_;
  /// Heaps of states to expand. An anytime search has one heap for each number of nodes that must still run; otherwise
  /// there is one heap.
  std::vector<std::vector<Entry>> queues_;
  std::size_t open_ = 0;  ///< number of entries in queues_
  std::size_t turn_ = 0;  ///< index of the heap that the last entry was taken from
  // State of the expansion of one node.
  // - next_: the arrival before values are dropped.
  // - next_needed_: the values needed later.
  // - next_outputs_: the node's outputs.
  Arrival next_;
  Set next_needed_ = 0, next_outputs_ = 0;
};

extern template class LiveSetSearch<Set64>;
extern template class LiveSetSearch<Set128>;

}  // namespace cairn::solvers
