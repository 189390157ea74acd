// Computes path decompositions (path_decomposition.h). A layout is a list of all nodes in some order. The boundary at a
// position of a layout is the set of the nodes up to this position that have neighbours after it.

#include "cairn/solvers/decomposition/path_decomposition.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "cairn/solvers/decomposition/tree_decomposition.h"

namespace cairn::solvers {
namespace {

using core::Graph;
using core::NodeId;
using Layout = std::vector<NodeId>;

/// Calls visit(u) once for each neighbour u of v. No node is both a predecessor and a successor, because the graph is
/// acyclic.
template <class Visit>
void for_each_neighbour(const Graph& graph, NodeId v, const Visit& visit) {
  for (const NodeId u : graph.predecessors(v)) visit(u);
  for (const NodeId u : graph.successors(v)) visit(u);
}

std::int32_t degree_of(const Graph& graph, NodeId v) {
  return static_cast<std::int32_t>(graph.predecessors(v).size() + graph.successors(v).size());
}

std::vector<std::int32_t> places_of(const Layout& layout) {
  std::vector<std::int32_t> place(layout.size());
  for (std::size_t i = 0; i < layout.size(); ++i) place[layout[i]] = static_cast<std::int32_t>(i);
  return place;
}

std::vector<std::int32_t> last_neighbours(const Graph& graph, const std::vector<std::int32_t>& place) {
  std::vector<std::int32_t> last(place);
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    for_each_neighbour(graph, v, [&](NodeId u) { last[v] = std::max(last[v], place[u]); });
  }
  return last;
}

/// Computes for each position the size of the boundary, which is the number of nodes at or before the position that
/// have a neighbour after it.
std::vector<std::int32_t> boundaries(const Graph& graph, const Layout& layout) {
  const auto place = places_of(layout);
  const auto last = last_neighbours(graph, place);
  std::vector<std::int32_t> change(layout.size() + 1, 0), boundary(layout.size());
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    ++change[place[v]];
    --change[last[v]];
  }
  std::partial_sum(change.begin(), change.end() - 1, boundary.begin());
  return boundary;
}

/// Measures how good a layout is; less is better. The first number is the size of the largest boundary, which is the
/// width of the layout's decomposition. The second number is the sum of the sizes of all boundaries.
using LayoutScore = std::pair<std::int32_t, std::int64_t>;
LayoutScore score_of(const std::vector<std::int32_t>& boundary) {
  LayoutScore score{0, 0};
  for (const std::int32_t b : boundary) {
    score.first = std::max(score.first, b);
    score.second += b;
  }
  return score;
}

/// Appends all nodes connected to `start` to `order`, in breadth-first order.
void breadth_first(const Graph& graph, NodeId start, std::vector<std::uint8_t>& seen, Layout& order) {
  std::size_t next = order.size();
  seen[start] = 1;
  order.push_back(start);
  for (; next < order.size(); ++next) {
    for_each_neighbour(graph, order[next], [&](NodeId u) {
      if (seen[u] != 0) return;
      seen[u] = 1;
      order.push_back(u);
    });
  }
}

/// Returns for each connected component a node with which a layout can start. The node is far from most others: it is
/// the last node of a breadth-first search that starts at the last node of another breadth-first search.
std::vector<NodeId> peripheral_nodes(const Graph& graph) {
  std::vector<NodeId> nodes;
  std::vector<std::uint8_t> seen(graph.node_count(), 0), seen_again(graph.node_count(), 0);
  Layout order, again;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (seen[v] != 0) continue;
    breadth_first(graph, v, seen, order);
    breadth_first(graph, order.back(), seen_again, again);
    nodes.push_back(again.back());
  }
  return nodes;
}

Layout breadth_first_layout(const Graph& graph, const std::vector<NodeId>& starts) {
  std::vector<std::uint8_t> seen(graph.node_count(), 0);
  Layout order;
  for (const NodeId start : starts) breadth_first(graph, start, seen, order);
  return order;
}

/// Builds a layout node by node. Of the nodes adjacent to placed nodes, always appends the node that makes the boundary
/// smallest. Ties are broken by the number of neighbours not placed yet, further ties by `rank`. When no such node is
/// left, continues with the next node of the list that run() was given.
class GreedyLayout {
 public:
  GreedyLayout(const Graph& graph, const std::vector<std::int32_t>& rank)
      : graph_(graph), rank_(rank), outside_(graph.node_count()), closes_(graph.node_count(), 0) {
    for (NodeId v = 0; v < graph.node_count(); ++v) outside_[v] = degree_of(graph, v);
  }

