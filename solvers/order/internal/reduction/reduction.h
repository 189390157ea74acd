#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/support/accelerator.h"
#include "cairn/solvers/order/internal/chains/linearizer.h"
#include "cairn/solvers/order/internal/chains/series_parallel_reducer.h"
#include "cairn/solvers/order/internal/reduction/expansion.h"
#include "cairn/solvers/order/internal/reduction/isolated_subgraph.h"
#include "cairn/solvers/order/internal/reduction/step_graph.h"

namespace cairn::solvers {

/// Applies the reductions of Valdes, Tarjan and Lawler to any computation graph, as often as possible. The parallel
/// reduction merges edges between the same two nodes. The series reduction replaces a node with one incoming and one
/// outgoing edge by a single edge. Every edge carries the part of the graph that it replaces, as a forest (InForest).
/// When a node is removed, the forest of its outgoing edge is turned into a path, in a dominant order (one whose memory
/// profile dominates all others). A source and a sink are added to the graph. If only one edge between these two is
/// left at the end, the graph is series-parallel. Takes O(n + m) time for n nodes and m edges, plus the time for
/// turning forests into paths.
///
/// The vertices of the reduced graph are the steps of StepGraph: the nodes of the graph and the releases, which only
/// free memory.
class Reduction {
 public:
  using VertexId = std::int32_t;

  /// Says what to do with a forest if the search for its dominant schedule ends early because the limit is reached.
  enum class Unfinished : std::uint8_t {
    take,  ///< use any schedule of the forest; the whole schedule is valid, but need not be dominant
    leave  ///< keep the forest, and do not remove the vertex whose outgoing edge carries it
  };
  /// Prepares the reduction of a graph. `memory_bytes` and the parameters after it are those of Linearizer.
  Reduction(const core::Graph& graph, Unfinished unfinished, std::int64_t memory_bytes, int threads,
            core::Stopwatch& watch, std::function<void()> tick = {}, Accelerator* accelerator = nullptr);

  void run();
  bool done() const { return reducer_.vertices_left() == 0; }
  /// Returns the path that replaces the whole graph. Requires done().
  Chain chain();

  /// Returns whether all forests that were turned into paths got a dominant order. Returns false if the limit ended a
  /// search and Unfinished::take was given.
  bool exact() const { return exact_; }
  Ropes& ropes() { return linearizer_.ropes(); }
  /// A vertex that could not be removed, because turning the forest of its outgoing edge into a path needs a table
  /// (PumpkinMerge) larger than the memory limit. `bytes` is the size of this table.
  struct TooLarge {
    VertexId source;
    std::int64_t bytes;
  };
  const std::optional<TooLarge>& too_large() const { return too_large_; }

  using Region = IsolatedSubgraph;
  /// Returns isolated subgraphs (isolated_subgraph.h) of the remaining graph, the smallest first. These subgraphs do
  /// not overlap, have at most `most` inner vertices, and are not the whole graph. replace() can be called for each of
  /// them until run() is called again. After run(), these subgraphs (regions) must not be used, because run() can
  /// remove their edges and vertices.
  std::vector<Region> isolated_regions(std::size_t most);

  Expansion expand(const Region& region) const;
  Expansion expand_remainder() const;
  /// Replaces the region by one edge with the path of `order`, which must be a dominant order of `expansion`, the
  /// result of expand(region).
  void replace(const Region& region, const Expansion& expansion, const std::vector<StepId>& order);

  std::vector<VertexId> vertices() const;
  /// Returns a remaining node with several incoming edges or, if there is none, any remaining node. Returns kNoNode if
  /// all remaining vertices are releases.
  VertexId first_left() const { return reducer_.first_left(graph_.input_order()); }

 private:
  Reduction(const core::Graph& graph, const StepGraph& steps, Unfinished unfinished, Linearizer linearizer);

  using Reducer = SeriesParallelReducer<InForest>;
  using EdgeId = Reducer::EdgeId;
  /// Describes a vertex of the reduced graph. Rise, drop and output are as in StepGraph::Step. `nodes` are the nodes of
  /// the original graph that run when the vertex runs.
  struct Vertex : ChainSegment {
    std::int64_t output = 0;
  };
  struct Inside;
  Inside look_inside(const Region& region) const;
  static std::size_t place_in(const Region& region, VertexId v);
  bool series(VertexId v, EdgeId before, EdgeId behind, InForest& joined);
  InForest join(VertexId v, EdgeId before, Chain behind);

  const core::Graph& graph_;
  Unfinished unfinished_;
  bool exact_ = true;
  Linearizer linearizer_;
  VertexId source_, sink_;
  std::vector<Vertex> vertices_;
  Reducer reducer_;
  /// Outgoing and incoming edges of each vertex at the time of the last call of isolated_regions().
  std::vector<std::vector<EdgeId>> edges_from_, edges_to_;
  std::optional<TooLarge> too_large_;
};

}  // namespace cairn::solvers
