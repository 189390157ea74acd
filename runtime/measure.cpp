#include "cairn/runtime/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "cairn/core/precision.h"
#include "cairn/runtime/internal/residents.h"

namespace cairn::runtime {
namespace {

core::Resident random_argument(const core::Graph& graph, core::NodeId v, std::size_t arg) {
  core::Resident resident;
  resident.shape = core::arg_shapes(graph, v)[arg];
  resident.type = core::type_of(graph, graph.op(v)->args[arg]);
  resident.role = core::Resident::Role::data;
  resident.init = core::Resident::Init::uniform;
  if (resident.type == core::ElementType::i32) resident.scale = static_cast<double>(index_limit(graph, v));
  return resident;
}

std::int64_t bytes_of(const core::Graph& graph, core::NodeId v) {
  const core::Op& op = *graph.op(v);
  std::int64_t bytes = 0;
  for (std::int32_t k = 0; k < core::output_count(op.kind); ++k) bytes += core::output_bytes(op, k);
  for (std::size_t i = 0; i < op.args.size(); ++i) bytes += random_argument(graph, v, i).bytes();
  return bytes;
}

}  // namespace

std::string op_signature(const core::Graph& graph, core::NodeId v) {
  const core::Op& op = *graph.op(v);
  const core::OpAttrs& a = op.attrs;
  std::string text =
      fmt::format("{} {} [{}]", core::to_string(op.kind), core::to_string(op.type), fmt::join(op.shape, ","));
  const std::vector<core::Shape> shapes = core::arg_shapes(graph, v);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    text += fmt::format(" {} [{}]", core::to_string(core::type_of(graph, op.args[i])), fmt::join(shapes[i], ","));
  }
  // Seeds and factors change values, not kernels.
  return text + fmt::format(" {} {} {} {} {}{} {} {} {} {} {} {} {} [{}]", a.batch, a.m, a.n, a.k, a.trans_a, a.trans_b,
                            a.rows, a.cols, a.kernel, a.stride, a.pad, a.offset, a.causal, fmt::join(a.perm, ","));
}

core::Graph sample_graph(const core::Graph& graph, core::NodeId v, std::int64_t copies) {
  core::GraphBuilder builder("sample of " + graph.name(v));
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    core::Node node;
    node.name = fmt::format("{} {}", graph.name(v), copy);
    node.op = *graph.op(v);
    node.op->writes = -1;
    core::set_sizes(node);
    node.scratch = std::max<std::int64_t>(0, graph.scratch(v));
    node.keep = true;  // every copy writes memory of its own
    for (core::Output& output : node.outputs) output.keep = true;
    for (std::size_t i = 0; i < node.op->args.size(); ++i) {
      core::Resident argument = random_argument(graph, v, i);
      argument.name = fmt::format("argument {} of {}", i, copy);
      node.op->args[i] = core::Operand::resident(builder.add_resident(std::move(argument)));
    }
    builder.add(std::move(node));
  }
  return builder.build();
}

std::int64_t sample_copies(const core::Graph& graph, core::NodeId v, std::int64_t cache_bytes) {
  constexpr std::int64_t kMost = 32;
  const std::int64_t bytes = std::max<std::int64_t>(1, bytes_of(graph, v));
  return std::clamp<std::int64_t>((2 * cache_bytes + bytes - 1) / bytes, 1, kMost);
}

MeasuredGraph measure_costs(const core::Graph& graph, const std::function<double(core::NodeId)>& measure) {
  std::map<std::string, std::int64_t> cost_of;
  MeasuredGraph result;
  std::vector<std::int64_t> cost(graph.view().cost, graph.view().cost + graph.node_count());
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.op(v) == nullptr) continue;
    const auto [known, is_new] = cost_of.try_emplace(op_signature(graph, v), 0);
    if (is_new) known->second = std::max<std::int64_t>(1, std::llround(measure(v) * 1e9));
    cost[v] = known->second;
    ++result.measured_nodes;
  }
  result.distinct_ops = static_cast<std::int64_t>(cost_of.size());
  result.graph = graph.with_costs(std::move(cost));
  return result;
}

double median(std::vector<double> values) {
  if (values.empty()) throw std::invalid_argument("the median of nothing");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace cairn::runtime
