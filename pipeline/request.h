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

/// What the user asks for, as typed: a budget or a largest cost, and how to search.
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
  /// If given, `budget` must be empty. The budget is then the memory of this device that is left for the arena.
  std::optional<DeviceMemory> device = {};
  std::int64_t overlap_steps = 0;  ///< solvers::PlanOptions::overlap_steps of plans
  std::string link;                ///< connection to the host's memory, as core::parse_link() reads it; empty: none
  std::string host_budget;         ///< bytes that copies on the host may take; empty: any number
};

/// Thrown if resident tensors, workspace and context already fill the device. Then no schedule fits, however much it
/// recomputes.
class NoRoomError : public core::Error {
 public:
  NoRoomError(std::string graph, const DeviceShare& divided);
  std::string name;  ///< name of the graph
  DeviceShare share;
};

/// Parses a largest cost: "10%" means 10% above the baseline's cost, "1.1x" means 1.1 times that cost, and a number is
/// the cost itself. Throws InputError.
std::int64_t parse_max_cost(const std::string& text, std::int64_t baseline);

/// Parses a link as core::parse_link() does, and the bytes that copies on the host may take; an empty text means any
/// number. Returns nothing if both texts are empty. Throws InputError on a budget without a link, too.
std::optional<core::HostMemory> parse_host_memory(const std::string& link, const std::string& host_budget);
/// Returns the host's memory that the request names, or nothing. Throws InputError.
std::optional<core::HostMemory> host_memory_of(const Request& request);

/// Makes a task of the graph and the request. `name` is used if the graph has no name. Throws InputError and
/// NoRoomError. If the task is unaffordable(), it must not be searched. O(nodes + edges).
fit::Task make_task(core::Graph graph, std::string_view name, const Request& request);

}  // namespace cairn::pipeline
