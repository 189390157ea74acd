#include "cairn/cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>

#include "cairn/core/text.h"

namespace cairn::cli {
namespace {

std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// `bound` is at least what `needs` explains; a search proved the rest.
std::string reason_of(const core::Graph& graph, const core::PeakBound& needs, std::int64_t bound) {
  const std::string text = core::describe(graph, needs);
  return bound > needs.bytes
             ? fmt::format("the search proved it; any schedule needs {} bytes, as {}", needs.bytes, text)
             : text;
}

std::string least_text(const pipeline::LeastBudget& least) {
  return fmt::format("the least budget known feasible is {} bytes, with --solver {}", least.bytes, least.solver);
}

}  // namespace

void Console::add_to(CLI::App& app) {
  app.add_flag("--json", json, "one JSON object on stdout, and nothing else there");
  app.add_flag("-q,--quiet", quiet, "print nothing but errors");
}

void Console::print(const Json& object, const std::string& table) const {
  if (json) {
    print_json(object);
  } else if (!quiet) {
    std::cout << table << std::flush;
  }
}

std::string format_table(const Rows& rows, bool header) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  std::string text;
  const auto append = [&](const std::vector<std::string>& row) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      text += row[c];
      if (c + 1 < row.size()) text += std::string(widths[c] - display_width(row[c]) + 2, ' ');
    }
    text += '\n';
  };
  for (std::size_t r = 0; r < rows.size(); ++r) {
    append(rows[r]);
    if (r == 0 && header) {
      std::vector<std::string> rule;
      for (const std::size_t width : widths) rule.emplace_back(width, '-');
      append(rule);
    }
  }
  return text;
}

std::string bytes_text(std::int64_t bytes) { return fmt::format("{} ({} bytes)", core::format_bytes(bytes), bytes); }

std::string cost_with_unit(const pipeline::Problem& problem, std::int64_t cost) {
  return core::cost_text(cost, problem.graph.cost_unit());
}

std::string baseline_cost_text(const pipeline::Problem& problem) {
  const std::string& source = problem.graph.cost_unit().source;
  return cost_with_unit(problem, problem.baseline.cost) + (source.empty() ? "" : fmt::format(" ({})", source));
}

double increase_pct(std::int64_t value, std::int64_t base) {
  if (base == 0) return 0;
  return 100.0 * static_cast<double>(value - base) / static_cast<double>(base);
}

void print_json(const Json& object) {
  std::cout << object.dump(2, ' ', false, Json::error_handler_t::replace) << std::endl;
}

Json describe(const pipeline::Problem& problem) {
  Json json;
  json["graph"] = problem.name;
  json["fingerprint"] = problem.graph.fingerprint();
  json["nodes"] = problem.graph.node_count();
  json["edges"] = problem.graph.edge_count();
  json["resident_bytes"] = problem.graph.resident_bytes();
  json["budget_bytes"] = or_null(problem.budget);
  json["baseline_peak_bytes"] = problem.baseline.peak;
  json["baseline_cost"] = problem.baseline.cost;
  json["cost_unit"] = core::to_string(problem.graph.cost_unit());
  json["cost_source"] = problem.graph.cost_unit().source;
  json["lower_bound_peak_bytes"] = problem.lower_bound;
  return json;
}

void add_limits(Json& json, const pipeline::Problem& problem, const pipeline::LeastBudget& least) {
  const core::PeakBound needs = core::explain_peak_lower_bound(problem.graph);
  Json holds = Json::array();
  for (const core::PeakBound::Part& part : needs.parts) {
    const bool value = part.value != core::kNoValue;
    holds.push_back({{"name", value ? problem.graph.value_name(part.value) : problem.graph.name(needs.node)},
                     {"bytes", part.bytes},
                     {"kind", core::to_string(part.kind)}});
  }
  json["lower_bound_reason"] = {
      {"node", needs.node == core::kNoNode ? Json(nullptr) : Json(problem.graph.name(needs.node))},
      {"bytes", needs.bytes},
      {"holds", std::move(holds)},
      {"text", reason_of(problem.graph, needs, problem.lower_bound)}};
  json["least_feasible_bytes"] = least.bytes;
  json["least_feasible_solver"] = least.solver;
}

std::string lower_bound_reason(const pipeline::Problem& problem) {
  return reason_of(problem.graph, core::explain_peak_lower_bound(problem.graph), problem.lower_bound);
}

bool stderr_is_terminal() { return isatty(STDERR_FILENO) != 0; }

ProgressLine::~ProgressLine() {
  if (shown_) std::cerr << "\r\033[K" << std::flush;
}

void ProgressLine::show(const std::string& text) {
  if (!active_) return;
  shown_ = true;
  std::cerr << '\r' << text << "\033[K" << std::flush;
}

std::string ProgressLine::bar(double share) {
  constexpr int kWidth = 24;
  const int filled = static_cast<int>(kWidth * std::clamp(share, 0.0, 1.0));
  return fmt::format("[\033[32m{:#<{}}\033[0m{:.<{}}] ", "", filled, "", kWidth - filled);
}

