#include "cairn/runtime/support/execution.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cairn/core/error.h"
#include "cairn/core/support/text.h"

namespace cairn::runtime {
namespace {

bool in_arena(const Location& location) { return location.kind == Location::Kind::arena; }

/// Returns whether an in-place output is smaller than the input whose storage it takes over.
bool shrinks(const OutputLocation& output) { return output.reserved < output.taken_bytes; }

/// Keeps a list of the guards of all live buffers. A guard is a gap behind a buffer. It is filled with a known byte, so
/// that a write beyond the end of the buffer is noticed.
class LiveGuards {
 public:
  /// Adds the guard of a buffer of `node` and returns the guard. If the buffer is not in the arena, adds and returns
  /// none.
  std::optional<Guard> add(core::NodeId node, const Location& buffer) {
    if (!in_arena(buffer)) return std::nullopt;
    guards_.push_back({buffer.offset, {node, buffer.offset + buffer.reserved}});
    return guards_.back().guard;
  }
  void remove(std::int64_t buffer_offset) {
    std::erase_if(guards_, [=](const Entry& entry) { return entry.buffer_offset == buffer_offset; });
  }
  void list(std::vector<Guard>& into) const {
    for (const Entry& entry : guards_) into.push_back(entry.guard);
  }

 private:
  struct Entry {
    std::int64_t buffer_offset;
    Guard guard;
  };
  std::vector<Entry> guards_;
};

void check_location(const Program& program, const Location& location) {
  const bool on_host = location.kind == Location::Kind::host;
  const std::int64_t arena_bytes = on_host ? program.host_arena_bytes : program.arena_bytes;
  if ((on_host || in_arena(location)) &&
      (location.offset < 0 || location.reserved < 0 || location.offset > arena_bytes - location.reserved)) {
    throw core::InputError(fmt::format("the program reaches bytes [{}, {}+{}), outside its arena of {}{}",
                                       location.offset, location.offset, location.reserved, arena_bytes,
                                       on_host ? " on the host" : ""));
  }
  if (location.kind == Location::Kind::resident &&
      (location.resident < 0 || location.resident >= static_cast<std::int64_t>(program.graph.residents().size()))) {
    throw core::InputError(fmt::format("the program names resident {}, which does not exist", location.resident));
  }
}

}  // namespace

/// Counts what is in memory while a program runs, step by step.
class LivenessCount {
 public:
  LivenessCount(const Program& program, bool guards) : program_(program), guards_(guards) {}

  Liveness count() && {
    for (const Instruction& instruction : program_.instructions) {
      end_copies(instruction.step);
      begin(instruction);
      if (guards_) begin_guards(instruction);
      end(instruction);
      begin_copies(instruction);
      result_.before_.end_step();
      result_.checked_.end_step();
      result_.after_.end_step();
    }
    return std::move(result_);
  }

 private:
  void reach(std::int64_t end) { result_.high_water_bytes = std::max(result_.high_water_bytes, end); }
  void count_peak() { result_.live_peak_bytes = std::max(result_.live_peak_bytes, live_); }

  void add(const Location& buffer) {
    if (!in_arena(buffer)) return;
    live_ += buffer.reserved;
    reach(buffer.offset + buffer.reserved);
  }

  void fill_guard(core::NodeId node, const Location& buffer, std::vector<Guard>& filled) {
    const std::optional<Guard> guard = live_guards_.add(node, buffer);
    if (!guard) return;
    filled.push_back(*guard);
    reach(guard->offset + program_.guard_bytes);
  }

  void end_copies(std::int64_t step) {
    for (const std::int32_t due : program_.copies_due(step)) {
      const Copy& copy = program_.copies[static_cast<std::size_t>(due)];
      if (copy.frees_host) live_on_host_ -= copy.host.reserved;
      if (!copy.is_evict()) continue;
      live_ -= copy.device.reserved;
      live_guards_.remove(copy.device.offset);
    }
  }

  void begin(const Instruction& instruction) {
    add(instruction.scratch);
    for (const OutputLocation& output : program_.outputs_of(instruction)) {
      add(output);
      // While an in-place node runs, its input and its output share storage. So only the larger of the two buffers
      // counts.
      live_ -= std::min(output.taken_bytes, output.reserved);
    }
    count_peak();
  }

