// Computes tree decompositions, which are trees of bags (sets of nodes), and their separators (tree_decomposition.h). A
// separator is a bag that is removed so that the tree falls into smaller components.

#include "cairn/solvers/decomposition/tree_decomposition.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cairn/solvers/decomposition/internal/union_find.h"

namespace cairn::solvers {
namespace {

using core::NodeId;

using Bag = std::vector<NodeId>;

bool holds(const Bag& bag, NodeId v) { return std::binary_search(bag.begin(), bag.end(), v); }

/// Returns whether all nodes of the smaller bag are in the larger bag. O(smaller * log larger).
bool nested(const Bag& smaller, const Bag& larger) {
  return std::all_of(smaller.begin(), smaller.end(), [&](NodeId v) { return holds(larger, v); });
}

}  // namespace

TreeDecomposition min_fill_decomposition(const core::Graph& graph, std::int32_t core_degree, core::Stopwatch* watch) {
  const UndirectedGraph undirected(graph);
  return decomposition_of(undirected, elimination_order(undirected, {.core_degree = core_degree}, watch));
}

TreeDecomposition merge_nested_bags(TreeDecomposition decomposition) {
  auto& [bags, tree, width] = decomposition;
  const auto count = static_cast<std::int32_t>(bags.size());
  // Each set consists of merged bags. Its representative is the largest bag, which contains the others.
  UnionFind sets(count);
  for (std::int32_t b = 0; b < count; ++b) {
    for (const std::int32_t c : tree[b]) {
      if (c < b) continue;
      const std::int32_t x = sets.find(b), y = sets.find(c);
      if (bags[x].size() >= bags[y].size()) {
        if (nested(bags[y], bags[x])) sets.join(y, x);
      } else if (nested(bags[x], bags[y])) {
        sets.join(x, y);
      }
    }
  }
  TreeDecomposition result;
  result.width = width;
  std::vector<std::int32_t> number(count, -1);
  for (std::int32_t b = 0; b < count; ++b) {
    if (sets.find(b) != b) continue;
    number[b] = static_cast<std::int32_t>(result.bags.size());
    result.bags.push_back(std::move(bags[b]));
  }
  result.tree.resize(result.bags.size());
  for (std::int32_t b = 0; b < count; ++b) {
    for (const std::int32_t c : tree[b]) {
      const std::int32_t x = number[sets.find(b)], y = number[sets.find(c)];
      if (c < b || x == y) continue;
      result.tree[x].push_back(y);
      result.tree[y].push_back(x);
    }
  }
  return result;
}

namespace {

/// Checks that bags list nodes in ascending order, that the edges between bags form a tree, and that the width is
/// right. Returns a description of the first error, or an empty text.
std::string check_tree(NodeId node_count, const TreeDecomposition& decomposition) {
  const auto& [bags, tree, width] = decomposition;
  const auto count = static_cast<std::int32_t>(bags.size());
  if (tree.size() != bags.size())
    return fmt::format("the tree is one of {} bags, but there are {}", tree.size(), count);
  std::int32_t largest = 0;
  for (std::int32_t b = 0; b < count; ++b) {
    const Bag& bag = bags[b];
    largest = std::max(largest, static_cast<std::int32_t>(bag.size()));
    if (std::adjacent_find(bag.begin(), bag.end(), std::greater_equal<>()) != bag.end())
      return fmt::format("the nodes of bag {} do not ascend", b);
    if (!bag.empty() && (bag.front() < 0 || bag.back() >= node_count))
      return fmt::format("bag {} holds {}, which is not a node", b, bag.front() < 0 ? bag.front() : bag.back());
  }
  UnionFind joined(count);
  // Both bags of an edge must list the edge. `edges` has the edges as listed by the bag of lower number, `again` as
  // listed by the bag of higher number.
  std::vector<std::pair<std::int32_t, std::int32_t>> edges, again;
  for (std::int32_t b = 0; b < count; ++b) {
    for (const std::int32_t c : tree[b]) {
      if (c < 0 || c >= count || c == b) return fmt::format("bag {} cannot have the neighbour {}", b, c);
      (b < c ? edges : again).emplace_back(std::min(b, c), std::max(b, c));
      if (c < b) continue;
      if (joined.find(b) == joined.find(c)) return fmt::format("the edge between bags {} and {} closes a cycle", b, c);
      joined.join(b, c);
    }
  }
  std::sort(edges.begin(), edges.end());
  std::sort(again.begin(), again.end());
  if (edges != again) return "neighbours in the tree of bags are not mutual";
  for (std::int32_t b = 1; b < count; ++b) {
    if (joined.find(b) != joined.find(0)) return fmt::format("bags 0 and {} are not connected", b);
  }
  if (width != largest - 1) return fmt::format("the width is {}, but the largest bag has {} nodes", width, largest);
  return {};
}

}  // namespace

std::string check_decomposition(const core::Graph& graph, const TreeDecomposition& decomposition) {
  if (std::string problem = check_tree(graph.node_count(), decomposition); !problem.empty()) return problem;
  const auto& [bags, tree, width] = decomposition;
  const auto count = static_cast<std::int32_t>(bags.size());
  // In a tree, k bags are connected if and only if there are k - 1 edges between them. So for each node, the number of
  // bags that contain it, minus the number of edges between these bags, must be 1.
  std::vector<std::int32_t> excess(graph.node_count(), 0);
  for (const Bag& bag : bags) {
    for (const NodeId v : bag) ++excess[v];
  }
  const auto absent = std::find(excess.begin(), excess.end(), 0) - excess.begin();
  if (absent < graph.node_count())
    return fmt::format("node '{}' is in no bag", graph.name(static_cast<NodeId>(absent)));
  for (std::int32_t b = 0; b < count; ++b) {
    for (const std::int32_t c : tree[b]) {
      if (std::pair(bags[b].size(), b) > std::pair(bags[c].size(), c)) continue;
      for (const NodeId v : bags[b]) excess[v] -= holds(bags[c], v);
    }
  }
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (excess[v] != 1) return fmt::format("the bags of node '{}' are not connected", graph.name(v));
  }
  // For each node, the bag that is nearest to the root of the tree, bag 0, among the bags that contain the node. Two
  // nodes share a bag if and only if one of them is in the `top` bag of the other, because the bags of each node are
  // connected.
  std::vector<std::int32_t> top(graph.node_count(), -1);
  std::vector<std::pair<std::int32_t, std::int32_t>> walk;  // each bag and its parent
  if (count > 0) walk.emplace_back(0, -1);
  for (std::size_t i = 0; i < walk.size(); ++i) {
    const auto [b, parent] = walk[i];
    for (const NodeId v : bags[b]) {
      if (top[v] < 0) top[v] = b;
    }
    for (const std::int32_t c : tree[b]) {
      if (c != parent) walk.emplace_back(c, b);
    }
  }
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    for (const NodeId u : graph.predecessors(v)) {
      if (!holds(bags[top[v]], u) && !holds(bags[top[u]], v))
        return fmt::format("nodes '{}' and '{}' are joined by an edge but share no bag", graph.name(u), graph.name(v));
    }
  }
  return {};
}

