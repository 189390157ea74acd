// Implements the solver `order` (order.h). Reductions replace parts of the graph by paths. The remaining graph is
// searched for an order of least peak. A dominant order of a part (order.h) can replace any other order of the part
// without raising the peak of the graph.

#include "cairn/solvers/order/support/order.h"

#include <algorithm>
#include <cstddef>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "cairn/core/machine/support/thread_pool.h"
#include "cairn/solvers/common/support/incumbent.h"
#include "cairn/solvers/order/internal/chains/dominant.h"
#include "cairn/solvers/order/internal/reduction/min_cut.h"
#include "cairn/solvers/order/internal/reduction/reduction.h"
#include "cairn/solvers/order/internal/reduction/step_graph.h"
#include "cairn/solvers/order/internal/search/exact.h"
#include "cairn/solvers/order/internal/search/search.h"

namespace cairn::solvers {
namespace {

using core::Graph;
using core::NodeId;

// Largest number of steps for which the exact search is used. For this number of steps, building the tables of the
// search takes a few tenths of a second.
constexpr StepId kMostExact = 3000;

/// Orders the steps by Kahn's algorithm, always taking the ready step of lowest priority(step). After each step s,
/// calls `changed(s, offer)`, which must call offer(t) for each step t whose priority has fallen. Takes O((n + m) log
/// n) time for n steps and m edges, plus the time of the calls of `changed`.
template <class Priority, class Changed>
std::vector<StepId> lowest_first(const StepGraph& graph, const Priority& priority, const Changed& changed) {
  const auto n = static_cast<std::size_t>(graph.step_count());
  std::vector<std::size_t> missing(n);
  std::vector<std::uint8_t> done(n, 0);
  using Entry = std::pair<std::int64_t, StepId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto offer = [&](StepId s) {
    if (!done[s] && missing[s] == 0) ready.emplace(priority(s), s);
  };
  for (StepId s = 0; s < graph.step_count(); ++s) {
    missing[s] = graph.predecessors(s).size();
    offer(s);
  }
  std::vector<StepId> order;
  while (!ready.empty()) {
    const StepId s = ready.top().second;
    ready.pop();
    if (std::exchange(done[s], std::uint8_t{1}) != 0) continue;
    order.push_back(s);
    for (const StepId next : graph.successors(s)) {
      --missing[next];
      offer(next);
    }
    changed(s, offer);
  }
  return order;
}

/// Orders the steps of `rest` like the graph's input order, as far as edges allow. A step that runs several nodes takes
/// the place of the first of them in the input order.
std::vector<StepId> near_input_order(const Graph& graph, const Expansion& rest, const Ropes& ropes) {
  std::vector<std::int32_t> place(static_cast<std::size_t>(graph.node_count()));
  for (std::size_t i = 0; i < graph.input_order().size(); ++i) place[graph.input_order()[i]] = static_cast<int>(i);
  std::vector<NodeId> nodes;
  const auto first_place = [&](StepId s) {
    nodes.clear();
    ropes.flatten(rest.nodes[s], nodes);
    std::int32_t first = nodes.empty() ? -1 : graph.node_count();  // a step without nodes only frees memory
    for (const NodeId v : nodes) first = std::min(first, place[v]);
    return first;
  };
  return lowest_first(rest.graph, first_place, [](StepId, const auto&) {});
}

std::vector<StepId> greedy_order(const StepGraph& graph) {
  std::vector<std::size_t> unread;
  for (StepId s = 0; s < graph.step_count(); ++s) unread.push_back(graph.successors(s).size());
  const auto change = [&](StepId s) {
    std::int64_t bytes = graph[s].rise - graph[s].drop;
    for (const StepId p : graph.predecessors(s)) bytes -= unread[p] == 1 ? graph[p].output : 0;
    return bytes;
  };
  return lowest_first(graph, change, [&](StepId s, const auto& offer) {
    for (const StepId p : graph.predecessors(s)) {
      if (--unread[p] != 1 || graph[p].output == 0) continue;
      for (const StepId last : graph.successors(p)) offer(last);
    }
  });
}

/// Turns the remaining isolated subgraphs, i.e. parts with one source and one sink (isolated_subgraph.h), into paths,
/// small subgraphs first. The exact search finds the order of the nodes on each path. Repeats all this until no further
/// subgraph can be turned into a path.
void linearize_regions(Reduction& reduction, const OrderOptions& options, core::Stopwatch& watch) {
  constexpr std::size_t kMostInner = 96;
  // Each subgraph may use this fraction of the remaining limit, so that no subgraph can use up the limit.
  constexpr double kShare = 0.25;
  ExactOptions exact;
  exact.memory_bytes = options.memory_bytes / 2;
  // Subgraphs that the exact search did not solve, each given by its source, its sink and its number of inner vertices.
  // A subgraph is tried again if this number has changed since, because a smaller subgraph inside it was replaced.
  std::set<std::tuple<NodeId, NodeId, std::size_t>> given_up;
  for (bool progress = true; progress && !reduction.done() && !watch.expired_now();) {
    progress = false;
    for (const Reduction::Region& region : reduction.isolated_regions(kMostInner)) {
      if (given_up.count({region.source, region.sink, region.inner.size()}) > 0) continue;
      const Expansion part = reduction.expand(region);
      const auto order = core::within(watch, kShare, [&](core::Stopwatch& inner) {
        return find_schedule_general(part.graph, exact_oracle(exact, inner));
      });
      if (!order) {
        given_up.emplace(region.source, region.sink, region.inner.size());
        continue;
      }
      reduction.replace(region, part, *order);
      progress = true;
    }
    reduction.run();
  }
}

/// Offers an order to the incumbent, i.e. the best schedule so far, before any search. The order is made by the
/// reductions alone, which find some schedule of each part quickly. These schedules need not be dominant.
void quick_order(const Graph& graph, Incumbent& incumbent) {
  constexpr std::int64_t kTables = std::int64_t{1} << 20;  // largest size of a table in bytes
  core::Limit none;
  none.work = -1;  // this limit has expired before any work is done, so that nothing is searched
  core::Stopwatch watch(none);
  Reduction reduction(graph, Reduction::Unfinished::take, kTables, 1, watch);
  reduction.run();
  if (reduction.done()) {
    incumbent.offer({nodes_of(reduction.chain(), reduction.ropes())});
    return;
  }
  const Expansion remainder = reduction.expand_remainder();
  incumbent.offer({nodes_of(remainder, near_input_order(graph, remainder, reduction.ropes()), reduction.ropes())});
}

/// Searches for the best order of the remainder, i.e. of the graph that is left after the reductions.
class RemainderSearch {
 public:
  RemainderSearch(const Graph& graph, Reduction& reduction, const OrderOptions& options, Incumbent& incumbent,
                  core::Stopwatch& watch)
      : graph_(graph),
        reduction_(reduction),
        options_(options),
        incumbent_(incumbent),
        watch_(watch),
        remainder_(reduction.expand_remainder()) {}

