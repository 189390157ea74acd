#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/precision.h"
#include "cairn/pipeline/backend.h"
#include "cairn/solvers/common/solution.h"
#include "cairn/solvers/fit/decision.h"
#include "cairn/solvers/fit/objective.h"
#include "cairn/solvers/fit/problem.h"

namespace cairn::pipeline {

/// The result of comparing the outputs of two executions. Nodes without an op run a synthetic kernel, whose output is a
/// digest (hash) of its inputs.
struct Comparison {
  std::int64_t outputs = 0;  ///< number of kept outputs and sinks that were compared
  /// Number of sinks: outputs that no node reads and that are not kept. Their digests are compared.
  std::int64_t sinks = 0;
  std::int64_t synthetic = 0;          ///< number of kept outputs of synthetic kernels, which are digests
  std::int64_t bytes = 0;              ///< bytes of all kept outputs
  std::vector<std::string> different;  ///< names of the outputs whose bytes differ
  bool identical() const { return different.empty(); }
  std::int64_t digests() const { return sinks + synthetic; }
};
/// Compares every kept output bit by bit, and every sink by the digest of its bytes.
Comparison compare(const core::Graph& graph, const Execution& a, const Execution& b);
/// Says how close kept outputs are to the outputs that the host computes. The error of an output is `||output - host's
/// output|| / ||host's output||`. How large an error is acceptable depends on how much the model amplifies rounding
/// errors. To measure the amplification, the host computes the outputs a second time and adds noise to every computed
/// value. The relative size r of the noise is that of one rounding error in the precision. If the noise changes an
/// output by the relative error e, an error of 16 * (r + e) is allowed for this output.
struct Closeness {
  std::int64_t outputs = 0;  ///< number of outputs compared
  /// Number of outputs that cannot be judged, because rounding alone can change them by more than half of their norm.
  std::int64_t undecided = 0;
  double worst_error = 0;  ///< error of the output with the largest quotient of error and allowed error
  double worst_allowed = 0;
  std::string worst_output;  ///< name of this output; empty: all outputs have the same bits as on the host
  bool close = true;         ///< whether all outputs that can be judged have an allowed error
};
/// Executes the graph on the host in fp32 and compares the kept outputs of `execution` with the host's. Outputs of
/// nodes without an op must have the same bits. An output of floating-point numbers is never close if it or the host's
/// output contains a NaN.
Closeness check_with_host(const PreparedGraph& graph, const Execution& execution, std::int64_t alignment,
                          std::uint64_t seed, const std::atomic<bool>* stop = nullptr);

/// Returns the value of the first loss that is a kept output, or nothing if there is no loss.
std::optional<double> loss_of(const core::Graph& graph, const Execution& execution);

/// Value of ExecuteRequest::guard_bytes for executions that check guards.
inline constexpr std::int64_t kGuardBytes = 256;

/// Returns the number of nodes without an op.
std::int64_t synthetic_nodes(const core::Graph& graph);
/// Returns which kernels execute the graph: "real" if every node has an op, "synthetic" if none has one, else "mixed".
std::string_view kernels_of(const core::Graph& graph);
/// Progress of a run.
struct RunProgress {
  bool baseline = false;  ///< whether the current execution is of the baseline
  /// `step` is the number of steps done in the current execution, and `steps` the number of all steps of the schedule.
  std::int64_t step = 0, steps = 0;
  std::int64_t execution = 0;  ///< number of the current execution; 0 is to warm up, later ones are timed
};

struct RunOptions {
  std::uint64_t seed = 0;  ///< seed of the resident tensors' values
  bool poison = false;     ///< whether to fill a buffer with NaN when its lifetime ends
  /// Number of streams on which the schedule runs. The baseline always runs on one stream. So the comparison of the
  /// outputs also shows errors in the synchronisation of several streams.
  int streams = 1;
  /// Largest number of timed executions. 0 stands for 3 to 15, as many as fit into a second and into `limit`.
  int repeats = 0;
  /// Each schedule is executed at least once. Further executions start only if they are expected to end within the time
  /// limit. The stop flag ends all executions.
  core::Limit limit = {};
  bool check_on_host = false;  ///< whether to fill RunResult::host_check
  std::function<void(const RunProgress&)> progress = {};
};

/// The results of executing the schedule of a fit::Decision and, for comparison, the baseline.
struct RunResult {
  fit::Decision baseline;
  /// Execution of the baseline. If memory does not suffice for the baseline, there is none, and nothing is compared.
  std::optional<Execution> baseline_run;
  std::string why_no_baseline;
  Execution scheduled_run;
  /// Whether executions of baseline and schedule alternated. False if baseline and schedule do not fit into memory
  /// together.
  bool interleaved = false;
  /// Whether baseline and schedule were executed once before the timed executions. False if there was no time.
  bool warmed_up = false;
  Comparison comparison;
  /// Returns whether every output has the same bits as the baseline's output, or nothing if nothing was compared.
  std::optional<bool> identical() const { return baseline_run ? std::optional(comparison.identical()) : std::nullopt; }
  std::optional<double> loss;
  std::optional<Closeness> host_check;
};

/// Everything that a report about a run shows.
struct RunOutcome {
  const fit::Task& task;  ///< task of the executed graph
  const Backend& backend;
  core::Precision precision;
  const fit::Decision& decision;
  const fit::Answer* answer;  ///< answer that the decision comes from; nullptr if the user gave the schedule
  const RunResult& result;
  std::int64_t nodes_in_free_memory = 0;  ///< number of nodes to which use_free_memory() gave more scratch
};

/// Returns how many seconds one execution takes according to the graph's costs, on the device that
/// core::CostUnit::source names. Returns nothing if the costs are not times.
std::optional<double> predicted_seconds(const core::Graph& graph, const fit::Decision& decision);
/// Returns whether the costs were measured on this backend in this precision. If so, they predict the times of
/// executions.
bool predicts(const core::Graph& graph, const Backend& backend, core::Precision precision);
/// The least and the largest timing of an execution, and the number of disturbed timings. A timing counts as disturbed
/// if runtime::disturbed() says so, and if the timing is more than 0.1 ms above the least timing. Smaller differences
/// do not count, because waking up a thread can take 0.1 ms even on an idle machine.
struct Spread {
  double least = 0, most = 0;
  std::int64_t disturbed = 0;
};
Spread spread_of(const Execution& execution);
/// Executes the baseline (the graph's input order) and a schedule of one graph, and compares them. The constructor
/// loads the baseline, so that the baseline can be executed before the search for the schedule. The time of this
/// execution tells how much of the time limit the search must leave for further executions. If memory does not suffice
/// for the baseline, only the schedule is executed. The time limit in options.limit starts to run in the constructor.
/// The constructor's arguments must outlive the object.
class SideBySide {
 public:
  /// Plans and loads the baseline. Throws the exceptions of Backend::load(), except the one for a baseline that does
  /// not fit into memory.
  SideBySide(Backend& backend, const PreparedGraph& graph, std::int64_t alignment, std::int64_t guard_bytes,
             const RunOptions& options);
  ~SideBySide();

