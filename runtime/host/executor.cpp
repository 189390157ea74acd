#include "cairn/runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/precision.h"
#include "cairn/core/support/memory.h"
#include "cairn/core/support/saturating.h"
#include "cairn/core/support/text.h"
#include "cairn/runtime/host/copies.h"
#include "cairn/runtime/host/kernels.h"
#include "cairn/runtime/host/kernels/synthetic.h"
#include "cairn/runtime/support/delays.h"
#include "cairn/runtime/support/element.h"
#include "cairn/runtime/support/execution.h"
#include "cairn/runtime/support/loops.h"
#include "cairn/runtime/support/residents.h"

namespace cairn::runtime {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void check_host_program(const Program& program, const ExecuteOptions& options) {
  check_program(program, options);
  if (program.tf32 || core::stores_bf16(program.graph)) {
    throw core::InputError(fmt::format("the host executes fp32 only; drop {} or choose {}", core::option("precision"),
                                       core::option("backend", "cuda")));
  }
}

Program checked(Program program, const ExecuteOptions& options) {
  check_host_program(program, options);
  const bool given = options.arena.data != nullptr;
  if (given) require_arena(options.arena, program.arena_bytes);
  require_host_memory(program.graph, given ? 0 : program.arena_bytes,
                      options.reserved_bytes + program.host_arena_bytes);
  return program;
}

class HostExecutor final : public Executor {
 public:
  HostExecutor(Program program, const ExecuteOptions& options)
      : program_(checked(std::move(program), options)),
        options_(options),
        lives_(liveness(program_, options.sentinels)),
        residents_(program_.graph, options.seed),
        arena_(options.arena.data == nullptr ? Arena(program_.arena_bytes)
                                             : Arena(options.arena.data, program_.arena_bytes)),
        host_arena_(program_.host_arena_bytes),
        copies_(program_.copies, options.half_duplex, options.copy_delay_seed) {
    std::uint32_t most_inputs = 0, most_outputs = 0;
    for (const Instruction& instruction : program_.instructions) {
      most_inputs = std::max(most_inputs, instruction.input_count);
      most_outputs = std::max(most_outputs, instruction.output_count);
      add_shapes(instruction);
    }
    tensors_.resize(most_inputs);
    byte_inputs_.resize(most_inputs);
    byte_outputs_.resize(most_outputs);
    more_outputs_.resize(most_outputs);
    sinks_ = sinks_of(program_.graph);
    if (options.rounding_noise > 0) disturb_residents();
    warm_up_kernels();
    // The clocks are created last, because a DelayClock covers only threads that exist when it is created.
    if (options.delays) step_delays_.emplace();
    if (options.op_delays) op_delays_.emplace();
  }

  const Program& program() const override { return program_; }

  StepReport run(bool time_ops) override {
    StepReport report;
    if (time_ops) report.op_seconds.resize(program_.instructions.size());
    const bool delay_ops = time_ops && options_.op_delays;
    if (delay_ops) report.op_delays.resize(program_.instructions.size());
    set_has_outputs(false);
    begin();
    const CopyThreads::Run copies(copies_);
    if (step_delays_) step_delays_->start();
    const auto start = std::chrono::steady_clock::now();
    for (const Instruction& instruction : program_.instructions) {
      if (delay_ops) op_delays_->start();
      const auto op_start = std::chrono::steady_clock::now();
      execute(instruction);
      if (time_ops) report.op_seconds[static_cast<std::size_t>(instruction.step)] = seconds_since(op_start);
      if (delay_ops) report.op_delays[static_cast<std::size_t>(instruction.step)] = op_delays_->since_start();
    }
    end_copies(static_cast<std::int64_t>(program_.instructions.size()));
    report.seconds = seconds_since(start);
    if (step_delays_) report.delays = step_delays_->since_start();
    report.live_peak_bytes = lives_.live_peak_bytes;
    report.host_live_peak_bytes = lives_.host_live_peak_bytes;
    set_has_outputs(true);
    return report;
  }

