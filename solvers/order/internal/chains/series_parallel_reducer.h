#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cairn::solvers {

/// Applies the reductions of Valdes, Tarjan and Lawler to a directed graph whose edges carry values. The parallel
/// reduction merges two edges between the same vertices. The series reduction replaces a vertex with one incoming and
/// one outgoing edge by one edge. All reductions together take expected linear time, because edges are found by
/// hashing. Callers can also remove and add edges.
template <class Value>
class SeriesParallelReducer {
 public:
  using VertexId = std::int32_t;
  using EdgeId = std::int32_t;
  struct Edge {
    VertexId from = -1, to = -1;  ///< ends of the edge; from < 0: the edge was removed
    Value value;
  };

  /// Makes a graph without edges. Its last two vertices are the source and the sink, which are never removed.
  explicit SeriesParallelReducer(VertexId vertex_count)
      : vertices_(static_cast<std::size_t>(vertex_count)), left_(vertex_count - 2) {}

  const std::vector<Edge>& edges() const { return edges_; }
  Edge& edge(EdgeId id) { return edges_[id]; }
  bool gone(VertexId v) const { return vertices_[v].gone; }
  /// Returns the number of remaining vertices without the source and the sink.
  std::int32_t vertices_left() const { return left_; }
  /// Returns the outgoing edge of a vertex that has exactly one.
  EdgeId out_edge(VertexId v) const { return vertices_[v].out_edges; }

  /// Returns the first remaining vertex of `order` with several incoming edges, which no series reduction can remove.
  /// If there is none, returns the first remaining vertex of `order`, or -1.
  template <class Order>
  VertexId first_left(const Order& order) const {
    VertexId left = -1;
    for (const VertexId v : order) {
      if (vertices_[v].gone) continue;
      if (vertices_[v].in >= 2) return v;
      if (left < 0) left = v;
    }
    return left;
  }

  /// Adds an edge. If there is already an edge between the vertices, calls unite(a, b) instead (parallel reduction),
  /// which must merge the new value b into the value a of that edge.
  template <class Unite>
  void connect(VertexId from, VertexId to, Value value, const Unite& unite) {
    const auto [found, is_new] = edge_between_.emplace(key(from, to), static_cast<EdgeId>(edges_.size()));
    if (!is_new) {
      unite(edges_[found->second].value, std::move(value));
    } else {
      const auto id = static_cast<EdgeId>(edges_.size());
      edges_.push_back({from, to, std::move(value)});
      ++vertices_[from].out;
      vertices_[from].out_edges ^= id;
      ++vertices_[to].in;
      vertices_[to].in_edges ^= id;
    }
    offer(from);
    offer(to);
  }

  void remove_edge(EdgeId id) {
    Edge& edge = edges_[id];
    edge_between_.erase(key(edge.from, edge.to));
    --vertices_[edge.from].out;
    vertices_[edge.from].out_edges ^= id;
    --vertices_[edge.to].in;
    vertices_[edge.to].in_edges ^= id;
    edge.from = -1;
  }
  /// Removes a vertex, which must have no edges.
  void remove_vertex(VertexId v) {
    vertices_[v].gone = true;
    --left_;
  }

  /// Applies the series reduction until no vertex can be removed. For each vertex v with one incoming edge `before` and
  /// one outgoing edge `behind`, calls `series(v, before, behind, value)`. If `series` returns true, v is removed, and
  /// `value` must be the value of the new edge. If it returns false, v stays, and `series` is not called for v again.
  template <class Series, class Unite>
  void run(const Series& series, const Unite& unite) {
    // Vertices are processed in the order in which they were added, each followed by its successors. So paths grow at
    // their ends, where appending is cheap.
    std::reverse(ready_.begin(), ready_.end());
    while (!ready_.empty()) {
      const VertexId v = ready_.back();
      ready_.pop_back();
      if (!reducible(v)) continue;
      const EdgeId before = vertices_[v].in_edges, behind = vertices_[v].out_edges;
      const VertexId from = edges_[before].from, to = edges_[behind].to;
      Value value;
      if (!series(v, before, behind, value)) {
        vertices_[v].stuck = true;
        continue;
      }
      remove_edge(before);
      remove_edge(behind);
      remove_vertex(v);
      connect(from, to, std::move(value), unite);
    }
  }

 private:
  struct Vertex {
    std::int32_t in = 0, out = 0;
    /// Exclusive or of the ids of all incoming edges, and of all outgoing edges. If there is only one edge, this is its
    /// id.
    EdgeId in_edges = 0, out_edges = 0;
    bool stuck = false, gone = false;  ///< stuck: whether `series` returned false
  };

  static std::uint64_t key(VertexId from, VertexId to) {
    return static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint32_t>(to);
  }
  bool reducible(VertexId v) const {
    const Vertex& vertex = vertices_[v];
    const bool end = v + 2 >= static_cast<VertexId>(vertices_.size());
    return !end && !vertex.gone && !vertex.stuck && vertex.in == 1 && vertex.out == 1;
  }
  void offer(VertexId v) {
    if (reducible(v)) ready_.push_back(v);
  }

  std::vector<Vertex> vertices_;
  std::vector<Edge> edges_;
  std::unordered_map<std::uint64_t, EdgeId> edge_between_;
  std::vector<VertexId> ready_;
  std::int32_t left_;
};

}  // namespace cairn::solvers
