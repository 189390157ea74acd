#include "cairn/solvers/remat/exact_remat.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/internal/saturating.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {
namespace {

using core::NodeId;
using core::ValueId;

/// A set of values, or of nodes.
using Set = std::uint64_t;

constexpr Set one(std::int32_t i) { return Set{1} << i; }
constexpr bool contains(Set set, std::int32_t i) { return (set >> i & 1) != 0; }

template <class Visit>
void for_each(Set set, const Visit& visit) {
  for (; set != 0; set &= set - 1) visit(std::countr_zero(set));
}

/// The graph as words.
struct WordGraph {
  struct Node {
    Set inputs = 0, outputs = 0;  ///< values
    Set successors = 0;
    std::int64_t size = 0, during = 0;  ///< of the outputs; and with scratch
    std::int64_t cost = 0;
  };
  std::vector<Node> nodes;
  std::vector<NodeId> order;  ///< topological
  std::vector<std::int64_t> value_size;
  std::vector<NodeId> producer;
  std::vector<Set> readers;  ///< of each value: nodes
  Set kept = 0;              ///< values
  Set weightless = 0;        ///< values of size 0, which are never dropped
  Set pinned = 0;            ///< nodes
  Set goals = 0;             ///< nodes that must run though nothing of them is read or kept
  Set remembered = 0;        ///< nodes of which a state knows whether they have run: both

  explicit WordGraph(const core::Graph& graph) : order(graph.input_order().begin(), graph.input_order().end()) {
    nodes.resize(static_cast<std::size_t>(graph.node_count()));
    for (ValueId x = 0; x < graph.value_count(); ++x) {
      value_size.push_back(graph.value_size(x));
      producer.push_back(graph.producer(x));
      readers.push_back(0);
      for (const NodeId reader : graph.readers(x)) readers[x] |= one(reader);
      if (graph.value_kept(x)) kept |= one(x);
      if (graph.value_size(x) == 0) weightless |= one(x);
    }
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      Node& node = nodes[v];
      for (const ValueId x : graph.inputs(v)) node.inputs |= one(x);
      for (const ValueId x : graph.outputs(v)) node.outputs |= one(x);
      for (const NodeId w : graph.successors(v)) node.successors |= one(w);
      node.size = graph.size(v);
      node.during = graph.size(v) + graph.scratch(v);
      node.cost = graph.cost(v);
      if (graph.pinned(v)) pinned |= one(v);
      if (graph.required(v) && !graph.keep(v)) goals |= one(v);
    }
    remembered = pinned | goals;
  }

  std::int64_t bytes(Set values) const {
    std::int64_t sum = 0;
    for_each(values, [&](ValueId x) { sum += value_size[x]; });
    return sum;
  }
};

struct State {
  Set memory = 0;  ///< values
  Set ran = 0;     ///< of the remembered nodes
  bool operator==(const State&) const = default;
};

struct StateHash {
  std::size_t operator()(const State& state) const {
    std::uint64_t h = state.memory * 0x9e3779b97f4a7c15ULL ^ (state.ran + 0x7f4a7c15) * 0xbf58476d1ce4e5b9ULL;
    return static_cast<std::size_t>(h ^ h >> 29);
  }
};

/// What every completion of a state must still run.
struct Rest {
  Set nodes = 0;
  std::int64_t cost = 0;
  bool possible = true;  ///< no pinned node among them that has run
};

class Search {
 public:
  enum class Aim : std::uint8_t { cheapest, any };
  enum class End : std::uint8_t { found, none, cut_short };
  struct Result {
    End end = End::none;
    core::Schedule schedule;      ///< where one was found
    std::int64_t cost_bound = 0;  ///< no schedule within the budget is cheaper
  };

  Search(const WordGraph& graph, std::int64_t memory_bytes) : graph_(graph), memory_bytes_(memory_bytes) {}

