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

/// What the subcommands say: tables, JSON, progress, and why there is no schedule.
namespace cairn::cli {

/// Options that every subcommand takes.
struct Console {
  bool json = false;
  bool quiet = false;

  void add_to(CLI::App& app);
  /// With --json the object, else the table (unless --quiet). Tables carry no colours, and names in them no control
  /// characters; they are on stdout, or on stderr where an output file is `-`.
  void print(const Json& object, const std::string& table) const;
};

/// The same options as the process was given them, for what has no Console at hand. main sets it before it parses.
struct Streams {
  bool json = false, quiet = false;
  std::string_view stdout_option;  ///< the option whose file is `-`; empty: none
};
Streams& streams();

/// What was noticed while reading, for --json; print_warning adds to it.
Json warnings_json();
/// One line on stderr, unless --quiet.
void print_warning(const core::ReadWarning& warning);
/// How the command reads a file: Ctrl-C ends it, warnings are printed, and a long read shows how far it is.
core::ReadOptions reading(const std::string& path);
/// From now on reading ends that long after the command began.
void limit_reading(double seconds);

/// Writes an output file, of `path`; an empty one is written nowhere. One that cannot be written takes nothing else: it
/// is told at once, the command goes on, and its exit code is kBadInput where it would be kDone.
void write_output(const std::string& path, const std::function<std::string()>& text);
/// What was told so, in one line; empty: everything was written.
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

/// A line on stderr that is written over and over while that is a terminal, cut to the terminal's width as it is at the
/// time; erases itself when it ends. Not to be moved once it shows something.
class ProgressLine {
 public:
  explicit ProgressLine(const Console& console) : active_(stderr_is_terminal() && !console.quiet) {}
  /// As the process's options want it.
  ProgressLine() : active_(stderr_is_terminal() && !streams().quiet) {}
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Whether anything is shown.
  bool active() const { return active_; }
  void show(const std::string& text);
  /// Until something else is to be shown: what `text` says of the seconds since this call, several times a second. It
  /// is called by a thread of the line's own, and no more once the line ends.
  void keep_showing(std::function<std::string(double seconds)> text);
  /// For a phase that tells nothing of itself: "planning: 3.2 s", from half a second on.
  void name_phase(const std::string& phase);
  /// A bar, `share` of which, from 0 to 1, is full.
  static std::string bar(double share);
  /// For SolveOptions::progress; empty where nothing is to be shown.
  std::function<void(const solvers::Progress&)> of_search(const fit::Problem& problem, double limit_seconds);
  /// The same for CurveOptions::progress.
  std::function<void(const fit::CurveProgress&)> of_curve(double limit_seconds);

 private:
  void draw(const std::string& text);

  bool active_, shown_ = false;
  std::mutex mutex_;  ///< of what follows, and of stderr
  std::condition_variable wake_;
  std::function<std::string(double)> text_;
  std::chrono::steady_clock::time_point since_;
  bool ended_ = false;
  std::thread ticker_;
};

/// What an interrupted search leaves, in words: the peak of its best schedule, whether that or its plan is above the
/// budget, and the file that it was written to, or how to get one.
std::string best_so_far(const fit::Task& task, const fit::Answer& answer, const std::string& output);

}  // namespace cairn::cli
