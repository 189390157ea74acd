#include "cairn/cli/device_memory.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cairn/core/error.h"
#include "cairn/core/text.h"

namespace cairn::cli {

void DeviceArguments::add_to(CLI::App& app) {
  app.add_option("--device-memory", memory,
                 "all memory of a device, as 24GiB: the budget is what resident tensors, libraries and the context "
                 "leave of it");
  app.add_option(
      "--context-memory", context,
      fmt::format("part of --device-memory that the CUDA context and its code take; by default, {} are assumed",
                  core::format_bytes(pipeline::kContextBytes)));
}

std::optional<pipeline::DeviceMemory> DeviceArguments::given_memory() const {
  if (!given() && !context.empty())
    throw core::InputError("--context-memory is a part of --device-memory; give that too");
  if (!given()) return std::nullopt;
  pipeline::DeviceMemory device{parse_size("--device-memory", memory)};
  if (!context.empty()) device.context = context == "0" ? 0 : parse_size("--context-memory", context);
  return device;
}

}  // namespace cairn::cli
