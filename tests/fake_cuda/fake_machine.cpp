// Replaces the functions of CUB that cuda/ calls. The host does their work at the time at which the fake runtime runs
// it.
#include <functional>
#include <utility>

#include "cairn/cuda/internal/machine.h"
#include "cairn/tests/fake_cuda/fake_cuda.h"
#include "cairn/tests/support/fiber_machine.h"

namespace cairn {

tests::FiberMachine& tests::fake::machine() {
  static FiberMachine machine;
  return machine;
}

namespace cuda {
namespace {

namespace fake = tests::fake;
using fake::enqueue;
using fake::machine;

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

cudaError_t kernel_image_status() { return fake::call("kernel image"); }

}  // namespace cuda
}  // namespace cairn
