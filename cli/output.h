#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cairn/cli/command.h"
#include "cairn/core/formats/files.h"
#include "cairn/report/support/json.h"
#include "cairn/report/words.h"
#include "cairn/solvers/fit/curve.h"
#include "cairn/solvers/fit/objective.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/fit/solve.h"
#include "cairn/solvers/registry.h"

/// The output of the subcommands, which is tables, JSON, progress, and the reasons why there is no schedule.
namespace cairn::cli {

/// Options that every subcommand takes.
struct Console {
  bool json = false;
  bool quiet = false;

  void add_to(CLI::App& app);
  /// Prints the object with --json, else the table (unless --quiet). Tables carry no colours, and names in them no
  /// control characters; they go to stdout, or to stderr where an output file is `-`.
  void print(const Json& object, const std::string& table) const;
};

/// The options of Console, for code that has no Console at hand. main sets them before it parses.
struct Streams {
  bool json = false, quiet = false;
  std::string_view stdout_option;  ///< the option whose file is `-`; empty: none
};
Streams& streams();

/// Warnings of this process for --json, as collected by print_warning.
Json warnings_json();
/// Prints one line on stderr, unless --quiet.
void print_warning(const core::ReadWarning& warning);
/// Returns options for reading a file. With them Ctrl-C stops reading, warnings are printed, and a long read shows its
/// progress.
core::ReadOptions reading(const std::string& path);
/// Limits reading to that many seconds after the command began.
void limit_reading(double seconds);

/// Writes an output file to `path`; does nothing where that is empty. A file that cannot be written is reported at once
/// and the command goes on; its exit code becomes kBadInput where it would be kDone.
void write_output(const std::string& path, const std::function<std::string()>& text);
/// The messages about files that could not be written, in one line; empty if everything was written.
const std::string& unwritten();

using report::add_limits;
using report::baseline_cost_text;
using report::baseline_peak_text;
using report::baseline_share_text;
using report::bound_text;
using report::bytes_text;
using report::cost_with_unit;
using report::describe;
using report::format_table;
using report::increase_pct;
using report::lower_bound_reason;
using report::or_null;
using report::Rows;
using report::scope_text;
using report::share_pct;
using report::stop_text;

void print_json(const Json& object);
bool stderr_is_terminal();

/// A line on stderr that is rewritten in place while stderr is a terminal. It is cut to the terminal's current width
/// and erased by the destructor. Must not be moved once it shows something.
class ProgressLine {
 public:
  explicit ProgressLine(const Console& console) : active_(stderr_is_terminal() && !console.quiet) {}
  /// Makes a line that follows the options in streams().
  ProgressLine() : active_(stderr_is_terminal() && !streams().quiet) {}
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Whether anything is shown.
  bool active() const { return active_; }
  void show(const std::string& text);
  /// Shows what `text` returns for the seconds since this call, several times a second, until something else is shown.
  /// `text` is called by a thread that the line owns, and no more once the line ends.
  void keep_showing(std::function<std::string(double seconds)> text);
  /// Shows the name and time of a phase that reports no progress, such as "planning: 3.2 s", from half a second on.
  void name_phase(const std::string& phase);
  /// A bar of which `share`, from 0 to 1, is full.
  static std::string bar(double share);
  /// A callback for SolveOptions::progress; empty where nothing is to be shown.
  std::function<void(const solvers::Progress&)> of_search(const fit::Problem& problem, double limit_seconds);
  /// A callback for CurveOptions::progress; empty where nothing is to be shown.
  std::function<void(const fit::CurveProgress&)> of_curve(double limit_seconds);

 private:
  void draw(const std::string& text);

  bool active_, shown_ = false;
  std::mutex mutex_;  ///< protects the members below, and stderr
  std::condition_variable wake_;
  std::function<std::string(double)> text_;
  std::chrono::steady_clock::time_point since_;
  bool ended_ = false;
  std::thread ticker_;
};

/// Describes what an interrupted search leaves: the peak of its best schedule, whether that or its plan is above the
/// budget, and the file that it was written to, or how to get one.
std::string best_so_far(const fit::Task& task, const fit::Answer& answer, const std::string& output);

}  // namespace cairn::cli
