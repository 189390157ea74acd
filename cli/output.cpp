#include "cairn/cli/output.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <memory>
#include <utility>

#include "cairn/cli/arguments.h"
#include "cairn/core/support/text.h"

namespace cairn::cli {
namespace {

std::size_t terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  constexpr std::size_t kUsual = 80;
  const char* given = std::getenv("COLUMNS");
  const int columns = given == nullptr ? 0 : std::atoi(given);
  return columns > 0 ? static_cast<std::size_t>(columns) : kUsual;
}

/// Makes the text printable but keeps its line ends.
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
std::string not_written;

}  // namespace

void Console::add_to(CLI::App& app) {
  app.add_flag("--json", json, "one JSON object on stdout, and nothing else there")->disable_flag_override();
  app.add_flag("-q,--quiet", quiet, "print nothing but errors")->disable_flag_override();
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

namespace {

void add_warning(Json json, const std::string& text) {
  warnings.push_back(std::move(json));
  if (streams().quiet) return;
  const bool terminal = stderr_is_terminal();
  const bool colour = terminal && std::getenv("NO_COLOR") == nullptr;
  std::cerr << (terminal ? "\r\033[K" : "")  // erases a progress line
            << (colour ? "cairn: \033[33mwarning:\033[0m " : "cairn: warning: ") << core::printable(text) << std::endl;
}

}  // namespace

void print_warning(const core::ReadWarning& warning) {
  Json json = {{"kind", core::to_string(warning.kind)}, {"text", warning.text}, {"count", warning.count}};
  if (warning.kind == core::ReadWarning::Kind::scaled_costs) json["factor"] = warning.factor;
  add_warning(std::move(json), warning.text);
}

void print_notice(std::string_view kind, const std::string& text) {
  add_warning(Json{{"kind", kind}, {"text", text}, {"count", 1}}, text);
}

namespace {
double reading_ends = std::numeric_limits<double>::infinity();  // seconds since the command began
}  // namespace

void write_output(const std::string& path, const std::function<std::string()>& text) {
  if (path.empty()) return;
  try {
    core::write_file(path, text());
  } catch (const core::InputError& error) {
    leave_unwritten(error.what());
  }
}

void leave_unwritten(const std::string& why) {
  print_error(why);
  not_written += (not_written.empty() ? "" : "; ") + why;
}

const std::string& unwritten() { return not_written; }

void limit_reading(double seconds) {
  constexpr double kLeast = 1;  // seconds; enough to read a small graph, which a short search can still solve
  reading_ends = std::max(seconds, kLeast);
}

core::ReadOptions reading(const std::string& path) {
  core::ReadOptions options{.limit = {.stop = &catch_interrupt()}, .warn = print_warning};
  options.limit.seconds = reading_ends - seconds_since_start();
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

void print_json(const Json& object) {
  Json printed = object;
  if (printed.is_object()) printed["warnings"] = warnings_json();
  if (printed.is_object() && !printed.contains("error") && !not_written.empty()) {
    printed["error"] = not_written;
    printed["exit_code"] = static_cast<int>(kBadInput);
  }
  std::cout << printed.dump(2, ' ', false, Json::error_handler_t::replace) << std::endl;
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
  // The last column stays empty, because some terminals wrap when it is written.
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

std::string time_text(double seconds, double limit_seconds) {
  return fmt::format("{}{:.1f} s", std::isfinite(limit_seconds) ? ProgressLine::bar(seconds / limit_seconds) : "",
                     seconds);
}

}  // namespace

std::function<void(const solvers::Progress&)> ProgressLine::of_search(const fit::Problem& problem,
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

std::function<void(const fit::CurveProgress&)> ProgressLine::of_curve(double limit_seconds) {
  if (!active_) return {};
  struct Latest {
    std::mutex mutex;
    std::string text = "the ends of the curve";
  };
  const auto latest = std::make_shared<Latest>();
  // Before the search for the curve begins, another search may show its progress in this line. So this line shows the
  // curve's progress only after the first call of the returned function.
  return [this, latest, limit_seconds, started = false](const fit::CurveProgress& progress) mutable {
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

}  // namespace cairn::cli
