#include "cairn/core/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/internal/graph_checks.h"
#include "cairn/core/internal/graph_data.h"
#include "cairn/core/support/subgraph.h"

namespace cairn::core {
namespace {

std::uint64_t mix(std::uint64_t h, std::uint64_t word) {
  h ^= word + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
  h ^= h >> 30;
  h *= 0xbf58476d1ce4e5b9ULL;
  h ^= h >> 27;
  h *= 0x94d049bb133111ebULL;
  return h ^ (h >> 31);
}

}  // namespace

void set_sizes(Node& node) {
  const std::int32_t count = output_count(node.op->kind);
  if (count == 1 && node.outputs.empty()) {
    node.size = output_bytes(*node.op, 0);
    return;
  }
  if (std::ssize(node.outputs) < count) node.outputs.resize(count);
  for (std::int32_t k = 0; k < count; ++k) node.outputs[k].size = output_bytes(*node.op, k);
}

Node node_of(const Graph& graph, NodeId v) {
  Node node;
  node.name = graph.name(v);
  node.cost = graph.cost(v);
  node.scratch = graph.scratch(v);
  node.backward = graph.backward(v);
  node.pinned = graph.pinned(v);
  node.forward = graph.forward(v);
  for (const ValueId x : graph.inputs(v)) node.inputs.push_back(graph.output_ref(x));
  if (graph.op(v) != nullptr) node.op = *graph.op(v);
  for (const ValueId x : graph.outputs(v)) {
    node.outputs.push_back({graph.value_size(x), graph.value_kept(x), graph.output_ref(graph.inplace(x)),
                            graph.output_name(x), graph.value_stays(x)});
  }
  const Output& first = node.outputs.front();
  if (node.outputs.size() > 1 || !first.name.empty() || first.stays) return node;
  node.size = node.outputs.front().size;
  node.keep = node.outputs.front().keep;
  node.inplace = node.outputs.front().inplace;
  node.outputs.clear();
  return node;
}

Graph::Graph() : Graph(Data{std::make_shared<const Structure>(), {}, {}, {}, {}, {}}) {}
Graph::Graph(Data data) : data_(std::make_shared<const Data>(std::move(data))), view_(data_->view()) {}

const std::string& Graph::name() const { return data_->structure->name; }
const CostUnit& Graph::cost_unit() const { return data_->cost_unit; }
const std::optional<HostMemory>& Graph::host_memory() const { return data_->host_memory; }
const std::string& Graph::name(NodeId v) const { return data_->structure->names[v]; }
bool Graph::backward(NodeId v) const { return data_->structure->backward[v] != 0; }
NodeId Graph::forward(NodeId v) const { return data_->structure->forward[v]; }
bool Graph::value_stays(ValueId x) const { return data_->structure->stays[x] != 0; }
ValueId Graph::inplace(ValueId x) const { return data_->structure->inplace[x]; }
const std::string& Graph::output_name(ValueId x) const { return data_->structure->output_names[x]; }
std::string Graph::value_name(ValueId x) const {
  const auto [v, output] = output_ref(x);
  if (output_count(v) == 1) return name(v);
  return output_name(x).empty() ? fmt::format("{}[{}]", name(v), output)
                                : fmt::format("{}[{}]", name(v), output_name(x));
}
const Op* Graph::op(NodeId v) const {
  const std::optional<Op>& op = data_->structure->ops[v];
  return op && data_->executable ? &*op : nullptr;
}
std::span<const Resident> Graph::residents() const {
  return data_->executable ? std::span<const Resident>(data_->structure->residents) : std::span<const Resident>();
}
std::int64_t Graph::resident_bytes() const { return data_->structure->resident_bytes; }
std::span<const NodeId> Graph::input_order() const { return data_->structure->order; }
bool Graph::has_pinned() const { return data_->structure->any_pinned; }
bool Graph::order_was_given() const { return data_->structure->order_given; }

template <class Change>
Graph Graph::with_numbers(const Change& change) const {
  Data data = *data_;
  change(data);
  Graph graph(std::move(data));
  const NameOfNode name_of = [&](NodeId v) -> const std::string& { return name(v); };
  check_numbers(graph.view(), name_of);
  check_scratch(graph.view(), name_of);
  return graph;
}

Graph Graph::with_scratch(std::vector<std::int64_t> scratch) const {
  return with_numbers([&](Data& data) { data.scratch = std::move(scratch); });
}

Graph Graph::with_host_memory(std::optional<HostMemory> host) const {
  return with_numbers([&](Data& data) { data.host_memory = host; });
}

Graph Graph::with_costs(std::vector<std::int64_t> cost, std::optional<CostUnit> unit) const {
  if (unit) check_cost_unit(*unit);
  return with_numbers([&](Data& data) {
    data.cost = std::move(cost);
    if (unit) data.cost_unit = std::move(*unit);
  });
}

Graph align_sizes(const Graph& graph, std::int64_t alignment) {
  if (alignment < 1 || alignment > (std::int64_t{1} << 30)) {
    throw InputError(fmt::format("alignment {} is not between 1 and 2^30 bytes", alignment));
  }
  return graph.with_numbers([&](Graph::Data& data) {
    data.executable = false;
    for (std::int64_t& size : data.size) size = align_up(size, alignment);
    data.add_up_sizes();
    const GraphView view = data.view();
    // Returns the bytes of storage that node v takes over once sizes are rounded. The storage of each in-place output
    // is rounded separately, because a plan rounds each buffer.
    const auto taken_over = [&](NodeId v) {
      std::int64_t before = 0, aligned = 0;
      for (const ValueId x : graph.outputs(v)) {
        const ValueId taken = graph.inplace(x);
        if (taken == kNoValue || graph.readers(taken).size() != 1 || graph.value_kept(taken)) continue;
        before += std::min(graph.value_size(x), graph.value_size(taken));
        aligned += std::min(data.size[x], data.size[taken]);
      }
      const std::int64_t saved = -graph.scratch(v), more = saved - before;
      const auto align_down = [&](std::int64_t bytes) { return bytes / alignment * alignment; };
      return more >= 0 ? aligned + align_down(more) : align_down(saved);
    };
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      if (graph.scratch(v) < 0 && graph.output_count(v) > 1) {
        data.scratch[v] = std::max(-taken_over(v), least_scratch(view, v));
        continue;
      }
      // Negative scratch means that v takes over storage of its inputs. The bytes that v needs beyond this storage are
      // rounded up, so that the scratch stays legal.
      data.scratch[v] = graph.scratch(v) >= 0
                            ? align_up(graph.scratch(v), alignment)
                            : align_up(graph.size(v) + graph.scratch(v), alignment) - view.node_size[v];
    }
  });
}