  Result run(std::int64_t budget, Aim aim, core::Stopwatch& watch) {
    budget_ = budget;
    aim_ = aim;
    watch_ = &watch;
    stopped_ = false;
    arrivals_.clear();
    known_.clear();
    closed_.clear();
    queue_ = {};
    arrive({}, 0, -1, core::kNoNode);
    Result result;
    while (!queue_.empty()) {
      const Entry entry = queue_.top();
      queue_.pop();
      result.cost_bound = entry.bound;
      const Arrival arrival = arrivals_[entry.arrival];
      if (known_.at(arrival.state) != entry.arrival) continue;  // it was reached at a lower cost
      if (done(arrival.state)) {
        result.end = End::found;
        result.schedule = schedule_to(entry.arrival);
        return result;
      }
      stopped_ = watch.charge(static_cast<std::int64_t>(graph_.nodes.size())).expired() || out_of_memory();
      if (!stopped_ && !dominated(arrival)) expand(entry.arrival);
      if (stopped_) {
        result.end = End::cut_short;
        return result;
      }
    }
    return result;
  }

 private:
  struct Arrival {
    State state;
    std::int64_t cost;
    std::int32_t from;
    NodeId ran;
  };
  struct Entry {
    std::int64_t bound;  ///< of the cost of any completion
    std::int32_t left;   ///< nodes that must still run
    std::int32_t arrival;
    bool operator<(const Entry& other) const {
      return std::tie(other.bound, other.left, arrival) < std::tie(bound, left, other.arrival);
    }
  };
  struct Seen {
    Set memory;
    std::int64_t cost;
  };

  bool done(const State& state) const { return (graph_.kept & ~state.memory) == 0 && (graph_.goals & ~state.ran) == 0; }

  bool out_of_memory() const {
    constexpr std::int64_t kBytesAState = sizeof(Arrival) + sizeof(Entry) + sizeof(Seen) + 64;
    constexpr std::size_t kMostStates = std::size_t{1} << 30;
    return arrivals_.size() > kMostStates || static_cast<std::int64_t>(arrivals_.size()) * kBytesAState > memory_bytes_;
  }

  std::int64_t cost_of(NodeId v) const { return aim_ == Aim::cheapest ? graph_.nodes[v].cost : 0; }

  Rest rest_of(const State& state) const {
    Rest rest;
    rest.nodes = graph_.goals & ~state.ran;
    for_each(graph_.kept & ~state.memory, [&](ValueId x) { rest.nodes |= one(graph_.producer[x]); });
    for (auto v = graph_.order.rbegin(); v != graph_.order.rend(); ++v) {
      if (!contains(rest.nodes, *v)) continue;
      rest.cost += cost_of(*v);
      for_each(graph_.nodes[*v].inputs & ~state.memory, [&](ValueId x) { rest.nodes |= one(graph_.producer[x]); });
    }
    rest.possible = (rest.nodes & graph_.pinned & state.ran) == 0;
    return rest;
  }

  /// Nodes that some completion might run: what is wanted at the end, and what is upstream of that. A kept value that
  /// is there may be dropped and made again, unless it weighs nothing; a pinned node that has run may not run again.
  Set useful_nodes(const State& state) const {
    Set useful = graph_.goals & ~state.ran;
    for_each(graph_.kept & ~(state.memory & graph_.weightless), [&](ValueId x) { useful |= one(graph_.producer[x]); });
    const Set barred = graph_.pinned & state.ran;
    useful &= ~barred;
    for (auto v = graph_.order.rbegin(); v != graph_.order.rend(); ++v) {
      if ((graph_.nodes[*v].successors & useful) != 0 && !contains(barred, *v)) useful |= one(*v);
    }
    return useful;
  }

  Set useful_values(Set useful_nodes) const {
    Set values = graph_.kept;
    for_each(useful_nodes, [&](NodeId v) { values |= graph_.nodes[v].inputs; });
    return values;
  }

  void arrive(State state, std::int64_t cost, std::int32_t from, NodeId ran) {
    state.memory &= useful_values(useful_nodes(state));
    const auto [known, is_new] = known_.try_emplace(state, static_cast<std::int32_t>(arrivals_.size()));
    if (!is_new) {
      if (arrivals_[known->second].cost <= cost) return;
      known->second = static_cast<std::int32_t>(arrivals_.size());
    }
    const Rest rest = rest_of(state);
    arrivals_.push_back({state, cost, from, ran});
    if (!rest.possible) return;
    queue_.push({core::saturating_add(cost, rest.cost), std::popcount(rest.nodes),
                 static_cast<std::int32_t>(arrivals_.size()) - 1});
  }

