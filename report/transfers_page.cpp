#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/support/text.h"
#include "cairn/report/explain/support/transfers.h"
#include "cairn/report/html/support/words.h"
#include "cairn/report/pages.h"
#include "cairn/report/support/words.h"

// Makes the parts of pages that are about transfers between device memory and host memory.
namespace cairn::report {
namespace {

constexpr std::size_t kListedRows = 20;

class TransferParts {
 public:
  TransferParts(Report& page, const core::Graph& graph, const core::Schedule& schedule)
      : page_(page),
        graph_(graph),
        schedule_(schedule),
        host_(*graph.host_memory()),
        summary_(explain_transfers(graph, schedule, host_.link)) {}

  void add(const core::Plan* plan) {
    add_facts(plan);
    page_.pictures.push_back({"Host memory and copies over time", core::describe(host_.link), transfers_svg(drawn())});
    add_absences();
    add_waits();
  }

 private:
  std::string cost(std::int64_t time) const { return html::cost_text(time, page_.cost_unit); }

  void add_facts(const core::Plan* plan) {
    const std::int64_t makespan = summary_.times.makespan;
    page_.facts.push_back({"To the host", core::format_bytes(summary_.to_host.bytes),
                           fmt::format("{} copies, {} of the time", html::grouped(summary_.to_host.copies),
                                       html::share(summary_.to_host.busy, makespan))});
    page_.facts.push_back({"Back to the device", core::format_bytes(summary_.to_device.bytes),
                           fmt::format("{} copies, {} of the time", html::grouped(summary_.to_device.copies),
                                       html::share(summary_.to_device.busy, makespan))});
    page_.facts.push_back({"Waiting for copies", cost(summary_.times.waiting),
                           fmt::format("{} of the time; {} steps wait", html::share(summary_.times.waiting, makespan),
                                       html::grouped(std::ssize(summary_.waits)))});
    const std::string peak = core::format_bytes(summary_.host_peak);
    const bool limited = host_.budget != std::numeric_limits<std::int64_t>::max();
    page_.facts.push_back({"Host memory", plan != nullptr ? core::format_bytes(plan->host_bytes) : peak,
                           fmt::format("{}{}", plan != nullptr ? "planned; peak " + peak : "peak",
                                       limited ? "; budget " + core::format_bytes(host_.budget) : "")});
  }

  ReportTransfers drawn() const {
    ReportTransfers shown{.end = summary_.times.makespan, .cost_unit = page_.cost_unit};
    shown.host = host_bytes(graph_, schedule_, summary_.times);
    const auto& [evicts, fetches] = schedule_.transfers;
    const auto name = [&](std::int32_t evict, std::int32_t fetch) {
      const core::ValueId value = copied_value(schedule_, evict, fetch);
      return fmt::format("{}, {}", graph_.value_name(value), core::format_bytes(graph_.value_size(value)));
    };
    for (std::size_t k = 0; k < evicts.size(); ++k) {
      const core::Span& time = summary_.times.evicts[k];
      shown.to_host.push_back({time.begin, time.end, name(static_cast<std::int32_t>(k), -1)});
    }
    for (std::size_t k = 0; k < fetches.size(); ++k) {
      const core::Span& time = summary_.times.fetches[k];
      shown.to_device.push_back({time.begin, time.end, name(-1, static_cast<std::int32_t>(k))});
    }
    for (const CopyWait& wait : summary_.waits) {
      const bool last = wait.step == schedule_.length();
      const std::int64_t end =
          last ? summary_.times.makespan : summary_.times.steps[static_cast<std::size_t>(wait.step)].begin;
      shown.waits.push_back({end - wait.time, end, copy_name(graph_, schedule_, wait.evict, wait.fetch)});
    }
    return shown;
  }

  void add_absences() {
    ReportTable table{.title = "On the host",
                      .head = {"tensor", "bytes", "leaves", "returns", "idle", "off the device"}};
    std::vector<Absence> rows = summary_.absences;
    std::ranges::stable_sort(rows, [](const Absence& a, const Absence& b) { return a.bytes > b.bytes; });
    if (rows.size() > kListedRows) {
      table.note = fmt::format("the largest {} of {}", kListedRows, html::grouped(std::ssize(rows)));
      rows.resize(kListedRows);
    }
    for (const Absence& one : rows)
      table.rows.push_back({{graph_.value_name(one.value), core::format_bytes(one.bytes),
                             fmt::format("before step {}", html::grouped(one.leaves)),
                             fmt::format("before step {}", html::grouped(one.returns)), cost(one.idle), cost(one.away)},
                            false});
    page_.tables.push_back(std::move(table));
  }

  void add_waits() {
    if (summary_.waits.empty()) return;
    ReportTable table{.title = "Waits for copies", .head = {"step", "node", "waits for", "time"}};
    std::vector<CopyWait> rows = summary_.waits;
    std::ranges::stable_sort(rows, [](const CopyWait& a, const CopyWait& b) { return a.time > b.time; });
    if (rows.size() > kListedRows) {
      table.note = fmt::format("the longest {} of {}", kListedRows, html::grouped(std::ssize(rows)));
      rows.resize(kListedRows);
    }
    for (const CopyWait& one : rows) {
      const bool end = one.step == schedule_.length();
      table.rows.push_back({{end ? "end" : html::grouped(one.step),
                             end ? "" : graph_.name(schedule_.steps[static_cast<std::size_t>(one.step)]),
                             copy_name(graph_, schedule_, one.evict, one.fetch), cost(one.time)},
                            false});
    }
    page_.tables.push_back(std::move(table));
  }

  Report& page_;
  const core::Graph& graph_;
  const core::Schedule& schedule_;
  core::HostMemory host_;
  TransferSummary summary_;
};

}  // namespace

void add_transfers(Report& page, const core::Graph& graph, const core::Schedule& schedule, const core::Plan* plan) {
  if (graph.host_memory() && !schedule.transfers.empty()) TransferParts(page, graph, schedule).add(plan);
}

}  // namespace cairn::report
