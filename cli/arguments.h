#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/cli/command.h"
#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/precision.h"
#include "cairn/core/schedule.h"
#include "cairn/pipeline/graph_source.h"
#include "cairn/solvers/fit/problem.h"
#include "cairn/solvers/registry.h"

namespace CLI {
class Option;
class Validator;
}  // namespace CLI

/// Arguments that several subcommands take.
namespace cairn::cli {

/// A file named on the command line, and the option that names it.
struct NamedPath {
  std::string_view option;
  std::string path;  ///< empty: not given
};

/// Adds -t, --time-limit, which may be absent. A given limit also bounds reading (see reading()).
void add_time_limit(CLI::App& app, std::string& time_limit, const std::string& help);

/// A check for numbers that must be 1 or more.
const CLI::Validator& at_least_one();

/// Adds --threads, which sets core::thread_count() as soon as it is parsed. `of`: what the threads do, for the help.
void add_threads(CLI::App& app, const std::string& of);

/// The option --precision.
struct PrecisionChoice {
  std::string precision;  ///< empty: the precision that the graph is stored in
  void add_to(CLI::App& app);
  /// Returns a graph that `source` loaded or built, stored in the chosen precision.
  core::Graph stored(const pipeline::GraphSource& source, core::Graph graph) const;
  /// The precision, where one is given. Throws InputError, which suggests the nearest name.
  std::optional<core::Precision> given() const;
};

/// The options --backend and --precision.
struct BackendChoice : PrecisionChoice {
  std::string backend = "auto";
  void add_to(CLI::App& app);
};

/// Adds --budget, which may be absent but not empty.
void add_budget(CLI::App& app, std::string& budget, const std::string& help);
/// Adds --alignment; its present value is the default.
void add_alignment(CLI::App& app, std::int64_t& alignment);

/// The option --alignment of commands whose plans `run` can execute; the default is what the graph needs there.
struct AlignmentChoice {
  std::int64_t given = 0;  ///< 0: not given
  void add_to(CLI::App& app);
  std::int64_t of(const core::Graph& graph) const;
};

/// The option --start.
struct StartArgument {
  std::string path;  ///< empty: not given
  void add_to(CLI::App& app);
  /// Loads the schedule to start from, made for the graph or for one with the fingerprint `or_fingerprint`. Throws
  /// InputError where it is not a valid schedule of that scope.
  std::optional<core::Schedule> load(const core::Graph& graph, const solvers::Scope& scope,
                                     std::string_view or_fingerprint = {}) const;
};

/// The options --td and --backend, which name what solvers may use beside the graph.
struct SearchAids {
  std::string td, backend = "host";

  void add_to(CLI::App& app);
  NamedPath input() const;
  /// Opens what was given. `searched`: the graph as solvers see it. Throws InputError, and DeviceError where the device
  /// is missing.
  struct OpenedAids open(const core::Graph& searched) const;
};
struct OpenedAids {
  std::shared_ptr<solvers::Accelerator> accelerator;
  std::unique_ptr<sim::Simulator> simulator;
  std::unique_ptr<solvers::TreeDecomposition> decomposition;

  OpenedAids();
  OpenedAids(OpenedAids&&) noexcept;
  ~OpenedAids();
  /// Gives pointers to these objects to `options`; they must outlive the search.
  void lend_to(solvers::SolveOptions& options) const;
};

/// Seconds since the command began.
double seconds_since_start();
/// Subtracts the time since the command began from the limit; at least a twentieth of the limit stays.
core::Limit from_start(core::Limit limit);
/// Does the same as from_start(), and subtracts the time that it takes to explain an answer on that graph.
core::Limit until_answer(core::Limit limit, const core::Graph& graph);

/// Parses a number of bytes above 0, such as 1048576 or 1MiB. Throws InputError that names the option.
std::int64_t parse_size(std::string_view option, const std::string& text);

/// Checks the outputs before any work is done. Throws InputError where an output cannot be written as a file, would
/// overwrite an input, or is named twice, or where `-` stands for standard input twice, or for standard output twice or
/// beside --json. Where an output is `-`, the table goes to stderr.
void require_outputs(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& inputs);

/// A graph named on the command line, which is a file or a model with its options.
struct GraphArguments {
  std::string name;
  std::map<std::string, std::int64_t, std::less<>> model_options;
  bool batch_auto = false;       ///< --batch auto: the command finds the largest that fits
  std::int64_t found_batch = 0;  ///< the batch that was found; 0: none was sought
  std::string weight_grads;      ///< empty: not given
  std::string optimizer;         ///< empty: not given
  std::string granularity;       ///< empty: not given
  bool forward = false;          ///< the graph without its backward nodes
  bool unit_cost = false;        ///< every node costs 1
  PrecisionChoice precision;     ///< how load() and with_batch() store the graph, where the command adds it

  /// Adds the positional `GRAPH` and the options of every model. Call it after the subcommand's own options, which take
  /// precedence over a model option of the same name.
  void add_to(CLI::App& app, const std::string& positional = "GRAPH");
  /// The graph as a source; files are read as reading() says. Throws InputError on a bad value of an option.
  pipeline::GraphSource model() const;
  /// Returns the same as model(). Also throws InputError if options of models are given with a file.
  pipeline::GraphSource source() const;
  /// Loads the graph that is named here. Throws InputError.
  core::Graph load() const;
  /// Builds the model with another batch.
  core::Graph with_batch(std::int64_t batch) const;
  /// Returns the problem of the named graph. A budget in percent refers to what the baseline needs with that alignment.
  /// Throws InputError.
  fit::Problem problem(const std::string& budget, const AlignmentChoice& alignment = {.given = 1}) const;
  /// The file that is read; the path is empty for a model.
  NamedPath input() const;

 private:
  void add_batch(CLI::App& app, const std::string& help, const std::string& group);
};

/// Writes the graph that a command was given, if asked to: as Cairn JSON, Graphviz or PACE .gr.
struct GraphOutputs {
  std::string json, dot, gr;

  void add_to(CLI::App& app);
  std::vector<NamedPath> paths() const;
  void write(const core::Graph& graph) const;
};
/// A path that was written to, as messages show it.
std::string written_to(const std::string& path);

/// Which solver runs, and when it must stop.
struct SolverArguments {
  std::string solver = "auto";
  std::string time_limit;
  std::int64_t work_limit = 0;  ///< 0: none
  std::uint64_t seed = 0;
  std::string memory;  ///< empty: the default of SolveOptions
  std::string order = "free";
  std::int32_t max_occurrences = 0;  ///< 0: any number
  std::vector<std::string> own;      ///< "name=value": options that only this solver has

  /// Adds the options. `default_seconds` holds where no limit is given; a work limit alone leaves the time unlimited.
  void add_to(CLI::App& app, const std::string& default_seconds);
  const solvers::SolverInfo& find() const;
  /// Whether --solver stands on the command line.
  bool names_solver() const;
  /// Whether --order, --max-occurrences or --option restricts the search.
  bool narrows() const;
  /// The options, without a budget; Ctrl-C stops the search. Throws InputError, also on an option that the solver does
  /// not have.
  solvers::SolveOptions options() const;

 private:
  std::string default_seconds_;
  const CLI::Option* solver_option_ = nullptr;
};

}  // namespace cairn::cli
