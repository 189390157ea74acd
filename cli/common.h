#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/precision.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/registry.h"

/// What the subcommands share: where a graph comes from, limits of a solver, tables, JSON, Ctrl-C and exit codes.
namespace cairn::cli {

using Json = nlohmann::ordered_json;

inline constexpr int kDone = 0;
inline constexpr int kDefect = 1;  ///< Cairn itself failed one of its own checks
inline constexpr int kBadInput = 2;
inline constexpr int kInfeasible = 3;
inline constexpr int kNotFound = 4;
inline constexpr int kDevice = 5;
inline constexpr int kInterrupted = 130;

/// Ends the command with an exit code, one line on stderr and, with --json, `details` (plus "error") on stdout.
class Failure : public core::Error {
 public:
  Failure(int code, const std::string& message, Json object = Json::object())
      : core::Error(message), exit_code(code), details(std::move(object)) {}
  int exit_code;
  Json details;
};

/// One subcommand: its options are in `app`; `run` does the work once they are parsed and returns the exit code.
struct Subcommand {
  CLI::App* app;
  std::function<int()> run;
};

Subcommand add_models(CLI::App& root);
Subcommand add_model(CLI::App& root);
Subcommand add_generate(CLI::App& root);
Subcommand add_info(CLI::App& root);
Subcommand add_solve(CLI::App& root);
Subcommand add_plan(CLI::App& root);
Subcommand add_measure(CLI::App& root);
Subcommand add_run(CLI::App& root);
Subcommand add_simulate(CLI::App& root);
Subcommand add_bench(CLI::App& root);

/// Options that every subcommand takes.
struct Console {
  bool json = false;
  bool quiet = false;

  void add_to(CLI::App& app);
  /// With --json the object, else the table (unless --quiet). Tables are on stdout and carry no colours.
  void print(const Json& object, const std::string& table) const;
};

/// Rows of cells in aligned columns; the first row is underlined when `header` is set.
std::string format_table(const std::vector<std::vector<std::string>>& rows, bool header);

/// "1.50 KiB (1536 bytes)".
std::string bytes_text(std::int64_t bytes);
/// 100 * (value - base) / base; 0 where base is 0.
double increase_pct(std::int64_t value, std::int64_t base);

/// For numbers that must be 1 or more.
const CLI::Validator& at_least_one();

/// Adds --precision.
struct PrecisionChoice {
  std::string precision;  ///< empty: as the graph is stored
  void add_to(CLI::App& app);
  /// Throws InputError that suggests the nearest name.
  core::Precision find(const core::Graph& graph) const;
};

/// Adds --backend and --precision.
struct BackendChoice : PrecisionChoice {
  std::string backend = "auto";
  void add_to(CLI::App& app);
};

/// Adds --budget, which may be absent but not empty.
void add_budget(CLI::App& app, std::string& budget, const std::string& help);

/// A file named on the command line, and the option that names it.
struct NamedPath {
  std::string_view option;
  std::string path;  ///< empty: not given
};

/// Throws InputError, before any work is done, where an output cannot be a file to write, would overwrite an input, or
/// is named twice.
void require_outputs(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& inputs);

/// A graph named on the command line: a file, or a model with its options.
struct GraphSource {
  std::string name;
  std::map<std::string, std::int64_t, std::less<>> model_options;
  std::string weight_grads;  ///< empty: not given
  std::string optimizer;     ///< empty: not given
  bool forward = false;      ///< the graph without its backward nodes

  /// Adds the positional `GRAPH` and the options of every model. Call it after the subcommand's own options: those go
  /// before a model option of the same name.
  void add_to(CLI::App& app, const std::string& positional = "GRAPH");
  /// Builds the model alone, or the forward part of it. Throws InputError that suggests the nearest model.
  core::Graph build() const;
  /// Loads the file or builds the model. Throws InputError.
  core::Graph load() const;
  /// What load() gave, stored as `precision` wants it; a model's costs are estimates for that precision, a file's stay.
  core::Graph stored_as(const core::Graph& loaded, core::Precision precision) const;
  bool is_model() const;
  /// The file that load() reads; its path is empty for a model.
  NamedPath input() const;
};

/// Where a command writes the graph it was given, if asked to: any readable format becomes Cairn JSON or Graphviz.
struct GraphOutputs {
  std::string json, dot;