  void begin_guards(const Instruction& instruction) {
    for (const OutputLocation& output : program_.outputs_of(instruction)) {
      if (output.taken_bytes > 0) live_guards_.remove(output.offset);
      // If an in-place output is smaller than its input, the output's guard is inside the input's buffer. So the guard
      // can only be filled after the step has read the input.
      if (!shrinks(output)) fill_guard(instruction.node, output, result_.before_.guards);
    }
    fill_guard(instruction.node, instruction.scratch, result_.before_.guards);
    live_guards_.list(result_.checked_.guards);
  }

  void end(const Instruction& instruction) {
    const auto dying = program_.frees_of(instruction);
    for (const Location& buffer : dying) {
      live_ -= buffer.reserved;
      live_guards_.remove(buffer.offset);
    }
    for (const OutputLocation& output : program_.outputs_of(instruction)) {
      if (!shrinks(output)) continue;
      live_ -= output.taken_bytes - output.reserved;
      const auto is_output = [&](const Location& buffer) { return buffer.offset == output.offset; };
      if (guards_ && std::ranges::none_of(dying, is_output)) {
        fill_guard(instruction.node, output, result_.after_.guards);
      }
    }
  }

  void begin_copies(const Instruction& instruction) {
    for (const Copy& copy : program_.copies_after(instruction.step)) {
      if (copy.is_evict()) {
        live_on_host_ += copy.host.reserved;
        result_.host_high_water_bytes = std::max(result_.host_high_water_bytes, copy.host.offset + copy.host.reserved);
      } else {
        add(copy.device);
        if (guards_) fill_guard(copy.node, copy.device, result_.after_.guards);
      }
    }
    count_peak();
    result_.host_live_peak_bytes = std::max(result_.host_live_peak_bytes, live_on_host_);
  }

  const Program& program_;
  const bool guards_;
  Liveness result_;
  LiveGuards live_guards_;
  std::int64_t live_ = 0, live_on_host_ = 0;
};

Liveness liveness(const Program& program, bool guards) { return LivenessCount(program, guards).count(); }

void check_program(const Program& program, const ExecuteOptions& options) {
  if (options.sentinels && program.guard_bytes == 0) {
    throw core::InputError("sentinels need a program with guards: compile plan and program with guard_bytes above 0");
  }
  for (const Location& input : program.inputs) check_location(program, input);
  for (const Location& output : program.outputs) check_location(program, output);
  for (const Location& dying : program.frees) check_location(program, dying);
  for (const Instruction& instruction : program.instructions) check_location(program, instruction.scratch);
  for (const Copy& copy : program.copies) {
    check_location(program, copy.device);
    check_location(program, copy.host);
  }
}

void require_arena(const ArenaView& arena, std::int64_t bytes) {
  constexpr std::uintptr_t kAlignment = 256;
  if (arena.bytes < bytes) {
    throw core::MemoryError(fmt::format("the given arena has {}, but the program needs {}; lower the budget",
                                        core::format_bytes(arena.bytes), core::format_bytes(bytes)));
  }
  if (reinterpret_cast<std::uintptr_t>(arena.data) % kAlignment != 0)
    throw core::InputError(fmt::format("the given arena is not aligned to {} bytes", kAlignment));
}

std::int64_t measured_peak_bytes(const Program& program, bool poison, std::int64_t given, std::int64_t written) {
  // `given` is the end of the memory that kernels were given. `written` is the end of the last byte that differs from
  // the pattern of a new arena. If the last bytes of the highest tensor equal the pattern by chance, `written` is
  // slightly below `given`, although all bytes were written. It is very unlikely that kChance or more bytes equal the
  // pattern by chance.
  constexpr std::int64_t kChance = 16;
  const bool agree = written <= given && given - written < std::max(kChance, program.alignment);
  return poison || agree ? given : core::align_up(written, program.alignment);
}

std::vector<SinkDigest> sinks_of(const core::Graph& graph) {
  std::vector<SinkDigest> sinks;
  for (core::ValueId x = 0; x < graph.value_count(); ++x) {
    if (!graph.readers(x).empty() || graph.value_kept(x)) continue;
    sinks.push_back({graph.producer(x), graph.output_ref(x).output, 0});
  }
  return sinks;
}

std::string broken_guard_message(const Program& program, const Instruction& instruction, const Guard& guard) {
  return fmt::format("step {}, node '{}', wrote beyond the end of the buffer of node '{}'", instruction.step,
                     program.graph.name(instruction.node), program.graph.name(guard.node));
}

}  // namespace cairn::runtime
