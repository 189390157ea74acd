#include "cairn/solvers/remat/hiremate/group_graph.h"

#include <algorithm>
#include <utility>

#include "cairn/core/support/subgraph.h"

namespace cairn::solvers {

using core::Graph;
using core::NodeId;
using core::ValueId;

GroupGraph::GroupGraph(const Graph& whole, const Layer& layer) {
  std::vector<NodeId> nodes = layer.forward;
  nodes.insert(nodes.end(), layer.backward.begin(), layer.backward.end());
  core::InducedSubgraph part = core::induced_subgraph(whole, nodes);
  core::GraphBuilder builder(part.graph);
  // A node without a name is called by its index, which must not equal another node's name. So all names are cleared.
  for (NodeId v = 0; v < part.graph.node_count(); ++v) builder.node(v).name.clear();
  core::Node rest{.pinned = true};
  for (const ValueId x : part.leaving) {
    const core::OutputRef ref = whole.output_ref(x);
    const NodeId own = part.own_id[ref.node];
    if (whole.backward(ref.node)) {
      core::Node& maker = builder.node(own);
      (maker.outputs.empty() ? maker.keep : maker.outputs[static_cast<std::size_t>(ref.output)].keep) = true;
    } else {
      rest.inputs.emplace_back(own, ref.output);
      leaving_bytes_ += whole.value_size(x);
    }
  }
  rest_ = builder.add(std::move(rest));
  std::vector<NodeId> order;
  for (const NodeId v : layer.forward) order.push_back(part.own_id[v]);
  order.push_back(rest_);
  for (const NodeId v : layer.backward) {
    order.push_back(part.own_id[v]);
    builder.add_control_input(part.own_id[v], rest_);
  }
  builder.set_order(std::move(order));
  graph_ = builder.build();
  whole_id_ = std::move(part.whole_id);
}

Graph GroupGraph::within(std::int64_t peak, std::int64_t between) const {
  std::vector<std::int64_t> scratch;
  for (NodeId v = 0; v < graph_.node_count(); ++v) scratch.push_back(graph_.scratch(v));
  scratch[static_cast<std::size_t>(rest_)] = std::max<std::int64_t>(peak - between - leaving_bytes_, 0);
  return graph_.with_scratch(std::move(scratch));
}

LayerOption GroupGraph::option(const core::Schedule& schedule) const {
  LayerOption option;
  std::vector<NodeId>* steps = &option.forward;
  for (const NodeId v : schedule.steps) {
    if (v == rest_) {
      steps = &option.backward;
    } else {
      steps->push_back(whole_id_[static_cast<std::size_t>(v)]);
    }
  }
  return option;
}

}  // namespace cairn::solvers