  std::int64_t measured_peak_bytes() override {
    return runtime::measured_peak_bytes(program_, options_.poison, arena_.high_water(), arena_.touched());
  }

  std::int64_t measured_host_peak_bytes() override {
    return runtime::measured_peak_bytes(program_, options_.poison, host_arena_.high_water(), host_arena_.touched());
  }

  std::vector<Output> outputs() override {
    std::vector<Output> outputs;
    for (const KeptOutput& kept : program_.kept) {
      outputs.push_back({kept.node, kept.output, bytes_at(kept.location)});
    }
    return outputs;
  }

  std::vector<SinkDigest> sink_digests() override { return sinks_; }

  ArenaView arena() override { return {arena_.bytes() > 0 ? arena_.at(0, 0) : nullptr, arena_.bytes()}; }

  void enqueue() override { run(false); }
  void wait() override {}

  void reset() override {
    set_has_outputs(false);
    staged_.clear();
    residents_.fill(program_.graph, options_.seed);
    if (options_.rounding_noise > 0) disturb_residents();
  }

  void set_dropout_seed(std::uint64_t seed) override { dropout_key_ = dropout_key(seed); }

 private:
  void write_resident(std::int32_t index, const TensorView& values) override {
    refuse_device(values.on_device);
    set_bytes(index, values.data);
    staged_.erase(index);  // the later call decides
  }
  void read_resident(std::int32_t index, const MutableTensorView& values) override {
    refuse_device(values.on_device);
    const std::span<std::byte> tensor = residents_.at(index);
    std::memcpy(values.data, tensor.data(), tensor.size());
  }
  void stage_resident(std::int32_t index, const TensorView& values) override {
    refuse_device(values.on_device);
    const auto* begin = static_cast<const std::byte*>(values.data);
    staged_[index].assign(begin, begin + residents_.at(index).size());
  }
  void read_output(const KeptOutput& kept, const MutableTensorView& values) override {
    refuse_device(values.on_device);
    const std::span<std::byte> output = bytes_at(kept.location);
    std::memcpy(values.data, output.data(), output.size());
  }
  static void refuse_device(bool on_device) {
    if (on_device) throw core::InputError("the host executes this step, so it cannot reach memory of a GPU");
  }

  void set_bytes(std::int32_t index, const void* bytes) {
    const std::span<std::byte> tensor = residents_.at(index);
    std::memcpy(tensor.data(), bytes, tensor.size());
  }

  void take_staged() {
    for (const auto& [index, bytes] : staged_) set_bytes(index, bytes.data());
    staged_.clear();
  }

  void add_shapes(const Instruction& instruction) {
    if (program_.graph.op(instruction.node) == nullptr) {
      shapes_.resize(shapes_.size() + instruction.input_count);
      return;
    }
    for (core::Shape& shape : core::arg_shapes(program_.graph, instruction.node)) shapes_.push_back(std::move(shape));
  }

  std::byte* address(const Location& location) {
    switch (location.kind) {
      case Location::Kind::arena:
        return arena_.at(location.offset, location.reserved);
      case Location::Kind::resident:
        return residents_.at(location.resident).data();
      case Location::Kind::host:
        return host_arena_.at(location.offset, location.reserved);
      case Location::Kind::none:
        break;
    }
    return nullptr;
  }

  std::span<std::byte> bytes_at(const Location& location) {
    return {address(location), static_cast<std::size_t>(location.bytes)};
  }

  void begin() {
    take_staged();
    for (Arena* const arena : {&arena_, &host_arena_}) {
      arena->reset_high_water();
      if (options_.poison && arena->bytes() > 0) {
        std::memset(arena->at(0, 0), kPoison, static_cast<std::size_t>(arena->bytes()));
      }
    }
  }

  void execute(const Instruction& instruction) {
    if (options_.before_step) options_.before_step(instruction);
    end_copies(instruction.step);
    fill_guards(lives_.filled_before(instruction.step));
    if (const core::Op* op = program_.graph.op(instruction.node)) {
      run_kernel(*op, instruction);
    } else {
      run_synthetic_kernel(instruction);
    }
    if (options_.rounding_noise > 0) disturb_outputs(instruction);
    check_guards(instruction);
    digest_sinks(instruction);
    deaths(instruction);
    fill_guards(lives_.filled_after(instruction.step));
    begin_copies(instruction.step);
  }

