#include "cairn/cuda/support/executor.h"

#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/support/memory.h"
#include "cairn/core/support/text.h"
#include "cairn/cuda/internal/control.h"
#include "cairn/cuda/internal/copy_streams.h"
#include "cairn/cuda/internal/libraries.h"
#include "cairn/cuda/internal/machine.h"
#include "cairn/cuda/internal/staging.h"
#include "cairn/cuda/internal/step.h"
#include "cairn/cuda/internal/step_streams.h"
#include "cairn/runtime/overlap.h"
#include "cairn/runtime/support/element.h"
#include "cairn/runtime/support/execution.h"
#include "cairn/runtime/support/host_arena.h"
#include "cairn/runtime/support/residents.h"

namespace cairn::cuda {
namespace {

using runtime::Instruction;
using runtime::MutableTensorView;
using runtime::Program;
using runtime::TensorView;

constexpr std::int64_t kAddressAlignment = 16;  // in bytes; kernels access 16 bytes at a time
constexpr std::int64_t kArenaAlignment =
    256;  // in bytes; the alignment of cudaMalloc, which the workspaces of libraries need

/// Returns the bytes of device memory that are left free for CUDA itself, which can still allocate memory for CUDA
/// graphs and for kernels that libraries load on first use.
std::int64_t slack_bytes(const DeviceInfo& device) {
  constexpr std::int64_t kMost = std::int64_t{512} << 20;
  return std::min(kMost, device.total_bytes / 8);
}

/// Checks that every op has the scratch that its kernels need on this device. Returns whether any op needs scratch.
bool require_scratch(Device& device, const Program& program) {
  bool any = false;
  for (const Instruction& instruction : program.instructions) {
    const core::Op* op = program.graph.op(instruction.node);
    if (op == nullptr || instruction.recomputation) continue;
    const std::int64_t needed = device.scratch_bytes(program.graph, instruction.node, program.tf32);
    if (needed > instruction.scratch.bytes) {
      throw core::InputError(fmt::format(
          "node '{}': op {} needs {} bytes of scratch on this device, but the program gives it {}; compile "
          "it with cuda::compile_options",
          program.graph.name(instruction.node), core::to_string(op->kind), needed, instruction.scratch.bytes));
    }
    any = any || instruction.scratch.bytes > 0;
  }
  return any;
}

/// Throws InputError unless `memory` points to memory of the device `ordinal`. `what` names the memory in the message.
void require_here(const void* memory, int ordinal, const std::string& what) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, memory), what);
  if (attributes.type != cudaMemoryTypeDevice && attributes.type != cudaMemoryTypeManaged)
    throw core::InputError(fmt::format("{} must be in memory of a GPU, but the pointer is of the host", what));
  if (attributes.device != ordinal)
    throw core::InputError(
        fmt::format("{} must be in memory of device {}, which executes the step; it is in that of device {}", what,
                    ordinal, attributes.device));
}

Program checked(Device& device, Program program, const ExecutorOptions& options) {
  runtime::ExecuteOptions debug;
  debug.sentinels = options.sentinels;
  runtime::check_program(program, debug);
  const std::int64_t alignment = require_scratch(device, program) ? kArenaAlignment : kAddressAlignment;
  if (program.alignment % alignment != 0) {
    throw core::InputError(
        fmt::format("the program's alignment is {}, but a device needs a multiple of {}; plan with "
                    "an alignment of {}",
                    program.alignment, alignment, kArenaAlignment));
  }
  if (options.stream == cudaStreamLegacy) {
    throw core::InputError(
        "the legacy default stream cannot be captured; give a stream made with cudaStreamNonBlocking");
  }
  if (options.stream == cudaStreamPerThread) {
    throw core::InputError(
        "the per-thread default stream is another one in every thread; give a stream made with cudaStreamNonBlocking");
  }
  if (options.arena.data != nullptr) {
    runtime::require_arena(options.arena, program.arena_bytes);
    require_here(options.arena.data, device.info().ordinal, "the arena");
  }
  return program;
}

std::int64_t most_fill_bytes(const ExecutorOptions& options) {
  return options.most_fill_bytes > 0 ? options.most_fill_bytes : kMostFillBytes;
}

