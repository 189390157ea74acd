// Computes elimination orders (elimination.h). Eliminating a node means to connect all pairs of its remaining
// neighbours and to remove the node. The fill of a node is the number of pairs of its neighbours that are not adjacent.

#include "cairn/solvers/decomposition/elimination.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "cairn/solvers/decomposition/internal/eliminator.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"

namespace cairn::solvers {

using core::NodeId;

UndirectedGraph::UndirectedGraph(const core::Graph& graph) : begin_(graph.node_count() + 1, 0) {
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    begin_[v + 1] = begin_[v] + static_cast<std::int64_t>(graph.predecessors(v).size() + graph.successors(v).size());
  }
  neighbours_.resize(begin_.back());
  // The loop visits v in ascending order, so the list of neighbours of each node becomes ascending.
  std::vector<std::int64_t> end(begin_.begin(), begin_.end() - 1);
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    for (const NodeId u : graph.predecessors(v)) neighbours_[end[u]++] = v;
    for (const NodeId u : graph.successors(v)) neighbours_[end[u]++] = v;
  }
}

UndirectedGraph::UndirectedGraph(NodeId node_count, const std::vector<std::pair<NodeId, NodeId>>& edges)
    : begin_(node_count + 1, 0) {
  std::vector<std::pair<NodeId, NodeId>> arcs;
  arcs.reserve(2 * edges.size());
  for (const auto& [u, v] : edges) {
    arcs.emplace_back(u, v);
    arcs.emplace_back(v, u);
  }
  std::sort(arcs.begin(), arcs.end());
  arcs.erase(std::unique(arcs.begin(), arcs.end()), arcs.end());
  for (const auto& [u, v] : arcs) {
    ++begin_[u + 1];
    neighbours_.push_back(v);
  }
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
}

namespace {

/// Computes the fill of each node: the number of pairs of its neighbours, minus the number of triangles with this node.
/// Each triangle is found from its node of least degree. O(m^1.5) for m edges.
std::vector<std::int64_t> count_fills(const UndirectedGraph& graph) {
  const NodeId n = graph.node_count();
  const auto below = [&](NodeId a, NodeId b) {
    return std::pair(graph.neighbours(a).size(), a) < std::pair(graph.neighbours(b).size(), b);
  };
  std::vector<std::vector<NodeId>> higher(n);
  for (NodeId v = 0; v < n; ++v) {
    for (const NodeId u : graph.neighbours(v)) {
      if (below(v, u)) higher[v].push_back(u);
    }
  }
  std::vector<std::int64_t> fill(n);
  for (NodeId v = 0; v < n; ++v) {
    const auto degree = static_cast<std::int64_t>(graph.neighbours(v).size());
    fill[v] = degree * (degree - 1) / 2;
  }
  std::vector<NodeId> mark(n, core::kNoNode);
  for (NodeId v = 0; v < n; ++v) {
    for (const NodeId u : higher[v]) mark[u] = v;
    for (const NodeId u : higher[v]) {
      for (const NodeId w : higher[u]) {
        if (mark[w] != v) continue;
        --fill[v];
        --fill[u];
        --fill[w];
      }
    }
  }
  return fill;
}

/// Returns a random permutation or, without `random`, the identity.
std::vector<NodeId> tie_ranks(NodeId n, core::Random* random) {
  std::vector<NodeId> rank(n);
  std::iota(rank.begin(), rank.end(), 0);
  for (NodeId i = n; random != nullptr && i > 1; --i) std::swap(rank[i - 1], rank[random->next() % i]);
  return rank;
}

std::vector<std::int32_t> draw_noise(NodeId n, const EliminationOptions& options) {
  std::vector<std::int32_t> noise;
  if (options.random == nullptr || options.noise <= 0) return noise;
  for (NodeId v = 0; v < n; ++v)
    noise.push_back(static_cast<std::int32_t>(options.random->next() % (options.noise + 1)));
  return noise;
}

template <class Body>
void for_each_bit(std::span<const std::uint64_t> words, const Body& body) {
  for (std::size_t k = 0; k < words.size(); ++k) {
    for (std::uint64_t rest = words[k]; rest != 0; rest &= rest - 1) body(64 * k + std::countr_zero(rest));
  }
}

bool has_bit(std::span<const std::uint64_t> words, std::size_t i) { return words[i / 64] >> i % 64 & 1; }
void set_bit(std::span<std::uint64_t> words, std::size_t i) { words[i / 64] |= std::uint64_t{1} << i % 64; }

std::int64_t count_common(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  std::int64_t count = 0;
  for (std::size_t k = 0; k < a.size(); ++k) count += std::popcount(a[k] & b[k]);
  return count;
}

bool any_bit(std::span<const std::uint64_t> words) {
  return std::any_of(words.begin(), words.end(), [](std::uint64_t word) { return word != 0; });
}

}  // namespace