  /// Waits for the copies that must be complete before the instruction of `step` begins. Then poisons the buffers that
  /// these copies free, i.e. fills them with kPoison if ExecuteOptions::poison is set.
  void end_copies(std::int64_t step) {
    const std::span<const std::int32_t> due = program_.copies_due(step);
    if (due.empty()) return;
    copies_.wait(due);
    for (const std::int32_t index : due) {
      const Copy& copy = program_.copies[static_cast<std::size_t>(index)];
      if (copy.is_evict()) poison(copy.device);
      if (copy.frees_host) poison(copy.host);
    }
  }

  void begin_copies(std::int64_t step) {
    const std::span<const Copy> starting = program_.copies_after(step);
    for (const Copy& copy : starting) {
      std::byte* const device = address(copy.device);
      std::byte* const host = address(copy.host);
      if (!copy.is_evict()) poison(copy.device);
      copies_.add(copy.is_evict() ? device : host, copy.is_evict() ? host : device);
    }
    if (!starting.empty()) copies_.start();
  }

  void poison(const Location& buffer) {
    if (options_.poison) std::memset(address(buffer), kPoison, static_cast<std::size_t>(buffer.reserved));
  }

  void run_kernel(const core::Op& op, const Instruction& instruction) {
    for (std::uint32_t i = 0; i < instruction.input_count; ++i) {
      const std::uint32_t at = instruction.input_begin + i;
      tensors_[i] = {address(program_.inputs[at]), shapes_[at]};
    }
    const auto outputs = program_.outputs_of(instruction);
    for (std::size_t k = 1; k < outputs.size(); ++k) more_outputs_[k - 1] = address(outputs[k]);
    try {
      run_op<float>(op, std::span(tensors_.data(), instruction.input_count),
                    reinterpret_cast<float*>(address(outputs[0])),
                    reinterpret_cast<float*>(address(instruction.scratch)), more_outputs_, dropout_key_);
    } catch (const core::Error& error) {
      throw core::Error(fmt::format("node '{}': {}", program_.graph.name(instruction.node), error.what()));
    }
  }

  void run_synthetic_kernel(const Instruction& instruction) {
    // Overwrites the scratch before the inputs are read. If a wrong plan lets the scratch overlap a live buffer, this
    // changes the outputs, and a comparison of outputs notices it.
    if (instruction.scratch.kind == Location::Kind::arena) {
      std::memset(address(instruction.scratch), kDirtyScratch, static_cast<std::size_t>(instruction.scratch.bytes));
    }
    const auto bytes_of = [this](const Location& location) { return bytes_at(location); };
    std::ranges::transform(program_.inputs_of(instruction), byte_inputs_.begin(), bytes_of);
    std::ranges::transform(program_.outputs_of(instruction), byte_outputs_.begin(), bytes_of);
    run_synthetic(instruction.node, std::span(byte_inputs_.data(), instruction.input_count),
                  std::span(byte_outputs_.data(), instruction.output_count));
  }

  void disturb_outputs(const Instruction& instruction) {
    const core::Op* op = program_.graph.op(instruction.node);
    if (op == nullptr) return;
    for (std::int32_t k = 0; k < core::output_count(op->kind); ++k) {
      const Location& output = program_.outputs_of(instruction)[k];
      if (core::output_type(*op, k) != core::ElementType::f32) continue;
      disturb(address(output), output.bytes, program_.graph.value({instruction.node, k}));
    }
  }

  void disturb(std::byte* bytes, std::int64_t count, std::int32_t stream) const {
    auto* values = reinterpret_cast<float*>(bytes);
    for_elements(count / static_cast<std::int64_t>(sizeof(float)), [=, this](std::int64_t i) {
      const double u =
          2 * unit_interval(random_bits(1, static_cast<std::uint64_t>(stream), static_cast<std::uint64_t>(i))) - 1;
      values[i] = static_cast<float>(static_cast<double>(values[i]) * (1 + options_.rounding_noise * u));
    });
  }

