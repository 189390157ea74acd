#pragma once

#include <optional>
#include <string>

#include "cairn/cli/arguments.h"
#include "cairn/cli/command.h"
#include "cairn/cli/output.h"
#include "cairn/pipeline/device_memory.h"

/// The options that state a device's memory, from which the budget is computed.
namespace cairn::cli {

/// The options --device-memory and --context-memory.
struct DeviceArguments {
  std::string memory, context;  ///< values of the two options; empty: not given

  void add_to(CLI::App& app);
  bool given() const { return !memory.empty(); }
  /// Throws InputError if a text is not a size, or if only --context-memory is given.
  std::optional<pipeline::DeviceMemory> given_memory() const;
};

using report::to_json;

}  // namespace cairn::cli
