#include "cairn/runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/precision.h"
#include "cairn/runtime/host/kernels.h"
#include "cairn/runtime/host/parallel.h"
#include "cairn/runtime/host/synthetic.h"
#include "cairn/runtime/internal/element.h"
#include "cairn/runtime/internal/execution.h"
#include "cairn/runtime/internal/liveness.h"
#include "cairn/runtime/internal/patterns.h"
#include "cairn/runtime/residents.h"

namespace cairn::runtime {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void check_host_program(const Program& program, const ExecuteOptions& options) {
  check_program(program, options);
  if (program.tf32 || core::stores_bf16(program.graph)) {
    throw core::InputError("the host executes fp32 only; drop --precision or choose --backend cuda");
  }
}

Program checked(Program program, const ExecuteOptions& options) {
  check_host_program(program, options);
  require_memory("the step (arena and resident tensors)",
                 program.arena_bytes + Residents::bytes_needed(program.graph.residents()));
  return program;
}

}  // namespace

struct HostExecutor::State {
  State(Program program_in, const ExecuteOptions& options_in)
      : program(checked(std::move(program_in), options_in)),
        options(options_in),
        lives(liveness(program, options.sentinels)),
        residents(program.graph.residents(), options.seed),
        arena(program.arena_bytes) {
    std::uint32_t most_inputs = 0;
    for (const Instruction& instruction : program.instructions) {
      most_inputs = std::max(most_inputs, instruction.input_count);
      add_shapes(instruction);
    }
    tensors.resize(most_inputs);
    byte_inputs.resize(most_inputs);
    sinks = sinks_of(program.graph);
    if (options.rounding_noise > 0) disturb_residents();
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
    if (options.poison && arena.bytes() > 0) {
      std::memset(arena.at(0, 0), kPoison, static_cast<std::size_t>(arena.bytes()));
    }
  }

  void execute(const Instruction& instruction) {
    if (options.before_step) options.before_step(instruction);
    fill_guards(lives.filled_before(instruction.step));
    if (const core::Op* op = program.graph.op(instruction.node)) {
      run_kernel(*op, instruction);
    } else {
      run_synthetic_kernel(instruction);
    }
    if (options.rounding_noise > 0) disturb_output(instruction);
    check_guards(instruction);
    digest_sink(instruction);
    deaths(instruction);
    fill_guards(lives.filled_after(instruction.step));
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
      std::memset(address(instruction.scratch), kDirtyScratch, static_cast<std::size_t>(instruction.scratch.bytes));
    }
    for (std::uint32_t i = 0; i < instruction.input_count; ++i) {
      const Location& input = program.inputs[instruction.input_begin + i];
      byte_inputs[i] = {address(input), static_cast<std::size_t>(input.bytes)};
    }
    run_synthetic(instruction.node, std::span(byte_inputs.data(), instruction.input_count),
                  {address(instruction.output), static_cast<std::size_t>(instruction.output.bytes)});
  }

  void disturb_output(const Instruction& instruction) {
    if (program.graph.op(instruction.node) == nullptr) return;
    disturb(address(instruction.output), instruction.output.bytes, instruction.node);
  }

  void disturb(std::byte* bytes, std::int64_t count, std::int32_t stream) const {
    auto* values = reinterpret_cast<float*>(bytes);
    kernels::for_elements(count / static_cast<std::int64_t>(sizeof(float)), [=, this](std::int64_t i) {
      const double u =
          2 * unit_interval(random_bits(1, static_cast<std::uint64_t>(stream), static_cast<std::uint64_t>(i))) - 1;
      values[i] = static_cast<float>(static_cast<double>(values[i]) * (1 + options.rounding_noise * u));
    });
  }

  void disturb_residents() {
    const auto all = program.graph.residents();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto index = static_cast<std::int32_t>(i);
      if (all[i].type != core::ElementType::f32 || !is_executed(all[i])) continue;
      disturb(residents.at(index).data(), all[i].bytes(), -1 - index);
    }
  }

  void digest_sink(const Instruction& instruction) {
    const auto sink = std::lower_bound(sinks.begin(), sinks.end(), instruction.node,
                                       [](const SinkDigest& a, core::NodeId node) { return a.node < node; });
    if (sink == sinks.end() || sink->node != instruction.node) return;
    sink->digest = synthetic_digest({address(instruction.output), static_cast<std::size_t>(instruction.output.bytes)});
  }

  std::int64_t measured_peak() const {
    return measured_peak_bytes(program, options.poison, arena.high_water(), arena.touched());
  }

  void deaths(const Instruction& instruction) {
    if (!options.poison) return;
    for (std::uint32_t i = 0; i < instruction.free_count; ++i) {
      const Location& buffer = program.frees[instruction.free_begin + i];
      std::memset(address(buffer), kPoison, static_cast<std::size_t>(buffer.reserved));
    }
  }

  void fill_guards(std::span<const Guard> guards) {
    for (const Guard& guard : guards) {
      std::memset(guard_bytes(guard), kSentinel, static_cast<std::size_t>(program.guard_bytes));
    }
  }

  void check_guards(const Instruction& instruction) {
    for (const Guard& guard : lives.checked(instruction.step)) {
      const std::byte* bytes = guard_bytes(guard);
      if (std::all_of(bytes, bytes + program.guard_bytes, [](std::byte b) { return b == std::byte{kSentinel}; })) {
        continue;
      }
      throw core::Error(broken_guard_message(program, instruction, guard));
    }
  }

  std::byte* guard_bytes(const Guard& guard) { return arena.at(guard.offset, program.guard_bytes); }

  Program program;
  ExecuteOptions options;
  Liveness lives;
  Residents residents;
  Arena arena;
  std::vector<std::span<const std::int64_t>> shapes;    ///< of Program::inputs; empty for synthetic nodes
  std::vector<TensorRef<float>> tensors;                ///< arguments of the current step
  std::vector<std::span<const std::byte>> byte_inputs;  ///< the same for a synthetic node
  std::vector<SinkDigest> sinks;                        ///< ascending by node
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
  report.live_peak_bytes = state_->lives.live_peak_bytes;
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
