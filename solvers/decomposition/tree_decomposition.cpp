#include "cairn/solvers/decomposition/tree_decomposition.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

namespace cairn::solvers {
namespace {

using core::NodeId;

/// Elimination of nodes one by one: a node's neighbours become a clique, and with it they are a bag.
class Elimination {
 public:
  explicit Elimination(const core::Graph& graph) : adjacent_(graph.node_count()), fill_(graph.node_count(), 0) {
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      auto& row = adjacent_[v];
      row.assign(graph.predecessors(v).begin(), graph.predecessors(v).end());
      row.insert(row.end(), graph.successors(v).begin(), graph.successors(v).end());
      std::sort(row.begin(), row.end());
    }
    for (NodeId v = 0; v < graph.node_count(); ++v) push(v);
  }

  std::int32_t degree(NodeId v) const { return static_cast<std::int32_t>(adjacent_[v].size()); }
  const std::vector<NodeId>& neighbours(NodeId v) const { return adjacent_[v]; }

  /// The node of least fill-in, then least degree, then least index; kNoNode when all are eliminated.
  NodeId next() {
    while (!queue_.empty()) {
      const auto [fill, nodes, v] = queue_.top();
      if (!gone(v) && fill == fill_[v] && nodes == degree(v)) return v;
      queue_.pop();
    }
    return core::kNoNode;
  }

  void eliminate(NodeId v) {
    const std::vector<NodeId> clique = std::move(adjacent_[v]);
    adjacent_[v].clear();
    fill_[v] = kGone;
    touched_.clear();
    for (const NodeId a : clique) erase(adjacent_[a], v);
    for (std::size_t i = 0; i < clique.size(); ++i) {
      for (std::size_t j = i + 1; j < clique.size(); ++j) connect(clique[i], clique[j]);
    }
    for (const NodeId a : clique) push(a);
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const NodeId w : touched_) {
      if (!std::binary_search(clique.begin(), clique.end(), w)) push(w);
    }
  }

  /// Every node not yet eliminated.
  std::vector<NodeId> rest() const {
    std::vector<NodeId> nodes;
    for (NodeId v = 0; v < static_cast<NodeId>(adjacent_.size()); ++v) {
      if (!gone(v)) nodes.push_back(v);
    }
    return nodes;
  }

 private:
  static constexpr std::int64_t kGone = -1;
  // Counting missing edges is quadratic in the degree; beyond this degree all are taken to be missing.
  static constexpr std::int32_t kExactDegree = 48;

  bool gone(NodeId v) const { return fill_[v] == kGone; }

  static void erase(std::vector<NodeId>& row, NodeId v) { row.erase(std::lower_bound(row.begin(), row.end(), v)); }

  void connect(NodeId a, NodeId b) {
    const auto at = std::lower_bound(adjacent_[a].begin(), adjacent_[a].end(), b);
    if (at != adjacent_[a].end() && *at == b) return;
    // Whoever neighbours both has one missing edge fewer.
    if (degree(a) <= 4 * kExactDegree && degree(b) <= 4 * kExactDegree) {
      std::set_intersection(adjacent_[a].begin(), adjacent_[a].end(), adjacent_[b].begin(), adjacent_[b].end(),
                            std::back_inserter(touched_));
    }
    adjacent_[a].insert(at, b);
    adjacent_[b].insert(std::lower_bound(adjacent_[b].begin(), adjacent_[b].end(), a), a);
  }

  std::int64_t missing_edges(NodeId v) const {
    const auto& row = adjacent_[v];
    const auto d = static_cast<std::int64_t>(row.size());
    std::int64_t missing = d * (d - 1) / 2;
    if (d > kExactDegree) return missing;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      const auto& other = adjacent_[row[i]];
      auto at = std::lower_bound(other.begin(), other.end(), row[i + 1]);
      for (std::size_t j = i + 1; j < row.size() && at != other.end();) {
        if (*at < row[j]) {
          at = std::lower_bound(at, other.end(), row[j]);
        } else {
          missing -= *at == row[j];
          ++j;
        }
      }
    }
    return missing;
  }

  void push(NodeId v) {
    fill_[v] = missing_edges(v);
    queue_.emplace(fill_[v], degree(v), v);
  }

  using Entry = std::tuple<std::int64_t, std::int32_t, NodeId>;
  std::vector<std::vector<NodeId>> adjacent_;
  std::vector<std::int64_t> fill_;
  std::vector<NodeId> touched_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