  void disturb_residents() {
    const auto all = program_.graph.residents();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto index = static_cast<std::int32_t>(i);
      if (all[i].type != core::ElementType::f32 || residents_.at(index).empty()) continue;
      disturb(residents_.at(index).data(), all[i].bytes(), -1 - index);
    }
  }

  void digest_sinks(const Instruction& instruction) {
    for (SinkDigest& sink : std::ranges::equal_range(sinks_, instruction.node, {}, &SinkDigest::node)) {
      sink.digest = synthetic_digest(bytes_at(program_.outputs_of(instruction)[sink.output]));
    }
  }

  void deaths(const Instruction& instruction) {
    for (const Location& buffer : program_.frees_of(instruction)) poison(buffer);
  }

  void fill_guards(std::span<const Guard> guards) {
    for (const Guard& guard : guards) {
      std::memset(guard_bytes(guard), kSentinel, static_cast<std::size_t>(program_.guard_bytes));
    }
  }

  void check_guards(const Instruction& instruction) {
    for (const Guard& guard : lives_.checked(instruction.step)) {
      const std::byte* bytes = guard_bytes(guard);
      if (std::all_of(bytes, bytes + program_.guard_bytes, [](std::byte b) { return b == std::byte{kSentinel}; })) {
        continue;
      }
      throw core::Error(broken_guard_message(program_, instruction, guard));
    }
  }

  std::byte* guard_bytes(const Guard& guard) { return arena_.at(guard.offset, program_.guard_bytes); }

  Program program_;
  ExecuteOptions options_;
  Liveness lives_;
  Residents residents_;
  Arena arena_, host_arena_;
  CopyThreads copies_;
  /// Shapes of Program::inputs. The shapes of inputs of nodes without an op are empty.
  std::vector<core::Shape> shapes_;
  std::vector<TensorRef<float>> tensors_;                ///< for the current step: arguments of its op
  std::vector<std::span<const std::byte>> byte_inputs_;  ///< for the current step: inputs, if its node has no op
  std::vector<std::span<std::byte>> byte_outputs_;
  std::vector<void*> more_outputs_;  ///< outputs of an op beyond its first one
  std::vector<SinkDigest> sinks_;
  std::map<std::int32_t, std::vector<std::byte>> staged_;  ///< by resident: bytes to set before the next step
  std::uint64_t dropout_key_ = 0;
  std::optional<DelayClock> step_delays_, op_delays_;
};

}  // namespace

std::int64_t kept_bytes(const core::Graph& graph) {
  std::int64_t bytes = 0;
  for (core::ValueId x = 0; x < graph.value_count(); ++x) {
    if (!graph.value_kept(x)) continue;
    const auto [v, output] = graph.output_ref(x);
    const core::Op* const op = graph.op(v);
    const bool writes = op != nullptr && op->writes >= 0 && output == 0;
    bytes += writes ? graph.residents()[static_cast<std::size_t>(op->writes)].bytes() : graph.value_size(x);
  }
  return bytes;
}

void require_host_memory(const core::Graph& graph, std::int64_t arena_bytes, std::int64_t reserved_bytes,
                         std::int64_t least_bytes) {
  // The need includes copies of the kept outputs, because a caller that compares outputs makes such copies.
  MemoryNeed need{.arena = arena_bytes,
                  .beside = core::saturating_add(
                      core::saturating_add(Residents::bytes_needed(graph), kept_bytes(graph)), reserved_bytes)};
  need.slack = host_slack(core::saturating_add(need.arena, need.beside));
  need.least = least_bytes;
  require_memory(need, core::available_memory(), "here");
}

std::unique_ptr<Executor> host_executor(Program program, const ExecuteOptions& options) {
  return std::make_unique<HostExecutor>(std::move(program), options);
}

}  // namespace cairn::runtime
