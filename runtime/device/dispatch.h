#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/op.h"
#include "cairn/core/precision.h"
#include "cairn/runtime/device/call.h"
#include "cairn/runtime/device/families.h"
#include "cairn/runtime/device/machine.h"

namespace cairn::runtime::device {

/// Executes one op. The bits of the result depend on the arguments and the kind of machine alone.
template <class Machine>
void run_op(Machine& machine, Call& call) {
  using core::OpKind;
  switch (call.op.kind) {
    case OpKind::matmul:
      return matmul(machine, call);
    case OpKind::add:
    case OpKind::scale:
    case OpKind::relu:
    case OpKind::relu_grad:
    case OpKind::gelu:
    case OpKind::gelu_grad:
    case OpKind::dropout:
    case OpKind::mse_grad:
      return elementwise(machine, call);
    case OpKind::conv2d:
    case OpKind::conv2d_grad_input:
    case OpKind::conv2d_grad_weight:
      return conv(machine, call);
    case OpKind::reduce_rows:
    case OpKind::batchnorm_stats:
    case OpKind::batchnorm:
    case OpKind::batchnorm_grad_params:
    case OpKind::batchnorm_grad_input:
      return batchnorm(machine, call);
    case OpKind::layernorm_stats:
    case OpKind::layernorm:
    case OpKind::layernorm_grad_params:
    case OpKind::layernorm_grad_input:
      return layernorm(machine, call);
    case OpKind::maxpool:
    case OpKind::maxpool_grad:
    case OpKind::mean_pool:
    case OpKind::mean_pool_grad:
    case OpKind::upsample:
    case OpKind::upsample_grad:
      return pool(machine, call);
    case OpKind::concat:
    case OpKind::slice:
    case OpKind::permute:
      return shape(machine, call);
    case OpKind::softmax:
    case OpKind::softmax_grad:
      return softmax(machine, call);
    case OpKind::embedding:
    case OpKind::embedding_grad:
      return embedding(machine, call);
    case OpKind::cross_entropy:
    case OpKind::cross_entropy_grad:
    case OpKind::mse:
      return loss(machine, call);
  }
  throw std::logic_error("an op kind without a device kernel");
}

/// Bytes of scratch that run_op takes for this op, library workspaces included. `types` and `shapes` are those of the
/// arguments.
template <class Machine>
std::int64_t scratch_bytes(Machine& machine, const core::Op& op, std::span<const core::Shape> shapes,
                           std::span<const core::ElementType> types, bool tf32) {
  std::vector<Tensor> args;
  for (std::size_t i = 0; i < shapes.size(); ++i) args.push_back({nullptr, types[i], shapes[i]});
  Call call{op, args, nullptr, tf32, Scratch()};
  Sizing<Machine> sizing(machine);
  run_op(sizing, call);
  return call.scratch.used();
}

/// The same for the op of node v.
template <class Machine>
std::int64_t scratch_bytes(Machine& machine, const core::Graph& graph, core::NodeId v, bool tf32) {
  const core::Op& op = *graph.op(v);
  std::vector<core::ElementType> types;
  for (const core::Operand& arg : op.args) types.push_back(core::type_of(graph, arg));
  return scratch_bytes(machine, op, core::arg_shapes(graph, v), types, tf32);
}

/// The graph with that scratch for every node that has an op. A node whose scratch is negative, in place, keeps it.
template <class Machine>
core::Graph with_scratch(Machine& machine, const core::Graph& graph, bool tf32) {
  core::GraphBuilder builder(graph);
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.op(v) == nullptr || graph.scratch(v) < 0) continue;
    builder.node(v).scratch = scratch_bytes(machine, graph, v, tf32);
  }
  return builder.build();
}

}  // namespace cairn::runtime::device