  /// Returns why memory does not suffice for the baseline, or an empty text if it suffices.
  const std::string& why_no_baseline() const { return result_.why_no_baseline; }
  /// Executes the baseline once. On the host, stops after `most` seconds. Returns the approximate seconds of a whole
  /// execution, or 0 if memory does not suffice for the baseline. Unloads the baseline if little memory is left for a
  /// search; run() then loads it again. Throws what Executor::run() throws.
  double warm_up(double most);
  /// Executes baseline and schedule once each to warm up. Then executes and times them alternately (baseline, schedule,
  /// baseline, ...), and compares their outputs and median times. The decision must have been made for graph.prepared
  /// with the same alignment and guards. May be called once. Throws what Backend::load() and Executor::run() throw.
  RunResult run(const fit::Decision& decision);

 private:
  class Turns;

  void load_baseline();
  std::unique_ptr<Turns> load(const fit::Decision& decision, bool baseline);
  bool take_turns(std::span<Turns* const> all);

  Backend& backend_;
  const PreparedGraph& graph_;
  RunOptions options_;
  core::Stopwatch watch_;
  RunResult result_;
  std::unique_ptr<Turns> baseline_;
};

/// The result of use_free_memory(): a graph in which some ops have more scratch, and the decision for this graph, which
/// has the old schedule and a new plan.
struct FreeMemoryUse {
  PreparedGraph graph;
  fit::Decision decision;
  std::int64_t nodes = 0;  ///< number of nodes whose scratch was changed
};
/// Gives ops more scratch if more scratch makes them faster (runtime::use_free_memory). The schedule stays the same,
/// and gets a new plan within the task's budget. The scratch is chosen such that the baseline's peak does not rise.
/// Costs do not change, so bounds that are proved for the task also hold for the new graph. Returns nothing if no op
/// becomes faster, if the task's objective is not Objective::within_budget, or if `stop` is raised. Throws what
/// Backend::scratch_variants() throws.
std::optional<FreeMemoryUse> use_free_memory(Backend& backend, const PreparedGraph& graph, const fit::Task& task,
                                             const fit::Decision& decision, const std::atomic<bool>* stop);

/// Throws MemoryError in two cases:
/// - Memory is too small for an arena of the size of the lower bound, so no schedule can be executed.
/// - Memory is too small for an arena of the size of the budget, and also for an arena of the size of the baseline's
/// peak. The schedule that a search finds then probably cannot be executed.
///
/// `rounded` is the problem of the prepared graph, with sizes rounded up to the alignment. The graph in `rounded` lists
/// no resident tensors, so `prepared` is passed, too.
void require_memory(Backend& backend, const core::Graph& prepared, const fit::Problem& rounded);

/// Executes the baseline and the decision's schedule, and compares them (see SideBySide).
RunResult run(Backend& backend, const PreparedGraph& graph, const fit::Decision& decision,
              const RunOptions& options = {});

}  // namespace cairn::pipeline
