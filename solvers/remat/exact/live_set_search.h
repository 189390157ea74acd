#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "cairn/core/limit.h"

/// Search for the cheapest way from one set of values in memory to another, exactly. exact-remat uses it for a whole
/// graph, WindowSearch for a part of a schedule.
namespace cairn::solvers {

/// Sets of up to 64, and of up to 128, small numbers, as bits.
using Set64 = std::uint64_t;
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
/// Returns the lowest and the highest number of a non-empty set.
constexpr std::int32_t lowest(Set64 set) { return std::countr_zero(set); }
constexpr std::int32_t lowest(Set128 set) {
  const auto low = static_cast<Set64>(set);
  return low != 0 ? std::countr_zero(low) : 64 + std::countr_zero(static_cast<Set64>(set >> 64));
}
constexpr std::int32_t highest(Set64 set) { return 63 - std::countl_zero(set); }
constexpr std::int32_t highest(Set128 set) {
  const auto high = static_cast<Set64>(set >> 64);
  return high != 0 ? 127 - std::countl_zero(high) : highest(static_cast<Set64>(set));
}
template <class Set, class Visit>
void for_each_in(Set set, const Visit& visit) {
  for (; set != 0; set &= set - 1) visit(lowest(set));
}

/// The problem: steps from one set of values to another are to be found. Nodes are numbered in a topological order,
/// values by falling size.
template <class Set>
struct LiveSetProblem {
  struct Node {
    Set inputs = 0, outputs = 0;  ///< values that the node reads and makes; unwanted outputs may be left out
    std::int64_t during = 0;      ///< bytes of all outputs and of scratch while the node runs
    std::int64_t cost = 0;
  };
  std::vector<Node> nodes;
  std::vector<std::int64_t> sizes;      ///< sizes of the values, falling
  std::vector<std::int32_t> producers;  ///< node that makes each value; -1: no node of the problem makes it
  Set start = 0;                        ///< values in memory before the first step
  Set target = 0;                       ///< values in memory after the last one
  Set goals = 0;                        ///< nodes that must run even if none of their values are wanted
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
  /// Most cost of a solution: none above it is looked for.
  std::int64_t most_cost = kAnyCost;
  /// Whether any steps within the budget will do, whatever they cost.
  bool free_of_cost = false;
  std::int64_t most_states = std::numeric_limits<std::int64_t>::max();  ///< most states that the search may reach
  std::int64_t memory_bytes = std::int64_t{1} << 30;
  /// Whether to look for any solution first and improve it. When cut short, the search then returns the best so far.
  bool anytime = false;
  /// Seed that picks one of several cheapest solutions; 0: the latest state reached goes first.
  std::uint64_t seed = 0;
};

/// A best-first search (A*) over the contents of memory: a state is the set of values in memory and of goals and `once`
/// nodes that have run; a move runs a node and first drops an inclusion-minimal set of values that makes room for it.
/// Nothing is dropped before it must be, so a state that holds less at no lower cost than one expanded before is left
/// out. The nodes that every completion must still run (goals, makers of wanted values that are missing, of what they
/// need that is missing, ...) bound its cost from below. The difference between that bound and `most_cost` says which
/// other nodes can still run at all: values that only serve others are forgotten, and values that cannot be made again
/// are not dropped.
///
/// An anytime search takes, in turn for each number of nodes that must still run, the state of the lowest bound (cyclic
/// best-first search, Morrison et al. 2017), so that it soon has a solution, whose cost bounds the rest.
///
/// Keeps its memory from run to run. Deterministic.
template <class Set>
class LiveSetSearch {
 public:
  struct Result {
    bool found = false;
    bool proved = false;              ///< whether the solution is the cheapest, or there is none of at most most_cost
    std::vector<std::int32_t> steps;  ///< nodes to run in order, if a solution was found
    std::int64_t cost = 0;            ///< cost of the steps
    /// Lower bound: no solution within the budget is cheaper, unless anytime was cut short.
    std::int64_t cost_bound = 0;
    std::int64_t states = 0;  ///< number of states reached
  };

  /// Solves a problem. Charges the watch a unit a node for each state expanded, and one for each set dropped.
  Result run(const LiveSetProblem<Set>& problem, const LiveSetLimits& limits, core::Stopwatch& watch);

 private:
  using Node = typename LiveSetProblem<Set>::Node;

  struct State {
    Set memory = 0;  ///< set of values in memory
    /// Set of the remembered nodes (goals and `once` nodes) that have run.
    Set ran = 0;
    bool operator==(const State&) const = default;  // NOLINT
  };
  struct Arrival {
    State state;
    Set rest = 0;   ///< set of nodes that every completion runs
    Set extra = 0;  ///< set of the other nodes that a completion within most_cost may run
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
  /// A hash index: finds the number of a thing that is equal to a given one. Emptied in O(1).
  class Index {
   public:
    void clear();
    /// Finds the number for which is_it(number) holds, and returns its slot; if there is none, enters `number`. The
    /// second value says whether it was entered.
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
  /// Costs, ascending, each with the set of nodes that cost at most that.
  std::vector<std::pair<std::int64_t, Set>> by_cost_;
  std::vector<Arrival> arrivals_;
  Index known_;   ///< index of the cheapest arrival at each state
  Index groups_;  ///< index of the expanded states, by the nodes that have run
  std::vector<Set> group_ran_;
  std::vector<std::vector<Seen>> closed_;
  /// Heaps of states to expand; anytime: one heap for each number of nodes left.
  std::vector<std::vector<Entry>> queues_;
  std::size_t open_ = 0;  ///< number of entries in queues_
  std::size_t turn_ = 0;  ///< index of the queue that the last entry came from
  // The node being run from a state: the arrival before values are dropped for it, and the values needed later.
  Arrival next_;
  Set next_needed_ = 0, next_outputs_ = 0;
};

extern template class LiveSetSearch<Set64>;
extern template class LiveSetSearch<Set128>;

}  // namespace cairn::solvers
