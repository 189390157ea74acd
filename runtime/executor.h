#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cairn/runtime/program.h"

namespace cairn::runtime {

/// The memory (arena) in which an executor keeps the tensors of a step. It is host memory for an executor on the CPU,
/// and GPU memory for one on a GPU.
struct ArenaView {
  std::byte* data = nullptr;  ///< aligned to 256 bytes
  std::int64_t bytes = 0;
};

struct ExecuteOptions {
  std::uint64_t seed = 1;  ///< seed of the initial values of resident tensors
  /// Whether to fill each buffer with bytes 0xFF (NaN) once it is freed, so that a read of freed memory shows in the
  /// result.
  bool poison = false;
  bool sentinels = false;  ///< whether to check after each step that no gap behind a buffer was written; needs
                           ///< Program::guard_bytes > 0
  /// If above 0, every element that an op computes, and every initial element of a resident tensor, is multiplied by 1
  /// + rounding_noise * u. Here, u is a number in [-1, 1) that is computed from a hash of node and element. The outputs
  /// then show the effect of rounding errors of this relative size (Monte Carlo arithmetic).
  double rounding_noise = 0;
  /// Function that is called before every instruction, for example to record a trace. May be empty.
  std::function<void(const Instruction&)> before_step;
  std::int64_t reserved_bytes = 0;  ///< bytes of host memory that the caller itself needs during execution
  ArenaView arena = {};             ///< memory for the arena; if its `data` is nullptr, the executor allocates memory
  /// Whether to fill StepReport::delays. The executor then keeps a file of the system open for each thread.
  bool delays = false;
  /// Whether to fill StepReport::op_delays if run() is called with time_ops. Reading the delays takes some microseconds
  /// per op, which are not part of the op's measured time.
  bool op_delays = false;
  /// Whether one thread or stream serves both directions of copies, so that all copies run one after another.
  bool half_duplex = false;
  /// Seed of random delays of the copies between the arena and the host's arena; 0: no delays. Each copy gets one of
  /// four delays at random: the steps wait until it is complete; it begins only when a step waits for it; it begins and
  /// continues after random times; or it is not delayed. For tests of the waits between steps and copies.
  std::uint64_t copy_delay_seed = 0;
};

/// How long other work on the machine delayed an execution. All fields are 0 on a GPU, and on systems that do not
/// report such delays.
struct Delays {
  double seconds = 0;            ///< total time in which threads of the process were ready to run but had no core
  std::int64_t preemptions = 0;  ///< involuntary context switches of the process
  int threads = 0;               ///< number of threads that ran or waited during the execution
};

/// Measurements of one execution of a program.
struct StepReport {
  double seconds = 0;
  /// Largest number of bytes in live buffers at one time: during a step, or between two steps, where copies start and
  /// end.
  std::int64_t live_peak_bytes = 0;
  std::int64_t host_live_peak_bytes = 0;  ///< largest number of bytes of evicted values on the host at one time
  /// Seconds of each instruction, if run() was called with time_ops. They include the wait for copies that must be
  /// complete before the instruction.
  std::vector<double> op_seconds;
  Delays delays;                  ///< delays of the step, if ExecuteOptions::delays was set
  std::vector<Delays> op_delays;  ///< delays of each instruction, if ExecuteOptions::op_delays and time_ops were set
};

/// The bytes of one kept output or resident gradient after a step.
struct Output {
  core::NodeId node = core::kNoNode;
  std::int32_t output = 0;  ///< index among the node's outputs
  std::span<const std::byte> bytes;
};

/// Digest (a 64-bit hash) of an output that is neither read nor kept. The output's buffer is freed right after its node
/// has run, so comparisons of outputs use the digest instead of the bytes.
struct SinkDigest {
  core::NodeId node = core::kNoNode;
  std::int32_t output = 0;
  std::uint64_t digest = 0;  ///< digest of the output's bytes after its node ran for the last time
  bool operator==(const SinkDigest&) const = default;
};

/// Tensor elements in the caller's memory, for Executor::set(), stage() and get(). T is `const void` where the executor
/// reads them, and `void` where it writes them.
template <class T>
struct BasicTensorView {
  T* data = nullptr;
  core::ElementType type = core::ElementType::f32;
  std::int64_t elements = 0;
  bool on_device = false;  ///< whether `data` points to memory of the executor's GPU, not of the host
  /// Shape of the caller's tensor, which must equal the shape of the executor's tensor. If it is empty, only the
  /// numbers of elements must be equal.
  core::Shape shape = {};
  /// A cudaStream_t of the caller, or nullptr. If `data` is GPU memory, the executor's copy waits for the work that was
  /// submitted to this stream before. With nullptr, all work that uses `data` must have ended before the call, because
  /// the copy may run on any stream.
  void* stream = nullptr;

