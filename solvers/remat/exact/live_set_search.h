#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"

/// Searches exactly for the cheapest steps that lead from one set of values in memory to another set. exact_remat()
/// uses this search for a whole graph, WindowSearch for a range of steps of a schedule.
namespace cairn::solvers {

/// Represents a set of numbers from 0 to 63, one bit for each number.
using Set64 = std::uint64_t;
/// Represents a set of numbers from 0 to 127, one bit for each number.
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
template <class Set, class Visit>
void for_each_in(Set set, const Visit& visit) {
  for (; set != 0; set &= set - 1) visit(lowest(set));
}

/// Describes a problem for the search. The steps must lead from one set of values in memory (`start`) to another set
/// (`target`). Nodes are numbered in a topological order. Values are numbered by descending size.
template <class Set>
struct LiveSetProblem {
  struct Node {
    /// inputs: values that the node reads; outputs: values that the node makes. Outputs that nothing needs may be
    /// omitted.
    Set inputs = 0, outputs = 0;
    std::int64_t during = 0;  ///< bytes of all its outputs, the omitted ones included, plus its scratch memory
    std::int64_t cost = 0;
  };
  std::vector<Node> nodes;
  std::vector<std::int64_t> sizes;      ///< descending
  std::vector<std::int32_t> producers;  ///< node that makes each value; -1: no node of this problem makes the value
  Set start = 0;                        ///< values in memory before the first step
  Set target = 0;                       ///< values required in memory after the last step
  Set goals = 0;                        ///< nodes that must run even if none of their values are needed
  Set once = 0;                         ///< nodes that may run at most once
  Set in_order = 0;                     ///< goals whose first runs must be in the order of their numbers

  void clear() {
    nodes.clear();
    sizes.clear();
    producers.clear();
    start = target = goals = once = in_order = 0;
  }
};

inline constexpr std::int64_t kAnyCost = std::numeric_limits<std::int64_t>::max();

struct LiveSetLimits {
  std::int64_t budget = 0;  ///< largest number of bytes that may be in memory during a step
  /// Largest cost that a solution may have.
  std::int64_t most_cost = kAnyCost;
  /// If true, every node counts as having cost 0. So the search ends with the first steps found that stay within the
  /// budget.
  bool free_of_cost = false;
  std::int64_t most_states = std::numeric_limits<std::int64_t>::max();
  std::int64_t memory_bytes = std::int64_t{1} << 30;
  /// Whether to find some solution quickly and then improve it until it is proved cheapest. If the watch, `most_states`
  /// or `memory_bytes` ends the search early, the result is the best solution so far.
  bool anytime = false;
  /// Seed that selects one of several cheapest solutions. It decides which of several states of equal rank in the queue
  /// is expanded first. With 0, this is the state that was reached last.
  std::uint64_t seed = 0;
};

/// Implements a best-first search (A*) over the contents of memory. A state consists of two sets: the values in memory,
/// and those nodes of `goals` and `once` that have run. A transition runs one node. If there is too little memory for
/// the node, the transition first drops a set of values. This set has no superfluous member: if any one of its values
/// were kept, the node would not fit. A completion of a state is a sequence of transitions that leads from the state to
/// a solution.
///
/// Holding more values is never a disadvantage, because a value can still be dropped when its memory is needed. So a
/// state is skipped if some state expanded earlier, in which the same nodes have run, holds at least the same values at
/// no higher cost.
///
/// The lower bound on the cost of a completion is the cost of the nodes that every completion must run. These nodes are
/// the goals that have not run, the producers of required values that are missing, the producers of the missing inputs
/// of these nodes, and so on. Any other node can run only if `cost so far + this bound + cost of the node <=
/// most_cost`. Once no reader of a value can run any more, the value is removed from the state. A value that is still
/// needed and cannot be made again is never dropped.
///
/// An anytime search (LiveSetLimits::anytime) has one queue for each number of nodes that must still run. It takes
/// turns between the queues, and takes the state of the lowest bound from each (cyclic best-first search, Morrison et
/// al. 2017). States in which few nodes must still run are therefore expanded early, and the search soon finds a
/// solution. From then on, it looks only for cheaper solutions.
///
/// The object reuses its memory from run to run. Results are deterministic.
template <class Set>
class LiveSetSearch {
 public:
  struct Result {
    bool found = false;
    /// Whether `cost` is proved to be the least possible cost. If no solution was found: whether it is proved that
    /// every solution costs more than most_cost.
    bool proved = false;
    std::vector<std::int32_t> steps;  ///< nodes to run, in order; empty if no solution was found
    std::int64_t cost = 0;
    /// Lower bound on the cost of every solution within the budget. Not valid if an anytime search ended early.
    std::int64_t cost_bound = 0;
    std::int64_t states = 0;
  };