class UnionFind {
 public:
  explicit UnionFind(std::int32_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0); }
  std::int32_t find(std::int32_t x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  /// The set of `from` joins that of `into`.
  void join(std::int32_t from, std::int32_t into) { parent_[find(from)] = find(into); }

 private:
  std::vector<std::int32_t> parent_;
};

/// Lemma 1: merges adjacent bags of which one holds the other, in one pass over the tree's edges.
TreeDecomposition merge_nested_bags(std::vector<std::vector<NodeId>> bags, const std::vector<std::int32_t>& parent) {
  const auto count = static_cast<std::int32_t>(bags.size());
  UnionFind sets(count);
  for (std::int32_t b = 0; b < count; ++b) {
    if (parent[b] < 0) continue;
    const std::int32_t x = sets.find(b), y = sets.find(parent[b]);
    if (std::includes(bags[x].begin(), bags[x].end(), bags[y].begin(), bags[y].end())) {
      sets.join(y, x);
    } else if (std::includes(bags[y].begin(), bags[y].end(), bags[x].begin(), bags[x].end())) {
      sets.join(x, y);
    }
  }
  TreeDecomposition result;
  std::vector<std::int32_t> number(count, -1);
  for (std::int32_t b = 0; b < count; ++b) {
    if (sets.find(b) != b) continue;
    number[b] = static_cast<std::int32_t>(result.bags.size());
    result.width = std::max(result.width, static_cast<std::int32_t>(bags[b].size()) - 1);
    result.bags.push_back(std::move(bags[b]));
  }
  result.tree.resize(result.bags.size());
  for (std::int32_t b = 0; b < count; ++b) {
    if (parent[b] < 0) continue;
    const std::int32_t x = number[sets.find(b)], y = number[sets.find(parent[b])];
    if (x == y) continue;
    result.tree[x].push_back(y);
    result.tree[y].push_back(x);
  }
  return result;
}

}  // namespace

TreeDecomposition min_fill_decomposition(const core::Graph& graph, std::int32_t core_degree, core::Stopwatch* watch) {
  Elimination elimination(graph);
  std::vector<std::vector<NodeId>> bags;
  std::vector<std::int32_t> bag_of(graph.node_count(), -1);
  std::vector<NodeId> eliminated;
  for (NodeId v = elimination.next(); v != core::kNoNode; v = elimination.next()) {
    const auto number = static_cast<std::int32_t>(bags.size());
    eliminated.push_back(v);
    const std::int64_t degree = elimination.degree(v);
    if (degree > core_degree || (watch != nullptr && watch->charge(1 + degree * degree).expired())) {
      bags.push_back(elimination.rest());
      for (const NodeId u : bags.back()) bag_of[u] = number;
      break;
    }
    std::vector<NodeId> bag = elimination.neighbours(v);
    bag.insert(std::lower_bound(bag.begin(), bag.end(), v), v);
    bags.push_back(std::move(bag));
    bag_of[v] = number;
    elimination.eliminate(v);
  }
  // A bag hangs on the bag of whichever of its other nodes was eliminated first after its own. A component's last bag
  // has none; it hangs on the bag after it, so that the forest becomes one tree.
  const auto count = static_cast<std::int32_t>(bags.size());
  std::vector<std::int32_t> parent(count, -1);
  for (std::int32_t b = 0; b + 1 < count; ++b) {
    std::int32_t first = count;
    for (const NodeId u : bags[b]) {
      if (bag_of[u] > b) first = std::min(first, bag_of[u]);
    }
    parent[b] = first < count ? first : b + 1;
  }
  return merge_nested_bags(std::move(bags), parent);
}