/// Returns the number of streams to which a step is issued. It is one with poison (buffers are filled with NaN after
/// their last use) and with guards (gaps behind buffers, in which stray writes are detected): then instructions also
/// write memory that other instructions use, so the order of instructions must be fixed. It is also one with
/// Launch::stream, so that profilers show work in the order of the program.
int streams_of(const ExecutorOptions& options) {
  const bool one = options.poison || options.sentinels || options.launch == Launch::stream;
  return one ? 1 : options.streams;
}

/// Gives a name to the work that is launched while the object exists. Profilers show this name (NVTX).
class Range {
 public:
  explicit Range(const std::string& name) { nvtxRangePushA(name.c_str()); }
  ~Range() { nvtxRangePop(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

/// Returns page-locked memory for the host's arena. Throws MemoryError or DeviceError if there is too little memory.
PinnedMemory host_arena_memory(std::int64_t bytes) {
  if (const std::int64_t available = core::available_memory(); bytes > available) {
    throw core::MemoryError(
        fmt::format("the copies on the host need {}, but only {} of memory are available; lower "
                    "the host's budget",
                    core::format_bytes(bytes), core::format_bytes(available)));
  }
  return pinned_memory(bytes);
}

/// A step that records an event before each instruction. These events give the time of each instruction.
struct TimedStep {
  std::vector<Event> events;  ///< an event before every instruction, and one at the end
  GraphExec replay;
};

}  // namespace

runtime::CompileOptions compile_options(Device& device, bool tf32, std::int64_t guard_bytes) {
  runtime::CompileOptions options;
  options.guard_bytes = guard_bytes;
  options.tf32 = tf32;
  options.address_alignment = kArenaAlignment;
  options.scratch_need = [&device, tf32](const core::Graph& graph, core::NodeId v) {
    return device.scratch_bytes(graph, v, tf32);
  };
  return options;
}

struct Executor::State {
  State(Device& device, Program program_in, const ExecutorOptions& options_in)
      : ordinal(device.info().ordinal),
        program(checked(device, std::move(program_in), options_in)),
        updates(runtime::updates_weights(program.graph)),
        options(options_in),
        lives(runtime::liveness(program, options.sentinels)),
        overlap(runtime::overlap(program, streams_of(options))),
        control(program, lives, overlap.streams, {}),
        resident_layout(program.graph),
        own_stream(options.stream == nullptr ? make_stream() : Stream()),
        stream(options.stream == nullptr ? own_stream.get() : static_cast<cudaStream_t>(options.stream)),
        machine(stream, most_fill_bytes(options)),
        library(device.libraries(), stream),
        step(machine, library, program, lives, options.poison, memory),
        copies(program, options.half_duplex) {
    const std::int64_t beside = resident_layout.bytes + control.bytes;
    runtime::require_memory({.arena = options.arena.data == nullptr ? program.arena_bytes : 0,
                             .beside = beside,
                             .slack = slack_bytes(device.info())},
                            device.free_bytes(), "on " + device.info().name);
    if (options.arena.data == nullptr) own_arena = device_memory(program.arena_bytes);
    memory.arena = options.arena.data == nullptr ? own_arena.get() : options.arena.data;
    residents = device_memory(resident_layout.bytes);
    host_memory = host_arena_memory(program.host_arena_bytes);
    if (program.host_arena_bytes > 0) host_arena = runtime::Arena(host_memory.get(), program.host_arena_bytes);
    control_memory = device_memory(control.bytes);
    control = Control(program, lives, overlap.streams, {control_memory.get(), control.bytes});
    set_addresses();
    fill_memory();
    upload_residents();
    begin = make_event(cudaEventDefault);
    end = make_event(cudaEventDefault);
    for (const Instruction& instruction : program.instructions) labels.push_back(describe(instruction));
    run_checking_every_node();
    if (updates) upload_residents();  // this first step has changed the weights
    for (int s = 1; s < overlap.streams; ++s)
      lanes.push_back(
          std::make_unique<Lane>(device, program, lives, memory, control.hash + s, most_fill_bytes(options)));
    if (options.launch == Launch::graph) replay = capture(nullptr);
  }

  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void set_addresses() {
    for (const std::int64_t offset : resident_layout.offsets) {
      memory.residents.push_back(offset < 0 ? nullptr : residents.get() + offset);
    }
    memory.host_arena = host_memory.get();
    memory.hash = control.hash;
    memory.dropout_key = control.dropout_key;
    memory.sink_digests = control.sinks;
    memory.guard_offsets = control.guard_offsets;
    memory.broken_guards = control.broken_guards;
  }

  void fill_memory() {
    if (program.arena_bytes > 0) machine.fill(memory.arena, runtime::kArenaPaint, program.arena_bytes);
    machine.fill(control_memory.get(), 0, control.bytes);
    std::vector<std::int64_t> offsets;
    for (const runtime::Guard& guard : lives.all_checked()) offsets.push_back(guard.offset);
    machine.upload(offsets.data(), std::ssize(offsets), control.guard_offsets);
  }

  void upload_residents() {
    const auto tensors = program.graph.residents();
    std::vector<std::byte> staging;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (memory.residents[i] == nullptr) continue;
      staging.resize(static_cast<std::size_t>(tensors[i].bytes()));
      const auto index = static_cast<std::int32_t>(i);
      runtime::fill_resident(tensors[i], index, options.seed, staging);
      runtime::check_indices(program.graph, index, staging);
      machine.upload(staging.data(), std::ssize(staging), memory.residents[i]);
    }
  }

  std::string describe(const Instruction& instruction) const {
    const core::Op* op = program.graph.op(instruction.node);
    return fmt::format("{} {}{}", op == nullptr ? "synthetic" : core::to_string(op->kind),
                       program.graph.name(instruction.node), instruction.recomputation ? " again" : "");
  }

  [[noreturn]] void fail_at(const Instruction& instruction, const char* what) const {
    throw core::DeviceError(fmt::format("step {}, {}: {}", instruction.step, describe(instruction), what));
  }

  void issue(const Instruction& instruction, bool dirty_scratch = false) { issue(step, instruction, dirty_scratch); }

  void issue(MachineStep& on, const Instruction& instruction, bool dirty_scratch) {
    const Range range(labels[static_cast<std::size_t>(instruction.step)]);
    try {
      on.issue(instruction, dirty_scratch);
    } catch (const core::DeviceError& error) {
      fail_at(instruction, error.what());
    }
  }

  /// Issues three things in this order: the waits for copies that must be complete before the instruction, the
  /// instruction, and the copies that start when the instruction has ended.
  void issue_with_copies(const Instruction& instruction, bool dirty_scratch = false) {
    end_copies(instruction.step);
    issue(instruction, dirty_scratch);
    copies.start(instruction.step, stream, step);
  }

  void end_copies(std::int64_t before_step) {
    copies.wait(before_step, stream);
    step.end_copies(before_step);
  }

  void begin_issue() {
    step.begin();
    copies.begin();
  }

  /// Issues all instructions of a training step. Unless `events` is nullptr, records event k before the instruction of
  /// the schedule's step k, and the last event after all instructions.
  void issue_all(const std::vector<Event>* events) {
    record(begin);
    begin_issue();
    try {
      for (const Instruction& instruction : program.instructions) {
        if (events != nullptr) record((*events)[static_cast<std::size_t>(instruction.step)]);
        issue_with_copies(instruction);
      }
      end_copies(std::ssize(program.instructions));
    } catch (...) {
      copies.join_after_error(stream);
      throw;
    }
    if (events != nullptr) record(events->back());
    record(end);
  }

  /// Issues all instructions of a step to several streams, during a capture, as `overlap` assigns them.
  void issue_overlapped() {
    record(begin);
    step.begin();
    Fork fork(stream, lanes);
    std::map<std::int64_t, Event>
        done;  // for each instruction for which others wait, an event that is recorded behind it
    for (const std::int64_t awaited : overlap.waits) done.try_emplace(awaited);
    for (const Instruction& instruction : program.instructions) {
      const auto s = static_cast<std::size_t>(overlap.stream[static_cast<std::size_t>(instruction.step)]);
      const cudaStream_t own = s == 0 ? stream : lanes[s - 1]->stream.get();
      for (const std::int64_t awaited : overlap.waits_of(instruction.step))
        check(cudaStreamWaitEvent(own, done.at(awaited).get(), 0), "a wait within a step");
      issue(s == 0 ? step : lanes[s - 1]->step, instruction, false);
      const auto found = done.find(instruction.step);
      if (found == done.end()) continue;
      found->second = make_event();
      check(cudaEventRecord(found->second.get(), own), "an event within a step");
    }
    fork.join();
    record(end);
  }

  void record(const Event& event) const {
    // In a captured CUDA graph, an event must be external: only then does a replay record the time at which it reaches
    // the event.
    const unsigned flags = options.launch == Launch::graph ? cudaEventRecordExternal : cudaEventRecordDefault;
    check(cudaEventRecordWithFlags(event.get(), stream, flags), "an event");
  }

  /// Runs the first step, with a check after every node. This loads the kernels, which must not be loaded during a
  /// capture. If a kernel fails, the error can name the node, which would not be known after a replay of the whole CUDA
  /// graph.
  void run_checking_every_node() {
    begin_issue();
    wait();
    for (const Instruction& instruction : program.instructions) {
      issue_with_copies(instruction, true);
      const cudaError_t status = cudaStreamSynchronize(stream);
      if (status == cudaSuccess) continue;
      cudaGetLastError();
      fail_at(instruction, cudaGetErrorString(status));
    }
    end_copies(std::ssize(program.instructions));
    wait();
    require_whole_guards();
  }

  GraphExec capture(const std::vector<Event>* events) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "the capture of a step");
    cudaGraph_t captured = nullptr;
    try {
      // To time ops one by one, they must run one after another, so a step with events runs on one stream.
      if (lanes.empty() || events != nullptr) {
        issue_all(events);
      } else {
        issue_overlapped();
      }
    } catch (...) {
      cudaStreamEndCapture(stream, &captured);
      CapturedGraph dropped(captured);
      cudaGetLastError();
      throw;
    }
    check(cudaStreamEndCapture(stream, &captured), "the capture of a step");
    const CapturedGraph graph(captured);
    cudaGraphExec_t exec = nullptr;
    check(cudaGraphInstantiate(&exec, graph.get(), 0), "the graph of a step");
    GraphExec owner(exec);
    check(cudaGraphUpload(exec, stream), "the graph of a step");
    check(cudaStreamSynchronize(stream), "the graph of a step");
    return owner;
  }

  void enqueue() {
    begin_step();
    if (options.launch == Launch::graph) {
      check(cudaGraphLaunch(replay.get(), stream), "the replay of a step");
    } else {
      issue_all(nullptr);
    }
  }

  void begin_step() {
    if (options.stop != nullptr && options.stop->load(std::memory_order_relaxed))
      throw core::InterruptedError("interrupted between two executions");
    for (auto& [index, staging] : staged) staging.take(stream);
  }

  /// Returns the Staging of a resident tensor, or of the dropout key if `index` is kDropoutKey. A Staging brings new
  /// values of the tensor to the device while earlier steps run. The first call for an index makes the Staging.
  Staging& staging(std::int32_t index) {
    const auto it = staged.find(index);
    if (it != staged.end()) return it->second;
    wait_for_all();  // if the allocation below fails, memory is freed that the streams may still use
    const bool is_key = index == kDropoutKey;
    std::byte* target = is_key ? reinterpret_cast<std::byte*>(control.dropout_key) : resident(index);
    const auto bytes = is_key ? std::int64_t{sizeof(std::uint64_t)} : resident_bytes(index);
    return staged.emplace(std::piecewise_construct, std::tuple(index), std::tuple(target, bytes)).first->second;
  }

  void stage(std::int32_t index, const TensorView& values) {
    if (!values.on_device) return stage(index, values.data);
    require_elements_here(values, resident_name(index));
    Staging& place = staging(index);
    place.upload_by([&](std::byte* to) { copy_from(*uploads, values, to, resident_type(index)); }, upload_stream);
  }
  void stage(std::int32_t index, const void* values) {
    Staging& place = staging(index);
    place.upload(values, upload_stream);
  }

  /// Waits until all enqueued steps and all uploads of staged values have ended. The first call creates the upload
  /// stream.
  void wait_for_all() {
    if (!uploads) {
      own_upload_stream = make_stream();
      uploads.emplace(own_upload_stream.get());
      upload_stream = own_upload_stream.get();
    }
    wait();
    check(cudaStreamSynchronize(upload_stream), "waiting for staged values");
  }

  std::byte* resident(std::int32_t index) const { return memory.residents[static_cast<std::size_t>(index)]; }
  std::int64_t resident_bytes(std::int32_t index) const {
    return program.graph.residents()[static_cast<std::size_t>(index)].bytes();
  }

  const std::string& resident_name(std::int32_t index) const {
    return program.graph.residents()[static_cast<std::size_t>(index)].name;
  }
  core::ElementType resident_type(std::int32_t index) const {
    return program.graph.residents()[static_cast<std::size_t>(index)].type;
  }

  /// Throws InputError, which names the tensor, unless `values` is in memory of the executor's device.
  template <class T>
  void require_elements_here(const runtime::BasicTensorView<T>& values, const std::string& tensor) const {
    if (values.elements > 0) require_here(values.data, ordinal, fmt::format("the array for '{}'", tensor));
  }

  /// Enqueues a copy of the caller's `values`, which must be in device memory, to a tensor of type `type` at `to`.
  static void copy_from(const Machine& on, const TensorView& values, void* to, core::ElementType type) {
    wait_for(values.stream, on.stream());
    copy_elements(on, values.data, values.type, to, type, values.elements);
  }

  /// Copies a tensor of type `type` to the caller's memory, which can be host or device memory, and waits for the copy.
  void copy_to(const MutableTensorView& values, const std::string& tensor, const std::byte* from,
               core::ElementType type) const {
    wait();
    if (!values.on_device)
      return machine.download(from, values.elements * core::element_bytes(type), static_cast<std::byte*>(values.data));
    require_elements_here(values, tensor);
    wait_for(values.stream, stream);
    copy_elements(machine, from, type, values.data, values.type, values.elements);
    wait();
  }

  /// Makes the stream `copies` wait for all work that was submitted to `other`, a stream of the caller, before this
  /// call.
  static void wait_for(void* other, cudaStream_t copies) {
    if (other == nullptr || other == copies) return;
    const Event reached = make_event();
    check(cudaEventRecord(reached.get(), static_cast<cudaStream_t>(other)), "an event of the caller's stream");
    check(cudaStreamWaitEvent(copies, reached.get(), 0), "waiting for the caller's stream");
  }

  double run_timed() {
    enqueue();
    wait();
    return seconds_between(begin, end);
  }

  TimedStep timed_step() {
    TimedStep result;
    for (std::size_t i = 0; i <= program.instructions.size(); ++i)
      result.events.push_back(make_event(cudaEventDefault));
    if (options.launch == Launch::graph) result.replay = capture(&result.events);
    return result;
  }

  std::vector<double> time_every_op() {
    if (!timed) timed = timed_step();
    begin_step();
    if (options.launch == Launch::graph) {
      check(cudaGraphLaunch(timed->replay.get(), stream), "the replay of a timed step");
    } else {
      issue_all(&timed->events);
    }
    wait();
    std::vector<double> seconds;
    for (std::size_t i = 0; i < program.instructions.size(); ++i) {
      seconds.push_back(seconds_between(timed->events[i], timed->events[i + 1]));
    }
    return seconds;
  }

  static double seconds_between(const Event& from, const Event& to) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, from.get(), to.get()), "the time between events");
    return static_cast<double>(milliseconds) / 1e3;
  }

  void wait() const {
    const cudaError_t status = cudaStreamSynchronize(stream);
    if (status == cudaSuccess) return;
    cudaGetLastError();
    throw core::DeviceError(
        fmt::format("a kernel of the step failed: {}; every node ran once before, one by one, so "
                    "look for memory that changed since",
                    cudaGetErrorString(status)));
  }

  void require_whole_guards() {
    std::vector<std::uint8_t> broken(lives.all_checked().size());
    if (!broken.empty()) machine.download(memory.broken_guards, std::ssize(broken), broken.data());
    for (const Instruction& instruction : program.instructions) {
      const auto guards = lives.checked(instruction.step);
      const auto first = static_cast<std::size_t>(guards.empty() ? 0 : lives.checked_begin(instruction.step));
      for (std::size_t i = 0; i < guards.size(); ++i) {
        if (broken[first + i] != 0) throw core::Error(runtime::broken_guard_message(program, instruction, guards[i]));
      }
    }
  }

  std::int64_t touched() {
    step.find_touched(memory.arena, program.arena_bytes, runtime::kArenaPaint, control.ends);
    std::vector<std::int64_t> ends(static_cast<std::size_t>(control.parts));
    machine.download(control.ends, control.parts, ends.data());
    return ends.empty() ? 0 : *std::max_element(ends.begin(), ends.end());
  }

  static constexpr std::int32_t kDropoutKey =
      -1;  ///< used in place of the index of a resident tensor; stands for the dropout key

  int ordinal;
  Program program;
  bool updates;  ///< whether a step changes weights
  ExecutorOptions options;
  runtime::Liveness lives;
  runtime::Overlap overlap;
  Control control;
  runtime::ResidentLayout resident_layout;
  Stream own_stream;
  cudaStream_t stream;
  Machine machine;
  StreamLibrary library;
  DeviceMemory own_arena, residents, control_memory;
  PinnedMemory host_memory;
  runtime::Arena host_arena{0};  ///< the host's arena, whose bytes are in host_memory
  runtime::device::StepMemory memory;
  MachineStep step;
  CopyStreams copies;
  std::vector<std::unique_ptr<Lane>> lanes;  ///< streams 1, 2, ... of `overlap`; stream 0 is `stream`
  Event begin, end;
  std::vector<std::string> labels;  ///< name of every instruction, for profilers
  GraphExec replay;
  std::optional<TimedStep> timed;
  Stream own_upload_stream;
  std::optional<Machine>
      uploads;  ///< copies staged values to the device; made when values are staged for the first time
  cudaStream_t upload_stream = nullptr;  ///< stream of `uploads`
  std::map<std::int32_t, Staging> staged;
  std::vector<std::vector<std::byte>> output_bytes;  ///< the bytes to which the result of outputs() refers
  // The destructors of these objects wait for the streams. They run first, even if the constructor fails.
  WaitAtEnd wait_at_end{stream};
  WaitAtEnd wait_for_uploads{upload_stream};
};

