// Finds subgraphs that are connected to the rest of the graph only at their source and their sink
// (isolated_subgraph.h). The inner nodes of a subgraph are its nodes without these two.

#include "cairn/solvers/order/internal/reduction/isolated_subgraph.h"

#include <algorithm>
#include <cstddef>

#include "cairn/solvers/order/internal/reduction/step_graph.h"

namespace cairn::solvers {
namespace {

using core::NodeId;
using Edges = std::span<const std::pair<NodeId, NodeId>>;

/// Returns the immediate dominator of each node: the last node before it that lies on all paths from `root` to it.
/// (This has nothing to do with dominant orders.) Visits the nodes in topological order. A node's dominator is the
/// lowest common ancestor of its predecessors in the tree of dominators. Jump pointers find this ancestor. The entries
/// of the root and of nodes that cannot be reached are kNoNode. Takes O((n + m) log n) time for n nodes and m edges.
std::vector<NodeId> immediate_dominators(const Lists& successors, const Lists& predecessors, NodeId root) {
  const std::int32_t n = successors.count();
  std::vector<NodeId> dominator(static_cast<std::size_t>(n), core::kNoNode), jump(dominator);
  std::vector<std::int32_t> depth(dominator.size(), -1), missing(dominator.size(), 0);
  std::vector<NodeId> reached{root};
  std::vector<std::uint8_t> seen(dominator.size(), 0);
  seen[root] = 1;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const NodeId w : successors[reached[i]]) {
      ++missing[w];
      if (!std::exchange(seen[w], std::uint8_t{1})) reached.push_back(w);
    }
  }
  const auto common = [&](NodeId a, NodeId b) {
    if (depth[a] < depth[b]) std::swap(a, b);
    while (depth[a] > depth[b]) a = depth[jump[a]] >= depth[b] ? jump[a] : dominator[a];
    while (a != b) {
      const bool far = jump[a] != jump[b];
      a = far ? jump[a] : dominator[a];
      b = far ? jump[b] : dominator[b];
    }
    return a;
  };
  depth[root] = 0;
  jump[root] = root;
  std::vector<NodeId> ready{root};
  for (std::size_t i = 0; i < ready.size(); ++i) {
    for (const NodeId w : successors[ready[i]]) {
      if (--missing[w] > 0) continue;
      NodeId meet = core::kNoNode;
      for (const NodeId u : predecessors[w]) {
        if (seen[u]) meet = meet == core::kNoNode ? u : common(meet, u);
      }
      dominator[w] = meet;
      depth[w] = depth[meet] + 1;
      const NodeId up = jump[meet];
      jump[w] = depth[meet] - depth[up] == depth[up] - depth[jump[up]] ? jump[up] : meet;
      ready.push_back(w);
    }
  }
  return dominator;
}

/// Finds one candidate for each node with several outgoing edges, and keeps the candidates that are isolated.
class Finder {
 public:
  Finder(std::int32_t node_count, Edges edges, NodeId source, NodeId sink)
      : successors_(adjacency(node_count, edges, false)),
        predecessors_(adjacency(node_count, edges, true)),
        source_(source),
        sink_(sink),
        seen_(static_cast<std::size_t>(node_count), 0) {}

  std::vector<IsolatedSubgraph> find(std::size_t most) {
    std::vector<IsolatedSubgraph> found;
    const auto keep = [&](IsolatedSubgraph candidate) {
      const bool whole = candidate.source == source_ && candidate.sink == sink_;
      if (!whole && !candidate.inner.empty() && isolated(candidate)) found.push_back(std::move(candidate));
    };
    const auto behind = immediate_dominators(predecessors_, successors_, sink_);
    const auto before = immediate_dominators(successors_, predecessors_, source_);
    for (NodeId v = 0; v < successors_.count(); ++v) {
      if (v != source_ && successors_[v].size() >= 2 && behind[v] != core::kNoNode) {
        keep({v, behind[v], between(v, behind[v], successors_, most)});
      }
      // A subgraph that begins at the graph's source need not contain all edges of the source. So such a subgraph is
      // found from its sink v, if all paths from the graph's source to v have no node but these two in common.
      if (v != sink_ && predecessors_[v].size() >= 2 && before[v] == source_) {
        keep({source_, v, between(v, source_, predecessors_, most)});
      }
    }
    return found;
  }