  void solve() {
    best_ = near_input_order(graph_, remainder_, reduction_.ropes());
    take(best_);
    take(greedy_order(remainder_.graph));
    bound();
    if (!settled()) search(0.05);
    if (!settled() && remainder_.graph.step_count() <= kMostExact) exactly();
    if (!settled()) search(1);
  }

 private:
  bool settled() { return incumbent_.cannot_improve() || watch_.expired_now(); }

  void take(const std::vector<StepId>& order) {
    incumbent_.offer({nodes_of(remainder_, order, reduction_.ropes())});
    if (peak(remainder_.graph, order) < peak(remainder_.graph, best_)) best_ = order;
  }

  void bound() {
    incumbent_.raise_lower_bound(
        core::within(watch_, 0.1, [&](core::Stopwatch& inner) { return cut_lower_bound(remainder_.graph, inner); }));
  }

  void exactly() {
    core::within(watch_, 0.3, [&](core::Stopwatch& inner) {
      exact_search(remainder_.graph, incumbent_, options_.memory_bytes, inner,
                   [&](const std::vector<StepId>& order) { take(order); });
    });
  }

  void search(double part) {
    OrderSearchOptions search;
    search.seed = options_.seed;
    search.lower_bound = incumbent_.lower_bound();
    search.found = [&](const std::vector<StepId>& order, std::int64_t) { take(order); };
    search.proved = [&](std::int64_t) { incumbent_.raise_lower_bound(incumbent_.least_peak()); };
    take(core::within(watch_, part, [&](core::Stopwatch& inner) {
      return search_order(remainder_.graph, best_, search, inner, options_.thread_count());
    }));
  }

