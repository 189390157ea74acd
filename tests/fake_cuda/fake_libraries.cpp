// Replaces the vendor's libraries that cuda/ calls. A call is enqueued on its stream. When the fake CUDA runtime
// executes the enqueued call, the host computes the result. Matrix products are in fake_products.cpp.
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
using runtime::device::ConvOperands;
using runtime::device::ConvShape;
using runtime::device::GemmShape;

tests::HostLibrary library() { return tests::HostLibrary(fake::has_cudnn()); }

}  // namespace

struct Gemms::Impl {};
Gemms::Gemms(std::int64_t) {}
Gemms::~Gemms() = default;

std::int64_t Gemms::workspace(const GemmShape& shape) { return library().gemm_workspace(shape); }

bool Gemms::adds_bias(const GemmShape& shape) { return library().gemm_adds_bias(shape); }

bool Gemms::in_tiles(const GemmShape& shape) { return library().gemm_in_tiles(shape); }

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
  fake::enqueue(
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
