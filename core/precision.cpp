#include "cairn/core/precision.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/support/text.h"

namespace cairn::core {
namespace {

constexpr std::array<std::string_view, 3> kNames{"fp32", "tf32", "bf16"};

/// Returns the work of v, with its bytes adapted to the types in which tensors are stored. op_work() assumes fp32 for
/// every element. Here, every element counts with the type of the largest tensor, which usually has most of the
/// elements.
OpWork stored_work(const Graph& graph, NodeId v) {
  const Op& op = *graph.op(v);
  const std::vector<Shape> shapes = arg_shapes(graph, v);
  OpWork work = op_work(op, shapes);
  std::int64_t largest = element_count(op.shape);
  ElementType type = op.type;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::int64_t count = element_count(shapes[i]);
    const ElementType stored = type_of(graph, op.args[i]);
    if (count < largest || stored == ElementType::i32) continue;
    largest = count;
    type = stored;
  }
  if (type == ElementType::bf16) work.bytes /= 2;
  return work;
}

/// Adapts the update of a weight by node v to a graph of bf16 tensors. The update gets the element type of its
/// gradient.
void store_update(const Graph& graph, GraphBuilder& builder, NodeId v) {
  Op& op = *builder.node(v).op;
  const Operand gradient = op.args[0];
  op.type = gradient.kind == Operand::Kind::resident
                ? builder.resident(gradient.index).type
                : output_type(graph.op(gradient.index)->kind, ElementType::bf16, gradient.output);
  add_master(builder, op);
}

/// Throws InputError if v adds gradients of the parameters of norm layers. These gradients are fp32 even in a bf16
/// graph, whereas an add of a bf16 graph takes bf16. A graph has such a node if norm layers share their parameters.
void refuse_shared_norm(const Graph& graph, NodeId v) {
  const Op& op = *graph.op(v);
  if (op.kind != OpKind::add) return;
  for (const Operand& arg : op.args) {
    if (arg.kind == Operand::Kind::resident) continue;
    const OpKind kind = graph.op(arg.index)->kind;
    if (kind != OpKind::batchnorm_grad_params && kind != OpKind::layernorm_grad_params) continue;
    const auto name = [&](std::size_t i) {
      return op.args[i].kind == Operand::Kind::resident ? graph.residents()[op.args[i].index].name
                                                        : graph.name(op.args[i].index);
    };
    throw InputError(
        fmt::format("node '{}' adds '{}' and '{}', gradients of norms that share their parameters, which bf16 does not "
                    "support; give each norm its own parameters, or drop {}",
                    graph.name(v), name(0), name(1), option("precision", "bf16")));
  }
}

}  // namespace

std::string_view to_string(Precision precision) { return kNames[static_cast<std::size_t>(precision)]; }

Precision precision_from_string(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Precision>(i);
  }
  throw InputError(fmt::format("precision '{}' must be fp32, tf32 or bf16{}", name, did_you_mean(name, kNames)));
}

bool stores_bf16(const Graph& graph) {
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.op(v) != nullptr && graph.op(v)->type == ElementType::bf16) return true;
  }
  return false;
}

Graph with_precision(const Graph& graph, Precision precision) {
  const bool is_bf16 = stores_bf16(graph);
  if (precision != Precision::bf16) {
    if (is_bf16)
      throw InputError(
          fmt::format("'{}' stores its tensors as bf16, so it cannot run in {}; drop {} or build "
                      "the graph again",
                      graph.name(), to_string(precision), option("precision")));
    return graph;
  }
  if (is_bf16) return graph;
  constexpr ElementType kStorage = ElementType::bf16;
  GraphBuilder builder(graph);
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    Node& node = builder.node(v);
    if (!node.op) continue;
    if (is_update(node.op->kind)) {
      store_update(graph, builder, v);
      continue;
    }
    refuse_shared_norm(graph, v);
    node.op->type = output_type(node.op->kind, kStorage);
    if (node.op->writes < 0) {
      const std::int64_t fp32_size = graph.value_size(graph.value(v));
      set_sizes(node);
      // The product needs 128 bits, because both factors are numbers of bytes.
      if (node.scratch < 0)
        node.scratch =
            static_cast<std::int64_t>(static_cast<__int128>(node.scratch) * output_bytes(*node.op, 0) / fp32_size);
    } else {
      builder.resident(node.op->writes).type = node.op->type;
    }
    for (std::size_t i = 0; i < node.op->args.size(); ++i) {
      const Operand& arg = node.op->args[i];
      if (arg.kind == Operand::Kind::resident) builder.resident(arg.index).type = arg_type(node.op->kind, i, kStorage);
    }
  }
  return builder.build();
}

void add_master(GraphBuilder& builder, Op& op) {
  if (op.type != ElementType::bf16) return;
  Resident& weight = builder.resident(op.writes);
  Resident master = weight;
  weight.type = ElementType::bf16;
  master.name += ".master";
  master.role = Resident::Role::optimizer;
  master.type = ElementType::f32;
  master.master_of = op.writes;
  op.args[1] = Operand::resident(builder.add_resident(std::move(master)));
}

CostUnit cost_unit_of(const Roofline& roofline) {
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16}) {
    const Roofline known = roofline_of(precision);
    if (roofline.flops_per_ns == known.flops_per_ns && roofline.bytes_per_ns == known.bytes_per_ns &&
        roofline.launch_ns == known.launch_ns)
      return {kNanoseconds, fmt::format("roofline model of an NVIDIA H200, {}", to_string(precision))};
  }
  return {kNanoseconds, fmt::format("roofline model of {:g} TFLOP/s, {:g} TB/s and {:g} ns a launch",
                                    roofline.flops_per_ns / 1000, roofline.bytes_per_ns / 1000, roofline.launch_ns)};
}

Graph with_roofline_costs(const Graph& graph, const Roofline& roofline) {
  std::vector<std::int64_t> cost;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    cost.push_back(graph.op(v) == nullptr ? graph.cost(v) : roofline.cost(stored_work(graph, v)));
  }
  return graph.with_costs(std::move(cost), cost_unit_of(roofline));
}

Roofline roofline_of(Precision precision) {
  Roofline roofline;
  if (precision == Precision::tf32) roofline.flops_per_ns = 495'000;
  if (precision == Precision::bf16) roofline.flops_per_ns = 990'000;
  return roofline;
}

std::vector<Shape> arg_shapes(const Graph& graph, NodeId v) {
  std::vector<Shape> shapes;
  for (const Operand& arg : graph.op(v)->args) {
    const bool resident = arg.kind == Operand::Kind::resident;
    shapes.push_back(resident ? graph.residents()[arg.index].shape : output_shape(*graph.op(arg.index), arg.output));
  }
  return shapes;
}

ElementType type_of(const Graph& graph, const Operand& operand) {
  return operand.kind == Operand::Kind::resident ? graph.residents()[operand.index].type
                                                 : output_type(*graph.op(operand.index), operand.output);
}

}  // namespace cairn::core