std::string Graph::fingerprint() const {
  std::uint64_t h = mix(0, static_cast<std::uint64_t>(node_count()));
  const auto mix_value = [&](ValueId x) {
    h = mix(h, static_cast<std::uint64_t>(inplace(x)) * 2 + (value_kept(x) ? 1 : 0));
    if (value_stays(x)) h = mix(h, ~std::uint64_t{3});
  };
  for (NodeId v = 0; v < node_count(); ++v) {
    const ValueId first = value(v);
    h = mix(h, static_cast<std::uint64_t>(value_size(first)));
    h = mix(h, static_cast<std::uint64_t>(scratch(v)));
    mix_value(first);
    std::vector<ValueId> sorted(inputs(v).begin(), inputs(v).end());
    std::sort(sorted.begin(), sorted.end());
    for (const ValueId x : sorted) h = mix(h, static_cast<std::uint64_t>(x));
    h = mix(h, ~std::uint64_t{0});
    // Properties that version 1 of the graph format lacks are hashed only if the graph has them, so that fingerprints
    // of older graphs stay valid.
    if (pinned(v)) h = mix(h, ~std::uint64_t{1});
    for (ValueId x = first + 1; x < first + output_count(v); ++x) {
      h = mix(mix(h, ~std::uint64_t{2}), static_cast<std::uint64_t>(value_size(x)));
      mix_value(x);
    }
  }
  return fmt::format("{:016x}", h);
}

Graph forward_part(const Graph& graph) {
  std::vector<NodeId> forward;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.backward(v)) continue;
    for (const NodeId u : graph.predecessors(v)) {
      if (!graph.backward(u)) continue;
      throw InputError(
          fmt::format("node '{}' is not marked backward, but reads node '{}', which is", graph.name(v), graph.name(u)));
    }
    forward.push_back(v);
  }
  return induced_subgraph(graph, forward, {.name = graph.name().empty() ? "" : graph.name() + "_forward"}).graph;
}

}  // namespace cairn::core
