#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "cairn/cli/command.h"
#include "cairn/core/formats/files.h"
#include "cairn/report/support/json.h"
#include "cairn/report/support/words.h"
#include "cairn/solvers/fit/curve.h"
#include "cairn/solvers/fit/objective.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/registry.h"

/// This header declares the output of the subcommands: tables, JSON, progress and warnings.
namespace cairn::cli {

/// Options that every subcommand takes.
struct Console {
  bool json = false;
  bool quiet = false;

  void add_to(CLI::App& app);
  /// Prints `object` if --json is given. Otherwise prints `table`, unless --quiet is given. Tables have no colours, and
  /// names in them have no control characters. Prints on stdout, or on stderr if an output file is `-`.
  void print(const Json& object, const std::string& table) const;
};

/// Holds the options --json and --quiet for code that has no Console, such as the code that reports a wrong command
/// line. main() sets them before it parses the command line, by searching the arguments for these two words.
struct Streams {
  bool json = false, quiet = false;
  std::string_view stdout_option;  ///< the option whose file is `-`; empty: no option
};
Streams& streams();

/// Returns all warnings and notices that were printed so far, for the output of --json.
Json warnings_json();
/// Prints the warning in one line on stderr, unless --quiet is given.
void print_warning(const core::ReadWarning& warning);
/// Prints a warning that is not about a file. `kind` is a word that identifies the warning for programs that read the
/// JSON.
void print_notice(std::string_view kind, const std::string& text);
/// Returns options for reading a file: Ctrl-C stops reading, warnings are printed, and a long read shows its progress.
core::ReadOptions reading(const std::string& path);
/// Limits the time for reading files. If a file is still being read `seconds` seconds after the command began, reading
/// it fails. A limit below 1 counts as 1.
void limit_reading(double seconds);

/// Writes text() to the file `path`, unless `path` is empty. If the file cannot be written, prints an error. The
/// command then continues, but ends with the exit code kBadInput in place of kDone.
void write_output(const std::string& path, const std::function<std::string()>& text);
/// Prints `why`, an error about a file that is not written because there is no content for it. The command then
/// continues, but ends with the exit code kBadInput in place of kDone.
void leave_unwritten(const std::string& why);
/// Returns the messages about files that could not be written, in one line; empty if there are none.
const std::string& unwritten();

using report::add_limits;
using report::baseline_share_text;
using report::bound_text;
using report::bytes_text;
using report::cost_with_unit;
using report::describe;
using report::format_table;
using report::increase_pct;
using report::or_null;
using report::Rows;

void print_json(const Json& object);
bool stderr_is_terminal();

/// A progress line on stderr, which is rewritten in place, and shown only on a terminal. The line is cut to the
/// terminal's width, and the destructor erases it. The object must not be moved once it shows something.
class ProgressLine {
 public:
  explicit ProgressLine(const Console& console) : active_(stderr_is_terminal() && !console.quiet && !streams().quiet) {}
  /// Uses the options in streams() instead of a Console.
  ProgressLine() : active_(stderr_is_terminal() && !streams().quiet) {}
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool active() const { return active_; }
  void show(const std::string& text);
  /// Shows text(s) several times a second, where s is the number of seconds since this call, until another text is
  /// shown. A thread of this object calls `text`; the destructor ends the thread.
  void keep_showing(std::function<std::string(double seconds)> text);
  /// Shows the name of a phase and its duration so far, such as "planning: 3.2 s". Shows nothing in the first half
  /// second.
  void name_phase(const std::string& phase);
  /// Returns a bar such as "[####....] ", of which the fraction `share` is filled.
  static std::string bar(double share);
  /// Returns a function for SolveOptions::progress that shows the best schedule so far. The function is empty if this
  /// line is not shown.
  std::function<void(const solvers::Progress&)> of_search(const fit::Problem& problem, double limit_seconds);
  /// Returns a function for CurveOptions::progress that shows how much of the curve is known. The function is empty if
  /// this line is not shown.
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

}  // namespace cairn::cli
