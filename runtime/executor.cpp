#include "runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "core/error.h"
#include "runtime/kernels.h"
#include "runtime/residents.h"
#include "runtime/synthetic.h"

namespace cairn::runtime {
namespace {

constexpr int kPoison = 0xFF;  // makes every fp32 value a NaN
constexpr int kSentinel = 0xC5;
constexpr int kScratch = 0x5A;  // what the synthetic kernel writes into its scratch; no sentinel, so that guards see it

/// The patterned gaps behind the buffers that are live.
class Sentinels {
 public:
  Sentinels(Arena& arena, std::int64_t guard_bytes, std::size_t most) : arena_(arena), bytes_(guard_bytes) {
    guards_.reserve(most);
  }

  void add(core::NodeId node, const Location& buffer) {
    const std::int64_t offset = buffer.offset + buffer.reserved;
    guards_.push_back({node, buffer.offset, arena_.at(offset, bytes_)});
    std::memset(guards_.back().bytes, kSentinel, static_cast<std::size_t>(bytes_));
  }

  /// Forgets the buffer that starts at `offset`.
  void remove(std::int64_t offset) {
    std::erase_if(guards_, [=](const Guard& guard) { return guard.offset == offset; });
  }

  void clear() { guards_.clear(); }

  /// The node behind whose buffer somebody wrote, or kNoNode.
  core::NodeId broken() const {
    for (const Guard& guard : guards_) {
      const bool whole =
          std::all_of(guard.bytes, guard.bytes + bytes_, [](std::byte b) { return b == std::byte{kSentinel}; });
      if (!whole) return guard.node;
    }
    return core::kNoNode;
  }

 private:
  struct Guard {
    core::NodeId node;
    std::int64_t offset;
    std::byte* bytes;
  };
  Arena& arena_;
  std::int64_t bytes_;
  std::vector<Guard> guards_;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void check_location(const Program& program, const Location& location) {
  if (location.kind == Location::Kind::arena &&
      (location.offset < 0 || location.reserved < 0 || location.offset > program.arena_bytes - location.reserved)) {
    throw core::InputError(fmt::format("the program reaches bytes [{}, {}+{}), outside its arena of {}",
                                       location.offset, location.offset, location.reserved, program.arena_bytes));
  }
  if (location.kind == Location::Kind::resident &&
      (location.resident < 0 || location.resident >= static_cast<std::int64_t>(program.graph.residents().size()))) {
    throw core::InputError(fmt::format("the program names resident {}, which does not exist", location.resident));
  }
}

void check_program(const Program& program, const ExecuteOptions& options) {
  if (options.sentinels && program.guard_bytes == 0) {
    throw core::InputError("sentinels need a program with guards: compile plan and program with guard_bytes above 0");
  }
  for (const Location& input : program.inputs) check_location(program, input);
  for (const Location& dying : program.frees) check_location(program, dying);
  for (const Instruction& instruction : program.instructions) {
    check_location(program, instruction.output);
    check_location(program, instruction.scratch);
  }
}

Program checked(Program program, const ExecuteOptions& options) {
  check_program(program, options);
  require_memory("the step (arena and resident tensors)",
                 program.arena_bytes + Residents::bytes_needed(program.graph.residents()));
  return program;
}

}  // namespace

struct HostExecutor::State {
  State(Program program_in, const ExecuteOptions& options_in)
      : program(checked(std::move(program_in), options_in)),
        options(options_in),
        residents(program.graph.residents(), options.seed),
        arena(program.arena_bytes) {
    std::uint32_t most_inputs = 0;
    for (const Instruction& instruction : program.instructions) {
      most_inputs = std::max(most_inputs, instruction.input_count);
      add_shapes(instruction);
    }
    tensors.resize(most_inputs);
    byte_inputs.resize(most_inputs);
    if (options.sentinels) sentinels.emplace(arena, program.guard_bytes, 2 * program.instructions.size());
    for (core::NodeId v = 0; v < program.graph.node_count(); ++v) {
      if (program.graph.readers(v).empty() && !program.graph.keep(v)) sinks.push_back({v, 0});
    }
    warm_up_kernels();
  }

