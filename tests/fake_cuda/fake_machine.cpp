// The kernels and libraries of cuda/, computed by a HostMachine when the fake runtime comes to them.
#include <functional>
#include <utility>

#include "cairn/cuda/internal/convolution.h"
#include "cairn/cuda/internal/error.h"
#include "cairn/cuda/internal/gemm.h"
#include "cairn/cuda/internal/machine.h"
#include "cairn/cuda/internal/machine_step.h"
#include "cairn/runtime/device/batchnorm.h"
#include "cairn/runtime/device/conv.h"
#include "cairn/runtime/device/elementwise.h"
#include "cairn/runtime/device/embedding.h"
#include "cairn/runtime/device/layernorm.h"
#include "cairn/runtime/device/loss.h"
#include "cairn/runtime/device/matmul.h"
#include "cairn/runtime/device/pool.h"
#include "cairn/runtime/device/shape.h"
#include "cairn/runtime/device/softmax.h"
#include "cairn/tests/fake_cuda/fake_cuda.h"
#include "cairn/tests/support/host_machine.h"

namespace cairn::cuda {
namespace {

namespace fake = tests::fake;
using runtime::device::ConvOperands;
using runtime::device::ConvShape;
using runtime::device::GemmOperands;
using runtime::device::GemmShape;

tests::HostMachine& host() {
  static tests::HostMachine machine;
  machine.library_convolutions = fake::has_cudnn();
  return machine;
}

void enqueue(cudaStream_t stream, std::function<void()> kernel, const char* what) {
  check(fake::enqueue_kernel(stream, std::move(kernel)), what);
}

}  // namespace

struct Gemms::Impl {};
Gemms::Gemms(std::int64_t) {}
Gemms::Gemms(Gemms&&) noexcept = default;
Gemms& Gemms::operator=(Gemms&&) noexcept = default;
Gemms::~Gemms() = default;

std::int64_t Gemms::workspace(const GemmShape& shape) { return host().gemm_workspace(shape); }

void Gemms::run(const GemmShape& shape, const GemmOperands& operands, void* workspace, cudaStream_t stream) {
  for (const void* tensor : {operands.a, operands.b, operands.bias, static_cast<const void*>(operands.c)}) {
    fake::require_aligned(tensor, 16, "a product's tensor");
  }
  fake::require_aligned(workspace, 256, "a product's workspace");
  enqueue(
      stream, [=] { host().gemm(shape, operands, workspace); }, "a product");
}

struct Convolutions::Impl {
  std::string why_not = "the fake cuDNN is switched off";
};
Convolutions::Convolutions(std::int64_t) : impl_(std::make_unique<Impl>()) {}
Convolutions::Convolutions(Convolutions&&) noexcept = default;
Convolutions& Convolutions::operator=(Convolutions&&) noexcept = default;
Convolutions::~Convolutions() = default;

bool Convolutions::available() const { return fake::has_cudnn(); }
const std::string& Convolutions::why_not() const { return impl_->why_not; }

std::optional<std::int64_t> Convolutions::workspace(const ConvShape& shape) { return host().conv_workspace(shape); }

void Convolutions::run(const ConvShape& shape, const ConvOperands& operands, void* workspace, cudaStream_t stream) {
  for (const void* tensor : {operands.first, operands.second, static_cast<const void*>(operands.out)}) {
    fake::require_aligned(tensor, 16, "a convolution's tensor");
  }
  fake::require_aligned(workspace, 256, "a convolution's workspace");
  enqueue(
      stream, [=] { host().conv(shape, operands, workspace); }, "a convolution");
}

Machine::Machine(std::int64_t workspace_limit_bytes)
    : gemms_(workspace_limit_bytes), convolutions_(workspace_limit_bytes) {}

std::int64_t most_shared_bytes() { return host().shared_limit(); }

template <class F>
void Launcher::launch(const F& functor, std::int64_t teams, std::int64_t shared_bytes) const {
  enqueue(
      stream(), [=] { host().launch_teams_of_one(functor, teams, shared_bytes); }, "the launch of a kernel");
}

void Launcher::fill(void* address, int byte, std::int64_t bytes) const {
  if (bytes == 0) return;
  check(cudaMemsetAsync(address, byte, static_cast<std::size_t>(bytes), stream_), "filling memory");
}

std::int64_t Machine::sort_workspace(std::int64_t count) { return host().sort_workspace(count); }

void Machine::sort_by_key(const std::int32_t* keys, std::int32_t* sorted_keys, std::int32_t* sorted_places,
                          std::int64_t count, std::int64_t limit, void* workspace) {
  fake::require_aligned(workspace, 256, "a sort's workspace");
  enqueue(
      stream(), [=] { host().sort_by_key(keys, sorted_keys, sorted_places, count, limit, workspace); },
      "a sort of ids");
}

MachineStep::MachineStep(Machine& machine, const runtime::Program& program, const runtime::Liveness& lives, bool poison,
                         const runtime::device::StepMemory& memory)
    : machine_(machine), step_(program, lives, poison, memory) {}

void MachineStep::begin() { step_.begin(machine_); }
void MachineStep::issue(const runtime::Instruction& instruction, bool dirty_scratch) {
  step_.issue(machine_, instruction, dirty_scratch);
}

void find_touched(Machine& machine, const std::byte* arena, std::int64_t bytes, int paint, std::int64_t* ends) {
  runtime::device::find_touched(machine, arena, bytes, paint, ends);
}

}  // namespace cairn::cuda

namespace cairn::runtime::device {
// What Device asks for; MachineStep has instantiated the rest.
template void matmul(Sizing<cuda::Machine>&, Call&);
template void elementwise(Sizing<cuda::Machine>&, Call&);
template void conv(Sizing<cuda::Machine>&, Call&);
template void batchnorm(Sizing<cuda::Machine>&, Call&);
template void layernorm(Sizing<cuda::Machine>&, Call&);
template void pool(Sizing<cuda::Machine>&, Call&);
template void shape(Sizing<cuda::Machine>&, Call&);
template void softmax(Sizing<cuda::Machine>&, Call&);
template void embedding(Sizing<cuda::Machine>&, Call&);
template void loss(Sizing<cuda::Machine>&, Call&);
}  // namespace cairn::runtime::device