std::function<void(const solvers::Progress&)> ProgressLine::of_search(const pipeline::Problem& problem,
                                                                      double limit_seconds) {
  constexpr double kEvery = 0.1;
  if (!active_) return {};
  return [this, baseline = problem.baseline, limit_seconds,
          shown_at = -kEvery](const solvers::Progress& progress) mutable {
    if (progress.seconds - shown_at < kEvery) return;
    shown_at = progress.seconds;
    show(fmt::format("{}{:.1f} s  best peak {} ({:+.1f}%)  cost {:+.1f}%",
                     std::isfinite(limit_seconds) ? bar(progress.seconds / limit_seconds) : "", progress.seconds,
                     core::format_bytes(progress.peak), increase_pct(progress.peak, baseline.peak),
                     increase_pct(progress.cost, baseline.cost)));
  };
}

std::function<void(const pipeline::CurveProgress&)> ProgressLine::of_curve(double limit_seconds) {
  if (!active_) return {};
  return [this, limit_seconds](const pipeline::CurveProgress& progress) {
    const std::string at = fmt::format(
        "{}{:.1f} s  ", std::isfinite(limit_seconds) ? bar(progress.seconds / limit_seconds) : "", progress.seconds);
    show(progress.pass == 0 ? at + "the ends of the curve"
                            : at + fmt::format("pass {}, budget {}  {} of {} points known", progress.pass,
                                               core::format_bytes(progress.budget), progress.known, progress.points));
  };
}

std::string rounding_text(const pipeline::Problem& problem) {
  return problem.rounded_to > 1 ? fmt::format(" with sizes rounded up to --alignment {}", problem.rounded_to) : "";
}

std::string stop_text(solvers::Stop stop) {
  switch (stop) {
    case solvers::Stop::proved:
      return "by a proof that nothing is better";
    case solvers::Stop::stagnated:
      return "as a long search brought nothing; a larger --time-limit searches longer";
    case solvers::Stop::limit:
      return "by the limit; a larger one may bring more";
    case solvers::Stop::interrupted:
      return "by Ctrl-C";
    case solvers::Stop::ended:
      break;
  }
  return "as the solver had nothing left to try";
}

std::string scope_text(const solvers::Scope& scope) {
  if (scope == solvers::kAnySchedule) return "";
  const std::string text = solvers::describe(scope);
  return scope == solvers::kWithoutRecomputation ? " " + text : fmt::format(" ({})", text);
}

Failure infeasible_failure(const pipeline::Problem& problem, const solvers::SolverInfo& solver,
                           const solvers::Scope& asked, const solvers::Bound& proved,
                           const pipeline::LeastBudget& least, Json details) {
  const std::int64_t budget = problem.budget.value_or(0);
  const core::PeakBound needs = core::explain_peak_lower_bound(problem.graph);
  // What one node needs excludes every schedule, whatever the search proved of some.
  const solvers::Bound bound = budget < needs.bytes && proved.scope != solvers::kAnySchedule
                                   ? solvers::Bound{needs.bytes, solvers::kAnySchedule}
                                   : solvers::Bound{std::max(needs.bytes, proved.value), proved.scope};
  std::string others;
  if (!bound.scope.contains(asked)) {
    others = fmt::format("; other schedules may fit, which solver '{}' leaves out: try --solver auto", solver.name);
  } else if (bound.scope != solvers::kAnySchedule) {
    others = "; other schedules may fit, which --order or --max-occurrences leaves out";
  }
  return {kInfeasible,
          fmt::format("no schedule of '{}'{} fits into {} bytes{}: the lower bound is {} bytes: {}; {}{}", problem.name,
                      scope_text(bound.scope), budget, rounding_text(problem), bound.value,
                      reason_of(problem.graph, needs, bound.value), least_text(least), others),
          std::move(details)};
}

std::string not_found_text(const pipeline::Problem& problem, const pipeline::LeastBudget& least, solvers::Stop stop) {
  const std::string ended = fmt::format("the search ended {}", stop_text(stop));
  if (!problem.budget)
    return fmt::format("found no schedule of '{}' within the limit; {}; raise --time-limit", problem.name, ended);
  const bool time_helps = stop == solvers::Stop::limit || stop == solvers::Stop::stagnated;
  return fmt::format(
      "found no schedule of '{}' within {} bytes{}, and none is excluded (lower bound {} bytes); {}; {}; raise --budget"
      "{}",
      problem.name, *problem.budget, rounding_text(problem), problem.lower_bound, ended, least_text(least),
      time_helps ? " or --time-limit, or try another --solver" : ", or try another --solver");
}

std::string best_so_far(const pipeline::Problem& problem, std::int64_t peak, const std::string& output) {
  const bool above = problem.budget && peak > *problem.budget;
  return fmt::format(
      "the best schedule so far has peak {} bytes{}{}{}", peak, rounding_text(problem),
      above ? fmt::format(", above the budget of {} bytes", *problem.budget) : "",
      output.empty() ? "; give -o s.json to have it written" : fmt::format(", and was written to '{}'", output));
}

}  // namespace cairn::cli
