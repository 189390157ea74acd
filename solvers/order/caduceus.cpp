#include "cairn/solvers/order/caduceus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "cairn/core/dominance.h"
#include "cairn/core/error.h"
#include "cairn/solvers/order/internal/segment_caduceus.h"

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

/// Segments in, nodes out.
class Translation {
 public:
  explicit Translation(const Caduceus& caduceus) {
    check(caduceus);
    NodeId node = 0;
    for (const std::int64_t weight : caduceus.staff) {
      segments_.add_staff(as_segment(weight));
      ranges_.emplace_back(node, node + 1);
      ++node;
    }
    std::vector<std::int64_t> profile;
    for (const Caduceus::Bend& bend : caduceus.bends) {
      profile.assign(1, 0);
      for (const std::int64_t weight : bend.weights) profile.push_back(profile.back() + weight);
      const auto placed = core::place_segments(profile);
      segments_.add_bend(bend.from + 1, bend.to, placed);
      for (const core::PlacedSegment& segment : placed) {
        ranges_.emplace_back(node + static_cast<NodeId>(segment.begin), node + static_cast<NodeId>(segment.end));
      }
      node += static_cast<NodeId>(bend.weights.size());
    }
  }

  SegmentCaduceus& segments() { return segments_; }
  std::vector<NodeId> nodes(const std::vector<SegmentCaduceus::Id>& order) const {
    std::vector<NodeId> nodes;
    for (const SegmentCaduceus::Id id : order) {
      for (NodeId v = ranges_[id].first; v < ranges_[id].second; ++v) nodes.push_back(v);
    }
    return nodes;
  }

 private:
  SegmentCaduceus segments_;
  std::vector<std::pair<NodeId, NodeId>> ranges_;  ///< of nodes, by id
};

bool inner(const core::NodeSumGraph& graph, NodeId v) {
  return graph.predecessors(v).size() == 1 && graph.successors(v).size() == 1;
}

/// A path of inner nodes from one branching node to another.
struct Chain {
  std::int32_t from = 0, to = 0;  ///< ranks of the branching nodes in topological order
  std::vector<NodeId> nodes;
};

}  // namespace

core::NodeSumGraph node_sum_graph(const Caduceus& caduceus) {
  check(caduceus);
  std::vector<std::int64_t> weights = caduceus.staff;
  std::vector<core::NodeSumGraph::Edge> edges;
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
  return core::NodeSumGraph(std::move(weights), std::move(edges));
}

Caduceus find_caduceus(const core::NodeSumGraph& graph, std::vector<NodeId>* numbering) {
  if (graph.node_count() == 0) throw core::InputError("an empty graph is no caduceus: it has no staff");
  // Branching nodes in topological order. An inner node cannot be on a cycle, so every chain ends at a branching node.
  std::vector<NodeId> branching;
  std::vector<std::int32_t> rank(static_cast<std::size_t>(graph.node_count()), -1);
  std::vector<std::size_t> missing(rank.size());
  std::vector<NodeId> ready;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if ((missing[v] = graph.predecessors(v).size()) == 0) ready.push_back(v);
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
  std::vector<Chain> chains;
  for (const NodeId v : branching) {
    for (NodeId w : graph.successors(v)) {
      Chain chain{rank[v], 0, {}};
      for (; inner(graph, w); w = graph.successors(w).front()) chain.nodes.push_back(w);
      chain.to = rank[w];
      chains.push_back(std::move(chain));
    }
  }
  // The shortest way from each branching node to the next is the staff's.
  std::vector<std::int32_t> way(branching.size(), -1);
  for (std::size_t c = 0; c < chains.size(); ++c) {
    if (chains[c].to != chains[c].from + 1) continue;
    std::int32_t& best = way[chains[c].from];
    if (best < 0 || chains[c].nodes.size() < chains[best].nodes.size()) best = static_cast<std::int32_t>(c);
  }
  Caduceus caduceus;
  std::vector<NodeId> numbers;
  std::vector<std::int32_t> position;  // on the staff, by rank
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
    // An edge from staff to staff says nothing that the staff does not say.
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
  Translation translation(caduceus);
  return translation.nodes(translation.segments().optimal_order());
}

std::vector<NodeId> dominant_caduceus(const Caduceus& caduceus) {
  Translation translation(caduceus);
  return translation.nodes(translation.segments().dominant_order());
}

}  // namespace cairn::solvers
