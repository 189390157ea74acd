#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cairn/cli/arguments.h"
#include "cairn/cli/command.h"
#include "cairn/cli/output.h"
#include "cairn/pipeline/device_memory.h"

/// A device's memory in place of a budget, and what fits into it.
namespace cairn::cli {

/// Adds --device-memory and --context-memory.
struct DeviceArguments {
  std::string memory, context;

  void add_to(CLI::App& app);
  bool given() const { return !memory.empty(); }
  /// Throws InputError on a text that is no size.
  pipeline::DeviceShare share(const core::Graph& graph) const;
  /// What is left for the arena. Throws Failure where nothing is.
  std::int64_t budget(const core::Graph& graph, const std::string& name) const;
};

Json to_json(const pipeline::DeviceShare& share);
using pipeline::to_json;
/// "1.20 GiB (1288490188 bytes): weights 400.00 MiB, ...".
std::string resident_text(const pipeline::ResidentBytes& resident);
/// How the device's memory is divided when the arena has that many bytes.
std::string share_text(const pipeline::DeviceShare& share, std::int64_t arena_bytes);

}  // namespace cairn::cli
