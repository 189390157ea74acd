#include "cairn/cli/device_memory.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cairn/core/text.h"

namespace cairn::cli {

void DeviceArguments::add_to(CLI::App& app) {
  app.add_option("--device-memory", memory,
                 "all memory of a device, as 24GiB: the budget is what resident tensors, libraries and the context "
                 "leave of it");
  app.add_option("--context-memory", context,
                 fmt::format("of --device-memory, for the CUDA context and its code; default {}, which is assumed",
                             core::format_bytes(pipeline::kContextBytes)));
}

pipeline::DeviceShare DeviceArguments::share(const core::Graph& graph) const {
  const std::int64_t aside = context.empty()  ? pipeline::kContextBytes
                             : context == "0" ? 0
                                              : parse_size("--context-memory", context);
  return pipeline::share_device(graph, parse_size("--device-memory", memory), aside);
}

std::int64_t DeviceArguments::budget(const core::Graph& graph, const std::string& name) const {
  const pipeline::DeviceShare share = this->share(graph);
  if (share.arena() > 0) return share.arena();
  Json json{{"graph", name}, {"device", to_json(share)}};
  throw Failure(kInfeasible,
                fmt::format("'{}' does not fit into --device-memory {}: {}; take a smaller --batch, another "
                            "--optimizer, or a larger device",
                            name, core::format_bytes(share.device), share_text(share, 0)),
                std::move(json));
}

Json to_json(const pipeline::DeviceShare& share) {
  return {{"memory_bytes", share.device},
          {"resident_bytes", share.resident.total()},
          {"workspace_bytes", share.workspace},
          {"context_bytes", share.context},
          {"arena_bytes", share.arena()}};
}

std::string resident_text(const pipeline::ResidentBytes& resident) {
  std::string text = bytes_text(resident.total());
  std::string_view before = ": ";
  for (const auto& [name, bytes] : resident.parts()) {
    if (name == "unlisted" && resident.parts().size() == 1) break;
    text += fmt::format("{}{} {}", before, name, core::format_bytes(bytes));
    before = ", ";
  }
  return text;
}

std::string share_text(const pipeline::DeviceShare& share, std::int64_t arena_bytes) {
  std::string text = fmt::format("resident {}", core::format_bytes(share.resident.total()));
  if (share.workspace > 0) text += fmt::format(", workspace of libraries {}", core::format_bytes(share.workspace));
  if (share.context > 0) text += fmt::format(", context {}", core::format_bytes(share.context));
  if (arena_bytes > 0) text += fmt::format(", arena {}", core::format_bytes(arena_bytes));
  return text + fmt::format(": {} in all", core::format_bytes(share.beside_arena() + arena_bytes));
}

}  // namespace cairn::cli