  void add_to(CLI::App& app);
  std::vector<NamedPath> paths() const;
  void write(const core::Graph& graph) const;
};

/// A graph with what is known of it before any search. Bytes.
struct Problem {
  core::Graph graph;
  std::string name;
  core::Evaluation baseline;
  std::int64_t lower_bound = 0;
  std::optional<std::int64_t> budget;
  std::string rounding;  ///< " with sizes rounded up to --alignment 256", for messages; empty where nothing changed

  /// `budget` is as people write it, a percentage being of the baseline peak; empty: none.
  Problem(const GraphSource& source, const std::string& budget_text);
  /// The same of a graph that was loaded before, e.g. as a backend prepared it; `fallback` names it where it has no
  /// name.
  Problem(core::Graph graph, const std::string& fallback, const std::string& budget_text);
  /// The keys that `info`, `solve` and `run` have in common.
  Json describe() const;
  /// The same with sizes rounded up, as a plan with that alignment needs them; the graph has no residents.
  Problem rounded_up(std::int64_t alignment) const;
};

/// Which solver, and when it must stop.
struct Search {
  std::string solver = "auto";
  std::string time_limit;
  std::int64_t work_limit = 0;  ///< 0: none
  std::uint64_t seed = 0;
  std::string memory;  ///< empty: SolveOptions' own

  /// `default_seconds` is used unless a limit is given; a work limit alone leaves the time unlimited.
  void add_to(CLI::App& app, const std::string& default_seconds);
  const solvers::SolverInfo& find() const;
  /// Whether --solver stands on the command line.
  bool names_solver() const { return solver_option_->count() > 0; }
  /// Without a budget; stops on Ctrl-C.
  solvers::SolveOptions options() const;

 private:
  std::string default_seconds_;
  const CLI::Option* solver_option_ = nullptr;
};

/// A solution whose schedule was checked again with the fast evaluator.
struct CheckedSolution {
  solvers::Solution solution;
  core::Evaluation evaluation;  ///< of the schedule, where there is one
  double seconds = 0;
  bool within(std::optional<std::int64_t> budget) const;
};

/// Evaluates the solution's schedule again. Throws Failure(kDefect) when it is invalid or its
/// measures are wrong.
core::Evaluation require_sound(std::string_view solver, const core::Graph& graph, const solvers::Solution& solution);

/// Solves and checks.
CheckedSolution solve_checked(const solvers::SolverInfo& solver, const core::Graph& graph,
                              const solvers::SolveOptions& options);

/// The least budget known feasible, bytes: of the baseline, of what the solver met and, where the solver met nothing,
/// of a quick search without a budget.
std::int64_t least_feasible(const Problem& problem, const solvers::Solution& solution, const Search& search);

/// "budget B is below the lower bound L of every schedule; the least budget known feasible is X".
/// `scope` is what was proved infeasible; where the solver alone keeps it small, the message says so.
Failure infeasible_failure(const Problem& problem, const solvers::SolverInfo& solver, const solvers::Scope& scope,
                           std::int64_t least, Json details);
Failure not_found_failure(const Problem& problem, std::int64_t least, Json details);

/// What an interrupted search leaves, in words: the peak of its best schedule, whether that is above the budget, and
/// the file that it was written to, or how to get one.
std::string best_so_far(const Problem& problem, std::int64_t peak, const std::string& output);

/// Reports a search on stderr while it is a terminal; erases itself when it ends.
class ProgressLine {
 public:
  ProgressLine(const Console& console, const Problem& problem, double limit_seconds);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// For SolveOptions::progress; empty where nothing is to be shown.
  std::function<void(const solvers::Progress&)> callback();

 private:
  void show(const solvers::Progress& progress);

  bool active_;
  std::int64_t baseline_peak_, baseline_cost_;
  double limit_seconds_;
  double shown_at_ = -1;
};

/// Turns the first Ctrl-C into a flag (a second one ends the process) and returns that flag.
const std::atomic<bool>& catch_interrupt();

/// How a failure ends the command.
struct Ending {
  int code = kDone;
  std::string message;  ///< one line
  Json details = Json::object();
};
/// Of the exception that is being handled.
Ending current_ending();
/// Prints the failure: one line on stderr and, with `json`, `details` with it on stdout.
void print_ending(int code, const std::string& message, bool json, Json details);

/// Prints `cairn: error: message` on stderr, red where that is a terminal.
void print_error(const std::string& message);
void print_json(const Json& object);

}  // namespace cairn::cli