Eliminator::Eliminator(const UndirectedGraph& graph, const EliminationOptions& options)
    : sets_(graph),
      fill_(options.rule == EliminationRule::min_fill ? count_fills(graph) : std::vector<std::int64_t>()),
      noise_(draw_noise(graph.node_count(), options)),
      queue_(
          graph.node_count(), [this](NodeId v) { return key(v); }, tie_ranks(graph.node_count(), options.random)),
      place_(graph.node_count(), -1) {}

NodeQueue::Key Eliminator::key(NodeId v) const {
  const std::int64_t noise = noise_.empty() ? 0 : noise_[v];
  return {(fill_.empty() ? degree(v) : fill_[v]) + noise, degree(v)};
}

void Eliminator::eliminate(NodeId v) {
  const auto clique = sets_.neighbours(v);
  touched_.assign(clique.begin(), clique.end());
  members_ = touched_.size();
  words_ = (members_ + 63) / 64;
  const bool complete = members_ < 2 || (!fill_.empty() && fill_[v] == 0);
  sets_.remove(v);
  queue_.erase(v);

  if (!complete) {
    for (std::size_t i = 0; i < members_; ++i) place_[touched_[i]] = static_cast<std::int32_t>(i);
    find_missing_edges();
    if (!fill_.empty()) {
      meet_unwalked();
      update_fills();
    }
    for (const NodeId w : touched_) place_[w] = -1;
  }
  for (std::size_t i = 0; i < members_ && !fill_.empty(); ++i) {
    // Node a is a neighbour of the eliminated node v, and gets `added` new neighbours. It also has `outside` neighbours
    // that are neither v nor neighbours of v. Before the elimination, each outside neighbour u and v were a pair in the
    // fill of a; this pair disappears with v. Afterwards, u and each new neighbour of a are a pair in this fill. So the
    // fill grows by (added - 1) * outside.
    const NodeId a = touched_[i];
    const std::int64_t added = complete ? 0 : count_common(row(missing_, i), row(missing_, i));
    const std::int64_t outside = degree(a) - (static_cast<std::int64_t>(members_) - 1 - added);
    fill_[a] += (added - 1) * outside;
  }
  if (!complete) add_missing_edges();
  for (const NodeId w : touched_) queue_.update(w, key(w));
}

/// Finds for each member (neighbour of the eliminated node) the members to which it has an edge (adjacent_) and those
/// to which it has none (missing_). Collects in lacking_ the members that miss some edge. Calls walk(), which visits
/// all neighbours of a member, unless the member has far more neighbours than there are members.
void Eliminator::find_missing_edges() {
  const std::size_t long_row = 64 + 4 * members_;
  adjacent_.assign(members_ * words_, 0);
  walked_.assign(members_, 0);
  std::vector<std::size_t> unwalked;
  for (std::size_t i = 0; i < members_; ++i) {
    if (static_cast<std::size_t>(degree(touched_[i])) <= long_row) {
      walk(i);
    } else {
      unwalked.push_back(i);
    }
  }
  for (std::size_t x = 0; x < unwalked.size(); ++x) {
    for (std::size_t y = x + 1; y < unwalked.size(); ++y) {
      const std::size_t i = unwalked[x], j = unwalked[y];
      if (!sets_.adjacent(touched_[i], touched_[j])) continue;
      set_bit(row(adjacent_, i), j);
      set_bit(row(adjacent_, j), i);
    }
  }
  missing_.assign(members_ * words_, 0);
  lacking_.assign(words_, 0);
  for (std::size_t i = 0; i < members_; ++i) {
    const auto missing = row(missing_, i), adjacent = row(adjacent_, i);
    set_bit(adjacent, i);
    for (std::size_t k = 0; k < words_; ++k) {
      const std::size_t bits = std::min<std::size_t>(64, members_ - 64 * k);
      missing[k] = ~adjacent[k] & (~std::uint64_t{0} >> (64 - bits));
    }
    if (any_bit(missing)) set_bit(lacking_, i);
  }
}