std::string check_decomposition(const core::Graph& graph, const TreeDecomposition& decomposition) {
  const auto count = static_cast<std::int32_t>(decomposition.bags.size());
  const auto holds = [&](std::int32_t b, NodeId v) {
    return std::binary_search(decomposition.bags[b].begin(), decomposition.bags[b].end(), v);
  };
  std::vector<std::vector<std::int32_t>> bags_of(graph.node_count());
  for (std::int32_t b = 0; b < count; ++b) {
    for (const NodeId v : decomposition.bags[b]) bags_of[v].push_back(b);
  }
  UnionFind joined(count);
  std::size_t edges = 0;
  for (std::int32_t b = 0; b < count; ++b) {
    for (const std::int32_t c : decomposition.tree[b]) {
      if (c <= b) continue;
      if (joined.find(b) == joined.find(c)) return fmt::format("bags {} and {} close a cycle", b, c);
      joined.join(b, c);
      ++edges;
    }
  }
  if (count > 0 && edges + 1 != static_cast<std::size_t>(count)) return "the bags are not connected";
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (bags_of[v].empty()) return fmt::format("node {} is in no bag", v);
    for (const NodeId u : graph.predecessors(v)) {
      if (std::none_of(bags_of[v].begin(), bags_of[v].end(), [&](std::int32_t b) { return holds(b, u); })) {
        return fmt::format("nodes {} and {} share no bag", u, v);
      }
    }
    // In a tree, k bags are connected if and only if k - 1 edges run between them.
    std::size_t links = 0;
    for (const std::int32_t b : bags_of[v]) {
      for (const std::int32_t c : decomposition.tree[b]) links += c > b && holds(c, v);
    }
    if (links + 1 != bags_of[v].size()) return fmt::format("the bags of node {} are not connected", v);
  }
  return {};
}

namespace {

/// Centroid decomposition of the tree of bags.
class SeparatorBuilder {
 public:
  SeparatorBuilder(const TreeDecomposition& decomposition, NodeId node_count)
      : decomposition_(decomposition), removed_(decomposition.bags.size(), 0), below_(decomposition.bags.size(), 0) {
    result_.home.assign(node_count, -1);
  }

  SeparatorTree build() {
    if (!decomposition_.bags.empty()) part(0);
    return std::move(result_);
  }

 private:
  /// Bags of the component around `start`, parents before children. `from_` holds each one's parent.
  void collect(std::int32_t start) {
    component_.assign(1, {start, -1});
    for (std::size_t i = 0; i < component_.size(); ++i) {
      const auto [bag, parent] = component_[i];
      for (const std::int32_t c : decomposition_.tree[bag]) {
        if (c != parent && !removed_[c]) component_.emplace_back(c, bag);
      }
    }
  }

  std::int32_t centroid() {
    const auto total = static_cast<std::int32_t>(component_.size());
    for (const auto& [bag, parent] : component_) below_[bag] = 1;
    // Bottom up, the first bag that has at least half of all below it has no part larger than half around it.
    for (std::size_t i = component_.size(); i-- > 0;) {
      const auto [bag, parent] = component_[i];
      if (2 * below_[bag] >= total) return bag;
      below_[parent] += below_[bag];
    }
    return component_.front().first;
  }

  bool has_nodes() const {
    return std::any_of(component_.begin(), component_.end(), [&](const auto& entry) {
      const auto& bag = decomposition_.bags[entry.first];
      return std::any_of(bag.begin(), bag.end(), [&](NodeId v) { return result_.home[v] < 0; });
    });
  }

  /// The number of the new part, or -1 where no node is left in it. Recursion is log2(bags) deep.
  std::int32_t part(std::int32_t start) {
    collect(start);
    if (!has_nodes()) return -1;
    const auto number = static_cast<std::int32_t>(result_.parts.size());
    result_.parts.emplace_back();
    result_.parts[number].begin = number;
    result_.parts[number].bags = static_cast<std::int32_t>(component_.size());
    const std::int32_t center = centroid();
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
  std::vector<std::uint8_t> removed_;
  std::vector<std::int32_t> below_;
  std::vector<std::pair<std::int32_t, std::int32_t>> component_;  ///< bag, parent
  SeparatorTree result_;
};

}  // namespace

SeparatorTree separator_tree(const TreeDecomposition& decomposition, NodeId node_count) {
  return SeparatorBuilder(decomposition, node_count).build();
}

}  // namespace cairn::solvers
