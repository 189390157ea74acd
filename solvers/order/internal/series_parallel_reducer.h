#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cairn::solvers {

/// The reductions of Valdes, Tarjan and Lawler on a directed graph whose edges carry values. Two edges between the same
/// vertices become one (parallel); a vertex with one edge in and one out goes (series). Each vertex and edge is looked
/// at O(1) times (expected: edges are found by hashing). Edges can also be taken out and put in from outside.
template <class Value>
class SeriesParallelReducer {
 public:
  using VertexId = std::int32_t;
  using EdgeId = std::int32_t;
  struct Edge {
    VertexId from = -1, to = -1;  ///< from < 0: gone
    Value value;
  };

  /// The last two vertices are the ends: they never go.
  explicit SeriesParallelReducer(VertexId vertex_count)
      : vertices_(static_cast<std::size_t>(vertex_count)), left_(vertex_count - 2) {}

  const std::vector<Edge>& edges() const { return edges_; }
  Edge& edge(EdgeId id) { return edges_[id]; }
  bool gone(VertexId v) const { return vertices_[v].gone; }
  /// Vertices besides the ends.
  std::int32_t vertices_left() const { return left_; }
  /// The one edge out of a vertex that has one.
  EdgeId out_edge(VertexId v) const { return vertices_[v].out_edges; }

  /// The first vertex, in a topological order, where edges still meet: no reduction explains it. If there is none, the
  /// first that is left.
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

  /// Adds an edge; unite(a, b) puts b into a where there is one already.
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
  /// A vertex without edges.
  void remove_vertex(VertexId v) {
    vertices_[v].gone = true;
    --left_;
  }

  /// Reduces until nothing more can be. series(v, before, behind) says whether v may go; if so, it has put the value of
  /// the new edge into its last argument. A vertex that may not is not asked again.
  template <class Series, class Unite>
  void run(const Series& series, const Unite& unite) {
    // Vertices that were added first go first, and their successors next: paths grow at their ends, which is cheap.
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
    std::int32_t in = 0, out = 0;        ///< edges
    EdgeId in_edges = 0, out_edges = 0;  ///< their ids, combined by exclusive or: the edge itself where there is one
    bool stuck = false, gone = false;
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
