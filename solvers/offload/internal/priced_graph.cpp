// Makes a graph in which some nodes are split into a computing node and a loading node, so that running the loading
// node again stands for a fetch of the value (priced_graph.h). Turns schedules of this graph into schedules with
// transfers.

#include "cairn/solvers/offload/internal/priced_graph.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "cairn/solvers/common/support/transferable.h"
#include "cairn/solvers/offload/internal/state.h"

namespace cairn::solvers::offloading {
namespace {

using core::NodeId;
using core::OutputRef;
using core::ValueId;

/// Holds a schedule of the original graph while it is built, with the computed values and their fetches.
struct Translation {
  core::Schedule schedule;
  struct Fetched {
    std::int64_t start, finish;
  };
  struct Computed {
    std::int64_t made = 0, last_read = 0;
    std::vector<Fetched> fetches;
  };
  std::vector<Computed> runs;         ///< all computed occurrences that may be evicted
  std::vector<std::int32_t> current;  ///< for each value, the index of its latest entry in `runs`, or -1
  std::vector<ValueId> value;         ///< for each entry of `runs`, the value
};

}  // namespace

PricedGraph::PricedGraph(const core::Graph& graph, const core::Link& link, double price) : graph_(graph) {
  core::GraphBuilder builder(graph.name());
  const NodeId n = graph.node_count();
  std::vector<OutputRef> value_at(graph.value_count());
  // The node that loads a value gets the number after the node that computes the value. So all numbers are known before
  // the nodes are added.
  std::vector<std::int64_t> load_cost(n, -1);
  NodeId next = 0;
  for (NodeId v = 0; v < n; ++v) {
    const ValueId x = graph.outputs(v).front();
    const auto cost =
        std::llround(price * static_cast<double>(core::copy_cost(link, graph.value_size(x), graph.cost_unit())));
    const bool alone = graph.output_count(v) == 1 && graph.inplace(x) == core::kNoValue && transferable(graph, x);
    if (alone && cost < graph.cost(v)) load_cost[v] = cost;
    for (const ValueId out : graph.outputs(v)) {
      value_at[out] = load_cost[v] >= 0 ? OutputRef(next + 1) : OutputRef(next, graph.output_ref(out).output);
    }
    next += load_cost[v] >= 0 ? 2 : 1;
  }
  for (NodeId v = 0; v < n; ++v) {
    core::Node node;
    node.cost = graph.cost(v);
    node.scratch = graph.scratch(v);
    node.pinned = graph.pinned(v);
    node.backward = graph.backward(v);
    for (const ValueId in : graph.inputs(v)) node.inputs.push_back(value_at[in]);
    const ValueId first = graph.outputs(v).front();
    if (load_cost[v] < 0) {
      for (const ValueId out : graph.outputs(v)) {
        const ValueId taken = graph.inplace(out);
        node.outputs.push_back({graph.value_size(out), graph.value_kept(out),
                                taken == core::kNoValue ? OutputRef() : value_at[taken], graph.output_name(out)});
      }
      builder.add(std::move(node));
      node_.push_back(v);
      loads_.push_back(core::kNoValue);
      continue;
    }
    node.scratch += graph.value_size(first);
    const NodeId computes = builder.add(std::move(node));
    core::Node load{.size = graph.value_size(first), .cost = load_cost[v], .keep = graph.value_kept(first)};
    load.backward = graph.backward(v);
    load.inputs.push_back(computes);
    builder.add(std::move(load));
    node_.insert(node_.end(), {v, core::kNoNode});
    loads_.insert(loads_.end(), {core::kNoValue, first});
    ++split_;
  }
  std::vector<NodeId> order, number(n);
  for (NodeId p = 0; p < static_cast<NodeId>(node_.size()); ++p) {
    if (node_[p] != core::kNoNode) number[node_[p]] = p;
  }
  for (const NodeId v : graph.input_order()) {
    order.push_back(number[v]);
    if (load_cost[v] >= 0) order.push_back(number[v] + 1);
  }
  builder.set_order(std::move(order));
  builder.set_cost_unit(graph.cost_unit());
  priced_ = builder.build();
}

core::Schedule PricedGraph::original(const core::Schedule& schedule) const {
  Translation out;
  out.current.assign(graph_.value_count(), -1);
  // For each value, the step after which its pending fetch starts. -1: no fetch is pending; -2: the value was computed,
  // but not loaded since.
  std::vector<std::int64_t> loaded(graph_.value_count(), -1);
  for (const NodeId p : schedule.steps) {
    const std::int64_t here = out.schedule.length();
    if (const ValueId x = loads_[p]; x != core::kNoValue) {
      // The first load after a computation is part of the computation, not a fetch.
      const auto& run = out.runs[out.current[x]];
      const bool fresh = run.fetches.empty() && run.last_read == run.made && loaded[x] == -2;
      loaded[x] = fresh ? -1 : here - 1;
      continue;
    }
    const NodeId v = node_[p];
    for (const ValueId x : graph_.inputs(v)) {
      const std::int32_t at = out.current[x];
      if (at < 0) continue;
      auto& run = out.runs[at];
      if (loaded[x] >= 0) {
        run.fetches.push_back({loaded[x], here});
        loaded[x] = -1;
      } else if (run.fetches.empty()) {
        run.last_read = here;
      }
    }
    for (const ValueId x : graph_.outputs(v)) {
      if (loads_.size() <= static_cast<std::size_t>(p) + 1 || loads_[p + 1] != x) continue;
      out.current[x] = static_cast<std::int32_t>(out.runs.size());
      out.runs.push_back({here, here, {}});
      out.value.push_back(x);
      loaded[x] = -2;
    }
    out.schedule.steps.push_back(v);
  }
  const std::int64_t length = out.schedule.length();
  for (ValueId x = 0; x < graph_.value_count(); ++x) {
    if (graph_.value_kept(x) && out.current[x] >= 0 && loaded[x] >= 0) {
      out.runs[out.current[x]].fetches.push_back({loaded[x], length});
    }
  }
  core::Transfers& transfers = out.schedule.transfers;
  for (std::size_t r = 0; r < out.runs.size(); ++r) {
    const auto& run = out.runs[r];
    if (run.fetches.empty()) continue;
    const auto evict = static_cast<std::int32_t>(transfers.evicts.size());
    const std::int64_t finish = std::min(run.last_read + 1, run.fetches.front().start + 1);
    transfers.evicts.push_back({out.value[r], run.made, run.made, finish});
    for (const auto& fetch : run.fetches) transfers.fetches.push_back({evict, fetch.start, fetch.finish});
  }
  return out.schedule;
}

}  // namespace cairn::solvers::offloading
