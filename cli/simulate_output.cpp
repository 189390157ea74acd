// What `cairn simulate` says: JSON, a table, a page.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>

#include "cairn/cli/simulate.h"
#include "cairn/core/text.h"
#include "cairn/core/version.h"
#include "cairn/pipeline/report/sweep_report.h"

namespace cairn::cli {
namespace {

constexpr std::array<std::int32_t, 9> kPercents = {0, 1, 5, 25, 50, 75, 95, 99, 100};

Json to_json(const sim::Entry& entry) {
  return {{"index", entry.index}, {"peak_bytes", entry.peak}, {"cost", entry.cost}};
}

Json to_json(const std::vector<sim::Entry>& entries) {
  Json list = Json::array();
  for (const sim::Entry& entry : entries) list.push_back(to_json(entry));
  return list;
}

/// The bins of the tally that hold anything, put together into 64 or less.
Json shown_histogram(const sim::Tally& tally) {
  constexpr std::int64_t kMostShown = 64;
  const auto& bins = tally.histogram();
  const auto filled = [](std::int64_t count) { return count > 0; };
  const std::int64_t first = std::find_if(bins.begin(), bins.end(), filled) - bins.begin();
  const std::int64_t end = bins.rend() - std::find_if(bins.rbegin(), bins.rend(), filled);
  if (first >= end) return nullptr;
  const std::int64_t together = (end - first + kMostShown - 1) / kMostShown;
  std::vector<std::int64_t> counts(static_cast<std::size_t>((end - first + together - 1) / together), 0);
  for (std::int64_t b = first; b < end; ++b) counts[static_cast<std::size_t>((b - first) / together)] += bins[b];
  const std::int64_t width = tally.options().width();
  return {{"from", tally.options().from + first * width}, {"width", together * width}, {"counts", counts}};
}

Json to_json(const std::vector<Remark>& remarks) {
  Json list = Json::array();
  for (const auto& [line, what] : remarks) list.push_back({{"line", line}, {"what", what}});
  return list;
}

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// Counted in thousands: "12,345,678".
std::string count_text(std::int64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

/// One bar a row, the shown bins put together once more.
std::string histogram_text(const Json& histogram, std::int64_t valid) {
  constexpr std::int64_t kRows = 12, kWidth = 40;
  if (histogram.is_null()) return "";
  const auto counts = histogram["counts"].get<std::vector<std::int64_t>>();
  const auto from = histogram["from"].get<std::int64_t>(), width = histogram["width"].get<std::int64_t>();
  const auto shown = static_cast<std::int64_t>(counts.size());
  const std::int64_t together = (shown + kRows - 1) / kRows;
  std::vector<std::int64_t> rows;
  for (std::int64_t b = 0; b < shown; ++b) {
    if (b % together == 0) rows.push_back(0);
    rows.back() += counts[static_cast<std::size_t>(b)];
  }
  const std::int64_t most = *std::max_element(rows.begin(), rows.end());
  std::vector<std::vector<std::string>> cells = {{"peak from", "candidates", ""}};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto length = static_cast<std::size_t>(static_cast<double>(kWidth) * share(rows[row], most) + 0.5);
    const std::int64_t begin = from + static_cast<std::int64_t>(row) * together * width;
    cells.push_back({core::format_bytes(begin), fmt::format("{:5.1f}%", 100 * share(rows[row], valid)),
                     rows[row] > 0 ? std::string(std::max<std::size_t>(1, length), '#') : ""});
  }
  return "\n" + format_table(cells, true);
}

}  // namespace

Json describe(const SimulateArguments& arguments, const Problem& problem, const Swept& swept,
              const sim::Simulator& simulator, int ranks) {
  const sim::Tally& tally = swept.tally;
  const sim::TallyCounts& counts = tally.counts();
  const bool any = counts.valid > 0, random = !arguments.random.empty();
  const auto if_any = [&](auto value) { return any ? Json(value) : Json(nullptr); };
  Json json = problem.describe();
  json["backend"] = simulator.backend();
  json["device"] = simulator.device();
  json["ranks"] = ranks;
  json["source"] = random ? "random" : arguments.schedules;
  json["seed"] = random ? Json(arguments.seed) : Json(nullptr);
  json["moves"] = random ? Json(arguments.moves) : Json(nullptr);
  json["candidates"] = tally.candidates();
  json["valid"] = counts.valid;
  json["invalid"] = counts.invalid;
  json["invalid_candidates"] = to_json(swept.invalid);
  json["bad_lines"] = swept.bad_lines;
  json["bad"] = to_json(swept.bad);
  json["seconds"] = swept.result.seconds;
  json["candidates_per_second"] = static_cast<double>(swept.result.evaluated) / std::max(swept.result.seconds, 1e-9);
  json["best"] = any ? to_json(tally.top().front()) : Json(nullptr);
  json["top"] = to_json(tally.top());
  json["pareto"] = to_json(tally.front());
  json["mean_peak_bytes"] = if_any(tally.mean_peak());
  json["mean_cost"] = if_any(tally.mean_cost());
  json["least_cost"] = if_any(counts.least_cost);
  json["most_cost"] = if_any(counts.most_cost);
  Json quantiles;
  for (const std::int32_t percent : kPercents) quantiles[fmt::format("p{}", percent)] = if_any(tally.quantile(percent));
  json["quantiles"] = quantiles;
  json["quantile_precision_bytes"] = tally.options().width() - 1;
  json["histogram"] = shown_histogram(tally);
  json["within_budget"] = problem.budget ? Json(counts.within) : Json(nullptr);
  json["within_budget_share"] = problem.budget ? Json(share(counts.within, counts.valid)) : Json(nullptr);
  json["resumed_from"] = swept.resumed_from ? Json(*swept.resumed_from) : Json(nullptr);
  json["timed_out"] = swept.timed_out;
  json["interrupted"] = swept.interrupted;
  return json;
}

std::string table(const Problem& problem, const Json& json, const Swept& swept) {
  const sim::Tally& tally = swept.tally;
  const sim::TallyCounts& counts = tally.counts();
  const auto against_baseline = [&](std::int64_t peak) {
    return fmt::format("{:.1f}% of the baseline's", 100 + increase_pct(peak, problem.baseline.peak));
  };
  const int ranks = json["ranks"].get<int>();
  std::vector<std::vector<std::string>> rows = {
      {"graph",
       fmt::format("{}: {} nodes, {} edges", problem.name, problem.graph.node_count(), problem.graph.edge_count())},
      {"on", fmt::format("{} ({}){}", json["backend"].get<std::string>(), json["device"].get<std::string>(),
                         ranks > 1 ? fmt::format(", {} processes", ranks) : "")},
      {"candidates",
       fmt::format("{} in {:.2f} s, {:.3g} a second{}{}", count_text(tally.candidates()), swept.result.seconds,
                   json["candidates_per_second"].get<double>(),
                   swept.resumed_from ? fmt::format(", {} of them before", count_text(*swept.resumed_from)) : "",
                   swept.timed_out ? "; the time limit ended it" : "")}};
  if (counts.invalid > 0) rows.push_back({"invalid", count_text(counts.invalid)});
  for (const auto& [line, what] : swept.invalid) rows.push_back({"", fmt::format("line {}: {}", line, what)});
  if (swept.bad_lines > 0) rows.push_back({"bad lines", count_text(swept.bad_lines)});
  for (const auto& [line, what] : swept.bad) rows.push_back({"", fmt::format("line {}: {}", line, what)});
  rows.push_back({"baseline", bytes_text(problem.baseline.peak)});
  rows.push_back({"lower bound", bytes_text(problem.lower_bound)});
  if (counts.valid == 0) return format_table(rows, false) + "no candidate is valid\n";
  const sim::Entry& best = tally.top().front();
  rows.push_back({"least peak", fmt::format("{}, {}, cost {} ({:+.2f}%), candidate {}", bytes_text(best.peak),
                                            against_baseline(best.peak), best.cost,
                                            increase_pct(best.cost, problem.baseline.cost), best.index)});
  rows.push_back({"mean peak", core::format_bytes(static_cast<std::int64_t>(tally.mean_peak()))});
  for (const std::int32_t percent : {1, 50, 99, 100}) {
    const std::int64_t peak = tally.quantile(percent);
    rows.push_back({percent == 100 ? "most" : fmt::format("{}% up to", percent),
                    fmt::format("{}, {}", core::format_bytes(peak), against_baseline(peak))});
  }
  if (problem.budget)
    rows.push_back({"budget", fmt::format("{}: {} candidates within it ({:.3g}%)", bytes_text(*problem.budget),
                                          count_text(counts.within), 100 * share(counts.within, counts.valid))});
  rows.push_back(
      {"Pareto set", fmt::format("{} of peak and cost", count_text(static_cast<std::int64_t>(tally.front().size())))});
  return format_table(rows, false) + histogram_text(json["histogram"], counts.valid);
}

std::string report_page(const Problem& problem, const Json& json, const Swept& swept) {
  const sim::Tally& tally = swept.tally;
  const auto to_candidates = [](const std::vector<sim::Entry>& entries) {
    std::vector<core::SweepReport::Candidate> candidates;
    for (const auto& [peak, cost, index] : entries) candidates.push_back({peak, cost, index});
    return candidates;
  };
  core::SweepReport report;
  report.graph = problem.name;
  report.source = json["seed"].is_null()
                      ? "schedules of " + json["source"].get<std::string>()
                      : fmt::format("random schedules of seed {}, at most {} moves", json["seed"].get<std::uint64_t>(),
                                    json["moves"].get<std::int64_t>());
  report.device = json["device"].get<std::string>();
  report.version = core::kVersion;
  report.nodes = problem.graph.node_count();
  report.edges = problem.graph.edge_count();
  report.candidates = tally.candidates();
  report.invalid = tally.counts().invalid;
  report.baseline_peak_bytes = problem.baseline.peak;
  report.baseline_cost = problem.baseline.cost;
  report.lower_bound_bytes = problem.lower_bound;
  report.budget_bytes = problem.budget;
  report.within_budget = tally.counts().within;
  report.mean_peak_bytes = tally.mean_peak();
  report.top = to_candidates(tally.top());
  report.pareto = to_candidates(tally.front());
  if (const Json& histogram = json["histogram"]; !histogram.is_null()) {
    report.histogram_from = histogram["from"].get<std::int64_t>();
    report.histogram_width = histogram["width"].get<std::int64_t>();
    report.histogram = histogram["counts"].get<std::vector<std::int64_t>>();
  }
  if (tally.counts().valid > 0) {
    for (const std::int32_t percent : kPercents)
      report.quantiles.emplace_back(percent == 0     ? "least"
                                    : percent == 100 ? "most"
                                                     : fmt::format("{}% of the candidates up to", percent),
                                    tally.quantile(percent));
  }
  return core::sweep_report(report);
}

SweepLine::SweepLine(const Console& console, const Problem& problem)
    : active_(isatty(STDERR_FILENO) != 0 && !console.quiet), baseline_peak_(problem.baseline.peak) {}

SweepLine::~SweepLine() {
  if (shown_) std::cerr << "\r\033[K" << std::flush;
}

void SweepLine::show(const sim::SweepProgress& progress) {
  if (!active_) return;
  shown_ = true;
  constexpr int kWidth = 24;
  std::string bar, left;
  if (progress.total > 0) {
    const int filled = static_cast<int>(kWidth * share(progress.done, progress.total));
    bar = fmt::format("[\033[32m{:#<{}}\033[0m{:.<{}}] ", "", filled, "", kWidth - filled);
    left = fmt::format(" of {}", count_text(progress.total));
  }
  const std::string best = progress.best
                               ? fmt::format("  best peak {} ({:+.1f}%)", core::format_bytes(progress.best->peak),
                                             increase_pct(progress.best->peak, baseline_peak_))
                               : "";
  std::cerr << fmt::format("\r{}{}{}  {:.3g}/s{}\033[K", bar, count_text(progress.done), left, progress.per_second,
                           best)
            << std::flush;
}

}  // namespace cairn::cli
