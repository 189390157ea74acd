#include "cairn/cuda/internal/copy_streams.h"

#include <algorithm>
#include <span>

namespace cairn::cuda {

using runtime::Copy;

CopyStreams::CopyStreams(const runtime::Program& program, bool half_duplex) : program_(program) {
  if (program.copies.empty()) return;
  lanes_.resize(half_duplex ? 1 : 2);
  for (Lane& lane : lanes_) lane.stream = make_stream();
  for (std::size_t i = 0; i < program.copies.size(); ++i) over_.push_back(make_event());
  step_ended_ = make_event();
}

CopyStreams::~CopyStreams() {
  for (const Lane& lane : lanes_) {
    if (lane.stream != nullptr && cudaStreamSynchronize(lane.stream.get()) != cudaSuccess) cudaGetLastError();
  }
}

void CopyStreams::begin() {
  for (Lane& lane : lanes_) {
    lane.awaited = -1;
    lane.used = false;
  }
}

void CopyStreams::wait(std::int64_t step, cudaStream_t stream) {
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    std::int32_t last = -1;
    for (const std::int32_t due : program_.copies_due(step)) {
      if (lane_of(copy(due)) == l) last = std::max(last, due);
    }
    if (last <= lanes_[l].awaited) continue;
    check(cudaStreamWaitEvent(stream, over(last), 0), "a wait for a copy");
    lanes_[l].awaited = last;
  }
}

void CopyStreams::start(std::int64_t step, cudaStream_t stream, const MachineStep& addresses) {
  const std::span<const Copy> starting = program_.copies_after(step);
  if (starting.empty()) return;
  check(cudaEventRecord(step_ended_.get(), stream), "the start of a copy");
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    if (std::ranges::none_of(starting, [&](const Copy& copy) { return lane_of(copy) == l; })) continue;
    check(cudaStreamWaitEvent(lanes_[l].stream.get(), step_ended_.get(), 0), "the start of a copy");
    lanes_[l].used = true;
  }
  for (const Copy& copy : starting) issue(copy, addresses);
}

void CopyStreams::issue(const Copy& one, const MachineStep& addresses) {
  const cudaStream_t stream = lanes_[lane_of(one)].stream.get();
  // A fetch must wait for its evict. It does so here only if both directions have streams of their own, and only if
  // the evict need not be complete before the step after which the fetch starts. Otherwise, the order of the one
  // stream suffices, or that step has already waited for the evict.
  const bool awaits = !one.is_evict() && lanes_.size() > 1 && copy(one.source).finish > one.start;
  if (awaits) check(cudaStreamWaitEvent(stream, over(one.source), 0), "a wait of a fetch");
  std::byte* const device = addresses.address(one.device);
  std::byte* const host = addresses.address(one.host);
  const auto bytes = static_cast<std::size_t>(one.device.bytes);
  check(one.is_evict() ? cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream)
                       : cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream),
        "a copy between device and host");
  check(cudaEventRecord(over(static_cast<std::int32_t>(&one - program_.copies.data())), stream), "the end of a copy");
}

void CopyStreams::join_after_error(cudaStream_t stream) noexcept {
  for (const Lane& lane : lanes_) {
    if (!lane.used) continue;
    if (cudaEventRecord(step_ended_.get(), lane.stream.get()) != cudaSuccess ||
        cudaStreamWaitEvent(stream, step_ended_.get(), 0) != cudaSuccess)
      cudaGetLastError();
  }
}

}  // namespace cairn::cuda
