#include "cairn/cli/output.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <utility>

#include "cairn/core/text.h"

namespace cairn::cli {
namespace {

/// `bound` is at least what `needs` explains; a search proved the rest.
std::string reason_of(const core::Graph& graph, const core::PeakBound& needs, std::int64_t bound) {
  const std::string text = core::describe(graph, needs);
  return bound > needs.bytes
             ? fmt::format("the search proved it; any schedule needs {}, as {}", bytes_text(needs.bytes), text)
             : text;
}

std::string least_text(const pipeline::Problem& problem, const pipeline::LeastBudget& least) {
  return fmt::format("the least budget known feasible is {}, with --solver {}",
                     baseline_share_text(problem, least.bytes), least.solver);
}

/// Of the terminal that stderr is.
std::size_t terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  constexpr std::size_t kUsual = 80;
  const char* given = std::getenv("COLUMNS");
  const int columns = given == nullptr ? 0 : std::atoi(given);
  return columns > 0 ? static_cast<std::size_t>(columns) : kUsual;
}

/// All but line ends, which tables have.
std::string printable_lines(const std::string& text) {
  std::string shown;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    shown += core::printable(std::string_view(text).substr(begin, end - begin));
    if (end < text.size()) shown += '\n';
    begin = end + 1;
  }
  return shown;
}

Json warnings = Json::array();

}  // namespace

void Console::add_to(CLI::App& app) {
  app.add_flag("--json", json, "one JSON object on stdout, and nothing else there");
  app.add_flag("-q,--quiet", quiet, "print nothing but errors");
}

void Console::print(const Json& object, const std::string& table) const {
  if (json) {
    print_json(object);
  } else if (!quiet) {
    (streams().stdout_option.empty() ? std::cout : std::cerr) << printable_lines(table) << std::flush;
  }
}

Streams& streams() {
  static Streams streams;
  return streams;
}

Json warnings_json() { return warnings; }

void print_warning(const core::ReadWarning& warning) {
  Json json = {{"kind", core::to_string(warning.kind)}, {"text", warning.text}, {"count", warning.count}};
  if (warning.kind == core::ReadWarning::Kind::scaled_costs) json["factor"] = warning.factor;
  warnings.push_back(std::move(json));
  if (streams().quiet) return;
  const bool terminal = stderr_is_terminal();
  const bool colour = terminal && std::getenv("NO_COLOR") == nullptr;
  std::cerr << (terminal ? "\r\033[K" : "")  // a progress line may stand there
            << (colour ? "cairn: \033[33mwarning:\033[0m " : "cairn: warning: ") << core::printable(warning.text)
            << std::endl;
}

core::ReadOptions reading(const std::string& path) {
  core::ReadOptions options{.limit = {.stop = &catch_interrupt()}, .warn = print_warning};
  const auto line = std::make_shared<ProgressLine>();
  if (!line->active()) return options;
  const std::string name = core::printable(core::input_name(path));
  line->name_phase("reading " + name);
  options.progress = [line, name, shown = std::int64_t{0}](std::int64_t done, std::int64_t total) mutable {
    constexpr std::int64_t kEvery = std::int64_t{4} << 20;
    if (done / kEvery == shown) return;
    shown = done / kEvery;
    line->show(fmt::format("{}reading {}: {}",
                           total > 0 ? ProgressLine::bar(static_cast<double>(done) / static_cast<double>(total)) : "",
                           name, core::format_bytes(done)));
  };
  return options;
}

std::string format_table(const Rows& rows, bool header) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], core::display_width(core::printable(row[c])));
  }
  std::string text;
  const auto append = [&](const std::vector<std::string>& row) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string cell = core::printable(row[c]);
      text += cell;
      if (c + 1 < row.size()) text += std::string(widths[c] - core::display_width(cell) + 2, ' ');
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

std::string bytes_text(std::int64_t bytes) {
  if (bytes > -1024 && bytes < 1024) return fmt::format("{} bytes", bytes);
  return fmt::format("{} ({} bytes)", core::format_bytes(bytes), bytes);
}

std::string baseline_share_text(const pipeline::Problem& problem, std::int64_t bytes, bool in_full) {
  std::string text = bytes_text(bytes);
  if (problem.hundred_percent == 0) return text;
  const std::string share = fmt::format("{:.1f}%{}", share_pct(problem, bytes), in_full ? " of the baseline peak" : "");
  if (text.back() != ')') return fmt::format("{} ({})", text, share);
  text.pop_back();
  return fmt::format("{}, {})", text, share);
}

std::string baseline_peak_text(const pipeline::Problem& problem, std::int64_t alignment) {
  std::string text = bytes_text(problem.baseline.peak);
  if (problem.hundred_percent != problem.baseline.peak)
    text += fmt::format("; 100% is {}, with sizes rounded up to --alignment {}", bytes_text(problem.hundred_percent),
                        alignment);
  return text;
}

double share_pct(const pipeline::Problem& problem, std::int64_t bytes) {
  return 100 + increase_pct(bytes, problem.hundred_percent);
}

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
  Json printed = object;
  if (printed.is_object()) printed["warnings"] = warnings_json();
  std::cout << printed.dump(2, ' ', false, Json::error_handler_t::replace) << std::endl;
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
  json["hundred_percent_bytes"] = problem.hundred_percent;
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
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  if (ticker_.joinable()) ticker_.join();
  if (shown_) std::cerr << "\r\033[K" << std::flush;
}

void ProgressLine::draw(const std::string& text) {
  if (text.empty()) return;
  shown_ = true;
  // The last column stays free: some terminals wrap as soon as it is written.
  std::cerr << '\r' << core::cut_to_width(text, terminal_columns() - 1) << "\033[K" << std::flush;
}