Executor::Executor(Device& device, Program program, const ExecutorOptions& options) {
  const OnDevice on(device.info().ordinal);
  state_ = std::make_unique<State>(device, std::move(program), options);
}
Executor::~Executor() {
  if (state_ == nullptr) return;  // the object was moved from
  const OnDevice on(state_->ordinal, std::nothrow);
  state_.reset();
}
Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&& other) noexcept {
  runtime::Executor::operator=(other);
  std::swap(state_, other.state_);
  return *this;
}

const Program& Executor::program() const { return state_->program; }

runtime::StepReport Executor::run(bool time_ops) {
  const OnDevice on(state_->ordinal);
  set_has_outputs(false);
  runtime::StepReport report;
  // To time the ops, the step is executed a second time. But a step that updates weights must be executed only once per
  // call. If its ops are timed, the time of the whole step is therefore the sum of the times of the ops.
  if (!time_ops || !state_->updates) report.seconds = state_->run_timed();
  if (time_ops) report.op_seconds = state_->time_every_op();
  if (time_ops && state_->updates)
    report.seconds = std::accumulate(report.op_seconds.begin(), report.op_seconds.end(), 0.0);
  state_->require_whole_guards();
  set_has_outputs(true);
  report.live_peak_bytes = state_->lives.live_peak_bytes;
  report.host_live_peak_bytes = state_->lives.host_live_peak_bytes;
  return report;
}