  /// Whether a state that was expanded holds all of this one and more, at no higher cost. Looks at a bounded number.
  bool dominated(const Arrival& arrival) {
    constexpr std::size_t kMostCompared = 2048;
    std::vector<Seen>& seen = closed_[arrival.state.ran];
    const std::size_t first = seen.size() - std::min(seen.size(), kMostCompared);
    for (std::size_t i = seen.size(); i > first; --i) {
      const Seen& other = seen[i - 1];
      if ((arrival.state.memory & ~other.memory) == 0 && other.cost <= arrival.cost) return true;
    }
    seen.push_back({arrival.state.memory, arrival.cost});
    return false;
  }

  void expand(std::int32_t index) {
    const Arrival arrival = arrivals_[index];
    const State& state = arrival.state;
    const Set useful = useful_nodes(state);
    const Set wanted = useful_values(useful);
    const Rest rest = rest_of(state);
    Set runnable = 0;
    bool forced = false;
    for_each(useful, [&](NodeId v) {
      const WordGraph::Node& node = graph_.nodes[v];
      if (forced || (node.inputs & ~state.memory) != 0) return;
      const bool new_goal = contains(graph_.goals & ~state.ran, v);
      if (!new_goal && (node.outputs & wanted & ~state.memory) == 0) return;
      // What must run in any case, fits, and leaves nothing that weighs had best run at once.
      forced = contains(rest.nodes, v) && (node.outputs & wanted & ~graph_.weightless) == 0 &&
               graph_.bytes(state.memory & ~node.outputs) + node.during <= budget_;
      runnable = forced ? one(v) : runnable | one(v);
    });
    for_each(runnable, [&](NodeId v) { run_node(index, v); });
  }

  /// All ways to make room for v, then v.
  void run_node(std::int32_t index, NodeId v) {
    const Arrival arrival = arrivals_[index];
    const WordGraph::Node& node = graph_.nodes[v];
    const Set memory = arrival.state.memory & ~node.outputs;
    const Set ran = arrival.state.ran | (one(v) & graph_.remembered);
    const std::int64_t cost = core::saturating_add(arrival.cost, cost_of(v));
    const std::int64_t excess = graph_.bytes(memory) + node.during - budget_;
    if (excess <= 0) return arrive({memory | node.outputs, ran}, cost, index, v);
    droppable_.clear();
    for_each(memory & ~node.inputs & ~graph_.weightless, [&](ValueId x) { droppable_.push_back(x); });
    std::sort(droppable_.begin(), droppable_.end(), [&](ValueId a, ValueId b) {
      return graph_.value_size[a] != graph_.value_size[b] ? graph_.value_size[a] > graph_.value_size[b] : a < b;
    });
    tail_bytes_.assign(droppable_.size() + 1, 0);
    for (std::size_t i = droppable_.size(); i > 0; --i) {
      tail_bytes_[i - 1] = tail_bytes_[i] + graph_.value_size[droppable_[i - 1]];
    }
    drop_from(0, excess, 0, [&](Set dropped) {
      // There may be exponentially many of them.
      stopped_ = stopped_ || watch_->charge().expired() || out_of_memory();
      if (!stopped_) arrive({(memory & ~dropped) | node.outputs, ran}, cost, index, v);
    });
  }

  /// Sets of values from the i-th on of at least `excess` bytes none of which can be left out: since sizes fall, that
  /// is so where it is for the last one.
  template <class Visit>
  void drop_from(std::size_t i, std::int64_t excess, Set dropped, const Visit& visit) {
    if (stopped_ || tail_bytes_[i] < excess) return;
    const ValueId x = droppable_[i];
    if (graph_.value_size[x] >= excess) {
      visit(dropped | one(x));
    } else {
      drop_from(i + 1, excess - graph_.value_size[x], dropped | one(x), visit);
    }
    drop_from(i + 1, excess, dropped, visit);
  }