  void add_shapes(const Instruction& instruction) {
    const core::Op* op = program.graph.op(instruction.node);
    for (std::uint32_t i = 0; i < instruction.input_count; ++i) {
      if (op == nullptr) {
        shapes.emplace_back();
      } else if (op->args[i].kind == core::Operand::Kind::resident) {
        shapes.emplace_back(program.graph.residents()[op->args[i].index].shape);
      } else {
        shapes.emplace_back(program.graph.op(op->args[i].index)->shape);
      }
    }
  }

  std::byte* address(const Location& location) {
    switch (location.kind) {
      case Location::Kind::arena:
        return arena.at(location.offset, location.reserved);
      case Location::Kind::resident:
        return residents.at(location.resident).data();
      case Location::Kind::none:
        break;
    }
    return nullptr;
  }

  void begin() {
    arena.reset_high_water();
    live = live_peak = 0;
    if (options.poison && arena.bytes() > 0) {
      std::memset(arena.at(0, 0), kPoison, static_cast<std::size_t>(arena.bytes()));
    }
    if (sentinels) sentinels->clear();
  }

  void execute(const Instruction& instruction) {
    if (options.before_step) options.before_step(instruction);
    births(instruction);
    if (const core::Op* op = program.graph.op(instruction.node)) {
      run_kernel(*op, instruction);
    } else {
      run_synthetic_kernel(instruction);
    }
    if (sentinels) check_sentinels(instruction);
    digest_sink(instruction);
    deaths(instruction);
  }

  void run_kernel(const core::Op& op, const Instruction& instruction) {
    for (std::uint32_t i = 0; i < instruction.input_count; ++i) {
      const std::uint32_t at = instruction.input_begin + i;
      tensors[i] = {address(program.inputs[at]), shapes[at]};
    }
    try {
      run_op<float>(op, std::span(tensors.data(), instruction.input_count),
                    reinterpret_cast<float*>(address(instruction.output)),
                    reinterpret_cast<float*>(address(instruction.scratch)));
    } catch (const core::Error& error) {
      throw core::Error(fmt::format("node '{}': {}", program.graph.name(instruction.node), error.what()));
    }
  }

  void run_synthetic_kernel(const Instruction& instruction) {
    // Scratch is dirtied before the inputs are read, so that scratch laid over a live buffer shows.
    if (instruction.scratch.kind == Location::Kind::arena) {
      std::memset(address(instruction.scratch), kScratch, static_cast<std::size_t>(instruction.scratch.bytes));
    }
    for (std::uint32_t i = 0; i < instruction.input_count; ++i) {
      const Location& input = program.inputs[instruction.input_begin + i];
      byte_inputs[i] = {address(input), static_cast<std::size_t>(input.bytes)};
    }
    run_synthetic(instruction.node, std::span(byte_inputs.data(), instruction.input_count),
                  {address(instruction.output), static_cast<std::size_t>(instruction.output.bytes)});
  }

  void digest_sink(const Instruction& instruction) {
    const auto sink = std::lower_bound(sinks.begin(), sinks.end(), instruction.node,
                                       [](const SinkDigest& a, core::NodeId node) { return a.node < node; });
    if (sink == sinks.end() || sink->node != instruction.node) return;
    sink->digest = synthetic_digest({address(instruction.output), static_cast<std::size_t>(instruction.output.bytes)});
  }

  std::int64_t measured_peak() const {
    // The last bytes of a tensor may happen to look like paint, though hardly this many of them.
    constexpr std::int64_t kChance = 16;
    const std::int64_t given = arena.high_water(), written = arena.touched();
    const bool agree = written <= given && given - written < std::max(kChance, program.alignment);
    return options.poison || agree ? given : core::align_up(written, program.alignment);
  }

