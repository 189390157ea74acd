#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cairn/core/host_device.h"
#include "cairn/core/machine/support/team.h"
#include "cairn/core/precision.h"
#include "cairn/runtime/device/kernels/synthetic.h"
#include "cairn/runtime/device/ops.h"
#include "cairn/runtime/program.h"
#include "cairn/runtime/support/execution.h"

namespace cairn::runtime::device {

/// Checks guards. A guard is a gap behind a buffer; all of its bytes were set to `byte`. Sets broken[i] = 1 if the
/// guard at arena + offsets[i] holds another byte, which shows that a kernel has written beyond its buffer. Otherwise
/// leaves broken[i] as it is.
struct CheckGuards {
  static constexpr int kThreads = 32;
  const std::byte* arena;
  const std::int64_t* offsets;
  std::int64_t bytes;  ///< bytes of each guard
  std::byte byte;
  std::uint8_t* broken;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    const std::byte* guard = arena + offsets[index];
    int wrong = 0;
    for (std::int64_t i = team.rank(); i < bytes; i += team.size()) wrong |= guard[i] != byte ? 1 : 0;
    wrong = team.reduce(wrong, core::Max());
    if (team.rank() == 0 && wrong != 0) broken[index] = 1;
  }
};

/// Finds the last byte in part `index` of the arena that differs from `paint`, the byte with which the arena was
/// filled. The parts have kPart bytes each. Sets ends[index] to the offset in the arena directly behind the byte found,
/// or to 0 if all bytes of the part are equal to `paint`.
struct FindTouched {
  static constexpr int kThreads = 256;
  static constexpr std::int64_t kPart = 1 << 20;
  const std::byte* arena;
  std::int64_t bytes;
  std::byte paint;
  std::int64_t* ends;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    const std::int64_t begin = index * kPart;
    const std::int64_t end = begin + kPart < bytes ? begin + kPart : bytes;
    std::int64_t last = 0;
    const std::int64_t words = (end - begin) / 8;
    const auto* values = reinterpret_cast<const std::uint64_t*>(arena + begin);
    const std::uint64_t painted = 0x0101010101010101ULL * static_cast<std::uint64_t>(paint);
    for (std::int64_t j = team.rank(); j < words; j += team.size()) {
      if (values[j] != painted) last = begin + 8 * (j + 1);
    }
    for (std::int64_t i = begin + 8 * words + team.rank(); i < end; i += team.size()) {
      if (arena[i] != paint) last = i + 1;
    }
    last = team.reduce(last, core::Max());
    if (team.rank() != 0) return;
    while (last > begin && arena[last - 1] == paint)
      --last;  // searches on byte by byte within the last word that differs
    ends[index] = last > begin ? last : 0;
  }
};

/// Returns the number of parts of an arena of `bytes` bytes. find_touched() sets one entry of `ends` for each part.
inline std::int64_t touched_parts(std::int64_t bytes) { return blocks_of(bytes, FindTouched::kPart); }

/// Sets ends[i] for every part i of the arena, as FindTouched does. The largest of these values is the end of the
/// memory that was written since the arena was filled with `paint`.
template <class Machine>
void find_touched(Machine& machine, const std::byte* arena, std::int64_t bytes, int paint, std::int64_t* ends) {
  if (bytes > 0) machine.launch(FindTouched{arena, bytes, static_cast<std::byte>(paint), ends}, touched_parts(bytes));
}

/// Addresses of a program's tensors in a machine's memory.
struct StepMemory {
  std::byte* arena = nullptr;
  std::byte* host_arena = nullptr;    ///< the host's arena (Program::copies); the machine can fill this memory
  std::vector<std::byte*> residents;  ///< nullptr for tensors that no op of the step uses
  HashMemory* hash = nullptr;
  const std::uint64_t* dropout_key = nullptr;   ///< dropout_key() of the step's seed; nullptr stands for the key 0
  std::uint64_t* sink_digests = nullptr;        ///< digests of the outputs of sinks_of(graph), in the same order
  const std::int64_t* guard_offsets = nullptr;  ///< offsets of the guards of lives.all_checked(), in the same order
  /// One byte for each entry of guard_offsets. Step::begin() sets all bytes to 0. Step::issue() sets the byte of a
  /// guard to 1 if a kernel has overwritten the guard.
  std::uint8_t* broken_guards = nullptr;
};

/// Issues a program's instructions to a Machine one by one: their kernels, and the fills and checks of memory before
/// and after the kernels. Allocates nothing on the machine and waits for nothing, so that a training step can be
/// captured as a CUDA graph.
class Step {
 public:
  /// Keeps references to its arguments, which must outlive this object.
  Step(const Program& program, const Liveness& lives, bool poison, const StepMemory& memory, Library& library)
      : program_(program),
        lives_(lives),
        poison_(poison),
        memory_(memory),
        library_(library),
        sinks_(sinks_of(program.graph)) {}

  template <class Machine>
  void begin(Machine& machine) const {
    poison(machine, memory_.arena, program_.arena_bytes);
    poison(machine, memory_.host_arena, program_.host_arena_bytes);
    const auto guards = static_cast<std::int64_t>(lives_.all_checked().size());
    if (guards > 0) machine.fill(memory_.broken_guards, 0, guards);
  }

