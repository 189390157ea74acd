// Measures how long a convolution takes if it is computed as matrix products, whether a product is faster in tiles,
// i.e. with padded copies of a few rows at a time (Gemms::in_tiles()), and how fast the device computes products and
// copies memory (measure_ceilings()).
#include <cuda_runtime_api.h>

#include <array>
#include <span>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/cuda/internal/libraries.h"
#include "cairn/cuda/internal/machine.h"
#include "cairn/runtime/device/ops.h"

namespace cairn::cuda {
namespace {

using core::OpKind;
using runtime::device::ConvKind;
using runtime::device::ConvShape;
using runtime::device::GemmShape;

/// A library for the ops that are timed in this file. It computes matrix products, in tiles if `tiles` is set. It
/// refuses convolutions, so that ops compute convolutions as products, too.
class OnlyProducts final : public StreamProducts {
 public:
  OnlyProducts(Gemms& gemms, cudaStream_t stream, bool tiles) : StreamProducts(gemms, stream), tiles_(tiles) {}
  bool gemm_in_tiles(const GemmShape&) override { return tiles_; }
  std::optional<std::int64_t> conv_workspace(const ConvShape&, std::optional<std::int64_t>) override {
    return std::nullopt;
  }
  void conv(const ConvShape&, const runtime::device::ConvOperands&, void*, std::int64_t) override {}
  std::vector<runtime::ScratchVariant> conv_variants(const ConvShape&) override { return {}; }

 private:
  bool tiles_;
};

struct OpTrial {
  /// Time of the op in milliseconds; 0 if memory does not suffice to measure it, or if cuBLASLt has no algorithm for
  /// one of the products.
  double ms = 0;
  std::int64_t scratch = 0;  ///< bytes
};

OpTrial try_op(Gemms& gemms, const core::Op& op, const std::vector<core::Shape>& shapes, bool tf32, bool tiles) {
  using namespace runtime::device;
  const auto run = [&](std::span<std::byte* const> buffers, cudaStream_t stream, Scratch scratch) {
    Machine machine(stream);
    OnlyProducts products(gemms, stream, tiles);
    std::vector<Tensor> args;
    for (std::size_t i = 0; i < shapes.size(); ++i) args.push_back({buffers[i + 1], op.type, shapes[i]});
    Call call{op, args, buffers[0], products, tf32, scratch};
    run_op(machine, call);
    return call.scratch.used();
  };
  std::vector<std::int64_t> bytes = {core::output_bytes(op, 0)};
  for (const core::Shape& shape : shapes) bytes.push_back(core::element_count(shape) * core::element_bytes(op.type));
  const std::vector<std::byte*> none(bytes.size());
  std::int64_t scratch = 0;
  try {
    scratch = run(none, nullptr, Scratch());
  } catch (const core::DeviceError&) {
    return {};
  }
  bytes.push_back(scratch);
  const auto ms = trial_ms(bytes, [&](std::span<std::byte* const> buffers, cudaStream_t stream) {
    run(buffers, stream, Scratch(buffers.back(), scratch));
    return true;
  });
  return {ms.value_or(0), scratch};
}

struct ConvOp {
  explicit ConvOp(const ConvShape& s) {
    const core::Shape x{s.images, s.in_h, s.in_w, s.in_c}, w{s.out_c, s.kernel_h, s.kernel_w, s.in_c},
        y{s.images, s.out_h, s.out_w, s.out_c};
    op.type = s.type;
    op.attrs.stride = s.stride;
    op.attrs.pad = s.pad;
    switch (s.kind) {
      case ConvKind::forward:
        op.kind = OpKind::conv2d;
        args = {x, w};
        op.shape = y;
        break;
      case ConvKind::grad_input:
        op.kind = OpKind::conv2d_grad_input;
        args = {y, w};
        op.shape = x;
        break;
      case ConvKind::grad_weight:
        op.kind = OpKind::conv2d_grad_weight;
        args = {y, x};
        op.shape = w;
        break;
    }
  }

  core::Op op;
  std::vector<core::Shape> args;
};

}  // namespace

ConvVariant lowered_conv(Gemms& gemms, const ConvShape& shape) {
  const ConvOp conv(shape);
  const OpTrial trial = try_op(gemms, conv.op, conv.args, shape.tf32, false);
  return {std::nullopt, trial.scratch, trial.ms};
}

bool tiles_pay(Gemms& gemms, const GemmShape& s) {
  const Ceilings& reached = gemms.ceilings(s.type, s.tf32);
  if (!reached.known()) return false;
  const auto elements = static_cast<double>(s.m * s.k + s.k * s.n + s.m * s.n);
  const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const double near_ms = reached.near_ms(flops, elements * static_cast<double>(core::element_bytes(s.type)));
  core::Op op;
  op.kind = OpKind::matmul;
  op.type = s.type;
  op.shape = {s.m, s.n};
  op.attrs.trans_a = s.trans_a;
  op.attrs.trans_b = s.trans_b;
  op.attrs.m = s.m;
  op.attrs.n = s.n;
  op.attrs.k = s.k;
  std::vector<core::Shape> args = {s.trans_a ? core::Shape{s.k, s.m} : core::Shape{s.m, s.k},
                                   s.trans_b ? core::Shape{s.n, s.k} : core::Shape{s.k, s.n}};
  if (s.bias) args.push_back({s.n});
  const double at_once = try_op(gemms, op, args, s.tf32, false).ms;
  if (at_once <= near_ms) return false;
  const double in_tiles = try_op(gemms, op, args, s.tf32, true).ms;
  return in_tiles > 0 && in_tiles * kWorthIt < at_once;
}

Ceilings measure_ceilings(Gemms& gemms, core::ElementType type, bool tf32) {
  constexpr std::int64_t kSide =
      2048;  // rows and columns of square matrices, whose product takes under 1 ms in any precision
  constexpr std::int64_t kCopied = std::int64_t{256} << 20;  // bytes; several times the cache of any device
  const GemmShape shape{.tf32 = tf32, .type = type, .m = kSide, .n = kSide, .k = kSide};
  const std::int64_t matrix = kSide * kSide * core::element_bytes(type);
  const std::array<std::int64_t, 4> product = {matrix, matrix, matrix, gemms.workspace(shape)};
  const std::array<std::int64_t, 2> copied = {kCopied, kCopied};
  const double product_ms = trial_ms(product, [&](std::span<std::byte* const> buffers, cudaStream_t stream) {
                              gemms.run(shape, {.a = buffers[0], .b = buffers[1], .c = buffers[2]}, buffers[3], stream);
                              return true;
                            }).value_or(0);
  const double copy_ms =
      trial_ms(copied, [&](std::span<std::byte* const> buffers, cudaStream_t stream) {
        return cudaMemcpyAsync(buffers[1], buffers[0], kCopied, cudaMemcpyDeviceToDevice, stream) == cudaSuccess;
      }).value_or(0);
  if (product_ms <= 0 || copy_ms <= 0) return {};
  return {2.0 * kSide * kSide * kSide / product_ms, 2.0 * kCopied / copy_ms};
}

}  // namespace cairn::cuda
