#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"

namespace cairn::runtime {

/// Position of an operand, which is an offset of the arena or a resident tensor.
struct Location {
  enum class Kind : std::uint8_t { none, arena, resident };
  Kind kind = Kind::none;
  std::int64_t offset = 0;  ///< bytes into the arena
  std::int32_t resident = -1;
  std::int64_t bytes = 0;     ///< exact size of the tensor, not rounded up
  std::int64_t reserved = 0;  ///< bytes of its buffer in the plan
};

/// Position of one output of a step.
struct OutputLocation : Location {
  /// If in place, reserved bytes of the input whose storage the output takes; they are not among Program::frees.
  std::int64_t taken_bytes = 0;
};

/// One step, which runs `node` (its op, or the synthetic kernel if it has none).
struct Instruction {
  core::NodeId node = core::kNoNode;
  std::int64_t step = 0;
  bool recomputation = false;     ///< the node ran before in the schedule
  std::uint32_t input_begin = 0;  ///< arguments in Program::inputs: the op's args, else the node's inputs
  std::uint32_t input_count = 0;
  std::uint32_t output_begin = 0;  ///< the node's outputs in Program::outputs, in order
  std::uint32_t output_count = 0;
  Location scratch;
  std::uint32_t free_begin = 0;  ///< buffers that die after this step, in Program::frees
  std::uint32_t free_count = 0;
};

/// A kept output and its position after the last step.
struct KeptOutput {
  core::NodeId node = core::kNoNode;
  std::int32_t output = 0;  ///< index among the node's outputs
  Location location;
};

/// A schedule and its plan, compiled to instructions with addresses, which every backend executes.
struct Program {
  core::Graph graph;
  std::vector<Instruction> instructions;
  std::vector<Location> inputs;
  std::vector<OutputLocation> outputs;
  std::vector<Location> frees;
  std::vector<KeptOutput> kept;  ///< every kept output, ascending
  std::int64_t arena_bytes = 0;  ///< the plan's bytes
  std::int64_t alignment = 1;
  std::int64_t guard_bytes = 0;
  bool tf32 = false;  ///< products may round fp32 factors to TF32

  // Ranges of an instruction.
  std::span<const Location> inputs_of(const Instruction& i) const {
    return std::span(inputs).subspan(i.input_begin, i.input_count);
  }
  std::span<const OutputLocation> outputs_of(const Instruction& i) const {
    return std::span(outputs).subspan(i.output_begin, i.output_count);
  }
  std::span<const Location> frees_of(const Instruction& i) const {
    return std::span(frees).subspan(i.free_begin, i.free_count);
  }
};

/// Bytes of scratch that a backend's kernels need for the op of a node.
using ScratchNeed = std::function<std::int64_t(const core::Graph&, core::NodeId)>;
/// Scratch that the host's kernels need (core::op_work).
std::int64_t host_scratch(const core::Graph& graph, core::NodeId v);

/// Whether the kernels of this kind give the same result, on any backend, if the first output takes the storage of
/// argument `arg`. Other outputs take none.
bool can_overwrite(core::OpKind kind, std::size_t arg);

struct CompileOptions {
  std::int64_t guard_bytes = 0;  ///< gaps that the plan left behind every buffer
  bool tf32 = false;             ///< Program::tf32
  ScratchNeed scratch_need = host_scratch;
  std::int64_t address_alignment = 4;  ///< alignment of addresses in bytes, as the backend's kernels need it
};

/// Checks the plan against the schedule (core::check_plan), guards included, and that the kernels can execute it:
/// scratch large enough, addresses aligned, in place only where can_overwrite allows it. Then resolves addresses.
/// Throws InputError. O(T + sum of in-degrees + the cost of check_plan).
Program compile(const core::Graph& graph, const core::Schedule& schedule, const core::Plan& plan,
                const CompileOptions& options = {});

}  // namespace cairn::runtime