  /// Issues one instruction, but no copies between device and host. With `dirty_scratch`, the scratch of an op is
  /// overwritten before the op runs. This has two effects: all scratch counts as written, and a kernel that reads
  /// scratch before writing it gives a wrong result, which checks can notice.
  template <class Machine>
  void issue(Machine& machine, const Instruction& instruction, bool dirty_scratch = false) {
    const bool synthetic = program_.graph.op(instruction.node) == nullptr;
    if ((dirty_scratch || synthetic) && instruction.scratch.kind == Location::Kind::arena &&
        instruction.scratch.bytes > 0) {
      machine.fill(address(instruction.scratch), kDirtyScratch, instruction.scratch.bytes);
    }
    for (const Guard& guard : lives_.filled_before(instruction.step)) fill_guard(machine, guard);
    const core::Op* op = program_.graph.op(instruction.node);
    if (op != nullptr) {
      run_kernel(machine, *op, instruction);
    } else {
      run_synthetic_kernel(machine, instruction);
    }
    check_guards(machine, instruction);
    digest_sinks(machine, instruction);
    for (const Location& dying : program_.frees_of(instruction)) poison(machine, address(dying), dying.reserved);
    for (const Guard& guard : lives_.filled_after(instruction.step)) fill_guard(machine, guard);
    for (const Copy& copy : program_.copies_after(instruction.step)) {
      if (!copy.is_evict()) poison(machine, address(copy.device), copy.device.reserved);
    }
  }

  /// Poisons buffers (fills them with kPoison) after copies have freed them. The copies are those that must be complete
  /// before the instruction of `step` begins. Before this call, the machine must have been told to wait for these
  /// copies.
  template <class Machine>
  void end_copies(Machine& machine, std::int64_t step) const {
    for (const std::int32_t due : program_.copies_due(step)) {
      const Copy& copy = program_.copies[static_cast<std::size_t>(due)];
      if (copy.is_evict()) poison(machine, address(copy.device), copy.device.reserved);
      if (copy.frees_host) poison(machine, address(copy.host), copy.host.reserved);
    }
  }

  std::byte* address(const Location& location) const {
    switch (location.kind) {
      case Location::Kind::arena:
        return memory_.arena + location.offset;
      case Location::Kind::resident:
        return memory_.residents[static_cast<std::size_t>(location.resident)];
      case Location::Kind::host:
        return memory_.host_arena + location.offset;
      case Location::Kind::none:
        break;
    }
    return nullptr;
  }

 private:
  template <class Machine>
  void run_kernel(Machine& machine, const core::Op& op, const Instruction& instruction) {
    shapes_ = core::arg_shapes(program_.graph, instruction.node);
    tensors_.clear();
    for (std::uint32_t i = 0; i < instruction.input_count; ++i) {
      const Location& input = program_.inputs[instruction.input_begin + i];
      tensors_.push_back({address(input), core::type_of(program_.graph, op.args[i]), shapes_[i]});
    }
    const auto outputs = program_.outputs_of(instruction);
    more_outputs_.clear();
    for (const Location& output : outputs.subspan(1)) more_outputs_.push_back(address(output));
    Call call{op,
              tensors_,
              address(outputs[0]),
              library_,
              program_.tf32,
              Scratch(address(instruction.scratch), instruction.scratch.bytes),
              more_outputs_,
              memory_.dropout_key};
    run_op(machine, call);
  }

  template <class Machine>
  void run_synthetic_kernel(Machine& machine, const Instruction& instruction) {
    inputs_.clear();
    outputs_.clear();
    for (const Location& input : program_.inputs_of(instruction)) inputs_.push_back({address(input), input.bytes});
    for (const Location& output : program_.outputs_of(instruction)) outputs_.push_back({address(output), output.bytes});
    run_synthetic(machine, instruction.node, inputs_, outputs_, memory_.hash);
  }

  template <class Machine>
  void poison(Machine& machine, std::byte* memory, std::int64_t bytes) const {
    if (poison_ && bytes > 0) machine.fill(memory, kPoison, bytes);
  }

  template <class Machine>
  void fill_guard(Machine& machine, const Guard& guard) const {
    machine.fill(memory_.arena + guard.offset, kSentinel, program_.guard_bytes);
  }

  template <class Machine>
  void check_guards(Machine& machine, const Instruction& instruction) const {
    const auto count = static_cast<std::int64_t>(lives_.checked(instruction.step).size());
    if (count == 0) return;
    const std::int64_t first = lives_.checked_begin(instruction.step);
    machine.launch(CheckGuards{memory_.arena, memory_.guard_offsets + first, program_.guard_bytes,
                               static_cast<std::byte>(kSentinel), memory_.broken_guards + first},
                   count);
  }

  template <class Machine>
  void digest_sinks(Machine& machine, const Instruction& instruction) const {
    for (const SinkDigest& sink : std::ranges::equal_range(sinks_, instruction.node, {}, &SinkDigest::node)) {
      const Location& output = program_.outputs_of(instruction)[sink.output];
      synthetic_digest(machine, {address(output), output.bytes}, memory_.hash,
                       memory_.sink_digests + (&sink - sinks_.data()));
    }
  }

  const Program& program_;
  const Liveness& lives_;
  bool poison_;
  const StepMemory& memory_;
  Library& library_;
  std::vector<SinkDigest> sinks_;
  std::vector<core::Shape> shapes_;  ///< shapes of the current instruction's arguments
  std::vector<Tensor> tensors_;
  std::vector<void*> more_outputs_;
  std::vector<Bytes> inputs_;  ///< inputs of the current node, if it has no op
  std::vector<OutputBytes> outputs_;
};

}  // namespace cairn::runtime::device