  BasicTensorView() = default;
  BasicTensorView(T* data_in, core::ElementType type_in, std::int64_t elements_in, bool on_device_in = false)
      : data(data_in), type(type_in), elements(elements_in), on_device(on_device_in) {}
  BasicTensorView(T* data_in, core::ElementType type_in, core::Shape shape_in, bool on_device_in = false)
      : data(data_in),
        type(type_in),
        elements(core::element_count(shape_in)),
        on_device(on_device_in),
        shape(std::move(shape_in)) {}
  /// Views a contiguous range of float or std::int32_t, such as a std::vector.
  template <class Range>
  requires std::convertible_to < Range&&, std::span < std::conditional_t < std::is_const_v<T>,
  const float,
      float >>> BasicTensorView(Range&& range)  // NOLINT(google-explicit-constructor): a view, as std::span is
      : data(std::data(range)),
  type(core::ElementType::f32), elements(std::ssize(range)) {}
  template <class Range>
  requires std::convertible_to < Range&&, std::span < std::conditional_t < std::is_const_v<T>,
  const std::int32_t,
      std::int32_t >>> BasicTensorView(Range&& range)  // NOLINT(google-explicit-constructor)
      : data(std::data(range)),
  type(core::ElementType::i32), elements(std::ssize(range)) {}
};
using TensorView = BasicTensorView<const void>;
using MutableTensorView = BasicTensorView<void>;

/// Runs one program on the CPU or a GPU and owns its memory there. Allocates nothing within a step. Only one thread may
/// use an Executor at a time.
///
/// A program can have copies between the arena and a second arena in the host's memory (Program::copies). These copies
/// run at the same time as the instructions. Their duration changes neither results nor the number of bytes in memory.
///
/// Resident tensors (inputs, labels, weights, optimizer state) begin with values that a seed determines. set() and
/// get() replace and read these values; tensors are found by their name in the graph. The caller gives and gets fp32 or
/// int32 elements, even if the executor stores bf16. If an update keeps an fp32 copy of a bf16 weight
/// (core::Resident::master_of), get() reads the copy, and set() sets both the weight and the copy.
class Executor {
 public:
  virtual ~Executor() = default;

  virtual const Program& program() const = 0;

  /// Runs one training step and waits for its end. Every run gives the same bits, unless the step updates weights, or
  /// the caller has changed inputs or the dropout seed. Throws DeviceError if the step fails. With
  /// ExecuteOptions::sentinels, throws core::Error, which names the node, if an instruction has written into the gap
  /// behind a buffer.
  virtual StepReport run(bool time_ops = false) = 0;

  /// Starts one training step. On a GPU, this call returns at once, and the GPU executes the step meanwhile. On the
  /// host, the step is complete when this call returns.
  virtual void enqueue() = 0;
  /// Waits for the end of all steps that were enqueued. Throws what run() throws.
  virtual void wait() = 0;

  /// Copies values into a resident tensor, after all steps that were enqueued. Throws InputError, which names the
  /// tensor, for an unknown name, for another number of elements, shape or type, for an element that is NaN, and for an
  /// id or label that is out of range for an op that reads it. If `values` is in GPU memory, its elements are not
  /// checked, because the host cannot see them. The GPU then copies them, and converts them between fp32 and bf16.
  void set(std::string_view name, const TensorView& values);
  /// Throws the InputError that set() and stage() would throw. Changes nothing.
  void require_values(std::string_view name, const TensorView& values) const;
  /// Copies the elements of a resident tensor to `values`. Throws InputError as set() does.
  void get(std::string_view name, const MutableTensorView& values);
  /// Copies the elements of a kept output of the node named `node` to `values`, after all steps that were enqueued.
  /// Throws InputError as set() does, and if no step has run since the executor was created or reset.
  void get_output(std::string_view node, const MutableTensorView& values, std::int32_t output = 0);

