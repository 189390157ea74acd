// Solves caduceus graphs (caduceus.h), which consist of a path, the staff, and of bends, which are paths that leave the
// staff and rejoin it. A segment is a piece of a memory profile that an optimal order runs without interruption.

#include "cairn/solvers/order/internal/papers/caduceus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "cairn/core/dominance.h"
#include "cairn/core/error.h"

namespace cairn::solvers {
namespace {

using core::NodeId;

core::Segment as_segment(std::int64_t weight) {
  return {std::max<std::int64_t>(weight, 0), std::max<std::int64_t>(-weight, 0)};
}

void check(const Caduceus& caduceus) {
  for (std::size_t b = 0; b < caduceus.bends.size(); ++b) {
    const Caduceus::Bend& bend = caduceus.bends[b];
    if (bend.from < 0 || bend.to >= static_cast<std::int64_t>(caduceus.staff.size()) || bend.from >= bend.to)
      throw core::InputError(
          fmt::format("bend {} goes from staff position {} to {}; the staff has positions 0 to {}, "
                      "and a bend must lead onwards",
                      b, bend.from, bend.to, static_cast<std::int64_t>(caduceus.staff.size()) - 1));
    if (bend.weights.empty()) throw core::InputError(fmt::format("bend {} has no node of its own", b));
  }
}

/// Replaces each bend by the segments of its profile, and calls solve(workspace) for the resulting graph. Turns the
/// order of segments that `solve` returns into an order of nodes.
template <class Solve>
std::vector<NodeId> solve_segments(const Caduceus& caduceus, const Solve& solve) {
  check(caduceus);
  std::vector<std::pair<NodeId, NodeId>> nodes;  // for each segment: its first node, and the node after its last node
  for (NodeId v = 0; v < static_cast<NodeId>(caduceus.staff.size()); ++v) nodes.emplace_back(v, v + 1);
  std::vector<std::vector<core::PlacedSegment>> bends;
  std::vector<std::int64_t> profile;
  auto begin = static_cast<std::int64_t>(caduceus.staff.size());
  for (const Caduceus::Bend& bend : caduceus.bends) {
    profile.assign(1, 0);
    for (const std::int64_t weight : bend.weights) profile.push_back(profile.back() + weight);
    bends.push_back(core::place_segments(profile));
    for (const core::PlacedSegment& segment : bends.back()) {
      nodes.emplace_back(static_cast<NodeId>(begin + segment.begin), static_cast<NodeId>(begin + segment.end));
    }
    begin += static_cast<std::int64_t>(bend.weights.size());
  }

  CaduceusWorkspace work({static_cast<std::int32_t>(caduceus.staff.size()), static_cast<std::int32_t>(bends.size()),
                          static_cast<std::int32_t>(nodes.size())});
  for (const std::int64_t weight : caduceus.staff) work.graph.add_staff(as_segment(weight));
  for (std::size_t b = 0; b < bends.size(); ++b) {
    std::copy(bends[b].begin(), bends[b].end(), work.graph.begin_bend().first);
    work.graph.end_bend(caduceus.bends[b].from + 1, caduceus.bends[b].to, static_cast<std::int32_t>(bends[b].size()));
  }
  work.graph.rank();
  const LaneArray<std::int32_t, 1> order = solve(work);
  std::vector<NodeId> result;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(nodes.size()); ++i) {
    for (NodeId v = nodes[order[i]].first; v < nodes[order[i]].second; ++v) result.push_back(v);
  }
  return result;
}

std::int64_t bytes_of(const CaduceusSize& size) {
  LaneAllocator<1> counter;
  const SegmentCaduceus graph(counter, size);
  const CaduceusSolver solver(counter, size);
  return counter.bytes();
}

bool inner(const NodeSumGraph& graph, NodeId v) {
  return graph.predecessors(v).size() == 1 && graph.successors(v).size() == 1;
}

/// Describes a path between two branching nodes, on which all other nodes (`nodes`) are inner. A node is inner if it
/// has exactly one predecessor and one successor; all nodes that are not inner are branching.
struct InnerPath {
  std::int32_t from = 0, to = 0;  ///< ranks of the branching nodes in topological order
  std::vector<NodeId> nodes;
};

}  // namespace

CaduceusWorkspace::CaduceusWorkspace(const CaduceusSize& size)
    : memory(static_cast<std::size_t>(bytes_of(size)) / sizeof(std::max_align_t) + 1),
      allocator(reinterpret_cast<std::byte*>(memory.data())),
      graph(allocator, size),
      solver(allocator, size) {}