namespace {

/// Builds a SeparatorTree by centroid decomposition of the tree of bags. Separators are removed from the tree. A
/// component is a connected part of the remaining bags.
class SeparatorBuilder {
 public:
  SeparatorBuilder(const TreeDecomposition& decomposition, NodeId node_count, std::vector<std::int64_t> bytes)
      : decomposition_(decomposition),
        bytes_(std::move(bytes)),
        removed_(decomposition.bags.size(), 0),
        below_(decomposition.bags.size(), 0),
        counted_(bytes_.size(), -1) {
    result_.home.assign(node_count, -1);
  }

  SeparatorTree build() {
    if (!decomposition_.bags.empty()) part(0);
    return std::move(result_);
  }

 private:
  /// Lists the component of the bag `start` in component_, parents before children; `start` is the root.
  void collect(std::int32_t start) {
    component_.assign(1, {start, -1});
    for (std::size_t i = 0; i < component_.size(); ++i) {
      const auto [bag, parent] = component_[i];
      for (const std::int32_t c : decomposition_.tree[bag]) {
        if (c != parent && !removed_[c]) component_.emplace_back(c, bag);
      }
    }
  }

  /// Returns a bag of the current component whose removal leaves no component with more than half of the weight.
  template <class Weight>
  std::int32_t centroid(const Weight& weight) {
    std::int64_t total = 0;
    for (const auto& [bag, parent] : component_) total += below_[bag] = weight(bag);
    // The loop goes up from the leaves and returns the first bag whose subtree has at least half of the weight. The
    // subtrees of this bag's children have less than half, and the bags outside its subtree have at most half.
    for (std::size_t i = component_.size(); i-- > 0;) {
      const auto [bag, parent] = component_[i];
      if (below_[bag] >= total - below_[bag]) return bag;
      below_[parent] += below_[bag];
    }
    return component_.front().first;
  }