std::int64_t Executor::measured_peak_bytes() {
  const OnDevice on(state_->ordinal);
  return runtime::measured_peak_bytes(state_->program, state_->options.poison, state_->lives.high_water_bytes,
                                      state_->touched());
}

std::int64_t Executor::measured_host_peak_bytes() {
  const OnDevice on(state_->ordinal);
  state_->wait();
  return runtime::measured_peak_bytes(state_->program, state_->options.poison, state_->lives.host_high_water_bytes,
                                      state_->host_arena.touched());
}

runtime::ArenaView Executor::arena() { return {state_->memory.arena, state_->program.arena_bytes}; }

void Executor::enqueue() {
  const OnDevice on(state_->ordinal);
  state_->enqueue();
  set_has_outputs(true);
}

void Executor::wait() {
  const OnDevice on(state_->ordinal);
  state_->wait();
  state_->require_whole_guards();
}

void Executor::reset() {
  const OnDevice on(state_->ordinal);
  state_->wait();
  for (auto& [index, staging] : state_->staged) {
    if (index != State::kDropoutKey) staging.drop();
  }
  set_has_outputs(false);
  state_->upload_residents();
}

void Executor::set_dropout_seed(std::uint64_t seed) {
  const OnDevice on(state_->ordinal);
  const std::uint64_t key = runtime::dropout_key(seed);
  state_->stage(State::kDropoutKey, &key);
}

