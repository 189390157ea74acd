#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/accelerator.h"
#include "cairn/solvers/order/internal/expansion.h"
#include "cairn/solvers/order/internal/isolated_subgraph.h"
#include "cairn/solvers/order/internal/linearizer.h"
#include "cairn/solvers/order/internal/series_parallel_reducer.h"
#include "cairn/solvers/order/internal/step_graph.h"

namespace cairn::solvers {

/// Applies the reductions of Valdes, Tarjan and Lawler to any computation graph, as often as possible. The parallel
/// reduction merges edges between the same two nodes. The series reduction removes a node with one incoming and one
/// outgoing edge. Every edge carries the part of the graph that it replaces, as a forest (InForest). When a node is
/// removed, the forest of its outgoing edge becomes a path, by the forest's dominant schedule. A graph is
/// series-parallel exactly if one edge is left at the end. If there are several sources or several sinks, an additional
/// node at that end stands for them. Takes O(n + m), plus the time for turning forests into paths.
class Reduction {
 public:
  using VertexId = std::int32_t;

  /// What to do with a part if the watch ends the search for the part's dominant schedule.
  enum class Unfinished : std::uint8_t {
    take,  ///< use any schedule of the part; the result is a valid schedule, but not the dominant one
    leave  ///< keep the part as a forest
  };
  Reduction(const core::Graph& graph, Unfinished unfinished, std::int64_t memory_bytes, int threads,
            core::Stopwatch& watch, std::function<void()> tick = {}, Accelerator* accelerator = nullptr);

  /// Reduces until no reduction applies.
  void run();
  bool done() const { return reducer_.vertices_left() == 0; }
  /// Returns the dominant schedule of the whole graph. Requires done().
  Chain chain();

  /// Returns whether all parts have their dominant schedules. This becomes false when the search for a part was ended
  /// early and another schedule was used for that part.
  bool exact() const { return exact_; }
  Ropes& ropes() { return linearizer_.ropes(); }
  /// A node whose readers need a table that is larger than the memory limit.
  struct TooLarge {
    VertexId source;
    std::int64_t bytes;
  };
  const std::optional<TooLarge>& too_large() const { return too_large_; }

  using Region = IsolatedSubgraph;
  /// Finds isolated subgraphs of the remaining graph in which no reduction can be applied. They do not overlap, have at
  /// most `most` vertices, and are not the whole graph; the smallest come first. They refer to the edges at the time of
  /// the call. So replace() can be called for any of them, but not after another run().
  std::vector<Region> isolated_regions(std::size_t most);

  /// Makes a graph to be searched from a region.
  Expansion expand(const Region& region) const;
  /// Makes a graph to be searched from everything that is left.
  Expansion expand_remainder() const;
  /// Replaces the region by one edge that carries `order`. `order` must be a dominant schedule of the region's
  /// expansion.
  void replace(const Region& region, const Expansion& expansion, const std::vector<StepId>& order);

  /// Returns the remaining vertices, for messages.
  std::vector<VertexId> vertices() const;
  /// Finds a remaining node at which several edges meet. Returns kNoNode if all remaining vertices only release memory.
  VertexId first_left() const { return reducer_.first_left(graph_.input_order()); }

 private:
  Reduction(const core::Graph& graph, const StepGraph& steps, Unfinished unfinished, Linearizer linearizer);

  using Reducer = SeriesParallelReducer<InForest>;
  using EdgeId = Reducer::EdgeId;
  /// The effect of running a vertex on memory, as a step of StepGraph.
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
  /// edges_from_, edges_to_: outgoing and incoming edges of each vertex at the time of the last isolated_regions().
  std::vector<std::vector<EdgeId>> edges_from_, edges_to_;
  std::optional<TooLarge> too_large_;
};

}  // namespace cairn::solvers
