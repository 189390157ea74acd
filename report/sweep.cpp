#include "cairn/pipeline/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "cairn/core/support/text.h"
#include "cairn/report/html/report.h"
#include "cairn/report/html/support/words.h"
#include "cairn/report/pages.h"
#include "cairn/report/support/words.h"

namespace cairn::report {

namespace {

/// Draws the memory profiles that no other candidate's profile dominates (core/dominance.h). If there are more than
/// kMostShown such profiles, draws those with the lowest peaks.
ReportPicture picture_of(const sim::Undominated& found) {
  constexpr std::size_t kMostShown = 40;
  std::vector<ReportProfile> profiles;
  for (std::int64_t i = 0; i < found.profiles().size(); ++i) {
    const core::CanonicalView profile = found.profiles()[i];
    std::int64_t valley = profile.start;
    ReportProfile shown{fmt::format("candidate {}", found.numbers()[static_cast<std::size_t>(i)]), {valley}};
    for (const core::Segment& segment : profile.segments) {
      shown.bytes.push_back(valley + segment.rise);
      shown.bytes.push_back(valley += segment.change());
    }
    profiles.push_back(std::move(shown));
  }
  const auto peak = [](const ReportProfile& profile) { return *std::ranges::max_element(profile.bytes); };
  std::ranges::stable_sort(profiles, {}, peak);
  const std::size_t shown = std::min(profiles.size(), kMostShown);
  profiles.resize(shown);
  return {
      "Profiles that no other one dominates",
      fmt::format("Each line is a candidate's memory by its valleys and peaks, from after the first step to the end "
                  "of the last. {}{} of the {} candidates stay{}.",
                  html::grouped(found.profiles().size()), found.complete() ? "" : " or more",
                  html::grouped(found.candidates()),
                  shown < found.numbers().size() ? fmt::format("; the {} with the least peaks are drawn", shown) : ""),
      profiles_svg(profiles)};
}

}  // namespace

std::string sweep_page(const fit::Problem& problem, const pipeline::Swept& swept, const pipeline::SweepOrigin& origin) {
  const sim::Tally& tally = swept.tally;
  const sim::TallyCounts& counts = tally.counts();
  const std::int64_t baseline = problem.baseline.peak;
  Report page = html::of_graph("cairn simulate", problem.graph, problem.name);
  page.summary += " \u00b7 " + origin.text() + (origin.device.empty() ? "" : " \u00b7 " + origin.device);
  page.facts.push_back(
      {"Candidates", html::grouped(tally.candidates()), html::grouped(counts.valid) + " of them valid"});
  page.levels.push_back({"baseline", baseline, ReportLevel::Kind::baseline});
  page.levels.push_back({"lower bound", problem.lower_bound, ReportLevel::Kind::bound});
  if (problem.budget) {
    page.budget_bytes = problem.budget;
    page.levels.push_back({"budget", *problem.budget, ReportLevel::Kind::budget});
  }
  if (const std::string budgets = budgets_text(problem); !budgets.empty())
    page.facts.push_back({"Within the budget", html::share(counts.within, counts.valid),
                          fmt::format("{} of {}", html::grouped(counts.within), budgets)});
  if (counts.valid == 0) return report_page(page);

  const sim::Entry& best = tally.top().front();
  page.facts.push_back({"Least peak", html::change(baseline, best.peak), html::from_to(baseline, best.peak)});
  page.facts.push_back({"Mean peak", core::format_bytes(static_cast<std::int64_t>(tally.mean_peak())),
                        "lower bound " + core::format_bytes(problem.lower_bound)});
  pipeline::Histogram histogram = pipeline::shown_histogram(tally);
  page.histogram = {histogram.from, histogram.width, std::move(histogram.counts)};
  if (!swept.best.steps.empty()) {
    page.shown = static_cast<std::int32_t>(page.schedules.size());
    page.schedules.push_back({"best candidate", swept.best, {}});
  }
  ReportTradeoff& tradeoff = page.tradeoff.emplace();
  tradeoff.note = "For each point, no other candidate is better in both measures.";
  tradeoff.baseline = {baseline, problem.baseline.cost, "baseline"};
  tradeoff.lower_bound_bytes = problem.lower_bound;
  for (const auto& [peak, cost, index] : tally.front())
    tradeoff.found.push_back(
        {peak, cost, fmt::format("candidate {}", index), "", false, index == best.index ? page.shown : -1});

  ReportTable top{"The best", "", {"candidate", "peak", "of the baseline", "cost", "extra cost"}, {}};
  for (const auto& [peak, cost, index] : tally.top())
    top.rows.push_back({{html::grouped(index), core::format_bytes(peak), html::share(peak, baseline),
                         html::cost_text(cost, page.cost_unit), html::change(problem.baseline.cost, cost)}});
  ReportTable quantiles{"How peaks are spread", "", {"", "peak", "of the baseline"}, {}};
  for (const std::int32_t percent : pipeline::kPercents) {
    const std::int64_t peak = tally.quantile(percent);
    quantiles.rows.push_back({{percent == 0     ? "least"
                               : percent == 100 ? "most"
                                                : fmt::format("{}% of the candidates up to", percent),
                               core::format_bytes(peak), html::share(peak, baseline)}});
  }
  if (swept.undominated) page.pictures.push_back(picture_of(*swept.undominated));
  page.tables = {std::move(top), std::move(quantiles)};
  return report_page(page);
}

}  // namespace cairn::report