void Executor::write_resident(std::int32_t index, const TensorView& values) {
  const OnDevice on(state_->ordinal);
  state_->wait();
  if (const auto staging = state_->staged.find(index); staging != state_->staged.end()) staging->second.drop();
  std::byte* const to = state_->resident(index);
  if (!values.on_device)
    return state_->machine.upload(static_cast<const std::byte*>(values.data), state_->resident_bytes(index), to);
  state_->require_elements_here(values, state_->resident_name(index));
  State::copy_from(state_->machine, values, to, state_->resident_type(index));
  state_->wait();
}

void Executor::read_resident(std::int32_t index, const MutableTensorView& values) {
  const OnDevice on(state_->ordinal);
  state_->copy_to(values, state_->resident_name(index), state_->resident(index), state_->resident_type(index));
}

void Executor::stage_resident(std::int32_t index, const TensorView& values) {
  const OnDevice on(state_->ordinal);
  state_->stage(index, values);
}

void Executor::read_output(const runtime::KeptOutput& kept, const MutableTensorView& values) {
  const OnDevice on(state_->ordinal);
  const core::Op& op = *state_->program.graph.op(kept.node);
  state_->copy_to(values, state_->program.graph.name(kept.node), state_->step.address(kept.location),
                  core::output_type(op, kept.output));
}

