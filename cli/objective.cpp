#include "cairn/cli/objective.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/support/text.h"
#include "cairn/pipeline/request.h"
#include "cairn/pipeline/support/schedule_cache.h"

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

void ObjectiveArguments::add_to(CLI::App& app, const std::string& help) {
  add_budget(app, budget, help + ", or 80% of the baseline peak; min: the least budget known");
  device.add_to(app);
  app.add_option("--max-cost", max_cost,
                 "the least peak for at most this cost: 10% above the baseline's, 1.1x, or a cost as 12345");
  add_link(app, link, host_budget);
}

void add_link(CLI::App& app, std::string& link, std::string& host_budget) {
  app.add_option("--link", link,
                 "connection to the host's memory, to which tensors may move: pcie3, pcie4, pcie5, c2c, or a bandwidth "
                 "with an optional latency and direction, as 25GB/s or 25GB/s,10us,half; costs are makespans then");
  app.add_option("--host-budget", host_budget, "bytes that tensors may take in the host's memory, as 64GiB");
}

void warn_of_costs(const core::Graph& graph, const std::string& name) {
  constexpr std::size_t kShown = 60;  // largest number of columns in which a name is shown
  if (!graph.host_memory() || graph.cost_unit().seconds() > 0) return;
  print_notice("costs_without_time", fmt::format("the costs of '{}' have no unit of time; with --link they count as ns",
                                                 core::abridged(name, kShown)));
}

void add_peak_only(CLI::App& app, bool& peak_only) {
  app.add_flag("--peak-only", peak_only, "budgets are on the peak of the schedule, whatever the height of its plan");
}

void add_explain(CLI::App& app, bool& explain) {
  app.add_flag("--explain", explain,
               "say more of the peak: by layer, the largest tensors, how long each is idle; and what each layer's "
               "recomputation saves for which cost (--json always has it)");
}

fit::Task ObjectiveArguments::task(core::Graph graph, const std::string& name, const AlignmentChoice& alignment,
                                   const SolverArguments& search) const {
  const pipeline::Request request{budget,          max_cost,      peak_only,
                                  alignment.given, search.solver, device.given_memory(),
                                  overlap_steps,   link,          host_budget};
  const std::string shown = fit::graph_name(graph, name);
  const auto made = [&] {
    try {
      return pipeline::make_task(std::move(graph), name, request);
    } catch (const pipeline::NoRoomError& error) {
      throw Failure(kInfeasible, report::no_room_text(error),
                    {{"graph", shown}, {"device", to_json(pipeline::DeviceAdvice{error.share, {}, {}})}});
    }
  };
  fit::Task task = made();
  warn_of_costs(task.problem.graph, shown);
  if (task.unaffordable()) {
    Json json = describe(task.problem);
    json["max_cost"] = or_null(task.max_cost);
    json["status"] = solvers::to_string(solvers::Status::infeasible);
    json["stopped"] = solvers::to_string(solvers::Stop::proved);
    throw Failure(kInfeasible, report::unaffordable_text(task), std::move(json));
  }
  return task;
}

namespace {

/// Returns whether this search stores its schedule for later commands and uses schedules that earlier commands stored.
bool remembers(const fit::Task& task, const SolverArguments& search) {
  return search.work_limit == 0 && search.find().can.any_means && task.plans_fit() &&
         task.problem.graph.node_count() > 0;
}

}  // namespace

std::optional<fit::LeastBudget> remembered(const fit::Task& task, const SolverArguments& search) {
  if (!remembers(task, search)) return std::nullopt;
  return pipeline::ScheduleCache().find(task, search.options().scope);
}

fit::LeastBudget remember(const fit::Task& task, const SolverArguments& search, fit::LeastBudget least) {
  if (!remembers(task, search)) return least;
  return pipeline::ScheduleCache().keep(task, search.options().scope, std::move(least));
}

fit::Answer search(const fit::Task& task, const SolverArguments& arguments, const solvers::SolveOptions& search,
                   const std::function<void(const fit::CurveProgress&)>& progress) {
  std::optional<fit::LeastBudget> stored;
  if (task.objective != fit::Objective::knee) stored = remembered(task, arguments);
  return fit::search(task, arguments.find(), search, progress, {.stored = stored ? &*stored : nullptr});
}

Failure failure_of(const fit::Task& task, const SolverArguments& search, const fit::Answer& answer,
                   const fit::LeastBudget& least, const std::string& output, std::string_view other, Json json) {
  std::string message = report::failure_text(task, search.find(), search.options().scope, answer, least, other);
  if (answer.found.solution.status == solvers::Status::infeasible) {
    json["lower_bound_peak_bytes"] = report::problem_of_failure(task, answer).lower_bound;
    return {kInfeasible, message, std::move(json)};
  }
  if (task.problem.graph.host_memory()) {
    constexpr double kSeconds = 1;
    solvers::SolveOptions options = search.options();
    options.limit.seconds = std::min(kSeconds, options.limit.seconds);
    const std::optional<std::int64_t> host = fit::sufficient_host_budget(task, answer, options);
    json["sufficient_host_budget_bytes"] = or_null(host);
    if (host) message += "\n" + report::host_budget_text(*host);
  }
  if (answer.found.plan && !output.empty() && !task.max_cost)
    message += fmt::format("\nthe best so far was written to '{}'", core::output_name(output));
  return {kNotFound, message, std::move(json)};
}

}  // namespace cairn::cli