  Layout run(const std::vector<NodeId>& starts) {
    placed_.assign(graph_.node_count(), 0);
    for (const NodeId start : starts) {
      if (placed_[start] == 0) place(start);
      while (!queue_.empty()) {
        const auto [delta, outside, rank, v] = queue_.top();
        queue_.pop();
        if (placed_[v] == 0 && delta == change(v) && outside == outside_[v]) place(v);
      }
    }
    return std::move(order_);
  }

 private:
  std::int32_t change(NodeId v) const { return (outside_[v] > 0 ? 1 : 0) - closes_[v]; }
  void push(NodeId v) { queue_.emplace(change(v), outside_[v], rank_[v], v); }

  void place(NodeId v) {
    placed_[v] = 1;
    order_.push_back(v);
    for_each_neighbour(graph_, v, [&](NodeId u) {
      --outside_[u];
      if (placed_[u] == 0) {
        push(u);
      } else if (outside_[u] == 1) {
        closes_with_last(u);
      }
    });
    if (outside_[v] == 1) closes_with_last(v);
  }

  /// Records that placing a node u removes the placed node v from the boundary. Here, u is the only neighbour of v that
  /// is not placed yet.
  void closes_with_last(NodeId v) {
    for_each_neighbour(graph_, v, [&](NodeId u) {
      if (placed_[u] != 0) return;
      ++closes_[u];
      push(u);
    });
  }

  using Entry = std::tuple<std::int32_t, std::int32_t, std::int32_t, NodeId>;
  const Graph& graph_;
  const std::vector<std::int32_t>& rank_;
  std::vector<std::int32_t> outside_;
  /// For each node v, the number of placed nodes whose only unplaced neighbour is v.
  std::vector<std::int32_t> closes_;
  std::vector<std::uint8_t> placed_;
  Layout order_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

/// Returns the nodes in the order in which a depth-first walk through the bags of a tree decomposition reaches them. At
/// each bag, small branches of the tree come before large ones. So at any time, only O(log bags) visited bags have
/// unvisited branches, and the boundary contains only nodes of these bags.
Layout layout_of_tree(const TreeDecomposition& decomposition, NodeId node_count) {
  const auto& tree = decomposition.tree;
  const auto count = static_cast<std::int32_t>(tree.size());
  Layout layout;
  if (count == 0) return layout;
  std::vector<std::int32_t> order, parent(count, -1), size(count, 1);
  const auto traverse = [&](std::int32_t root) {
    order.assign(1, root);
    parent[root] = -1;
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const std::int32_t c : tree[order[i]]) {
        if (c == parent[order[i]]) continue;
        parent[c] = order[i];
        order.push_back(c);
      }
    }
  };
  // Start at one end of a longest path of the tree.
  traverse(0);
  traverse(order.back());
  for (std::size_t i = order.size(); i-- > 1;) size[parent[order[i]]] += size[order[i]];
  std::vector<std::uint8_t> placed(node_count, 0);
  std::vector<std::int32_t> stack{order.front()}, children;
  while (!stack.empty()) {
    const std::int32_t bag = stack.back();
    stack.pop_back();
    for (const NodeId v : decomposition.bags[bag]) {
      if (std::exchange(placed[v], 1) == 0) layout.push_back(v);
    }
    children.clear();
    for (const std::int32_t c : tree[bag]) {
      if (c != parent[bag]) children.push_back(c);
    }
    std::sort(children.begin(), children.end(), [&](std::int32_t a, std::int32_t b) { return size[a] > size[b]; });
    stack.insert(stack.end(), children.begin(), children.end());
  }
  return layout;
}

/// Reorders windows (ranges of consecutive positions) of a layout. The best order of a window minimises the size of the
/// largest boundary at its positions and, as a second aim, the sum of these sizes. The order within a window does not
/// change the boundaries at positions outside of the window.
class LayoutWindowSearch {
 public:
  LayoutWindowSearch(const Graph& graph, Layout& layout) : graph_(graph), layout_(layout), place_(places_of(layout)) {
    last_ = last_neighbours(graph, place_);
  }

  static constexpr std::int32_t kWindow = 10;