void ProgressLine::show(const std::string& text) {
  if (!active_) return;
  const std::lock_guard lock(mutex_);
  text_ = nullptr;
  draw(text);
}

void ProgressLine::keep_showing(std::function<std::string(double)> text) {
  using Clock = std::chrono::steady_clock;
  static constexpr auto kEvery = std::chrono::milliseconds(200);
  if (!active_) return;
  const std::lock_guard setting(mutex_);
  text_ = std::move(text);
  since_ = Clock::now();
  if (ticker_.joinable()) return;
  ticker_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kEvery, [this] { return ended_; })) {
      if (text_) draw(text_(std::chrono::duration<double>(Clock::now() - since_).count()));
    }
  });
}

void ProgressLine::name_phase(const std::string& phase) {
  constexpr double kSoon = 0.5;
  keep_showing([phase](double seconds) {
    return seconds < kSoon ? std::string() : fmt::format("{}: {:.1f} s", phase, seconds);
  });
}

std::string ProgressLine::bar(double share) {
  const int width = std::clamp(static_cast<int>(terminal_columns()) / 4, 4, 24);
  const int filled = static_cast<int>(width * std::clamp(share, 0.0, 1.0));
  return fmt::format("[\033[32m{:#<{}}\033[0m{:.<{}}] ", "", filled, "", width - filled);
}

namespace {

/// "[####....] 2.1 s".
std::string time_text(double seconds, double limit_seconds) {
  return fmt::format("{}{:.1f} s", std::isfinite(limit_seconds) ? ProgressLine::bar(seconds / limit_seconds) : "",
                     seconds);
}

}  // namespace

std::function<void(const solvers::Progress&)> ProgressLine::of_search(const pipeline::Problem& problem,
                                                                      double limit_seconds) {
  if (!active_) return {};
  struct Best {
    std::mutex mutex;
    std::optional<solvers::Progress> found;
  };
  const auto best = std::make_shared<Best>();
  keep_showing([best, baseline = problem.baseline, limit_seconds](double seconds) {
    const std::lock_guard lock(best->mutex);
    const std::string at = time_text(seconds, limit_seconds);
    if (!best->found) return at + "  searching";
    return fmt::format("{}  best peak {} ({:+.1f}%)  cost {:+.1f}%", at, core::format_bytes(best->found->peak),
                       increase_pct(best->found->peak, baseline.peak), increase_pct(best->found->cost, baseline.cost));
  });
  return [best](const solvers::Progress& progress) {
    const std::lock_guard lock(best->mutex);
    best->found = progress;
  };
}

std::function<void(const pipeline::CurveProgress&)> ProgressLine::of_curve(double limit_seconds) {
  if (!active_) return {};
  struct Latest {
    std::mutex mutex;
    std::string text = "the ends of the curve";
  };
  const auto latest = std::make_shared<Latest>();
  // From the first call on: until then a search may have the line.
  return [this, latest, limit_seconds, started = false](const pipeline::CurveProgress& progress) mutable {
    if (!std::exchange(started, true)) {
      keep_showing([latest, limit_seconds, before = progress.seconds](double seconds) {
        const std::lock_guard lock(latest->mutex);
        return fmt::format("{}  {}", time_text(before + seconds, limit_seconds), latest->text);
      });
    }
    if (progress.pass == 0) return;
    const std::lock_guard lock(latest->mutex);
    latest->text = fmt::format("pass {}, budget {}  {} of {} points known", progress.pass,
                               core::format_bytes(progress.budget), progress.known, progress.points);
  };
}

std::string bound_text(const pipeline::Problem& problem) {
  const core::PeakBound needs = core::explain_peak_lower_bound(problem.graph);
  const std::string by = needs.bytes < problem.lower_bound ? ", as the search proved"
                         : needs.node == core::kNoNode     ? ", set by what is kept"
                                                       : fmt::format(", set by '{}'", problem.graph.name(needs.node));
  return fmt::format("the lower bound is {}{}", baseline_share_text(problem, problem.lower_bound), by);
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
          fmt::format("no schedule of '{}'{} fits into {}{}: the lower bound is {}: {}; {}{}", problem.name,
                      scope_text(bound.scope), baseline_share_text(problem, budget, true), rounding_text(problem),
                      baseline_share_text(problem, bound.value), reason_of(problem.graph, needs, bound.value),
                      least_text(problem, least), others),
          std::move(details)};
}

std::string not_found_text(const pipeline::Problem& problem, const pipeline::LeastBudget& least, solvers::Stop stop) {
  const std::string ended = fmt::format("the search ended {}", stop_text(stop));
  if (!problem.budget)
    return fmt::format("found no schedule of '{}' within the limit; {}; raise --time-limit", problem.name, ended);
  const bool time_helps = stop == solvers::Stop::limit || stop == solvers::Stop::stagnated;
  return fmt::format("found no schedule of '{}' within {}{}, and none is excluded: {}; {}; {}; raise --budget{}",
                     problem.name, baseline_share_text(problem, *problem.budget, true), rounding_text(problem),
                     bound_text(problem), ended, least_text(problem, least),
                     time_helps ? " or --time-limit, or try another --solver" : ", or try another --solver");
}

std::string best_so_far(const pipeline::Problem& problem, std::int64_t peak, const std::string& output) {
  const bool above = problem.budget && peak > *problem.budget;
  return fmt::format(
      "the best schedule so far has peak {}{}{}{}", baseline_share_text(problem, peak, true), rounding_text(problem),
      above ? fmt::format(", above the budget of {}", baseline_share_text(problem, *problem.budget)) : "",
      output.empty() ? "; give -o s.json to have it written"
                     : fmt::format(", and was written to '{}'", core::output_name(output)));
}

}  // namespace cairn::cli
