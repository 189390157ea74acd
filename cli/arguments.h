#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/cli/command.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/precision.h"
#include "cairn/pipeline/graph_source.h"
#include "cairn/sim/simulator.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/registry.h"

namespace CLI {
class Option;
class Validator;
}  // namespace CLI

/// This header declares the command-line arguments that several subcommands share.
namespace cairn::cli {

/// A file on the command line, and the option that names it.
struct NamedPath {
  std::string_view option;
  std::string path;  ///< empty: not given
};

/// Adds -t, --time-limit. The limit also applies to the reading of files (reading()).
void add_time_limit(CLI::App& app, std::string& time_limit, const std::string& help);

/// Returns a check that a number is 1 or more.
const CLI::Validator& at_least_one();

/// Adds --threads, which sets core::thread_count() when it is parsed. The help text is "CPU threads " followed by `of`,
/// for example "of the kernels". `usual` describes the default in the help text. If it is empty, the help text says
/// that the default is one thread per core that this process may use.
void add_threads(CLI::App& app, const std::string& of, const std::string& usual = "");

/// The option --precision.
struct PrecisionChoice {
  std::string precision;  ///< empty: the precision in which the graph is stored
  void add_to(CLI::App& app);
  /// Returns `graph`, which comes from `source`, stored in the chosen precision.
  core::Graph stored(const pipeline::GraphSource& source, core::Graph graph) const;
  /// Returns the precision, if given. Throws InputError on an unknown name; the message suggests the nearest known
  /// name.
  std::optional<core::Precision> given() const;
};

/// The options --backend and --device.
struct DeviceChoice {
  std::string backend = "auto";
  int device = -1;  ///< -1: not given
  /// `use` says what the device is for, and is appended to the help text of --backend. It can be empty.
  void add_to(CLI::App& app, const std::string& use = "");
  /// Returns whether the options choose one of several GPUs.
  bool is_named() const { return device >= 0 || backend.find(':') != std::string::npos; }
  /// Returns the name for pipeline::open_backend(). Throws InputError if both options name a device.
  std::string name() const;
};

/// The options --backend, --device and --precision.
struct BackendChoice : PrecisionChoice, DeviceChoice {
  void add_to(CLI::App& app);
};

/// Adds the optional --budget. Its value must not be empty.
void add_budget(CLI::App& app, std::string& budget, const std::string& help);

/// The option --alignment of commands whose plans `cairn run` can execute. The default is what the kernels require, or
/// 1 for graphs without ops.
struct AlignmentChoice {
  std::int64_t given = 0;  ///< 0: not given
  void add_to(CLI::App& app);
  std::int64_t of(const core::Graph& graph) const;
};

/// The option --start, a file with a schedule from which the search starts.
struct StartArgument {
  std::string path;  ///< empty: not given
  void add_to(CLI::App& app);
  /// Loads the file and stores pointers to its schedule in `search`. The returned object must live as long as `search`.
  /// The schedule must have been made for `graph`, or for a graph with the fingerprint `or_fingerprint`. Throws
  /// InputError if the schedule is invalid, or is not among the schedules that `search` and the solver allow. Returns
  /// nullptr if no file is given.
  std::unique_ptr<const core::ScheduleFile> load_into(solvers::SolveOptions& search, const solvers::SolverInfo& solver,
                                                      const core::Graph& graph,
                                                      std::string_view or_fingerprint = {}) const;
};

/// The options --td, --backend and --device: a tree decomposition for solvers, and a device for their searches.
struct SearchAids {
  std::string td;
  DeviceChoice device{.backend = "host"};

  void add_to(CLI::App& app);
  NamedPath input() const;
  /// Reads the tree decomposition and opens the device. `searched` is the graph that solvers get, to which the
  /// decomposition must belong. Throws InputError if the file is not acceptable, and DeviceError if the device is
  /// missing.
  struct OpenedAids open(const core::Graph& searched) const;
};
struct OpenedAids {
  std::shared_ptr<solvers::Accelerator> accelerator;
  std::unique_ptr<sim::Simulator> simulator;
  std::unique_ptr<solvers::TreeDecomposition> decomposition;

