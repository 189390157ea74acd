// The work of an op: its floating-point operations, the bytes that it moves, and its scratch.

#include <algorithm>
#include <cmath>

#include "cairn/core/op.h"
#include "cairn/core/support/saturating.h"

namespace cairn::core {
namespace {

// Most bytes of a tile of a convolution's unfolded input (conv_tile_rows()).
constexpr std::int64_t kTileBytes = std::int64_t{2} << 20;

// Returns the number of floating-point operations per element of the op's largest tensor. A transcendental function
// counts as 10.
std::int64_t flops_per_element(OpKind kind) {
  switch (kind) {
    case OpKind::gelu:
    case OpKind::gelu_grad:
      return 20;
    case OpKind::softmax:
    case OpKind::cross_entropy:
    case OpKind::cross_entropy_grad:
      return 14;
    case OpKind::batchnorm_grad_input:
    case OpKind::layernorm_grad_input:
      return 10;
    case OpKind::batchnorm_with_stats:
    case OpKind::layernorm_with_stats:
      return 8;
    case OpKind::batchnorm_stats:
    case OpKind::batchnorm:
    case OpKind::batchnorm_grad_params:
    case OpKind::layernorm_stats:
    case OpKind::layernorm:
    case OpKind::layernorm_grad_params:
    case OpKind::softmax_grad:
      return 4;
    case OpKind::mse:
    case OpKind::mse_grad:
      return 3;
    case OpKind::dropout:
    case OpKind::sum_of_squares:
      return 2;
    case OpKind::sgd:
      return 6;
    case OpKind::adamw:
      return 16;
    case OpKind::concat:
    case OpKind::slice:
    case OpKind::permute:
    case OpKind::upsample:
      return 0;
    default:
      return 1;
  }
}

std::int64_t conv_flops(const Shape& weight, const Shape& output) {
  return saturating_mul(2 * weight[1] * weight[2] * weight[3], element_count(output));
}

std::int64_t flops(const Op& op, std::span<const Shape> args, std::int64_t largest) {
  const OpAttrs& a = op.attrs;
  switch (op.kind) {
    case OpKind::matmul:
      return saturating_mul(saturating_mul(2 * a.m, a.n), saturating_mul(a.k, a.batch));
    case OpKind::conv2d:
      return conv_flops(args[1], op.shape);
    case OpKind::conv2d_grad_input:
      return conv_flops(args[1], args[0]);
    case OpKind::conv2d_grad_weight:
      return conv_flops(op.shape, args[0]);
    case OpKind::maxpool:
    case OpKind::maxpool_with_indices:
      return saturating_mul(saturating_mul(a.kernel, a.kernel), element_count(op.shape));
    case OpKind::maxpool_grad:
      return saturating_mul(saturating_mul(a.kernel, a.kernel), element_count(args[0]));
    case OpKind::embedding:
      return args.size() == 3 ? element_count(op.shape) : 0;
    case OpKind::embedding_grad:
      return element_count(args[0]);
    default:
      return saturating_mul(flops_per_element(op.kind), largest);
  }
}

std::int64_t elements_moved(const Op& op, std::span<const Shape> args) {
  const std::int64_t out = element_count(op.shape);
  if (op.kind == OpKind::slice) return saturating_add(out, out);
  std::int64_t total = 0;
  for (std::int32_t k = 0; k < output_count(op.kind); ++k) {
    total = saturating_add(total, element_count(output_shape(op, k)));
  }
  for (std::size_t i = 0; i < args.size(); ++i) {
    const bool gathered = op.kind == OpKind::embedding && i == 1;  // only the rows that the ids name are read
    total = saturating_add(total, gathered ? out : element_count(args[i]));
  }
  for (const std::size_t i : updated_args(op.kind)) {
    // The new value of argument 1 is the op's output, which is counted above.
    if (i > 1) total = saturating_add(total, element_count(args[i]));
  }
  return total;
}

std::int64_t conv_scratch(const OpAttrs& attrs, const Shape& weight, const Shape& output) {
  const bool pointwise = weight[1] == 1 && weight[2] == 1 && attrs.stride == 1 && attrs.pad == 0;
  if (pointwise) return 0;
  const std::int64_t patch = weight[1] * weight[2] * weight[3];
  return 4 * patch * conv_tile_rows(output[0] * output[1] * output[2], patch);
}

std::int64_t scratch_bytes(const Op& op, std::span<const Shape> args) {
  switch (op.kind) {
    case OpKind::conv2d:
      return conv_scratch(op.attrs, args[1], op.shape);
    case OpKind::conv2d_grad_input:
      return conv_scratch(op.attrs, args[1], args[0]);
    case OpKind::conv2d_grad_weight:
      return conv_scratch(op.attrs, op.shape, args[0]);
    default:
      return 0;
  }
}

}  // namespace

OpWork op_work(const Op& op, std::span<const Shape> arg_shapes) {
  std::int64_t largest = element_count(op.shape);
  for (const Shape& shape : arg_shapes) largest = std::max(largest, element_count(shape));
  OpWork work;
  work.flops = flops(op, arg_shapes, largest);
  work.bytes = saturating_mul(4, elements_moved(op, arg_shapes));
  work.scratch = scratch_bytes(op, arg_shapes);
  return work;
}

std::int64_t conv_tile_rows(std::int64_t pixels, std::int64_t patch) {
  const std::int64_t fitting = std::max<std::int64_t>(1, kTileBytes / (4 * patch));
  return std::min(pixels, fitting);
}

std::int64_t Roofline::cost(const OpWork& work) const {
  const double compute = static_cast<double>(work.flops) / flops_per_ns;
  const double memory = static_cast<double>(work.bytes) / bytes_per_ns;
  const double ns = std::round(std::max(compute, memory) + launch_ns);
  constexpr double kLargest = 4e18;  // below 2^62, so that the cast is defined
  return static_cast<std::int64_t>(std::clamp(ns, 1.0, kLargest));
}

}  // namespace cairn::core
