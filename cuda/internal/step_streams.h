#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cairn/cuda/internal/libraries.h"
#include "cairn/cuda/internal/machine.h"
#include "cairn/cuda/internal/runtime.h"
#include "cairn/cuda/internal/step.h"
#include "cairn/runtime/support/execution.h"

/// This file declares the additional streams that an executor uses beside its own stream, so that independent ops of a
/// step run at the same time.
namespace cairn::cuda {

/// An additional stream of a captured step, with the objects that issue work to this stream. The stream is only used in
/// captures.
struct Lane {
  Lane(Device& device, const runtime::Program& program, const runtime::Liveness& lives,
       const runtime::device::StepMemory& memory_in, runtime::device::HashMemory* hash, std::int64_t most_fill_bytes)
      : stream(make_stream()),
        machine(stream.get(), most_fill_bytes),
        library(device.libraries(), stream.get()),
        memory(memory_in),
        step(machine, library, program, lives, false, memory) {
    memory.hash = hash;
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  Stream stream;
  Machine machine;
  StreamLibrary library;
  runtime::device::StepMemory memory;
  MachineStep step;
};

/// Lets the streams of `lanes` take part in the capture of the stream `origin`, from the constructor to join(). After
/// an error, the destructor joins them, because CUDA requires all streams to be joined before the capture ends.
class Fork {
 public:
  Fork(cudaStream_t origin, const std::vector<std::unique_ptr<Lane>>& lanes) : origin_(origin), event_(make_event()) {
    check(cudaEventRecord(event_.get(), origin), "the fork of a step");
    try {
      for (const auto& lane : lanes) {
        check(cudaStreamWaitEvent(lane->stream.get(), event_.get(), 0), "the fork of a step");
        forked_.push_back(lane->stream.get());
      }
    } catch (...) {
      drop();
      throw;
    }
  }
  ~Fork() { drop(); }
  Fork(const Fork&) = delete;
  Fork& operator=(const Fork&) = delete;

  void join() {
    for (; !forked_.empty(); forked_.pop_back()) {
      check(cudaEventRecord(event_.get(), forked_.back()), "the end of a step's streams");
      check(cudaStreamWaitEvent(origin_, event_.get(), 0), "the end of a step's streams");
    }
  }

 private:
  void drop() {
    for (const cudaStream_t stream : forked_) {
      if (cudaEventRecord(event_.get(), stream) != cudaSuccess ||
          cudaStreamWaitEvent(origin_, event_.get(), 0) != cudaSuccess)
        cudaGetLastError();
    }
    forked_.clear();
  }

  cudaStream_t origin_;
  Event event_;  ///< recorded at the fork, then at each join; a wait refers to the latest record before the wait
  std::vector<cudaStream_t> forked_;
};

}  // namespace cairn::cuda
