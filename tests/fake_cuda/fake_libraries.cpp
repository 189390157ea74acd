// What cuda/ has the vendor's libraries do, done by the host when the fake runtime comes to it.
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "cairn/cuda/internal/libraries.h"
#include "cairn/cuda/internal/runtime.h"
#include "cairn/tests/fake_cuda/fake_cuda.h"
#include "cairn/tests/support/host_library.h"

namespace cairn::cuda {
namespace {

namespace fake = tests::fake;
using fake::enqueue;
using runtime::device::ConvOperands;
using runtime::device::ConvShape;
using runtime::device::GemmOperands;
using runtime::device::GemmShape;

tests::HostLibrary library() { return tests::HostLibrary(fake::has_cudnn()); }

/// Requires that `rows` rows of `columns` elements may be read. Rows begin `stride` elements apart.
void require_rows(const void* first, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                  core::ElementType type) {
  const std::int64_t element = core::element_bytes(type);
  const auto* row = static_cast<const std::byte*>(first);
  for (std::int64_t i = 0; i < rows; ++i, row += stride * element) {
    if (!fake::require_readable(row, static_cast<std::size_t>(columns * element), "a product")) return;
  }
}

void require_operands(const GemmShape& s, const GemmOperands& o) {
  const std::int64_t rows_of_a = s.trans_a ? s.k : s.m, rows_of_b = s.trans_b ? s.n : s.k;
  require_rows(o.a, s.batch * rows_of_a, s.trans_a ? s.m : s.k, s.stride_of_a(), s.type);
  require_rows(o.b, s.batch * rows_of_b, s.trans_b ? s.k : s.n, s.stride_of_b(), s.type);
  if (s.bias) require_rows(o.bias, 1, s.n, s.n, s.type);
  if (s.accumulate) require_rows(o.c, s.batch * s.m, s.n, s.stride_of_c(), s.type);
}

}  // namespace

struct Gemms::Impl {};
Gemms::Gemms(std::int64_t) {}
Gemms::~Gemms() = default;

std::int64_t Gemms::workspace(const GemmShape& shape) { return library().gemm_workspace(shape); }

bool Gemms::adds_bias(const GemmShape& shape) { return library().gemm_adds_bias(shape); }

bool Gemms::in_tiles(const GemmShape& shape) { return library().gemm_in_tiles(shape); }

void Gemms::run(const GemmShape& shape, const GemmOperands& operands, void* workspace, cudaStream_t stream) {
  for (const void* tensor : {operands.a, operands.b, operands.bias, static_cast<const void*>(operands.c)}) {
    fake::require_aligned(tensor, 16, "a product's tensor");
  }
  fake::require_aligned(workspace, 256, "a product's workspace");
  enqueue(
      stream,
      [=] {
        require_operands(shape, operands);
        library().gemm(shape, operands, workspace);
        const auto element = static_cast<std::size_t>(core::element_bytes(shape.type));
        auto* row = static_cast<std::byte*>(operands.c);
        for (std::int64_t i = 0; i < shape.batch * shape.m; ++i, row += shape.stride_of_c() * element)
          fake::note_written(row, static_cast<std::size_t>(shape.n) * element);
      },
      "a product");
}

struct Convolutions::Impl {
  std::string why_not = "the fake cuDNN is switched off";
  Plans<ConvShape, ConvVariants> plans = {};
};
Convolutions::Convolutions(const WorkspaceLimits&, Gemms*) : impl_(std::make_unique<Impl>()) {}
Convolutions::~Convolutions() = default;

bool Convolutions::available() const { return fake::has_cudnn(); }
const std::string& Convolutions::why_not() const { return impl_->why_not; }

const ConvVariants& Convolutions::variants(const ConvShape& shape) {
  return impl_->plans.of(shape, [](const ConvShape& wanted) {
    ConvVariants found;
    for (const runtime::ScratchVariant& variant : library().conv_variants(wanted)) {
      if (variant.usual) found.usual = found.all.size();
      found.all.push_back({found.all.size(), variant.scratch, variant.ms});
    }
    return found;
  });
}

void Convolutions::run(const ConvShape& shape, const ConvOperands& operands, void* workspace,
                       std::int64_t workspace_bytes, cudaStream_t stream) {
  for (const void* tensor : {operands.first, operands.second, static_cast<const void*>(operands.out)}) {
    fake::require_aligned(tensor, 16, "a convolution's tensor");
  }
  fake::require_aligned(workspace, 256, "a convolution's workspace");
  enqueue(
      stream,
      [=] {
        library().conv(shape, operands, workspace, workspace_bytes);
        using runtime::device::ConvKind;
        const std::int64_t elements =
            shape.kind == ConvKind::forward      ? shape.images * shape.out_h * shape.out_w * shape.out_c
            : shape.kind == ConvKind::grad_input ? shape.images * shape.in_h * shape.in_w * shape.in_c
                                                 : shape.out_c * shape.kernel_h * shape.kernel_w * shape.in_c;
        fake::note_written(operands.out, static_cast<std::size_t>(elements * core::element_bytes(shape.type)));
      },
      "a convolution");
}

}  // namespace cairn::cuda