  std::int32_t centroid_by_bags() {
    return centroid([](std::int32_t) { return 1; });
  }

  /// Returns a bag whose removal leaves no component with more than half of the bytes. If that removal would leave a
  /// component with more than 2/3 of the bags, returns centroid_by_bags() instead. A node's bytes count once, at the
  /// node's bag nearest to the root of the component. This is enough, because all bags of a node stay in one component
  /// after the removal, unless the removed bag contains the node.
  std::int32_t centroid_by_bytes() {
    const auto number = static_cast<std::int32_t>(result_.parts.size());
    std::int64_t total = 0;
    const std::int32_t center = centroid([&](std::int32_t bag) {
      std::int64_t sum = 0;
      for (const NodeId v : decomposition_.bags[bag]) {
        if (result_.home[v] >= 0 || counted_[v] == number) continue;
        counted_[v] = number;
        sum += bytes_[v];
      }
      total += sum;
      return sum;
    });
    return total > 0 && 3 * largest_around(center) <= 2 * static_cast<std::int64_t>(component_.size())
               ? center
               : centroid_by_bags();
  }

  std::int64_t largest_around(std::int32_t center) {
    for (const auto& [bag, parent] : component_) below_[bag] = 1;
    std::int64_t largest = 0;
    for (std::size_t i = component_.size(); i-- > 0;) {
      const auto [bag, parent] = component_[i];
      if (bag == center) {
        largest = std::max(largest, static_cast<std::int64_t>(component_.size()) - below_[bag]);
      } else if (parent == center) {
        largest = std::max(largest, below_[bag]);
      }
      if (parent >= 0) below_[parent] += below_[bag];
    }
    return largest;
  }

  bool has_nodes() const {
    return std::any_of(component_.begin(), component_.end(), [&](const auto& entry) {
      const auto& bag = decomposition_.bags[entry.first];
      return std::any_of(bag.begin(), bag.end(), [&](NodeId v) { return result_.home[v] < 0; });
    });
  }

  /// Adds a part (SeparatorTree::Part) for the component of the bag `start`, and the parts within it. Returns the
  /// number of the part, or -1 if all nodes of the component belong to separators already. A part has at most 2/3 of
  /// the bags of the part that contains it, so the recursion is O(log(number of bags)) deep.
  std::int32_t part(std::int32_t start) {
    collect(start);
    if (!has_nodes()) return -1;
    const auto number = static_cast<std::int32_t>(result_.parts.size());
    const std::int32_t center = bytes_.empty() ? centroid_by_bags() : centroid_by_bytes();
    result_.parts.emplace_back();
    result_.parts[number].begin = number;
    result_.parts[number].bags = static_cast<std::int32_t>(component_.size());
    removed_[center] = 1;
    for (const NodeId v : decomposition_.bags[center]) {
      if (result_.home[v] >= 0) continue;
      result_.home[v] = number;
      result_.parts[number].separator.push_back(v);
    }
    for (const std::int32_t c : decomposition_.tree[center]) {
      if (removed_[c]) continue;
      if (const std::int32_t child = part(c); child >= 0) result_.parts[number].children.push_back(child);
    }
    result_.parts[number].end = static_cast<std::int32_t>(result_.parts.size());
    return number;
  }

  const TreeDecomposition& decomposition_;
  std::vector<std::int64_t> bytes_;
  std::vector<std::uint8_t> removed_;
  std::vector<std::int64_t> below_;  ///< for each bag of the component, the weight of the bag's subtree
  std::vector<std::int32_t> counted_;
  std::vector<std::pair<std::int32_t, std::int32_t>> component_;  ///< each bag and its parent
  SeparatorTree result_;
};

}  // namespace

SeparatorTree separator_tree(const TreeDecomposition& decomposition, const core::Graph& graph, Balance balance) {
  std::vector<std::int64_t> bytes;
  for (NodeId v = 0; balance == Balance::bytes && v < graph.node_count(); ++v) bytes.push_back(graph.size(v));
  return SeparatorBuilder(decomposition, graph.node_count(), std::move(bytes)).build();
}

SeparatorTree separator_tree(const TreeDecomposition& decomposition, NodeId node_count) {
  return SeparatorBuilder(decomposition, node_count, {}).build();
}

}  // namespace cairn::solvers
