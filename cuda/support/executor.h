#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cairn/cuda/device.h"
#include "cairn/runtime/executor.h"
#include "cairn/runtime/program.h"

namespace cairn::cuda {

/// How the work of a step is submitted to the device.
enum class Launch : std::uint8_t {
  graph,   ///< the step is captured once into a CUDA graph; each step is one call that replays the graph
  stream,  ///< kernels are launched one by one in every step, so that a profiler can show each op's range
};

struct ExecutorOptions {
  std::uint64_t seed = 1;  ///< seed of the initial values of resident tensors
  bool poison = false;     ///< see runtime::ExecuteOptions::poison
  bool sentinels = false;  ///< see runtime::ExecuteOptions::sentinels
  Launch launch = Launch::graph;
  /// The cudaStream_t on which steps run. It must outlive the executor, and must not be a default stream. If it is
  /// nullptr, the executor creates a stream.
  void* stream = nullptr;
  runtime::ArenaView arena = {};  ///< device memory of the caller; if its `data` is nullptr, the executor allocates it
  /// If this is not nullptr and *stop is true, run() and enqueue() throw InterruptedError instead of starting a step.
  const std::atomic<bool>* stop = nullptr;
  /// Largest number of bytes that one fill of device memory sets. Larger ranges are filled in several pieces. 0 stands
  /// for 2 GiB; only tests choose less.
  std::int64_t most_fill_bytes = 0;
  /// Number of streams of the captured step, 1 to runtime::kMostStreams (runtime/overlap.h). Only one stream is used
  /// with poison, sentinels or Launch::stream, and in executions that time ops.
  int streams = 1;
  bool half_duplex = false;  ///< see runtime::ExecuteOptions::half_duplex
};

/// Returns the options with which a program for this device must be compiled. `guard_bytes` is the size of the gap
/// behind every buffer.
runtime::CompileOptions compile_options(Device& device, bool tf32, std::int64_t guard_bytes = 0);

/// Runs one program on a GPU. Owns the resident tensors and, unless the caller provides one, the arena. A training step
/// does not allocate, free or wait, because scratch and workspaces of libraries are in the arena. With Launch::stream,
/// profilers see an NVTX range with the op's kind and the node's name around the work of each op; the range's name ends
/// in "again" if the op is recomputed. A captured CUDA graph has no such ranges. A call does not change the calling
/// thread's current CUDA device.
class Executor final : public runtime::Executor {
 public:
  /// Allocates and fills the memory that the program needs. The host's arena, i.e. the host memory for evicted values,
  /// is page-locked. Runs one step with a check after every node, so that an error can name the node. Finally captures
  /// the step.
  ///
  /// Throws DeviceError if memory does not suffice; the message names the bytes asked for, the free bytes, and a budget
  /// that would fit. Throws DeviceError, which names the node, if a kernel fails. Throws InputError for a program that
  /// was not compiled for this device. Throws core::Error if a resident tensor holds a token id or a class label that
  /// is out of range, or if the first step overwrites a sentinel (a byte of the gap behind a buffer).
  Executor(Device& device, runtime::Program program, const ExecutorOptions& options = {});
  ~Executor() override;
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;

  const runtime::Program& program() const override;

  /// Runs one training step and waits for its end. The device measures the seconds, from the first kernel to the end of
  /// the last. If `time_ops` is set, every instruction is timed, too, even with Launch::graph; for this, the step is
  /// executed a second time, unless it updates weights. Every run gives the same bits, with the exceptions that
  /// runtime::Executor::run() names. Throws DeviceError if the step fails. Throws core::Error, which names the node, if
  /// a sentinel was overwritten.
  runtime::StepReport run(bool time_ops = false) override;
  /// Returns what runtime::Executor::measured_peak_bytes() defines. Waits for the stream. Reads the whole arena, which
  /// takes 13 ms for 40 GB.
  std::int64_t measured_peak_bytes() override;
  std::int64_t measured_host_peak_bytes() override;

  runtime::ArenaView arena() override;

  /// Enqueues one step on the stream and returns without waiting.
  void enqueue() override;
  void wait() override;
  void reset() override;
  /// Takes effect with the next step that is enqueued. Only the first call waits for the stream.
  void set_dropout_seed(std::uint64_t seed) override;

  /// Copies the outputs to the host and returns them as runtime::Executor::outputs() does. Waits for the stream. The
  /// spans are valid until the next call.
  std::vector<runtime::Output> outputs() override;
  std::vector<runtime::SinkDigest> sink_digests() override;

  /// Returns the bytes that the constructor allocates on the device in addition to the arena, for resident tensors,
  /// digests of outputs and the state of the checks.
  static std::int64_t bytes_beside_arena(const runtime::Program& program, bool sentinels, int streams = 1);

 private:
  // `values` can be in host memory or in memory of the executor's device. If it is in memory of another GPU, these
  // functions throw InputError.
  void write_resident(std::int32_t index, const runtime::TensorView& values) override;
  void read_resident(std::int32_t index, const runtime::MutableTensorView& values) override;
  /// Copies the values to page-locked memory and from there, on a separate stream, to a buffer in device memory; the
  /// next step copies them to the tensor. Values that are already in device memory are copied directly to the buffer.
  /// The first call for a tensor waits until all enqueued steps and copies have ended, and then allocates the
  /// page-locked memory and the buffer, each as large as the tensor.
  void stage_resident(std::int32_t index, const runtime::TensorView& values) override;
  void read_output(const runtime::KeptOutput& kept, const runtime::MutableTensorView& values) override;

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn::cuda
