#include "cairn/runtime/internal/execution.h"

#include <fmt/format.h>

#include <algorithm>

#include "cairn/core/error.h"

namespace cairn::runtime {
namespace {

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

}  // namespace

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

std::int64_t measured_peak_bytes(const Program& program, bool poison, std::int64_t given, std::int64_t written) {
  // The last bytes of a tensor may happen to look like paint, though hardly this many of them.
  constexpr std::int64_t kChance = 16;
  const bool agree = written <= given && given - written < std::max(kChance, program.alignment);
  return poison || agree ? given : core::align_up(written, program.alignment);
}

std::vector<SinkDigest> sinks_of(const core::Graph& graph) {
  std::vector<SinkDigest> sinks;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.readers(v).empty() && !graph.keep(v)) sinks.push_back({v, 0});
  }
  return sinks;
}

std::string broken_guard_message(const Program& program, const Instruction& instruction, const Guard& guard) {
  return fmt::format("step {}, node '{}', wrote behind the end of the buffer of node '{}'", instruction.step,
                     program.graph.name(instruction.node), program.graph.name(guard.node));
}

}  // namespace cairn::runtime