  /// Sets the pointers in `options` to these objects, which must outlive the search.
  void lend_to(solvers::SolveOptions& options) const;
};

double seconds_since_start();
/// Returns the limit minus the time since the command began, but at least a twentieth of the time limit.
core::Limit from_start(core::Limit limit);
/// Works like from_start(), but also subtracts the estimated time for explaining an answer.
core::Limit until_answer(core::Limit limit, const core::Graph& graph);

/// Parses a size above 0, such as 1048576 or 1MiB. Throws InputError that names the option.
std::int64_t parse_size(std::string_view option, const std::string& text);

/// Checks the output files before any work is done. If an output is `-` (standard output), the command's table will go
/// to stderr. Throws InputError if an output cannot be written as a file, would overwrite an input, or is named twice.
/// Also throws InputError if two inputs are `-`, if two outputs are `-`, or if an output is `-` although --json is
/// given.
void require_outputs(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& inputs);

/// A graph named on the command line: a file, or a model with its options.
struct GraphArguments {
  std::string name;
  std::map<std::string, std::int64_t, std::less<>> model_options;
  /// Whether --batch auto was given: the command finds the largest batch that fits.
  bool batch_auto = false;
  std::int64_t found_batch = 0;  ///< the batch that --batch auto found; 0: none was searched for
  std::string weight_grads;      ///< empty: not given
  std::string optimizer;         ///< empty: not given
  std::string granularity;       ///< empty: not given
  bool forward = false;          ///< whether to leave out the graph's backward nodes
  bool unit_cost = false;        ///< whether to set every node's cost to 1
  /// Precision in which load() and with_batch() store the graph, if the command has --precision.
  PrecisionChoice precision;

  /// Adds a positional argument for the graph, and the options of all models. Must be called after the subcommand's own
  /// options were added, because these take precedence over model options of the same name.
  void add_to(CLI::App& app, const std::string& positional = "GRAPH");
  /// Returns the source of the graph, with the options that the user gave. A file is read with the options of
  /// reading(). Throws InputError if an option has a bad value.
  pipeline::GraphSource model() const;
  /// Works like model(), but also throws InputError if the graph is a file and options of models are given.
  pipeline::GraphSource source() const;
  /// Loads the graph that is named here. Throws InputError.
  core::Graph load() const;
  /// Builds the model with the batch size `batch` in place of the batch size that the user gave.
  core::Graph with_batch(std::int64_t batch) const;
  /// Loads the graph and returns it as a problem with the budget. A percentage in `budget` refers to the baseline's
  /// peak, with sizes rounded up to the alignment. Throws InputError.
  fit::Problem problem(const std::string& budget, const AlignmentChoice& alignment = {.given = 1}) const;
  NamedPath input() const;

 private:
  void add_batch(CLI::App& app, const std::string& help, const std::string& group);
};

/// Options that write a command's graph to files: as Cairn JSON, Graphviz or PACE .gr.
struct GraphOutputs {
  std::string json, dot, gr;

  void add_to(CLI::App& app);
  std::vector<NamedPath> paths() const;
  void write(const core::Graph& graph) const;
};
/// Returns how messages name a written file: its path, or "stdout" for `-`. For an empty path, says that nothing was
/// written.
std::string written_to(const std::string& path);

/// The options that choose the solver and its limits.
struct SolverArguments {
  std::string solver = "auto";
  std::string time_limit;
  std::int64_t work_limit = 0;  ///< 0: none
  std::uint64_t seed = 0;
  std::string memory;  ///< memory limit of exact solvers; empty: the default of SolveOptions::memory_bytes
  std::string order = "free";
  std::int32_t max_occurrences = 0;  ///< 0: any number
  std::vector<std::string> own;      ///< values "name=value" of --option, which sets options of one solver

  /// Adds the options. If the user gives no limit, the time limit is `default_seconds`. If the user gives only a work
  /// limit, the time is unlimited.
  void add_to(CLI::App& app, const std::string& default_seconds);
  const solvers::SolverInfo& find() const;
  bool names_solver() const;
  /// Returns whether --order, --max-occurrences or --option is given. Each of these can exclude schedules from the
  /// search.
  bool narrows() const;
  /// Returns the solver's options, without a budget. Ctrl-C stops the search. Throws InputError, for example for
  /// options that the solver does not have.
  solvers::SolveOptions options() const;

 private:
  std::string default_seconds_;
  const CLI::Option* solver_option_ = nullptr;
};

}  // namespace cairn::cli