  /// Solves a problem. For each expanded state, charges the watch one unit per node of the problem. Charges one more
  /// unit for each set of values that is dropped.
  Result run(const LiveSetProblem<Set>& problem, const LiveSetLimits& limits, core::Stopwatch& watch);

 private:
  using Node = typename LiveSetProblem<Set>::Node;

  struct State {
    Set memory = 0;
    /// Set of the nodes of `goals` and `once` that have run.
    Set ran = 0;
    bool operator==(const State&) const = default;  // NOLINT
  };
  /// Stores a state together with one way to reach it. `from` is the index of the arrival before the last transition,
  /// and `node` is the node that this transition ran. Both are -1 at the start of the search.
  struct Arrival {
    State state;
    Set rest = 0;   ///< set of the nodes that every completion runs
    Set extra = 0;  ///< set of the other nodes that a completion can run at a total cost of at most most_cost
    std::int64_t cost = 0, rest_cost = 0;
    std::int32_t from = -1, node = -1;
  };
  struct Entry {
    std::int64_t bound;  ///< lower bound on the total cost of any solution through this state
    std::int32_t left;   ///< number of nodes that every completion runs
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
  /// A hash table that finds the number of an item, such as the index of a state's arrival. It can be emptied in O(1).
  class Index {
   public:
    void clear();
    /// Finds the number for which is_it(number) holds. If there is none, enters `number`, whose hash is `hash`. Returns
    /// the slot of the number, and whether `number` was entered. hash_of_number(i) must return the hash of an entered
    /// number i.
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
  bool stopped_ = false;  ///< whether the search was ended early by the watch or because it reached too many states
  Set weightless_ = 0;    ///< set of the values of size 0, which are never dropped
  Set remembered_ = 0;    ///< set of the nodes for which a state stores whether they have run
  std::vector<Set> successors_, readers_;
  /// Pairs of a cost and the set of all nodes that cost at most this much, ascending.
  std::vector<std::pair<std::int64_t, Set>> by_cost_;
  std::vector<Arrival> arrivals_;
  Index known_;   ///< finds the index of the cheapest arrival at a state
  Index groups_;  ///< finds the index in closed_ of the expanded states in which the same nodes have run
  std::vector<Set> group_ran_;
  std::vector<std::vector<Seen>> closed_;
  /// Heaps of states to expand. An anytime search has one heap for each number of nodes that every completion must
  /// still run. Any other search has a single heap.
  std::vector<std::vector<Entry>> queues_;
  std::size_t open_ = 0;
  std::size_t turn_ = 0;  ///< index of the heap that the last entry was taken from
  // The next members describe the transition that expand() is building.
  // - next_: the arrival after the node has run, before values are dropped.
  // - next_needed_: the target and the inputs of the nodes that every completion runs.
  // - next_outputs_: the outputs of the node.
  Arrival next_;
  Set next_needed_ = 0, next_outputs_ = 0;
};

extern template class LiveSetSearch<Set64>;
extern template class LiveSetSearch<Set128>;

}  // namespace cairn::solvers
