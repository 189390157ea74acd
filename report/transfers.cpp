#include "cairn/report/explain/support/transfers.h"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "cairn/core/cost_unit.h"
#include "cairn/core/link.h"
#include "cairn/core/support/text.h"
#include "cairn/report/support/json.h"
#include "cairn/report/support/words.h"

// Makes the table rows and the JSON about the transfers between device memory and host memory.
namespace cairn::report {
namespace {

std::string moved_text(const TransferSummary& summary) {
  if (summary.to_host.copies == 0) return "none";
  const auto side = [](const LinkUse& use, std::string_view where) {
    return fmt::format("{} {} {}", count_text(use.copies), where, core::format_bytes(use.bytes));
  };
  return side(summary.to_host, "to the host with") + ", " + side(summary.to_device, "back with");
}

std::string busy_text(const TransferSummary& summary, bool duplex) {
  const std::int64_t whole = summary.times.makespan, host = summary.to_host.busy, device = summary.to_device.busy;
  const auto share = [&](std::int64_t busy) { return 100 * fraction(busy, whole); };
  const std::string text =
      fmt::format("{:.1f}% of the time to the host, {:.1f}% to the device", share(host), share(device));
  return duplex ? text : text + fmt::format(", {:.1f}% together", share(host + device));
}

std::string host_text(const TransferSummary& summary, const core::Plan* plan, std::optional<std::int64_t> budget) {
  std::string text = "peak " + bytes_text(summary.host_peak);
  if (plan != nullptr) text += ", planned " + bytes_text(plan->host_bytes);
  return budget ? text + ", within the budget of " + bytes_text(*budget) : text;
}

}  // namespace

std::string makespan_text(const fit::Problem& problem, const core::Evaluation& evaluation) {
  const std::int64_t baseline = problem.baseline.cost, compute = evaluation.cost - evaluation.waiting;
  return fmt::format("{}: {:+.2f}% recomputed, {:+.2f}% waiting for copies",
                     cost_and_increase(problem, evaluation.cost), increase_pct(compute, baseline),
                     100 * fraction(evaluation.waiting, baseline));
}

std::string link_worth_text(const fit::Problem& problem, const fit::LinkWorth& worth) {
  const double bandwidth = static_cast<double>(problem.graph.host_memory().value().link.bytes_per_second);
  const double saved = 100 - share_pct(problem, worth.free.memory());
  const bool free = !worth.free.schedule.transfers.empty() && saved > 0;
  return fmt::format("offloading over {:.4g} GB/s saves {} at no cost{}", bandwidth * 1e-9,
                     free ? fmt::format("{:.1f}% of the memory", saved) : "no memory",
                     worth.recompute_below ? fmt::format("; below {:.1f}% recomputation costs less than waiting",
                                                         share_pct(problem, *worth.recompute_below))
                                           : "");
}

std::string host_budget_text(std::int64_t bytes) {
  std::string size = size_to_type(bytes);
  if (bytes < 1024) size = std::to_string(bytes);
  std::erase(size, ' ');
  return fmt::format("the host's memory is too small: a schedule is known for {}", core::option("host-budget", size));
}

std::string budgets_text(const fit::Problem& problem) {
  const auto& host = problem.graph.host_memory();
  const std::optional<std::int64_t> on_host = host ? host->limit() : std::nullopt;
  std::string device = problem.budget ? bytes_text(*problem.budget) : "";
  if (!on_host) return device;
  return (device.empty() ? "" : device + ", and ") + bytes_text(*on_host) + " on the host";
}

Rows transfer_rows(const core::Graph& graph, const core::Schedule& schedule, const core::Plan* plan) {
  if (!graph.host_memory()) return {};
  const core::Link& link = graph.host_memory()->link;
  const std::optional<std::int64_t> budget = graph.host_memory()->limit();
  const TransferSummary summary = explain_transfers(graph, schedule, link);
  return {{"link", core::describe(link)},
          {"transfers", moved_text(summary)},
          {"link busy", busy_text(summary, link.duplex)},
          {"host memory", host_text(summary, plan, budget)}};
}

void add_link_worth(Json& json, const fit::Problem& problem, const fit::LinkWorth& worth) {
  const core::Plan* const plan = worth.free.plan ? &*worth.free.plan : nullptr;
  const std::int64_t host_bytes = plan != nullptr ? plan->host_bytes : worth.free.evaluation.host_peak;
  json["link"] = to_json(problem.graph.host_memory().value().link);
  json["link_worth"] = {{"free_peak_bytes", worth.free.evaluation.peak},
                        {"free_planned_bytes", plan != nullptr ? Json(plan->bytes) : Json()},
                        {"free_host_bytes", host_bytes},
                        {"free_saved_pct", 100 - share_pct(problem, worth.free.memory())},
                        {"recomputation_cheaper_below_bytes", or_null(worth.recompute_below)},
                        {"text", link_worth_text(problem, worth)}};
}

Json to_json(const core::Link& link) {
  return {{"bytes_per_second", link.bytes_per_second}, {"latency_ns", link.latency_ns}, {"duplex", link.duplex}};
}

void add_transfers(Json& json, const core::Graph& graph, const core::Schedule* schedule, const core::Plan* plan) {
  if (!graph.host_memory()) return;
  const core::Link& link = graph.host_memory()->link;
  const std::optional<std::int64_t> budget = graph.host_memory()->limit();
  TransferSummary summary;
  if (schedule != nullptr) summary = explain_transfers(graph, *schedule, link);
  const auto if_any = [&](std::int64_t value) { return schedule != nullptr ? Json(value) : Json(nullptr); };
  json["link"] = to_json(link);
  json["makespan"] = if_any(summary.times.makespan);
  json["compute_cost"] = if_any(summary.times.compute);
  json["waiting"] = if_any(summary.times.waiting);
  json["evicts"] = if_any(summary.to_host.copies);
  json["fetches"] = if_any(summary.to_device.copies);
  json["moved_bytes"] = if_any(summary.to_host.bytes + summary.to_device.bytes);
  json["host_peak_bytes"] = if_any(summary.host_peak);
  json["host_planned_bytes"] = plan != nullptr ? Json(plan->host_bytes) : Json(nullptr);
  json["host_budget_bytes"] = or_null(budget);
}

}  // namespace cairn::report
