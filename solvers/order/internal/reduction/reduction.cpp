// Applies series and parallel reductions to a graph (reduction.h). Each edge carries the part of the graph that it
// replaces, as an in-forest (linearizer.h), which consists of branches. A release is a vertex that runs no node, but
// only frees memory. A region is a subgraph that is connected to the rest of the graph only at its source and its sink.

#include "cairn/solvers/order/internal/reduction/reduction.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "cairn/solvers/common/support/accelerator.h"

namespace cairn::solvers {

namespace {

void unite(InForest& forest, InForest other) {
  if (forest.branches.size() < other.branches.size()) forest.branches.swap(other.branches);
  forest.branches.insert(forest.branches.end(), other.branches.begin(), other.branches.end());
  forest.direct = forest.direct || other.direct;
  forest.released = forest.released || other.released;
}

}  // namespace

Reduction::Reduction(const core::Graph& graph, Unfinished unfinished, std::int64_t memory_bytes, int threads,
                     core::Stopwatch& watch, std::function<void()> tick, Accelerator* accelerator)
    : Reduction(graph, StepGraph(graph), unfinished,
                Linearizer(memory_bytes, threads, watch, std::move(tick), accelerator)) {}

Reduction::Reduction(const core::Graph& graph, const StepGraph& steps, Unfinished unfinished, Linearizer linearizer)
    : graph_(graph),
      unfinished_(unfinished),
      linearizer_(std::move(linearizer)),
      source_(steps.step_count()),
      sink_(steps.step_count() + 1),
      vertices_(static_cast<std::size_t>(steps.step_count()) + 2),
      reducer_(steps.step_count() + 2) {
  const auto connect = [&](VertexId from, VertexId to) { reducer_.connect(from, to, {{}, true, false}, unite); };
  for (VertexId v = 0; v < steps.step_count(); ++v) {
    const auto nodes = v < graph.node_count() ? ropes().leaf(v) : Ropes::kEmpty;
    vertices_[v] = {{{steps[v].rise, steps[v].drop}, nodes}, steps[v].output};
    // The edges into a node are added in the order of its inputs.
    const auto before = v < graph.node_count() ? graph.predecessors(v) : steps.predecessors(v);
    for (const VertexId u : before) connect(u, v);
    if (steps.predecessors(v).empty()) connect(source_, v);
    if (steps.successors(v).empty()) connect(v, sink_);
  }
}

/// Joins the in-forest of the edge `before`, the vertex v and the path `behind` to one in-forest. All branches of the
/// in-forest of `before` end at v, so v becomes the key of a new branch.
InForest Reduction::join(VertexId v, EdgeId before, Chain behind) {
  InForest& forest = reducer_.edge(before).value;
  const Vertex& source = vertices_[reducer_.edge(before).from];
  const ChainSegment& key = vertices_[v];
  if (source.output == 0 || forest.released) {
    // The forest's branches do not decide when the source's output is freed. So they are merged into a path, and v
    // follows this path.
    TreeBranch branch;
    branch.before = linearizer_.merge_branches(forest.branches);
    append(branch.before, key, ropes());
    append(branch.before, behind, ropes());
    return {{linearizer_.add(std::move(branch))}, false, forest.released};
  }
  if (forest.branches.size() == 1 && !forest.direct) {
    TreeBranch& branch = linearizer_.branch(forest.branches.front());
    append(branch.rest, key, ropes());
    append(branch.rest, behind, ropes());
    return std::move(forest);
  }
  TreeBranch branch{{}, key, std::move(behind), {}, forest.direct, true};
  if (forest.direct) {
    branch.before = linearizer_.merge_branches(forest.branches);
  } else {
    branch.children = std::move(forest.branches);
  }
  return {{linearizer_.add(std::move(branch))}, false, false};
}

bool Reduction::series(VertexId v, EdgeId before, EdgeId behind, InForest& joined) {
  const InForest& forest = reducer_.edge(behind).value;
  std::int64_t released = forest.released ? 0 : vertices_[v].output;
  if (forest.direct) {
    // The vertex behind v reads v after all other readers of v, so it frees the output of v.
    vertices_[reducer_.edge(behind).to].drop += released;
    released = 0;
  }
  std::optional<Chain> path = linearizer_.linearize(forest, released);
  if (!path) {
    too_large_ = {v, linearizer_.needed_bytes()};
    return false;
  }
  if (linearizer_.cut_short()) {
    if (unfinished_ == Unfinished::leave) return false;
    exact_ = false;
  }
  joined = join(v, before, std::move(*path));
  return true;
}

void Reduction::run() {
  reducer_.run(
      [&](VertexId v, EdgeId before, EdgeId behind, InForest& joined) { return series(v, before, behind, joined); },
      unite);
}

Chain Reduction::chain() {
  if (reducer_.edges().empty()) return {};
  return linearizer_.merge_branches(reducer_.edge(reducer_.out_edge(source_)).value.branches);
}

std::vector<Reduction::VertexId> Reduction::vertices() const {
  std::vector<VertexId> left;
  for (VertexId v = 0; v < source_; ++v) {
    if (!reducer_.gone(v)) left.push_back(v);
  }
  return left;
}

std::vector<Reduction::Region> Reduction::isolated_regions(std::size_t most) {
  std::vector<std::pair<VertexId, VertexId>> edges;
  for (auto* lists : {&edges_from_, &edges_to_}) {
    lists->clear();
    lists->resize(vertices_.size());
  }
  for (EdgeId e = 0; e < static_cast<EdgeId>(reducer_.edges().size()); ++e) {
    const Reducer::Edge& edge = reducer_.edges()[e];
    if (edge.from < 0) continue;
    edges.emplace_back(edge.from, edge.to);
    edges_from_[edge.from].push_back(e);
    edges_to_[edge.to].push_back(e);
  }
  const auto count = static_cast<std::int32_t>(vertices_.size());
  return disjoint_subgraphs(count, isolated_subgraphs(count, edges, source_, sink_, most));
}

struct Reduction::Inside {
  std::vector<EdgeId> edges;
  /// Outputs of the inner vertices and of the source, in bytes; 0 if the branches of an edge, the sink or the rest of
  /// the graph free the output.
  std::vector<std::int64_t> outputs;
  std::int64_t released_by_sink = 0;
};

/// Numbers the region's vertices: the n inner ones from 0 to n - 1, the source n, and the sink n + 1.
std::size_t Reduction::place_in(const Region& region, VertexId v) {
  if (v == region.source) return region.inner.size();
  if (v == region.sink) return region.inner.size() + 1;
  return static_cast<std::size_t>(std::lower_bound(region.inner.begin(), region.inner.end(), v) - region.inner.begin());
}

/// Collects the edges in a region and the outputs that are freed there. Visits only edges of the region's vertices,
/// because there can be thousands of regions.
Reduction::Inside Reduction::look_inside(const Region& region) const {
  Inside inside;
  for (const VertexId v : region.inner) inside.outputs.push_back(vertices_[v].output);
  inside.outputs.push_back(region.source == source_ ? 0 : vertices_[region.source].output);
  const auto take = [&](EdgeId e) {
    const Reducer::Edge& edge = reducer_.edges()[e];
    inside.edges.push_back(e);
    std::int64_t& output = inside.outputs[place_in(region, edge.from)];
    if (edge.value.released) output = 0;
    if (edge.to == region.sink && edge.value.direct) inside.released_by_sink += std::exchange(output, 0);
  };
  for (const VertexId v : region.inner) {
    for (const EdgeId e : edges_to_[v]) {
      if (reducer_.edges()[e].from == region.source) take(e);
    }
    for (const EdgeId e : edges_from_[v]) take(e);
  }
  if (region.source != source_) {
    for (const EdgeId e : edges_from_[region.source]) {
      if (reducer_.edges()[e].to == region.sink) take(e);
    }
  }
  return inside;
}

Expansion Reduction::expand(const Region& region) const {
  const Inside inside = look_inside(region);
  Expander expander(linearizer_.branches());
  std::vector<StepId> step;
  for (std::size_t i = 0; i < region.inner.size(); ++i) {
    const Vertex& vertex = vertices_[region.inner[i]];
    step.push_back(expander.add({vertex.rise, vertex.drop, inside.outputs[i]}, vertex.nodes));
  }
  // The source has already run. If its output is freed inside the region, the source becomes a step that has only this
  // output. Otherwise, the source is not part of the expansion. The sink is never part of it.
  const std::int64_t output = inside.outputs.back();
  step.push_back(output > 0 ? expander.add({0, 0, output}, Ropes::kEmpty) : Expander::kOutside);
  step.push_back(Expander::kOutside);
  for (const EdgeId e : inside.edges) {
    const Reducer::Edge& edge = reducer_.edges()[e];
    expander.add_forest(edge.value, step[place_in(region, edge.from)], step[place_in(region, edge.to)]);
  }
  return expander.finish();
}

Expansion Reduction::expand_remainder() const {
  Expander expander(linearizer_.branches());
  std::vector<StepId> step(vertices_.size(), Expander::kOutside);
  std::vector<std::uint8_t> released(vertices_.size(), 0);
  for (const Reducer::Edge& edge : reducer_.edges()) {
    if (edge.from >= 0 && edge.value.released) released[edge.from] = 1;
  }
  for (const VertexId v : vertices()) {
    const Vertex& vertex = vertices_[v];
    step[v] = expander.add({vertex.rise, vertex.drop, released[v] ? 0 : vertex.output}, vertex.nodes);
  }
  for (const Reducer::Edge& edge : reducer_.edges()) {
    if (edge.from >= 0) expander.add_forest(edge.value, step[edge.from], step[edge.to]);
  }
  return expander.finish();
}

void Reduction::replace(const Region& region, const Expansion& expansion, const std::vector<StepId>& order) {
  const Inside inside = look_inside(region);
  TreeBranch branch;
  branch.before = chain_of(expansion, order, ropes());
  for (const EdgeId e : inside.edges) reducer_.remove_edge(e);
  for (const VertexId v : region.inner) reducer_.remove_vertex(v);
  vertices_[region.sink].drop += inside.released_by_sink;
  reducer_.connect(region.source, region.sink, {{linearizer_.add(std::move(branch))}, false, true}, unite);
}

}  // namespace cairn::solvers
