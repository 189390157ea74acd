#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/core/error.h"
#include "cairn/core/graph.h"
#include "cairn/pipeline/device_memory.h"
#include "cairn/solvers/fit/objective.h"

namespace cairn::pipeline {

/// A request in the user's words.
struct Request {
  std::string budget;           ///< memory budget, as core::parse_budget reads it; `min`: the least known; empty: none
  std::string max_cost;         ///< largest cost: 10% above the baseline's, 1.1x of it, or as 12345; empty: none
  bool peak_only = false;       ///< the budget limits the peak of the schedule, not the height of its plan
  std::int64_t alignment = 0;   ///< alignment of plans, in bytes; 0: default_alignment
  std::string solver = "auto";  ///< without budget and max_cost, `auto` finds the knee, others the least peak
  std::optional<DeviceMemory> device = {};  ///< device whose arena is the budget
};

/// Thrown where a device is full of resident tensors: no schedule fits, whatever it recomputes.
class NoRoomError : public core::Error {
 public:
  NoRoomError(std::string graph, const DeviceShare& divided);
  std::string name;  ///< name of the graph
  DeviceShare share;
};

/// Parses "10%" (that much above the baseline's cost), "1.1x" (a multiple of it), or a cost. Throws InputError.
std::int64_t parse_max_cost(const std::string& text, std::int64_t baseline);

/// Makes a task of the graph and the request. `name` is used where the graph has none. Throws InputError and
/// NoRoomError. The caller must not search a task that is unaffordable(). O(n + m).
fit::Task make_task(core::Graph graph, std::string_view name, const Request& request);

}  // namespace cairn::pipeline
