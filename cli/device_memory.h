#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cairn/cli/arguments.h"
#include "cairn/cli/command.h"
#include "cairn/cli/output.h"
#include "cairn/pipeline/device_memory.h"

/// The options that state the memory of a device. The budget is then computed from this memory.
namespace cairn::cli {

/// The options --device-memory and --context-memory.
struct DeviceArguments {
  std::string memory, context;  ///< values of the two options; empty: not given

  void add_to(CLI::App& app);
  bool given() const { return !memory.empty(); }
  /// Parses the options. Throws InputError on a text that is not a size, and if only
  /// --context-memory is given.
  std::optional<pipeline::DeviceMemory> given_memory() const;
};

using report::to_json;

}  // namespace cairn::cli