  const Graph& graph_;
  Reduction& reduction_;
  const OrderOptions& options_;
  Incumbent& incumbent_;
  core::Stopwatch& watch_;
  Expansion remainder_;
  std::vector<StepId> best_;
};

}  // namespace

int OrderOptions::thread_count() const {
  // All threads share one work limit, so the answer depends on the number of threads. Under a work limit, the default
  // is therefore one thread, which gives the same answer on every machine.
  if (threads > 0) return threads;
  return limit.counts_work() ? 1 : core::thread_count();
}

Solution order(const Graph& graph, const OrderOptions& options) {
  core::Stopwatch watch(options.limit);
  Incumbent incumbent(graph, options, watch, kWithoutRecomputation);
  incumbent.offer(core::baseline_schedule(graph));
  if (incumbent.cannot_improve()) return incumbent.finish(false);
  // The reduction can take this many seconds per node and per edge without checking the limit.
  constexpr double kSecondsOfEdge = 8e-7;
  if (watch.rest().seconds < kSecondsOfEdge * static_cast<double>(graph.node_count() + graph.edge_count()))
    return incumbent.finish(true);
  quick_order(graph, incumbent);
  if (graph.node_count() <= kMostExact && !incumbent.cannot_improve()) {
    core::within(watch, 0.05,
                 [&](core::Stopwatch& inner) { exact_search(graph, incumbent, options.memory_bytes / 2, inner); });
  }
  if (incumbent.cannot_improve() || watch.expired_now()) return incumbent.finish(!incumbent.cannot_improve());
  // The reduction gets at most half of the limit, because a single part of the graph can take any amount of time.
  core::Stopwatch reduction_watch(watch.share(0.5));
  Reduction reduction(graph, Reduction::Unfinished::leave, options.memory_bytes / 2, options.thread_count(),
                      reduction_watch, {}, options.accelerator);
  reduction.run();
  watch.charge(reduction_watch.work());
  linearize_regions(reduction, options, watch);
  if (reduction.done()) {
    incumbent.offer({nodes_of(reduction.chain(), reduction.ropes())});
    incumbent.raise_lower_bound(incumbent.least_peak());
  } else {
    RemainderSearch(graph, reduction, options, incumbent, watch).solve();
  }
  return incumbent.finish(!incumbent.cannot_improve() && watch.expired_now());
}

Solution exact(const Graph& graph, const OrderOptions& options) {
  core::Stopwatch watch(options.limit);
  Incumbent incumbent(graph, options, watch, kWithoutRecomputation);
  incumbent.offer(core::baseline_schedule(graph));
  if (incumbent.cannot_improve()) return incumbent.finish(false);
  const StepGraph steps(graph);
  OrderSearchOptions search;
  search.seed = options.seed;
  search.lower_bound = incumbent.lower_bound();
  const auto& start = graph.input_order();
  // A good order is found first, for two reasons. This order is the answer if the limit ends the exact search. And the
  // exact search can leave out all orders with a higher peak than this order.
  incumbent.offer({core::within(watch, 0.05, [&](core::Stopwatch& inner) {
    return nodes_among(search_order(steps, steps.with_releases(start), search, inner, options.thread_count()), graph);
  })});
  exact_search(graph, incumbent, options.memory_bytes, watch);
  // The exact search also ends if its memory is used up, or if the graph is too large for its tables. A larger time
  // limit would not help in these two cases, so the solution does not count as timed out.
  return incumbent.finish(!incumbent.cannot_improve() && !incumbent.proved_infeasible() && watch.expired_now());
}

}  // namespace cairn::solvers