NodeSumGraph node_sum_graph(const Caduceus& caduceus) {
  check(caduceus);
  std::vector<std::int64_t> weights = caduceus.staff;
  std::vector<NodeSumGraph::Edge> edges;
  for (NodeId v = 1; v < static_cast<NodeId>(caduceus.staff.size()); ++v) edges.emplace_back(v - 1, v);
  for (const Caduceus::Bend& bend : caduceus.bends) {
    NodeId last = bend.from;
    for (const std::int64_t weight : bend.weights) {
      weights.push_back(weight);
      edges.emplace_back(last, static_cast<NodeId>(weights.size() - 1));
      last = static_cast<NodeId>(weights.size() - 1);
    }
    edges.emplace_back(last, bend.to);
  }
  return NodeSumGraph(std::move(weights), std::move(edges));
}

Caduceus find_caduceus(const NodeSumGraph& graph, std::vector<NodeId>* numbering) {
  if (graph.node_count() == 0) throw core::InputError("an empty graph is not a caduceus: it has no staff");
  // The branching nodes in topological order. Because the graph has no cycle, every chain of inner nodes ends at a
  // branching node.
  std::vector<NodeId> branching;
  std::vector<std::int32_t> rank(static_cast<std::size_t>(graph.node_count()), -1);
  std::vector<std::size_t> missing(rank.size());
  std::vector<NodeId> ready;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    missing[v] = graph.predecessors(v).size();
    if (missing[v] == 0) ready.push_back(v);
  }
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const NodeId v = ready[i];
    if (!inner(graph, v)) {
      rank[v] = static_cast<std::int32_t>(branching.size());
      branching.push_back(v);
    }
    for (const NodeId w : graph.successors(v)) {
      if (--missing[w] == 0) ready.push_back(w);
    }
  }
  std::vector<InnerPath> chains;
  for (const NodeId v : branching) {
    for (NodeId w : graph.successors(v)) {
      InnerPath chain{rank[v], 0, {}};
      for (; inner(graph, w); w = graph.successors(w).front()) chain.nodes.push_back(w);
      chain.to = rank[w];
      chains.push_back(std::move(chain));
    }
  }
  // The staff consists of the shortest path from each branching node to the next branching node in topological order.
  std::vector<std::int32_t> way(branching.size(), -1);
  for (std::size_t c = 0; c < chains.size(); ++c) {
    if (chains[c].to != chains[c].from + 1) continue;
    std::int32_t& best = way[chains[c].from];
    if (best < 0 || chains[c].nodes.size() < chains[best].nodes.size()) best = static_cast<std::int32_t>(c);
  }
  Caduceus caduceus;
  std::vector<NodeId> numbers;
  std::vector<std::int32_t> position;  // for each rank, the branching node's position on the staff
  for (std::size_t r = 0; r < branching.size(); ++r) {
    position.push_back(static_cast<std::int32_t>(numbers.size()));
    numbers.push_back(branching[r]);
    if (r + 1 == branching.size()) break;
    if (way[r] < 0)
      throw core::InputError(fmt::format(
          "no caduceus: nodes {} and {} would have to lie on one staff, but no path leads from the first to the second "
          "past all other branching nodes",
          branching[r], branching[r + 1]));
    numbers.insert(numbers.end(), chains[way[r]].nodes.begin(), chains[way[r]].nodes.end());
  }
  for (const NodeId v : numbers) caduceus.staff.push_back(graph.weight(v));
  for (std::size_t c = 0; c < chains.size(); ++c) {
    // Skip paths that belong to the staff, and single edges between nodes of the staff, because the staff implies these
    // edges.
    if (way[chains[c].from] == static_cast<std::int32_t>(c) || chains[c].nodes.empty()) continue;
    Caduceus::Bend bend{position[chains[c].from], position[chains[c].to], {}};
    for (const NodeId v : chains[c].nodes) {
      bend.weights.push_back(graph.weight(v));
      numbers.push_back(v);
    }
    caduceus.bends.push_back(std::move(bend));
  }
  if (numbering != nullptr) *numbering = std::move(numbers);
  return caduceus;
}

std::vector<NodeId> optimal_caduceus(const Caduceus& caduceus) {
  return solve_segments(caduceus, [](CaduceusWorkspace& work) {
    work.solver.least_peak(work.graph);
    return work.solver.optimal_order();
  });
}

std::vector<NodeId> dominant_caduceus(const Caduceus& caduceus) {
  return solve_segments(caduceus, [](CaduceusWorkspace& work) {
    work.solver.dominant(work.graph);
    return work.solver.dominant_order();
  });
}

}  // namespace cairn::solvers
