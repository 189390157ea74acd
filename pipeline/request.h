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

/// What is looked for, in people's words.
struct Request {
  std::string budget;           ///< as core::parse_budget reads it; `min`: the least there is; empty: none
  std::string max_cost;         ///< 10% above the baseline's cost, 1.1x, or a cost as 12345; empty: none
  bool peak_only = false;       ///< the budget is on the peak of the schedule, whatever the height of its plan
  std::int64_t alignment = 0;   ///< of plans, in bytes; 0: default_alignment
  std::string solver = "auto";  ///< without budget and cost, `auto` looks for the knee, others for the least peak
  std::optional<DeviceMemory> device = {};  ///< whose arena is the budget
};

/// A device that what is resident fills alone: no schedule fits, whatever it recomputes.
class NoRoomError : public core::Error {
 public:
  NoRoomError(std::string graph, const DeviceShare& divided);
  std::string name;  ///< of the graph
  DeviceShare share;
};

/// "10%": of the baseline's cost, on top of it; "1.1x": times it; or a cost. Throws InputError.
std::int64_t parse_max_cost(const std::string& text, std::int64_t baseline);

/// `name`: for a graph that has none. Throws InputError, and NoRoomError. A task that is unaffordable() is not to be
/// searched. O(n + m).
fit::Task make_task(core::Graph graph, std::string_view name, const Request& request);

}  // namespace cairn::pipeline