/// Records in adjacent_ the edges of the node touched_[member], a neighbour of the eliminated node. Under min-degree,
/// only its edges to other members are recorded. Under min-fill, all of its edges are recorded, and neighbours that are
/// not in the list touched_ yet are appended to it.
void Eliminator::walk(std::size_t member) {
  walked_[member] = 1;
  for (const NodeId w : sets_.neighbours(touched_[member])) {
    std::int32_t at = place_[w];
    if (at < 0) {
      if (fill_.empty()) continue;
      at = place_[w] = static_cast<std::int32_t>(touched_.size());
      touched_.push_back(w);
      adjacent_.resize(adjacent_.size() + words_, 0);
    }
    set_bit(row(adjacent_, at), member);
    if (static_cast<std::size_t>(at) < members_) set_bit(row(adjacent_, member), at);
  }
}

/// Adds those edges to adjacent_ that update_fills() needs and find_missing_edges() has left out. These are the edges
/// between a node and two members (neighbours of the eliminated node), if the node is adjacent to both members and the
/// members are not adjacent to each other.
void Eliminator::meet_unwalked() {
  for (std::size_t i = 0; i < members_; ++i) {
    if (walked_[i]) continue;
    for_each_bit(row(missing_, i), [&](std::size_t j) {
      if (!walked_[i] && !walked_[j]) walk(degree(touched_[i]) < degree(touched_[j]) ? i : j);
    });
  }
  for (std::size_t i = 0; i < members_; ++i) {
    if (walked_[i] || !has_bit(lacking_, i)) continue;
    for (std::size_t at = members_; at < touched_.size(); ++at) {
      if (sets_.adjacent(touched_[at], touched_[i])) set_bit(row(adjacent_, at), i);
    }
  }
}

/// Lowers the fills for the edges that the elimination adds between members (neighbours of the eliminated node). A new
/// edge removes one pair from the fill of every node adjacent to both of its ends. Afterwards, eliminate() raises the
/// fill of each end a of a new edge (a, b): it counts the pairs of b with all neighbours of a that are not members.
/// Pairs that have an edge already must not count, so they are subtracted here.
void Eliminator::update_fills() {
  for (std::size_t at = 0; at < touched_.size(); ++at) {
    const auto near = row(adjacent_, at);
    for (std::size_t k = 0; k < words_; ++k) near[k] &= lacking_[k];
    std::int64_t ends = 0;
    for_each_bit(near, [&](std::size_t i) {
      const std::int64_t pairs = count_common(row(missing_, i), near);
      ends += pairs;
      if (at >= members_) fill_[touched_[i]] -= pairs;
    });
    fill_[touched_[at]] -= ends / 2;
  }
}

void Eliminator::add_missing_edges() {
  for (std::size_t i = 0; i < members_; ++i) {
    for_each_bit(row(missing_, i), [&](std::size_t j) {
      if (i < j) sets_.connect(touched_[i], touched_[j]);
    });
  }
}

EliminationOrder elimination_order(const UndirectedGraph& graph, const EliminationOptions& options,
                                   core::Stopwatch* watch) {
  Eliminator eliminator(graph, options);
  EliminationOrder order;
  order.nodes.reserve(graph.node_count());
  while (!eliminator.done()) {
    const NodeId v = eliminator.next();
    const std::int64_t degree = eliminator.degree(v);
    if (degree > options.core_degree || (watch != nullptr && watch->charge(1 + degree * degree).expired())) break;
    order.width = std::max(order.width, eliminator.degree(v));
    order.nodes.push_back(v);
    eliminator.eliminate(v);
  }
  order.core = graph.node_count() - static_cast<NodeId>(order.nodes.size());
  order.width = std::max(order.width, order.core - 1);
  for (NodeId v = 0; order.core > 0 && v < graph.node_count(); ++v) {
    if (!eliminator.eliminated(v)) order.nodes.push_back(v);
  }
  return order;
}

