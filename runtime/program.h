#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"

namespace cairn::runtime {

/// Where an operand is: at an offset in the arena, or in a resident tensor (one that stays in memory outside the arena,
/// such as a parameter), or in the host's arena, which holds the copies of evicted values.
struct Location {
  enum class Kind : std::uint8_t { none, arena, resident, host };
  Kind kind = Kind::none;
  std::int64_t offset = 0;     ///< offset in bytes in the arena, or in the host's arena
  std::int32_t resident = -1;  ///< index of the resident tensor, or -1
  std::int64_t bytes = 0;      ///< exact size of the tensor, not rounded up
  std::int64_t reserved = 0;   ///< bytes of the tensor's buffer in the plan
};

/// Where one output of a step is.
struct OutputLocation : Location {
  /// Reserved bytes of the input buffer whose storage the output takes over, or 0 if it takes over no buffer. A buffer
  /// whose storage is taken over is not in Program::frees.
  std::int64_t taken_bytes = 0;
};

/// One step of a schedule, which runs the op of `node`. If the node has no op, the step runs the synthetic kernel,
/// which fills the outputs with a hash of the inputs.
struct Instruction {
  core::NodeId node = core::kNoNode;
  std::int64_t step = 0;
  bool recomputation = false;  ///< whether an earlier step of the schedule runs the same node
  /// Index in Program::inputs of the op's first argument or, if the node has no op, of the node's first input.
  std::uint32_t input_begin = 0;
  std::uint32_t input_count = 0;
  std::uint32_t output_begin = 0;  ///< index in Program::outputs of the node's first output; its further outputs follow
  std::uint32_t output_count = 0;
  Location scratch;
  std::uint32_t free_begin = 0;  ///< index in Program::frees of the first buffer that is freed after this step
  std::uint32_t free_count = 0;
};

/// An output that the graph marks as kept, and where it is after the last step, when it can be read.
struct KeptOutput {
  core::NodeId node = core::kNoNode;
  std::int32_t output = 0;  ///< index among the node's outputs
  Location location;
};

/// A copy of a value between the arena and the host's arena (core::Transfers). A copy starts when the instruction of
/// step `start` has ended; a fetch also waits until its evict has filled the host's bytes. A copy is complete before
/// the instruction of step `finish` begins, or before the end of the training step if there is no such instruction.
struct Copy {
  enum class Direction : std::uint8_t { evict, fetch };
  Direction direction = Direction::evict;
  core::NodeId node = core::kNoNode;  ///< node that computes the value
  Location device, host;
  std::int64_t start = 0;
  std::int64_t finish = 0;
  std::int32_t source = -1;  ///< for a fetch, the index in Program::copies of its evict
  /// For a fetch, whether the host's bytes are free once it is complete, because no later fetch reads them. An evict
  /// always frees the device's bytes.
  bool frees_host = false;

  bool is_evict() const { return direction == Direction::evict; }
};

/// A schedule and its plan, compiled to instructions with addresses. Every backend executes programs of this form.
struct Program {
  core::Graph graph;
  std::vector<Instruction> instructions;
  std::vector<Location> inputs;
  std::vector<OutputLocation> outputs;
  std::vector<Location> frees;
  std::vector<KeptOutput> kept;  ///< every kept output, ascending by node and output
  /// The copies between device and host in the order in which the link carries them (core/support/timeline.h). An evict
  /// comes before its fetches.
  std::vector<Copy> copies;
  std::vector<std::int32_t> copies_by_finish;  ///< indices of `copies`, ascending by Copy::finish, then by index
  std::int64_t arena_bytes = 0;                ///< size of the arena that the plan needs
  std::int64_t host_arena_bytes = 0;           ///< size of the host's arena that the plan needs
  std::int64_t alignment = 1;
  std::int64_t guard_bytes = 0;
  bool tf32 = false;  ///< whether matrix products may round fp32 factors to TF32

  /// Returns the arguments of an instruction's op. If the node has no op, returns the node's inputs.
  std::span<const Location> inputs_of(const Instruction& i) const {
    return std::span(inputs).subspan(i.input_begin, i.input_count);
  }
  std::span<const OutputLocation> outputs_of(const Instruction& i) const {
    return std::span(outputs).subspan(i.output_begin, i.output_count);
  }
  /// Returns the buffers that are freed after an instruction.
  std::span<const Location> frees_of(const Instruction& i) const {
    return std::span(frees).subspan(i.free_begin, i.free_count);
  }
  /// Returns the copies that start when the instruction of `step` has ended. O(log copies).
  std::span<const Copy> copies_after(std::int64_t step) const;
  /// Returns the indices of the copies that must be complete before the instruction of `step` begins, i.e. those with
  /// Copy::finish = step. If `step` is the number of steps, these are the copies that must be complete at the end.
  /// O(log copies).
  std::span<const std::int32_t> copies_due(std::int64_t step) const;
};

/// A function that returns the bytes of scratch that a backend's kernels need for the op of a node.
using ScratchNeed = std::function<std::int64_t(const core::Graph&, core::NodeId)>;
/// Returns the bytes of scratch that the host's kernels need (core::op_work).
std::int64_t host_scratch(const core::Graph& graph, core::NodeId v);

/// Returns whether the kernels of ops of this kind can write the first output into the storage of argument `arg`
/// without changing the result. The answer holds for all backends. The second and further outputs never overwrite an
/// argument.
bool can_overwrite(core::OpKind kind, std::size_t arg);

struct CompileOptions {
  std::int64_t guard_bytes = 0;  ///< bytes that the plan left free behind every buffer
  bool tf32 = false;             ///< see Program::tf32
  ScratchNeed scratch_need = host_scratch;
  std::int64_t address_alignment = 4;  ///< alignment, in bytes, that the backend's kernels need for addresses
};

/// Compiles a schedule and its plan to instructions with addresses. Before that, checks the plan against the schedule
/// (core::check_plan), including guards. Also checks that the kernels can execute the schedule: scratch is large
/// enough, addresses are aligned, and an output takes over an argument's storage only where can_overwrite() allows
/// that. Throws InputError if a check fails. Takes the time of check_plan, and O(T + sum of in-degrees + k log k) for T
/// steps and k transfers.
Program compile(const core::Graph& graph, const core::Schedule& schedule, const core::Plan& plan,
                const CompileOptions& options = {});

}  // namespace cairn::runtime