  /// Puts the nodes of the window that begins at position `begin` into their best order. Returns whether the order
  /// improved.
  bool improve(std::int32_t begin) {
    const std::int32_t end = std::min<std::int32_t>(begin + kWindow, static_cast<std::int32_t>(layout_.size()));
    const std::int32_t size = end - begin;
    if (size < 2) return false;
    measure(begin, end);
    const std::uint32_t all = (1U << size) - 1;
    std::int32_t worst_now = 0, sum_now = 0;
    for (std::int32_t i = 1; i <= size; ++i) {
      const std::int32_t b = boundary_[(1U << i) - 1];
      worst_now = std::max(worst_now, b);
      sum_now += b;
    }
    worst_[0] = 0;
    for (std::uint32_t set = 1; set <= all; ++set) {
      std::int32_t least = std::numeric_limits<std::int32_t>::max();
      for (std::uint32_t rest = set; rest != 0; rest &= rest - 1) least = std::min(least, worst_[set ^ (rest & -rest)]);
      worst_[set] = std::max(boundary_[set], least);
    }
    const std::int32_t limit = worst_[all];
    constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max() / 2;
    sum_[0] = 0;
    for (std::uint32_t set = 1; set <= all; ++set) {
      sum_[set] = kNever;
      if (boundary_[set] > limit) continue;
      for (std::uint32_t rest = set; rest != 0; rest &= rest - 1) {
        const std::int32_t sum = sum_[set ^ (rest & -rest)] + boundary_[set];
        if (sum >= sum_[set]) continue;
        sum_[set] = sum;
        last_of_[set] = static_cast<std::int8_t>(std::countr_zero(rest));
      }
    }
    if (std::pair(limit, sum_[all]) >= std::pair(worst_now, sum_now)) return false;
    const Layout old(layout_.begin() + begin, layout_.begin() + end);
    std::uint32_t set = all;
    for (std::int32_t i = end - 1; i >= begin; --i) {
      layout_[i] = old[last_of_[set]];
      place_[layout_[i]] = i;
      set ^= 1U << last_of_[set];
    }
    for (const NodeId v : old) {
      renew_last(v);
      for_each_neighbour(graph_, v, [&](NodeId u) { renew_last(u); });
    }
    return true;
  }

 private:
  void renew_last(NodeId v) {
    last_[v] = place_[v];
    for_each_neighbour(graph_, v, [&](NodeId u) { last_[v] = std::max(last_[v], place_[u]); });
  }

  /// Computes boundary_[set] for each subset of the window's nodes. The entry is the size of the boundary when exactly
  /// the nodes before the window and the nodes of the subset are placed. Nodes before the window with neighbours after
  /// the window do not count, because they are in the boundary for every subset.
  void measure(std::int32_t begin, std::int32_t end) {
    const std::int32_t size = end - begin;
    outer_.clear();
    std::uint32_t beyond = 0;
    std::uint32_t adjacent[kWindow] = {};
    for (std::int32_t i = 0; i < size; ++i) {
      const NodeId v = layout_[begin + i];
      if (last_[v] >= end) beyond |= 1U << i;
      for_each_neighbour(graph_, v, [&](NodeId u) {
        if (place_[u] >= begin && place_[u] < end) adjacent[i] |= 1U << (place_[u] - begin);
        if (place_[u] < begin && last_[u] < end) outer_.emplace_back(u, 1U << i);
      });
    }
    std::sort(outer_.begin(), outer_.end());
    masks_.clear();
    for (std::size_t i = 0; i < outer_.size(); ++i) {
      if (i > 0 && outer_[i].first == outer_[i - 1].first) {
        masks_.back() |= outer_[i].second;
      } else {
        masks_.push_back(outer_[i].second);
      }
    }
    for (std::uint32_t set = 0; set < 1U << size; ++set) {
      std::int32_t open = 0;
      for (const std::uint32_t mask : masks_) open += (mask & ~set) != 0;
      for (std::int32_t i = 0; i < size; ++i) {
        open += (set >> i & 1) != 0 && ((beyond >> i & 1) != 0 || (adjacent[i] & ~set) != 0);
      }
      boundary_[set] = open;
    }
  }

  const Graph& graph_;
  Layout& layout_;
  std::vector<std::int32_t> place_, last_;
  std::vector<std::pair<NodeId, std::uint32_t>> outer_;
  std::vector<std::uint32_t> masks_;
  std::int32_t boundary_[1 << kWindow], worst_[1 << kWindow], sum_[1 << kWindow];
  std::int8_t last_of_[1 << kWindow];
};