TreeDecomposition decomposition_of(const UndirectedGraph& graph, const EliminationOrder& order) {
  const NodeId n = graph.node_count(), alone = n - order.core;
  const std::int32_t count = alone + (order.core > 0 ? 1 : 0);
  std::vector<std::int32_t> bag_of(n);
  for (NodeId i = 0; i < n; ++i) bag_of[order.nodes[i]] = std::min(i, alone);
  TreeDecomposition result{.bags = std::vector<std::vector<NodeId>>(count),
                           .tree = std::vector<std::vector<std::int32_t>>(count),
                           .width = order.width};
  // The bag of a node contains the node and its neighbours at the time of its elimination. These neighbours are of two
  // kinds, and all are eliminated later: the node's neighbours in the graph, and nodes in the bags attached to this
  // bag. Each bag is attached to the bag of the neighbour that is eliminated first. The last bag of a connected
  // component contains no such neighbour; it is attached to the next bag, so that there is one tree.
  std::vector<NodeId> mark(n, core::kNoNode);
  for (std::int32_t b = 0; b < count; ++b) {
    auto& bag = result.bags[b];
    if (b == alone) {
      bag.assign(order.nodes.begin() + alone, order.nodes.end());
      std::sort(bag.begin(), bag.end());
      break;
    }
    const NodeId v = order.nodes[b];
    const auto add = [&](NodeId u) {
      if (bag_of[u] < b || mark[u] == b) return;
      mark[u] = b;
      bag.push_back(u);
    };
    add(v);
    for (const NodeId u : graph.neighbours(v)) add(u);
    for (const std::int32_t child : result.tree[b]) {
      for (const NodeId u : result.bags[child]) add(u);
    }
    std::sort(bag.begin(), bag.end());
    if (b + 1 == count) break;
    std::int32_t parent = count;
    for (const NodeId u : bag) {
      if (u != v) parent = std::min(parent, bag_of[u]);
    }
    if (parent == count) parent = b + 1;
    result.tree[b].push_back(parent);
    result.tree[parent].push_back(b);
  }
  return merge_nested_bags(std::move(result));
}

std::int32_t treewidth_lower_bound(const UndirectedGraph& graph, core::Random* random, core::Stopwatch* watch) {
  NeighbourSets sets(graph);
  const auto key = [&](NodeId v) { return NodeQueue::Key(sets.degree(v), 0); };
  NodeQueue queue(graph.node_count(), key, tie_ranks(graph.node_count(), random));
  std::int32_t bound = -1;
  std::vector<NodeId> around;
  while (!queue.empty()) {
    const NodeId v = queue.top();
    const std::int64_t degree = sets.degree(v);
    bound = std::max(bound, sets.degree(v));
    if (watch != nullptr && watch->charge(1 + degree * degree).expired()) break;
    around.assign(sets.neighbours(v).begin(), sets.neighbours(v).end());
    queue.erase(v);
    NodeId into = core::kNoNode;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    // Number of neighbours of v so far that have `least` common neighbours with v; one of them is chosen at random.
    std::uint64_t equal = 0;
    for (const NodeId u : around) {
      const auto common =
          std::count_if(around.begin(), around.end(), [&](NodeId w) { return w != u && sets.adjacent(u, w); });
      if (common > least) continue;
      equal = common < least ? 1 : equal + 1;
      if (equal > 1 && (random == nullptr || random->next() % equal != 0)) continue;
      least = common;
      into = u;
    }
    sets.remove(v);
    for (const NodeId w : around) {
      if (w != into && !sets.adjacent(into, w)) sets.connect(into, w);
    }
    for (const NodeId w : around) queue.update(w, key(w));
  }
  return bound;
}

}  // namespace cairn::solvers
