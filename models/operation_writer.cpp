#include "cairn/models/internal/operation_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cairn::models {

using core::NodeId;

namespace {
constexpr std::int64_t kElementBytes = 4;  // for fp32, and for the int32 of ids and labels
}

OperationWriter::OperationWriter(std::string name, const core::Roofline& roofline)
    : name_(std::move(name)), roofline_(roofline) {}

void OperationWriter::begin(std::string_view layer, Range forward) {
  layer_ = layer;
  forward_ = forward;
  used_.clear();
}

NodeId OperationWriter::append(std::string_view what, Values inputs, std::int64_t size, std::int64_t cost) {
  core::Node node;
  const int before = used_[std::string(what)]++;
  node.name = before == 0 ? fmt::format("{}/{}", layer_, what) : fmt::format("{}/{}_{}", layer_, what, before);
  node.size = size;
  node.cost = cost;
  node.backward = forward_.last != core::kNoNode;
  for (const OperationValue& x : inputs) {
    for (const NodeId u : x.nodes) {
      if (std::find(node.inputs.begin(), node.inputs.end(), core::OutputRef(u)) == node.inputs.end())
        node.inputs.emplace_back(u);
    }
  }
  nodes_.push_back(std::move(node));
  bytes_behind_.push_back(size);
  forward_of_.push_back(forward_);
  return static_cast<NodeId>(nodes_.size()) - 1;
}

OperationValue OperationWriter::compute(std::string_view what, core::Shape shape, Values inputs, std::int64_t flops,
                                        std::int64_t element_bytes) {
  const std::int64_t elements = core::element_count(shape);
  const NodeId v = append(what, inputs, elements * element_bytes, 0);
  std::int64_t largest = elements, bytes = elements * element_bytes;
  for (const core::OutputRef& input : nodes_[v].inputs) bytes += bytes_behind_[input.node];
  for (const OperationValue& x : inputs) {
    if (!x.shape.empty()) largest = std::max(largest, core::element_count(x.shape));
  }
  nodes_[v].cost = roofline_.cost({.flops = flops < 0 ? largest : flops, .bytes = bytes});
  return {{v}, std::move(shape)};
}

OperationValue OperationWriter::elementwise(std::string_view what, Values inputs) {
  return compute(what, inputs.begin()->shape, inputs);
}

OperationValue OperationWriter::read(core::Shape shape, std::int64_t elements) {
  const NodeId v = append("read", {}, kDescriptorBytes, 0);
  bytes_behind_[v] = kElementBytes * (elements < 0 ? core::element_count(shape) : elements);
  return {{v}, std::move(shape), true};
}

OperationValue OperationWriter::descriptor(std::string_view what, Values inputs) {
  return {{append(what, inputs, kDescriptorBytes, 0)}, {}};
}

OperationValue OperationWriter::view(std::string_view what, const OperationValue& x, core::Shape shape,
                                     const OperationValue& how) {
  const NodeId v = append(what, {{{x.nodes.back()}, {}}, how}, kDescriptorBytes, 0);
  if (x.resident) {
    bytes_behind_[v] = bytes_behind_[x.nodes.front()];
    return {{v}, std::move(shape), true};
  }
  return {{x.nodes.front(), v}, std::move(shape)};
}

void OperationWriter::assign(const OperationValue& x, const OperationValue& after) {
  const std::int64_t bytes = bytes_behind_[x.nodes.front()];
  const NodeId v = append("assign", {x, after}, 0, roofline_.cost({.flops = 0, .bytes = 2 * bytes}));
  nodes_[v].keep = true;
}

void OperationWriter::mark(const std::vector<bool>& needed) {
  const NodeId count = node_count();
  // For a forward node, the entry is the last forward node that reads it. For a backward node, the entry is its
  // Node::forward.
  std::vector<NodeId> last_reader(nodes_.size());
  for (NodeId v = 0; v < count; ++v) {
    last_reader[v] = v;
    if (!needed[v] || nodes_[v].backward) continue;
    for (const core::OutputRef& input : nodes_[v].inputs) last_reader[input.node] = v;
  }
  for (NodeId v = 0; v < count; ++v) {
    if (!needed[v] || !nodes_[v].backward) continue;
    NodeId mark = forward_of_[v].last;
    for (const core::OutputRef& input : nodes_[v].inputs) mark = std::min(mark, last_reader[input.node]);
    mark = std::max(mark, forward_of_[v].first);
    // Skips descriptors and nodes that are not needed. The loop ends, because no layer ends with a descriptor.
    while (!needed[mark] || nodes_[mark].cost == 0) ++mark;
    nodes_[v].forward = last_reader[v] = mark;
  }
}

core::GraphBuilder OperationWriter::finish() {
  std::vector<bool> needed(nodes_.size());
  for (std::size_t v = nodes_.size(); v-- > 0;) {
    needed[v] = needed[v] || nodes_[v].keep;
    if (!needed[v]) continue;
    for (const core::OutputRef& input : nodes_[v].inputs) needed[input.node] = true;
  }
  mark(needed);
  std::vector<NodeId> number(nodes_.size(), core::kNoNode);
  core::GraphBuilder graph(name_);
  for (std::size_t v = 0; v < nodes_.size(); ++v) {
    if (!needed[v]) continue;
    core::Node node = std::move(nodes_[v]);
    for (core::OutputRef& input : node.inputs) input = number[input.node];
    if (node.forward != core::kNoNode) node.forward = number[node.forward];
    number[v] = graph.add(std::move(node));
  }
  return graph;
}

}  // namespace cairn::models