  core::Schedule schedule_to(std::int32_t arrival) const {
    core::Schedule schedule;
    for (; arrivals_[arrival].from >= 0; arrival = arrivals_[arrival].from) {
      schedule.steps.push_back(arrivals_[arrival].ran);
    }
    std::reverse(schedule.steps.begin(), schedule.steps.end());
    return schedule;
  }

  const WordGraph& graph_;
  std::int64_t memory_bytes_;
  std::int64_t budget_ = 0;
  Aim aim_ = Aim::cheapest;
  core::Stopwatch* watch_ = nullptr;
  bool stopped_ = false;  ///< by the limit or for want of memory
  std::vector<Arrival> arrivals_;
  std::unordered_map<State, std::int32_t, StateHash> known_;  ///< the cheapest arrival
  std::unordered_map<Set, std::vector<Seen>> closed_;         ///< expanded states, by what has run
  std::priority_queue<Entry> queue_;
  std::vector<ValueId> droppable_;  ///< work space of run_node, by falling size
  std::vector<std::int64_t> tail_bytes_;
};

/// The least peak of all schedules, by bisection between a bound and a peak that was met; the bound is raised as far as
/// the limit allows. Peaks are sums of sizes and scratch, so they are multiples of what divides all of these.
void find_least_peak(const core::Graph& graph, Search& search, Incumbent& incumbent, core::Stopwatch& watch) {
  std::int64_t unit = 0;
  for (NodeId v = 0; v < graph.node_count(); ++v) unit = std::gcd(unit, graph.scratch(v));
  for (ValueId x = 0; x < graph.value_count(); ++x) unit = std::gcd(unit, graph.value_size(x));
  unit = std::max<std::int64_t>(unit, 1);
  while (incumbent.lower_bound() < incumbent.least_peak()) {
    const std::int64_t low = incumbent.lower_bound() / unit, high = incumbent.least_peak() / unit;
    const std::int64_t middle = (low + (high - 1 - low) / 2) * unit;
    Search::Result result = search.run(middle, Search::Aim::any, watch);
    if (result.end == Search::End::cut_short) return;
    if (result.end == Search::End::found) {
      incumbent.offer(result.schedule);
    } else {
      incumbent.raise_lower_bound(middle + unit);
    }
  }
}

}  // namespace

Solution exact_remat(const core::Graph& graph, const SolveOptions& options) {
  if (graph.value_count() > kMostExactRematValues) {
    throw core::InputError(
        fmt::format("the graph has {} values, but the exact search with recomputation takes at most {}; "
                    "--solver auto takes any graph",
                    graph.value_count(), kMostExactRematValues));
  }
  core::Stopwatch watch(options.limit);
  Incumbent incumbent(graph, options, watch);
  incumbent.offer(core::baseline_schedule(graph));
  if (incumbent.cannot_improve()) return incumbent.finish(false);
  const WordGraph words(graph);
  Search search(words, options.memory_bytes);
  std::int64_t budget = options.budget.value_or(0);
  if (!options.budget) {
    find_least_peak(graph, search, incumbent, watch);
    budget = incumbent.least_peak();
  } else if (!incumbent.within_budget() && !incumbent.proved_infeasible()) {
    // Some schedule first: the cheapest one may take longer than there is time.
    core::within(watch, 0.5, [&](core::Stopwatch& first) {
      const Search::Result result = search.run(budget, Search::Aim::any, first);
      if (result.end == Search::End::found) incumbent.offer(result.schedule);
      if (result.end == Search::End::none) incumbent.raise_lower_bound(budget + 1);
    });
  }
  if (!incumbent.proved_infeasible() && !watch.expired_now()) {
    const Search::Result result = search.run(budget, Search::Aim::cheapest, watch);
    if (result.end == Search::End::found) incumbent.offer(result.schedule);
    if (options.budget && result.end == Search::End::none) incumbent.raise_lower_bound(budget + 1);
    // It is about schedules within the budget; without one, about those of the least peak alone.
    if (options.budget && result.end != Search::End::none)
      incumbent.raise_cost_bound({result.cost_bound, kAnySchedule});
  }
  if (incumbent.proved_infeasible()) find_least_peak(graph, search, incumbent, watch);
  return incumbent.finish(!incumbent.cannot_improve() && watch.expired_now());
}

}  // namespace cairn::solvers