  /// Sets the values that a resident tensor has from the next step on: they are copied into the tensor when that step
  /// begins. A GPU copies them to its memory while earlier steps run. The caller's memory may be reused once the call
  /// returns. Throws InputError as set() does.
  void stage(std::string_view name, const TensorView& values);

  /// Sets all resident tensors to their initial values.
  virtual void reset() = 0;

  /// Sets the seed of the dropouts in the following steps; different seeds drop different elements. With seed 0, which
  /// is the default, only the seeds in the graph decide which elements are dropped.
  virtual void set_dropout_seed(std::uint64_t seed) = 0;

  /// Returns the number of bytes of the arena up to the highest byte that the steps so far have written, rounded up to
  /// the plan's alignment. With ExecuteOptions::poison, the executor itself overwrites freed bytes, which no kernel
  /// need have written. In that case, returns the number of bytes up to the end of the highest range that a kernel was
  /// given. May read the whole arena.
  virtual std::int64_t measured_peak_bytes() = 0;

  /// Returns what measured_peak_bytes() returns, but for the host's arena, which holds the copies of evicted values.
  virtual std::int64_t measured_host_peak_bytes() = 0;

  /// Returns the memory of the arena. Between two training steps, the arena holds only kept outputs. So another
  /// executor can use the arena once these outputs have been read. Then measured_peak_bytes() also counts bytes that
  /// the other executor has written.
  virtual ArenaView arena() = 0;

  /// Returns every kept output (losses, gradients), ascending by node and output. For a node that writes a resident
  /// tensor, returns the bytes of that tensor. The spans are valid until the next call of a member.
  virtual std::vector<Output> outputs() = 0;

  /// Returns the digests of all outputs that are neither read nor kept, ascending by node and output.
  virtual std::vector<SinkDigest> sink_digests() = 0;

 protected:
  Executor() = default;
  Executor(const Executor&) = default;
  Executor& operator=(const Executor&) = default;

  /// Every executor says by this call whether a step has left its outputs in memory.
  void set_has_outputs(bool has) { has_outputs_ = has; }

 private:
  // These functions copy a whole resident tensor or kept output. `values` has as many elements as the tensor. If
  // `values` is in host memory, it has the tensor's type. If it is in GPU memory, it may also be fp32 for a bf16
  // tensor, or bf16 for an fp32 tensor.
  virtual void write_resident(std::int32_t index, const TensorView& values) = 0;
  virtual void read_resident(std::int32_t index, const MutableTensorView& values) = 0;
  virtual void stage_resident(std::int32_t index, const TensorView& values) = 0;
  virtual void read_output(const KeptOutput& kept, const MutableTensorView& values) = 0;

  void give(std::string_view name, const TensorView& values, bool staged);

  bool has_outputs_ = false;
};

/// Returns the index of the resident tensor named `name`. Throws InputError if no tensor or more than one has this
/// name. If none has, the message suggests a similar name if there is one.
std::int32_t find_resident(const core::Graph& graph, std::string_view name);

/// Returns the total size in bytes of all kept outputs of a graph, including kept outputs that are in resident tensors.
/// A copy of what Executor::outputs() returns takes this many bytes.
std::int64_t kept_bytes(const core::Graph& graph);

/// Throws MemoryError if an arena of `arena_bytes` bytes does not fit into host memory together with the graph's
/// resident tensors, copies of its outputs, and `reserved_bytes` that the caller needs. `least_bytes` is the number of
/// bytes that every arena for the graph needs, if known.
void require_host_memory(const core::Graph& graph, std::int64_t arena_bytes, std::int64_t reserved_bytes = 0,
                         std::int64_t least_bytes = 0);

/// Returns an executor that runs the program on this machine's CPU with core::thread_count() threads. Throws
/// MemoryError if arena and residents do not fit into memory. Throws InputError for an invalid program.
std::unique_ptr<Executor> host_executor(Program program, const ExecuteOptions& options = {});

}  // namespace cairn::runtime