void improve_layout(const Graph& graph, Layout& layout, core::Stopwatch* watch) {
  constexpr int kMostRounds = 20;
  // The width falls only if every largest boundary becomes smaller. So the search ends after it has failed to make this
  // number of largest boundaries smaller. In a long chain, for example, no boundary can become smaller.
  constexpr int kMostStuck = 64;
  LayoutWindowSearch search(graph, layout);
  for (int round = 0, stuck = 0; round < kMostRounds; ++round) {
    const auto boundary = boundaries(graph, layout);
    const std::int32_t width = score_of(boundary).first;
    bool changed = false;
    std::int32_t done = -1;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(boundary.size()); ++i) {
      if (boundary[i] < width || i < done) continue;
      bool better = false;
      for (const std::int32_t back : {LayoutWindowSearch::kWindow - 1, LayoutWindowSearch::kWindow / 2, 1}) {
        better = search.improve(std::max(0, i - back)) || better;
      }
      changed = changed || better;
      stuck += !better;
      done = i + LayoutWindowSearch::kWindow / 2;
      const bool expired = watch != nullptr && watch->charge(3 << LayoutWindowSearch::kWindow).expired();
      if (expired || stuck > kMostStuck) return;
    }
    if (!changed) return;
  }
}

}  // namespace

std::vector<BagInterval> bag_intervals(const PathDecomposition& decomposition, NodeId node_count) {
  std::vector<BagInterval> intervals(node_count, BagInterval{std::numeric_limits<std::int32_t>::max(), -1});
  for (std::size_t b = 0; b < decomposition.bags.size(); ++b) {
    for (const NodeId v : decomposition.bags[b]) {
      intervals[v].first = std::min(intervals[v].first, static_cast<std::int32_t>(b));
      intervals[v].last = static_cast<std::int32_t>(b);
    }
  }
  return intervals;
}

PathDecomposition decomposition_of(std::span<const BagInterval> intervals, std::int32_t bag_count) {
  PathDecomposition result;
  result.bags.resize(bag_count);
  for (NodeId v = 0; v < static_cast<NodeId>(intervals.size()); ++v) {
    for (std::int32_t b = intervals[v].first; b <= intervals[v].last; ++b) result.bags[b].push_back(v);
  }
  return drop_nested_bags(std::move(result));
}

PathDecomposition drop_nested_bags(PathDecomposition decomposition) {
  PathDecomposition result;
  const auto within = [](const std::vector<NodeId>& inner, const std::vector<NodeId>& outer) {
    return std::includes(outer.begin(), outer.end(), inner.begin(), inner.end());
  };
  for (auto& bag : decomposition.bags) {
    while (!result.bags.empty() && within(result.bags.back(), bag)) result.bags.pop_back();
    if (bag.empty() || (!result.bags.empty() && within(bag, result.bags.back()))) continue;
    result.bags.push_back(std::move(bag));
  }
  for (const auto& bag : result.bags) result.width = std::max(result.width, static_cast<std::int32_t>(bag.size()) - 1);
  return result;
}

PathDecomposition decomposition_of_layout(const Graph& graph, std::span<const NodeId> layout) {
  const auto place = places_of({layout.begin(), layout.end()});
  const auto last = last_neighbours(graph, place);
  std::vector<BagInterval> intervals(layout.size());
  for (NodeId v = 0; v < graph.node_count(); ++v) intervals[v] = {place[v], last[v]};
  return decomposition_of(intervals, static_cast<std::int32_t>(layout.size()));
}

PathDecomposition path_decomposition(const Graph& graph, core::Stopwatch* watch) {
  const NodeId n = graph.node_count();
  const auto can_afford = [&](std::int64_t work) {
    return watch == nullptr || (watch->rest().work >= work && !watch->charge(work).expired_now());
  };
  if (n <= kMostExactPathwidthNodes && can_afford(std::int64_t{n} << n)) return exact_path_decomposition(graph);
  Layout best(graph.input_order().begin(), graph.input_order().end());
  LayoutScore score = score_of(boundaries(graph, best));
  const auto expired = [&] { return watch != nullptr && watch->charge(n + graph.edge_count()).expired(); };
  const auto offer = [&](Layout layout) {
    const LayoutScore other = score_of(boundaries(graph, layout));
    if (other >= score) return;
    best = std::move(layout);
    score = other;
  };
  const auto rank = places_of(best);
  const std::vector<NodeId> in_order(best), from_end(best.rbegin(), best.rend());
  const std::vector<NodeId> peripheral = peripheral_nodes(graph);
  if (!expired()) offer(breadth_first_layout(graph, peripheral));
  for (const auto& starts : {in_order, from_end, peripheral}) {
    if (!expired()) offer(GreedyLayout(graph, rank).run(starts));
  }
  if (!expired()) offer(layout_of_tree(min_fill_decomposition(graph, kDefaultCoreDegree, watch), n));
  if (n + score.second > kMostBagEntries) {
    std::sort(best.begin(), best.end());
    return {{std::move(best)}, n - 1};
  }
  if (!expired()) improve_layout(graph, best, watch);
  return decomposition_of_layout(graph, best);
}