  void births(const Instruction& instruction) {
    for (const Location* buffer : {&instruction.output, &instruction.scratch}) {
      if (buffer->kind == Location::Kind::arena) live += buffer->reserved;
    }
    // While an in-place node runs, the larger of its input and its output is live, not both.
    if (instruction.in_place) live -= std::min(instruction.taken_bytes, instruction.output.reserved);
    live_peak = std::max(live_peak, live);
    if (!sentinels) return;
    if (instruction.in_place) sentinels->remove(instruction.output.offset);
    // The guard of a smaller output lies inside its input until the step is over.
    if (!shrinks(instruction)) guard(instruction.node, instruction.output);
    guard(instruction.node, instruction.scratch);
  }

  void deaths(const Instruction& instruction) {
    for (std::uint32_t i = 0; i < instruction.free_count; ++i) {
      const Location& buffer = program.frees[instruction.free_begin + i];
      live -= buffer.reserved;
      if (sentinels) sentinels->remove(buffer.offset);
      if (options.poison) std::memset(address(buffer), kPoison, static_cast<std::size_t>(buffer.reserved));
    }
    if (!shrinks(instruction)) return;
    live -= instruction.taken_bytes - instruction.output.reserved;
    if (sentinels && outlives(instruction)) guard(instruction.node, instruction.output);
  }

  static bool shrinks(const Instruction& instruction) {
    return instruction.in_place && instruction.output.reserved < instruction.taken_bytes;
  }

  bool outlives(const Instruction& instruction) const {
    const Location* first = program.frees.data() + instruction.free_begin;
    return std::none_of(first, first + instruction.free_count,
                        [&](const Location& buffer) { return buffer.offset == instruction.output.offset; });
  }

  void guard(core::NodeId node, const Location& buffer) {
    if (buffer.kind == Location::Kind::arena) sentinels->add(node, buffer);
  }

  void check_sentinels(const Instruction& instruction) const {
    const core::NodeId broken = sentinels->broken();
    if (broken == core::kNoNode) return;
    throw core::Error(fmt::format("step {}, node '{}', wrote behind the end of the buffer of node '{}'",
                                  instruction.step, program.graph.name(instruction.node), program.graph.name(broken)));
  }

  Program program;
  ExecuteOptions options;
  Residents residents;
  Arena arena;
  std::optional<Sentinels> sentinels;
  std::vector<std::span<const std::int64_t>> shapes;    ///< of Program::inputs; empty for synthetic nodes
  std::vector<TensorRef<float>> tensors;                ///< arguments of the current step
  std::vector<std::span<const std::byte>> byte_inputs;  ///< the same for a synthetic node
  std::vector<SinkDigest> sinks;                        ///< ascending by node
  std::int64_t live = 0, live_peak = 0;
};

HostExecutor::HostExecutor(Program program, const ExecuteOptions& options)
    : state_(std::make_unique<State>(std::move(program), options)) {}
HostExecutor::~HostExecutor() = default;
HostExecutor::HostExecutor(HostExecutor&&) noexcept = default;
HostExecutor& HostExecutor::operator=(HostExecutor&&) noexcept = default;

const Program& HostExecutor::program() const { return state_->program; }

StepReport HostExecutor::run(bool time_ops) {
  StepReport report;
  if (time_ops) report.op_seconds.resize(state_->program.instructions.size());
  state_->begin();
  const auto start = std::chrono::steady_clock::now();
  for (const Instruction& instruction : state_->program.instructions) {
    const auto op_start = std::chrono::steady_clock::now();
    state_->execute(instruction);
    if (time_ops) report.op_seconds[static_cast<std::size_t>(instruction.step)] = seconds_since(op_start);
  }
  report.seconds = seconds_since(start);
  report.measured_peak_bytes = state_->measured_peak();
  report.live_peak_bytes = state_->live_peak;
  return report;
}

const std::vector<SinkDigest>& HostExecutor::sink_digests() const { return state_->sinks; }

std::vector<Output> HostExecutor::outputs() const {
  std::vector<Output> outputs;
  for (const KeptOutput& kept : state_->program.kept) {
    outputs.push_back({kept.node, {state_->address(kept.location), static_cast<std::size_t>(kept.location.bytes)}});
  }
  return outputs;
}

}  // namespace cairn::runtime
