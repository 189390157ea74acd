#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/core/error.h"
#include "cairn/core/graph.h"
#include "cairn/core/link.h"
#include "cairn/pipeline/device_memory.h"
#include "cairn/solvers/fit/objective.h"

namespace cairn::pipeline {

/// Holds what the user asks for, as typed: a budget or a largest cost, and options of the search.
struct Request {
  /// Memory budget, as core::parse_budget reads it; `min` is the least budget known; empty: no budget.
  std::string budget;
  std::string max_cost;  ///< largest cost, as parse_max_cost() reads it; empty: none
  /// Whether the budget limits the peak of the schedule instead of the height of its plan.
  bool peak_only = false;
  std::int64_t alignment = 0;  ///< alignment of plans, in bytes; 0: fit::default_alignment()
  /// Name of the solver. Without budget and max_cost, `auto` finds the knee of the curve of cost over memory (a good
  /// compromise), and other solvers find the least peak.
  std::string solver = "auto";
  /// Device from which the budget is computed: the budget is the memory of this device that is left for the arena. If
  /// given, `budget` must be empty.
  std::optional<DeviceMemory> device = {};
  std::int64_t overlap_steps = 0;  ///< steps for which plans leave the addresses of a freed buffer unused
  std::string link;                ///< connection to the host's memory, as core::parse_link() reads it; empty: none
  std::string host_budget;         ///< bytes that copies on the host may take; empty: any number
};

/// Is thrown if resident tensors, workspace and CUDA context alone already fill the device. In that case, no schedule
/// fits, however much it recomputes.
class NoRoomError : public core::Error {
 public:
  NoRoomError(std::string graph, const DeviceShare& divided);
  std::string name;  ///< name of the graph
  DeviceShare share;
};

/// Parses a largest cost: "10%" means 10% above the baseline's cost, "1.1x" means 1.1 times that cost, and a number is
/// the cost itself. Throws InputError.
std::int64_t parse_max_cost(const std::string& text, std::int64_t baseline);

/// Parses `link` as core::parse_link() does, and `host_budget`, the bytes that copies on the host may take. An empty
/// `host_budget` means that there is no limit. Returns nothing if both texts are empty. Throws InputError if a text is
/// not acceptable, or if there is a host budget but no link.
std::optional<core::HostMemory> parse_host_memory(const std::string& link, const std::string& host_budget);
/// Returns the link and the budget of host memory that the request names, or nothing if it names none. Throws
/// InputError.
std::optional<core::HostMemory> host_memory_of(const Request& request);

/// Makes a task of the graph and the request. `name` is used if the graph has no name. Throws InputError and
/// NoRoomError. If the returned task is unaffordable(), no search may be started for it. O(nodes + edges).
fit::Task make_task(core::Graph graph, std::string_view name, const Request& request);

}  // namespace cairn::pipeline