std::vector<runtime::Output> Executor::outputs() {
  const OnDevice on(state_->ordinal);
  state_->wait();
  state_->output_bytes.clear();
  std::vector<runtime::Output> outputs;
  for (const runtime::KeptOutput& kept : state_->program.kept) {
    auto& bytes = state_->output_bytes.emplace_back(static_cast<std::size_t>(kept.location.bytes));
    state_->machine.download(state_->step.address(kept.location), std::ssize(bytes), bytes.data());
    outputs.push_back({kept.node, kept.output, bytes});
  }
  return outputs;
}

std::vector<runtime::SinkDigest> Executor::sink_digests() {
  const OnDevice on(state_->ordinal);
  state_->wait();
  std::vector<runtime::SinkDigest> sinks = runtime::sinks_of(state_->program.graph);
  std::vector<std::uint64_t> digests(sinks.size());
  state_->machine.download(state_->memory.sink_digests, std::ssize(digests), digests.data());
  for (std::size_t i = 0; i < sinks.size(); ++i) sinks[i].digest = digests[i];
  return sinks;
}

std::int64_t Executor::bytes_beside_arena(const Program& program, bool sentinels, int streams) {
  const Control control(program, runtime::liveness(program, sentinels), streams, {});
  return runtime::ResidentLayout(program.graph).bytes + control.bytes;
}

}  // namespace cairn::cuda
