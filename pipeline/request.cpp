#include "cairn/pipeline/request.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/support/text.h"
#include "cairn/solvers/fit/solve.h"

namespace cairn::pipeline {

NoRoomError::NoRoomError(std::string graph, const DeviceShare& divided)
    : core::Error(fmt::format("'{}' does not fit into a device of {}, of which {} are taken before any schedule begins",
                              graph, core::format_bytes(divided.device), core::format_bytes(divided.beside_arena()))),
      name(std::move(graph)),
      share(divided) {}

std::int64_t parse_max_cost(const std::string& text, std::int64_t baseline) {
  std::int64_t whole = 0;
  if (core::parse_whole(text, whole) == core::NumberFault::none && whole >= 0) return whole;
  double number = 0;
  std::size_t end = 0;
  try {
    number = std::stod(text, &end);
  } catch (const std::exception&) {
  }
  const std::string unit = text.substr(end);
  // std::stod() also reads hexadecimal numbers.
  if (text.find_first_of("xX") < end) end = 0;
  const double share = unit == "%" ? 1 + number / 100 : number;
  const double cost = share * static_cast<double>(baseline);
  // `end` = 0 means that the text is not acceptable.
  if (end == 0 || (unit != "%" && unit != "x") || !std::isfinite(cost) || number < 0 || cost >= 9e18)
    throw core::InputError(
        fmt::format("{} is not a cost; give 10% (above the baseline's {}), 1.1x (times it), or a cost as 12345",
                    core::option("max-cost", fmt::format("'{}'", text)), baseline));
  // The result is slightly enlarged. Otherwise rounding could exclude a schedule whose cost is exactly the limit that
  // the user gave in percent.
  return static_cast<std::int64_t>(cost * (1 + 1e-12) + 1e-9);
}

namespace {

[[noreturn]] void refuse_both(std::string_view one, std::string_view other, std::string_view what) {
  throw core::InputError(
      fmt::format("{} and {} both {}; drop one of them", core::option(one), core::option(other), what));
}

}  // namespace

std::optional<core::HostMemory> host_memory_of(const Request& request) {
  const std::optional<core::HostMemory> host = parse_host_memory(request.link, request.host_budget);
  if (!host) return host;
  if (request.overlap_steps > 0) refuse_both("link", "overlap-steps", "let copies or steps overlap in time");
  return host;
}

std::optional<core::HostMemory> parse_host_memory(const std::string& link, const std::string& host_budget) {
  if (link.empty()) {
    if (!host_budget.empty())
      throw core::InputError(fmt::format("{} is the memory behind a {}; give that too", core::option("host-budget"),
                                         core::option("link")));
    return std::nullopt;
  }
  core::HostMemory host{.link = core::parse_link(link)};
  if (!host_budget.empty()) {
    const std::string fault = core::size_fault(host_budget, host.budget);
    if (!fault.empty())
      throw core::InputError(
          fmt::format("{} {}", core::option("host-budget", fmt::format("'{}'", host_budget)), fault));
  }
  return host;
}

fit::Task make_task(core::Graph graph, std::string_view name, const Request& request) {
  if (const auto host = host_memory_of(request)) graph = graph.with_host_memory(host);
  const bool least = request.budget == "min";
  if (!request.budget.empty() && !request.max_cost.empty()) refuse_both("budget", "max-cost", "limit the search");
  if (request.device && !request.budget.empty()) refuse_both("budget", "device-memory", "say what the arena may have");
  if (request.device && !request.max_cost.empty()) refuse_both("max-cost", "device-memory", "limit the search");
  if (request.peak_only && request.budget.empty())
    throw core::InputError(
        fmt::format("{} is about a {}; give one, or drop it", core::option("peak-only"), core::option("budget")));
  const std::int64_t alignment = request.alignment > 0 ? request.alignment : fit::default_alignment(graph);
  std::string budget = least ? "" : request.budget;
  if (request.device) {
    const DeviceShare share = share_device(graph, *request.device);
    if (share.arena() <= 0) throw NoRoomError(fit::graph_name(graph, name), share);
    budget = std::to_string(share.arena());
  }
  fit::Problem problem(std::move(graph), budget, name, request.peak_only ? 1 : alignment);
  fit::Objective objective = fit::Objective::least_peak;
  std::optional<std::int64_t> most;
  if (!request.max_cost.empty()) {
    objective = fit::Objective::within_cost;
    most = parse_max_cost(request.max_cost, problem.baseline.cost);
  } else if (problem.budget) {
    objective = request.peak_only ? fit::Objective::within_peak : fit::Objective::within_budget;
  } else if (least && !request.peak_only) {
    objective = fit::Objective::least_budget;
  } else if (!least && solvers::find_solver(request.solver).can.any_means) {
    objective = fit::Objective::knee;
  }
  return {std::move(problem), objective, alignment, most, request.overlap_steps};
}

}  // namespace cairn::pipeline
