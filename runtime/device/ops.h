#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/op.h"
#include "cairn/core/precision.h"
#include "cairn/runtime/device/call.h"

/// This file declares the families of ops. A family is a function that executes several kinds of ops, and is defined in
/// a header of its own.
namespace cairn::runtime::device {

template <class Machine>
void matmul(Launcher<Machine>& launcher, Call& call);
template <class Machine>
void elementwise(Launcher<Machine>& launcher, Call& call);
template <class Machine>
void conv(Launcher<Machine>& launcher, Call& call);
template <class Machine>
void batchnorm(Launcher<Machine>& launcher, Call& call);
template <class Machine>
void layernorm(Launcher<Machine>& launcher, Call& call);
template <class Machine>
void pool(Launcher<Machine>& launcher, Call& call);
template <class Machine>
void shape(Launcher<Machine>& launcher, Call& call);
template <class Machine>
void softmax(Launcher<Machine>& launcher, Call& call);
template <class Machine>
void embedding(Launcher<Machine>& launcher, Call& call);
template <class Machine>
void loss(Launcher<Machine>& launcher, Call& call);
template <class Machine>
void update(Launcher<Machine>& launcher, Call& call);

template <class Machine>
using Family = void (*)(Launcher<Machine>&, Call&);

template <class Machine>
constexpr std::array<Family<Machine>, core::kOpKindCount> families() {
  using core::OpKind;
  std::array<Family<Machine>, core::kOpKindCount> table{};
  const auto add = [&](Family<Machine> family, std::initializer_list<OpKind> kinds) {
    for (const OpKind kind : kinds) table[static_cast<std::size_t>(kind)] = family;
  };
  add(matmul<Machine>, {OpKind::matmul});
  add(elementwise<Machine>, {OpKind::add, OpKind::scale, OpKind::relu, OpKind::relu_grad, OpKind::gelu,
                             OpKind::gelu_grad, OpKind::dropout, OpKind::mse_grad});
  add(conv<Machine>, {OpKind::conv2d, OpKind::conv2d_grad_input, OpKind::conv2d_grad_weight});
  add(batchnorm<Machine>, {OpKind::batchnorm_stats, OpKind::batchnorm, OpKind::batchnorm_with_stats,
                           OpKind::batchnorm_grad_params, OpKind::batchnorm_grad_input, OpKind::reduce_rows});
  add(layernorm<Machine>, {OpKind::layernorm_stats, OpKind::layernorm, OpKind::layernorm_with_stats,
                           OpKind::layernorm_grad_params, OpKind::layernorm_grad_input});
  add(pool<Machine>,
      {OpKind::maxpool, OpKind::maxpool_grad, OpKind::maxpool_with_indices, OpKind::maxpool_with_indices_grad,
       OpKind::mean_pool, OpKind::mean_pool_grad, OpKind::upsample, OpKind::upsample_grad});
  add(shape<Machine>, {OpKind::concat, OpKind::slice, OpKind::permute});
  add(softmax<Machine>, {OpKind::softmax, OpKind::softmax_grad});
  add(embedding<Machine>, {OpKind::embedding, OpKind::embedding_grad});
  add(loss<Machine>, {OpKind::cross_entropy, OpKind::cross_entropy_grad, OpKind::mse, OpKind::sum_of_squares});
  add(update<Machine>, {OpKind::sgd, OpKind::adamw});
  return table;
}

template <class Machine>
void run_op(Machine& machine, Call& call) {
  static constexpr auto kFamilies = families<Machine>();
  static_assert(std::find(kFamilies.begin(), kFamilies.end(), nullptr) == kFamilies.end(), "a kind without a family");
  Launcher<Machine> launcher(machine, call);
  kFamilies[static_cast<std::size_t>(call.op.kind)](launcher, call);
}

/// The op of a node and the shapes of its arguments, without memory for tensors. These suffice to count the scratch
/// that the op needs.
class BareOp {
 public:
  BareOp(const core::Graph& graph, core::NodeId v) : op_(*graph.op(v)), shapes_(core::arg_shapes(graph, v)) {
    for (std::size_t i = 0; i < shapes_.size(); ++i)
      args_.push_back({nullptr, core::type_of(graph, op_.args[i]), shapes_[i]});
  }
  BareOp(const BareOp&) = delete;
  BareOp& operator=(const BareOp&) = delete;
  /// Returns a call that counts scratch and executes nothing.
  Call call(Library& library, bool tf32, Scratch scratch) const {
    return {op_, args_, nullptr, library, tf32, scratch};
  }

 private:
  const core::Op& op_;
  std::vector<core::Shape> shapes_;  // the elements of args_ refer to these
  std::vector<Tensor> args_;
};

/// Returns the bytes of scratch that the op of node v takes on this machine, including workspaces of libraries. `given`
/// is the number of bytes of scratch that the op will have, which can decide between algorithms. If `given` is nullopt,
/// returns the scratch of the algorithm that is used by default.
template <class Machine>
std::int64_t scratch_bytes(Machine& machine, Library& library, const core::Graph& graph, core::NodeId v, bool tf32,
                           std::optional<std::int64_t> given = std::nullopt) {
  const BareOp op(graph, v);
  Call call = op.call(library, tf32, given ? Scratch(*given) : Scratch());
  run_op(machine, call);
  return call.scratch.used();
}

/// Returns the ways to execute the op of node v, which differ in scratch and time, with ascending scratch. If the op
/// gets exactly the scratch of one of these ways, it is executed in that way. Only convolutions without bias have more
/// than one way.
template <class Machine>
std::vector<ScratchVariant> scratch_variants(Machine& machine, Library& library, const core::Graph& graph,
                                             core::NodeId v, bool tf32) {
  using core::OpKind;
  const OpKind kind = graph.op(v)->kind;
  std::vector<ScratchVariant> variants;
  const BareOp op(graph, v);
  const Call call = op.call(library, tf32, Scratch());
  const bool is_conv =
      kind == OpKind::conv2d || kind == OpKind::conv2d_grad_input || kind == OpKind::conv2d_grad_weight;
  if (is_conv && call.args.size() < 3) variants = library.conv_variants(conv_shape(call));
  if (variants.empty()) variants.push_back({.usual = true});
  for (ScratchVariant& variant : variants)
    variant.scratch =
        scratch_bytes(machine, library, graph, v, tf32, variant.usual ? std::nullopt : std::optional(variant.scratch));
  return variants;
}

/// Returns a copy of the graph in which every node with an op has scratch_bytes() as its scratch. Negative scratch
/// stays as it is; it means that an output takes over the storage of an input.
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
