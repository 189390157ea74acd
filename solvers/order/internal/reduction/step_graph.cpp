// Makes the step graph of a computation graph (step_graph.h). When a step has run, memory falls by its `drop`; when all
// successors have run, memory falls by its `output`. A release is a step that only frees memory.

#include "cairn/solvers/order/internal/reduction/step_graph.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <numeric>
#include <utility>

namespace cairn::solvers {

Lists adjacency(std::int32_t node_count, std::span<const std::pair<std::int32_t, std::int32_t>> edges, bool reversed) {
  Lists lists;
  lists.begin.resize(static_cast<std::size_t>(node_count) + 1);
  for (const auto& [from, to] : edges) ++lists.begin[(reversed ? to : from) + 1];
  std::partial_sum(lists.begin.begin(), lists.begin.end(), lists.begin.begin());
  lists.items.resize(edges.size());
  std::vector<std::int32_t> next(lists.begin.begin(), lists.begin.end() - 1);
  for (const auto& [from, to] : edges) lists.items[next[reversed ? to : from]++] = reversed ? from : to;
  return lists;
}

StepGraph::StepGraph(std::vector<Step> steps, std::vector<Edge> edges) : steps_(std::move(steps)) {
  index(std::move(edges));
}

StepGraph::StepGraph(const core::Graph& graph) {
  std::vector<Edge> edges;
  edges.reserve(static_cast<std::size_t>(graph.edge_count()));
  steps_.reserve(static_cast<std::size_t>(graph.node_count()));
  // A separate step that frees `bytes` bytes after all nodes in `readers` have run.
  struct Release {
    std::span<const core::NodeId> readers;
    std::int64_t bytes;
  };
  std::vector<Release> releases;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    Step step{graph.size(v) + graph.scratch(v), graph.scratch(v), 0};
    for (const core::NodeId u : graph.predecessors(v)) edges.emplace_back(u, v);
    for (const core::ValueId x : graph.inputs(v)) {
      if (!graph.value_kept(x) && graph.readers(x).size() == 1) step.drop += graph.value_size(x);
    }
    for (const core::ValueId x : graph.outputs(v)) {
      const std::size_t readers = graph.readers(x).size();
      if (graph.value_kept(x) || readers == 1) continue;
      if (readers == 0) {
        step.drop += graph.value_size(x);
      } else if (readers == graph.successors(v).size()) {
        step.output += graph.value_size(x);
      } else if (graph.value_size(x) > 0) {
        releases.push_back({graph.readers(x), graph.value_size(x)});
      }
    }
    steps_.push_back(step);
  }
  // The output of a step is freed when all successors of the step have run. If one of the successors is a release, it
  // can run later than the last node that reads the output, and the output would be freed too late. So such an output
  // gets a release of its own, which can run right after its readers.
  for (std::size_t i = 0; i < releases.size(); ++i) {
    const Release release = releases[i];
    for (const core::NodeId reader : release.readers) {
      edges.emplace_back(reader, step_count());
      const std::int64_t held = std::exchange(steps_[reader].output, 0);
      if (held > 0) releases.push_back({graph.successors(reader), held});
    }
    steps_.push_back({0, release.bytes, 0});
  }
  index(std::move(edges));
}

void StepGraph::index(std::vector<Edge> edges) {
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  successors_ = adjacency(step_count(), edges, false);
  predecessors_ = adjacency(step_count(), edges, true);
}

std::vector<StepId> StepGraph::with_releases(std::span<const core::NodeId> nodes) const {
  std::vector<std::size_t> missing(steps_.size());
  for (auto s = static_cast<StepId>(nodes.size()); s < step_count(); ++s) missing[s] = predecessors(s).size();
  std::vector<StepId> order;
  order.reserve(steps_.size());
  for (const core::NodeId v : nodes) {
    order.push_back(v);
    for (const StepId next : successors(v)) {
      if (next >= static_cast<StepId>(nodes.size()) && --missing[next] == 0) order.push_back(next);
    }
  }
  return order;
}

std::vector<StepId> StepGraph::any_order() const {
  std::vector<std::size_t> missing(steps_.size());
  std::vector<StepId> order;
  order.reserve(steps_.size());
  for (StepId s = 0; s < step_count(); ++s) {
    missing[s] = predecessors(s).size();
    if (missing[s] == 0) order.push_back(s);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const StepId next : successors(order[i])) {
      if (--missing[next] == 0) order.push_back(next);
    }
  }
  return order;
}

Cut::Cut(StepId step_count, bool full) : words_(static_cast<std::size_t>(step_count + 63) / 64, full ? ~0ULL : 0ULL) {
  // The bits after the last step are 0, so that equal cuts have equal words.
  if (full && step_count % 64 != 0) words_.back() >>= 64 - step_count % 64;
}

std::int64_t Cut::count() const {
  std::int64_t count = 0;
  for (const std::uint64_t word : words_) count += std::popcount(word);
  return count;
}

std::int64_t memory(const StepGraph& graph, const Cut& cut) {
  std::int64_t bytes = 0;
  for (StepId s = 0; s < graph.step_count(); ++s) {
    if (!cut.contains(s)) continue;
    bytes += graph[s].rise - graph[s].drop;
    if (graph[s].output == 0) continue;
    const auto readers = graph.successors(s);
    if (std::all_of(readers.begin(), readers.end(), [&](StepId r) { return cut.contains(r); }))
      bytes -= graph[s].output;
  }
  return bytes;
}

std::vector<std::int64_t> profile(const StepGraph& graph, std::span<const StepId> order, const Cut& from) {
  std::vector<std::int64_t> bytes{memory(graph, from)};
  bytes.reserve(2 * order.size() + 1);
  std::vector<std::int32_t> waiting(static_cast<std::size_t>(graph.step_count()));
  for (StepId s = 0; s < graph.step_count(); ++s) {
    for (const StepId reader : graph.successors(s)) waiting[s] += from.contains(reader) ? 0 : 1;
  }
  for (const StepId s : order) {
    bytes.push_back(bytes.back() + graph[s].rise);
    std::int64_t after = bytes.back() - graph[s].drop;
    for (const StepId p : graph.predecessors(s)) {
      if (--waiting[p] == 0) after -= graph[p].output;
    }
    bytes.push_back(after);
  }
  return bytes;
}

std::vector<std::int64_t> profile(const StepGraph& graph, std::span<const StepId> order) {
  return profile(graph, order, Cut(graph.step_count()));
}

std::int64_t peak(const StepGraph& graph, std::span<const StepId> order, const Cut& from) {
  const auto bytes = profile(graph, order, from);
  return *std::max_element(bytes.begin(), bytes.end());
}

std::int64_t peak(const StepGraph& graph, std::span<const StepId> order) {
  return peak(graph, order, Cut(graph.step_count()));
}

}  // namespace cairn::solvers
