#pragma once

#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/op.h"
#include "cairn/core/precision.h"
#include "cairn/runtime/device/call.h"

/// The ops by family; every function is defined in the header of its name, for any Launcher (call.h).
namespace cairn::runtime::device {

template <class Machine>
void matmul(Machine& machine, Call& call);
/// add, scale, relu, relu_grad, gelu, gelu_grad, dropout, mse_grad.
template <class Machine>
void elementwise(Machine& machine, Call& call);
/// conv2d, conv2d_grad_input, conv2d_grad_weight.
template <class Machine>
void conv(Machine& machine, Call& call);
/// batchnorm_stats, batchnorm, batchnorm_grad_params, batchnorm_grad_input, reduce_rows.
template <class Machine>
void batchnorm(Machine& machine, Call& call);
/// layernorm_stats, layernorm, layernorm_grad_params, layernorm_grad_input.
template <class Machine>
void layernorm(Machine& machine, Call& call);
/// maxpool, maxpool_grad, mean_pool, mean_pool_grad, upsample, upsample_grad.
template <class Machine>
void pool(Machine& machine, Call& call);
/// concat, slice, permute.
template <class Machine>
void shape(Machine& machine, Call& call);
/// softmax, softmax_grad.
template <class Machine>
void softmax(Machine& machine, Call& call);
/// embedding, embedding_grad.
template <class Machine>
void embedding(Machine& machine, Call& call);
/// cross_entropy, cross_entropy_grad, mse.
template <class Machine>
void loss(Machine& machine, Call& call);

template <class Machine>
struct KernelTable {
  using Kernel = void (*)(Machine&, Call&);
  // In the order of OpKind.
  static constexpr Kernel kTable[] = {
      matmul<Machine>,       // matmul
      batchnorm<Machine>,    // reduce_rows
      elementwise<Machine>,  // add
      elementwise<Machine>,  // scale
      elementwise<Machine>,  // relu
      elementwise<Machine>,  // relu_grad
      elementwise<Machine>,  // gelu
      elementwise<Machine>,  // gelu_grad
      conv<Machine>,         // conv2d
      conv<Machine>,         // conv2d_grad_input
      conv<Machine>,         // conv2d_grad_weight
      batchnorm<Machine>,    // batchnorm_stats
      batchnorm<Machine>,    // batchnorm
      batchnorm<Machine>,    // batchnorm_grad_params
      batchnorm<Machine>,    // batchnorm_grad_input
      layernorm<Machine>,    // layernorm_stats
      layernorm<Machine>,    // layernorm
      layernorm<Machine>,    // layernorm_grad_params
      layernorm<Machine>,    // layernorm_grad_input
      pool<Machine>,         // maxpool
      pool<Machine>,         // maxpool_grad
      pool<Machine>,         // mean_pool
      pool<Machine>,         // mean_pool_grad
      pool<Machine>,         // upsample
      pool<Machine>,         // upsample_grad
      shape<Machine>,        // concat
      shape<Machine>,        // slice
      shape<Machine>,        // permute
      softmax<Machine>,      // softmax
      softmax<Machine>,      // softmax_grad
      embedding<Machine>,    // embedding
      embedding<Machine>,    // embedding_grad
      loss<Machine>,         // cross_entropy
      loss<Machine>,         // cross_entropy_grad
      loss<Machine>,         // mse
      elementwise<Machine>,  // mse_grad
      elementwise<Machine>,  // dropout
  };
  static_assert(std::size(kTable) == core::kOpKindCount);
};

/// Executes one op.
template <class Machine>
void run_op(Machine& machine, Call& call) {
  Launcher<Machine> launcher(machine, call);
  KernelTable<Launcher<Machine>>::kTable[static_cast<std::size_t>(call.op.kind)](launcher, call);
}

/// Bytes of scratch that the op of node v takes on this machine, library workspaces included.
template <class Machine>
std::int64_t scratch_bytes(Machine& machine, Library& library, const core::Graph& graph, core::NodeId v, bool tf32) {
  const core::Op& op = *graph.op(v);
  const std::vector<core::Shape> shapes = core::arg_shapes(graph, v);
  std::vector<Tensor> args;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    args.push_back({nullptr, core::type_of(graph, op.args[i]), shapes[i]});
  Call call{op, args, nullptr, library, tf32, Scratch()};
  run_op(machine, call);
  return call.scratch.used();
}

/// The graph with that scratch for every node that has an op. A node whose scratch is negative, in place, keeps it.
template <class Machine>
core::Graph with_scratch(Machine& machine, Library& library, const core::Graph& graph, bool tf32) {
  std::vector<std::int64_t> scratch;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    const bool known = graph.op(v) == nullptr || graph.scratch(v) < 0;
    scratch.push_back(known ? graph.scratch(v) : scratch_bytes(machine, library, graph, v, tf32));
  }
  return graph.with_scratch(std::move(scratch));
}

}  // namespace cairn::runtime::device
