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
#include "cairn/pipeline/pareto.h"
#include "cairn/pipeline/problem.h"
#include "cairn/pipeline/solve.h"
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

/// What tables are printed from; the first cell of a row names it.
using Rows = std::vector<std::vector<std::string>>;
/// Rows of cells in aligned columns; the first row is underlined when `header` is set.
std::string format_table(const Rows& rows, bool header = false);

/// "1.50 KiB (1536 bytes)", "20 bytes".
std::string bytes_text(std::int64_t bytes);
/// The same with its share of Problem::hundred_percent: "1.50 KiB (1536 bytes, 75.0% of the baseline peak)", or shorter
/// "(1536 bytes, 75.0%)".
std::string baseline_share_text(const pipeline::Problem& problem, std::int64_t bytes, bool in_full = false);
/// "12345 ns", "12345 cost units": in the unit of the problem's graph.
std::string cost_with_unit(const pipeline::Problem& problem, std::int64_t cost);
/// That of the baseline, and where the graph's costs come from.
std::string baseline_cost_text(const pipeline::Problem& problem);
/// The baseline's peak and, where sizes are rounded up, what percentages are of.
std::string baseline_peak_text(const pipeline::Problem& problem, std::int64_t alignment);
/// Percent of Problem::hundred_percent.
double share_pct(const pipeline::Problem& problem, std::int64_t bytes);
/// 100 * (value - base) / base; 0 where base is 0.
double increase_pct(std::int64_t value, std::int64_t base);

void print_json(const Json& object);
/// The number, or null.
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
/// The keys that `info`, `solve`, `run` and `simulate` have in common.
Json describe(const pipeline::Problem& problem);
/// Adds why the lower bound holds, and the least budget known feasible with the solver that meets it.
void add_limits(Json& json, const pipeline::Problem& problem, const pipeline::LeastBudget& least);
/// Why no schedule has less than the problem's lower bound, in a line: the tensors that one node needs together, or
/// that the search proved more.
std::string lower_bound_reason(const pipeline::Problem& problem);

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
  std::function<void(const solvers::Progress&)> of_search(const pipeline::Problem& problem, double limit_seconds);
  /// The same for CurveOptions::progress.
  std::function<void(const pipeline::CurveProgress&)> of_curve(double limit_seconds);

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

/// " with sizes rounded up to --alignment 256" where the problem was and that changed its figures.
std::string rounding_text(const pipeline::Problem& problem);

/// "the lower bound is 1.50 KiB (1536 bytes, 75.0%), set by 'conv1'".
std::string bound_text(const pipeline::Problem& problem);

/// Why a search came back, in words.
std::string stop_text(solvers::Stop stop);

/// " without recomputation", " (input order kept)", ...; empty for any schedule.
std::string scope_text(const solvers::Scope& scope);

/// "no schedule fits: the lower bound is L: why; the least budget known feasible is X, with --solver S". `proved` is a
/// bound above the problem's budget. Where it is not of any schedule, the message says of which, and whether the solver
/// or what was asked for, `asked`, leaves out the others.
Failure infeasible_failure(const pipeline::Problem& problem, const solvers::SolverInfo& solver,
                           const solvers::Scope& asked, const solvers::Bound& proved,
                           const pipeline::LeastBudget& least, Json details);
/// That none was found, why the search ended, and what would help: the least budget known to do, or more time.
std::string not_found_text(const pipeline::Problem& problem, const pipeline::LeastBudget& least, solvers::Stop stop);

/// What an interrupted search leaves, in words: the peak of its best schedule, whether that is above the budget, and
/// the file that it was written to, or how to get one.
std::string best_so_far(const pipeline::Problem& problem, std::int64_t peak, const std::string& output);

}  // namespace cairn::cli