PathDecomposition exact_path_decomposition(const Graph& graph) {
  const NodeId n = graph.node_count();
  if (n > kMostExactPathwidthNodes) {
    throw std::invalid_argument(
        fmt::format("exact_path_decomposition is for at most {} nodes", kMostExactPathwidthNodes));
  }
  std::vector<std::uint32_t> adjacent(n, 0);
  for (NodeId v = 0; v < n; ++v) {
    for_each_neighbour(graph, v, [&](NodeId u) { adjacent[v] |= 1U << u; });
  }
  // least[set] is the size of the largest boundary at the first positions of a layout if the nodes of the set are
  // placed there in the order that makes this size least.
  std::vector<std::int8_t> least(std::size_t{1} << n, 0);
  for (std::uint32_t set = 1; set < 1U << n; ++set) {
    std::int8_t before = std::numeric_limits<std::int8_t>::max(), boundary = 0;
    for (std::uint32_t rest = set; rest != 0; rest &= rest - 1) {
      before = std::min(before, least[set ^ (rest & -rest)]);
      boundary = static_cast<std::int8_t>(boundary + ((adjacent[std::countr_zero(rest)] & ~set) != 0));
    }
    least[set] = std::max(before, boundary);
  }
  Layout layout;
  for (std::uint32_t set = (1U << n) - 1; set != 0;) {
    std::uint32_t choice = set & -set;
    for (std::uint32_t rest = set; rest != 0; rest &= rest - 1) {
      if (least[set ^ (rest & -rest)] < least[set ^ choice]) choice = rest & -rest;
    }
    layout.push_back(std::countr_zero(choice));
    set ^= choice;
  }
  std::reverse(layout.begin(), layout.end());
  return decomposition_of_layout(graph, layout);
}

std::string check_path_decomposition(const Graph& graph, const PathDecomposition& decomposition,
                                     std::span<const NodeId> spine) {
  const NodeId n = graph.node_count();
  std::vector<BagInterval> intervals(n);
  std::vector<std::int32_t> count(n, 0);
  std::int32_t width = -1;
  for (std::size_t b = 0; b < decomposition.bags.size(); ++b) {
    const auto& bag = decomposition.bags[b];
    width = std::max(width, static_cast<std::int32_t>(bag.size()) - 1);
    for (std::size_t i = 0; i < bag.size(); ++i) {
      const NodeId v = bag[i];
      if (v < 0 || v >= n) return fmt::format("bag {} holds {}, which is not a node", b, v);
      if (i > 0 && v <= bag[i - 1]) return fmt::format("bag {} is not ascending at node {}", b, v);
      if (count[v]++ == 0) intervals[v].first = static_cast<std::int32_t>(b);
      intervals[v].last = static_cast<std::int32_t>(b);
    }
  }
  for (NodeId v = 0; v < n; ++v) {
    if (count[v] == 0) return fmt::format("node '{}' is in no bag", graph.name(v));
    if (intervals[v].last - intervals[v].first + 1 != count[v]) {
      return fmt::format("the bags of node '{}' are not consecutive", graph.name(v));
    }
  }
  const auto apart = [&](NodeId u, NodeId v) {
    return intervals[u].last < intervals[v].first || intervals[v].last < intervals[u].first;
  };
  for (NodeId v = 0; v < n; ++v) {
    for (const NodeId u : graph.predecessors(v)) {
      if (apart(u, v)) return fmt::format("nodes '{}' and '{}' share no bag", graph.name(u), graph.name(v));
    }
  }
  for (std::size_t i = 1; i < spine.size(); ++i) {
    if (apart(spine[i - 1], spine[i])) {
      return fmt::format("'{}' and '{}', neighbours on the spine, share no bag", graph.name(spine[i - 1]),
                         graph.name(spine[i]));
    }
  }
  if (width != decomposition.width) return fmt::format("the width is {}, not {}", width, decomposition.width);
  return {};
}

}  // namespace cairn::solvers