 private:
  /// Returns the nodes between `from` and `to`, without these two ends. Goes from each node to the nodes in its list in
  /// `next`, which has the successors or the predecessors of each node. Returns an empty list if there are more than
  /// `most` such nodes.
  std::vector<NodeId> between(NodeId from, NodeId to, const Lists& next, std::size_t most) {
    std::vector<NodeId> inner;
    ++round_;
    const auto visit = [&](NodeId v) {
      for (const NodeId w : next[v]) {
        if (w != to && seen_[w] != round_) {
          seen_[w] = round_;
          inner.push_back(w);
        }
      }
    };
    visit(from);
    for (std::size_t i = 0; i < inner.size(); ++i) {
      if (inner.size() > most) return {};
      visit(inner[i]);
    }
    std::sort(inner.begin(), inner.end());
    return inner;
  }

  bool isolated(const IsolatedSubgraph& candidate) {
    ++round_;
    for (const NodeId v : candidate.inner) seen_[v] = round_;
    const auto inside = [&](NodeId v) { return seen_[v] == round_; };
    const auto leads_in = [&](NodeId v) { return inside(v) || v == candidate.sink; };
    if (candidate.source != source_) {
      const auto readers = successors_[candidate.source];
      if (!std::all_of(readers.begin(), readers.end(), leads_in)) return false;
    }
    return std::all_of(candidate.inner.begin(), candidate.inner.end(), [&](NodeId v) {
      const auto inputs = predecessors_[v], readers = successors_[v];
      return v != source_ && v != sink_ && std::all_of(readers.begin(), readers.end(), leads_in) &&
             std::all_of(inputs.begin(), inputs.end(), [&](NodeId u) { return inside(u) || u == candidate.source; });
    });
  }

  Lists successors_, predecessors_;
  NodeId source_, sink_;
  std::vector<std::int32_t> seen_;
  std::int32_t round_ = 0;
};

}  // namespace

std::vector<IsolatedSubgraph> isolated_subgraphs(std::int32_t node_count, Edges edges, NodeId source, NodeId sink,
                                                 std::size_t most) {
  auto found = Finder(node_count, edges, source, sink).find(most);
  std::stable_sort(found.begin(), found.end(), [](const IsolatedSubgraph& a, const IsolatedSubgraph& b) {
    return a.inner.size() < b.inner.size();
  });
  return found;
}

std::vector<IsolatedSubgraph> disjoint_subgraphs(std::int32_t node_count, std::vector<IsolatedSubgraph> found) {
  std::vector<std::uint8_t> taken(static_cast<std::size_t>(node_count), 0);
  std::vector<IsolatedSubgraph> disjoint;
  for (IsolatedSubgraph& subgraph : found) {
    // Inner nodes disappear when their subgraph is replaced, so no other subgraph may contain them.
    const auto is_taken = [&](NodeId v) { return taken[v] != 0; };
    if (is_taken(subgraph.source) || is_taken(subgraph.sink) ||
        std::any_of(subgraph.inner.begin(), subgraph.inner.end(), is_taken))
      continue;
    for (const NodeId v : subgraph.inner) taken[v] = 1;
    disjoint.push_back(std::move(subgraph));
  }
  // A subgraph is left out if an end of a smaller selected subgraph is among its inner nodes. A later call can find the
  // larger subgraph again, after the smaller subgraph has been replaced.
  std::vector<std::uint8_t> is_end(static_cast<std::size_t>(node_count), 0);
  std::vector<IsolatedSubgraph> result;
  for (IsolatedSubgraph& subgraph : disjoint) {
    if (std::any_of(subgraph.inner.begin(), subgraph.inner.end(), [&](NodeId v) { return is_end[v] != 0; })) continue;
    is_end[subgraph.source] = is_end[subgraph.sink] = 1;
    result.push_back(std::move(subgraph));
  }
  return result;
}

}  // namespace cairn::solvers
