// What cuda/ has CUB and the vendor's libraries do, done by the host when the fake runtime comes to it.
#include <functional>
#include <memory>
#include <utility>

#include "cairn/cuda/internal/libraries.h"
#include "cairn/cuda/internal/machine.h"
#include "cairn/tests/fake_cuda/fake_cuda.h"
#include "cairn/tests/support/fiber_machine.h"
#include "cairn/tests/support/host_library.h"

namespace cairn {

tests::FiberMachine& tests::fake::machine() {
  static FiberMachine machine;
  return machine;
}

namespace cuda {
namespace {

namespace fake = tests::fake;
using fake::machine;
using runtime::device::ConvOperands;
using runtime::device::ConvShape;
using runtime::device::GemmOperands;
using runtime::device::GemmShape;

tests::HostLibrary library() { return tests::HostLibrary(fake::has_cudnn()); }

void enqueue(cudaStream_t stream, std::function<void()> kernel, const char* what) {
  check(fake::enqueue_kernel(stream, std::move(kernel)), what);
}

}  // namespace

void Machine::exclusive_sum(const std::int32_t* in, std::int64_t* out, std::int64_t count) {
  enqueue(
      stream_, [=] { machine().exclusive_sum(in, out, count); }, "a prefix sum");
}
void Machine::exclusive_sum(const std::int64_t* in, std::int64_t* out, std::int64_t count) {
  enqueue(
      stream_, [=] { machine().exclusive_sum(in, out, count); }, "a prefix sum");
}
void Machine::sort_pairs(const std::uint64_t* keys, std::uint64_t* sorted_keys, const std::int32_t* values,
                         std::int32_t* sorted_values, std::int64_t count) {
  enqueue(
      stream_, [=] { machine().sort_pairs(keys, sorted_keys, values, sorted_values, count); }, "a sort");
}
std::int64_t Machine::select(const std::uint8_t* flags, std::int64_t count, std::int64_t* out) {
  std::int64_t found = 0;
  enqueue(
      stream_, [=, &found] { found = machine().select(flags, count, out); }, "a selection");
  check(cudaStreamSynchronize(stream_), "a selection");
  return found;
}

std::int64_t Machine::sort_workspace(std::int64_t count) const { return machine().sort_workspace(count); }
void Machine::sort_by_key(const std::int32_t* keys, std::int32_t* sorted_keys, std::int32_t* sorted_places,
                          std::int64_t count, std::int64_t limit, void* workspace) const {
  fake::require_aligned(workspace, 256, "a sort's workspace");
  enqueue(
      stream_, [=] { machine().sort_by_key(keys, sorted_keys, sorted_places, count, limit, workspace); },
      "a sort of ids");
}

struct Gemms::Impl {};
Gemms::Gemms(std::int64_t) {}
Gemms::~Gemms() = default;

std::int64_t Gemms::workspace(const GemmShape& shape) { return library().gemm_workspace(shape); }

bool Gemms::in_tiles(const GemmShape& shape) { return library().gemm_in_tiles(shape); }

void Gemms::run(const GemmShape& shape, const GemmOperands& operands, void* workspace, cudaStream_t stream) {
  for (const void* tensor : {operands.a, operands.b, operands.bias, static_cast<const void*>(operands.c)}) {
    fake::require_aligned(tensor, 16, "a product's tensor");
  }
  fake::require_aligned(workspace, 256, "a product's workspace");
  enqueue(
      stream, [=] { library().gemm(shape, operands, workspace); }, "a product");
}

struct Convolutions::Impl {
  std::string why_not = "the fake cuDNN is switched off";
};
Convolutions::Convolutions(std::int64_t, Gemms*) : impl_(std::make_unique<Impl>()) {}
Convolutions::~Convolutions() = default;

bool Convolutions::available() const { return fake::has_cudnn(); }
const std::string& Convolutions::why_not() const { return impl_->why_not; }

std::optional<std::int64_t> Convolutions::workspace(const ConvShape& shape) { return library().conv_workspace(shape); }

void Convolutions::run(const ConvShape& shape, const ConvOperands& operands, void* workspace, cudaStream_t stream) {
  for (const void* tensor : {operands.first, operands.second, static_cast<const void*>(operands.out)}) {
    fake::require_aligned(tensor, 16, "a convolution's tensor");
  }
  fake::require_aligned(workspace, 256, "a convolution's workspace");
  enqueue(
      stream, [=] { library().conv(shape, operands, workspace); }, "a convolution");
}

}  // namespace cuda
}  // namespace cairn
