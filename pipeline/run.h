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

/// The result of comparing the outputs of two executions. Nodes without an op run a synthetic kernel. It computes no
/// real result; instead, its output is a digest of its inputs.
struct Comparison {
  std::int64_t outputs = 0;  ///< number of outputs compared: kept outputs, and sinks (see below)
  /// Number of sinks, which are outputs that no node reads and that are not kept. Their digests are compared.
  std::int64_t sinks = 0;
  std::int64_t synthetic = 0;          ///< number of kept outputs of synthetic kernels, which are digests
  std::int64_t bytes = 0;              ///< bytes of all kept outputs
  std::vector<std::string> different;  ///< names of the outputs whose bytes differ
  bool identical() const { return different.empty(); }
  std::int64_t digests() const { return sinks + synthetic; }
};
/// Compares every kept output bit by bit, and every sink by the digest of its bytes.
Comparison compare(const core::Graph& graph, const Execution& a, const Execution& b);
/// How close kept outputs are to those that the host computes. The error of an output is
/// `||output - host's output|| / ||host's output||`. The allowed error depends on how much the model amplifies
/// rounding; batch norm over few values, for example, amplifies rounding without bounds. The amplification is therefore
/// measured: the host computes the outputs a second time and adds noise to every value. The relative size of the noise
/// is that of one rounding in the precision. The allowed error is 16 times the sum of this relative size and of the
/// error that the noise causes.
struct Closeness {
  std::int64_t outputs = 0;  ///< number of outputs compared
  /// Number of outputs that cannot be judged, because rounding alone can change them by more than half of their norm.
  std::int64_t undecided = 0;
  double worst_error = 0;  ///< error of the output with the largest error relative to what is allowed
  double worst_allowed = 0;
  std::string worst_output;  ///< name of that output; empty: all outputs are the same bits as the host's
  bool close = true;         ///< whether no output that can be judged has more than the allowed error
};
/// Executes the given graph on the host, in fp32, and compares the kept outputs. Outputs of nodes without an op are
/// compared bit by bit. A NaN is never close unless the host has a NaN there, too.
Closeness check_with_host(const PreparedGraph& graph, const Execution& execution, std::int64_t alignment,
                          std::uint64_t seed, const std::atomic<bool>* stop = nullptr);

/// Returns the value of the first kept loss; none if the graph has no loss.
std::optional<double> loss_of(const core::Graph& graph, const Execution& execution);

/// Bytes of the guard behind every buffer, for executions that check guards (ExecuteRequest::guard_bytes).
inline constexpr std::int64_t kGuardBytes = 256;

/// Returns the number of nodes without an op, which the synthetic kernel executes.
std::int64_t synthetic_nodes(const core::Graph& graph);
/// Names the kernels that execute the graph: "real", "synthetic", or "mixed".
std::string_view kernels_of(const core::Graph& graph);
/// Progress of a run.
struct RunProgress {
  bool baseline = false;  ///< whether the current execution is of the baseline
  /// step: number of steps done in the current execution; steps: number of all steps of an execution.
  std::int64_t step = 0, steps = 0;
  std::int64_t execution = 0;  ///< number of the current execution; 0 is the warm-up, the others are timed
};

struct RunOptions {
  std::uint64_t seed = 0;  ///< seed of the resident tensors' values
  bool poison = false;     ///< whether to fill a buffer with NaN when its lifetime ends
  /// Largest number of timed executions. 0 stands for 3 to 15 executions, as many as fit into a second and into the
  /// limit.
  int repeats = 0;
  /// Limit of time. Each schedule is executed at least once. Further executions start only if they are expected to end
  /// in time. The stop flag ends all executions.
  core::Limit limit = {};
  bool check_on_host = false;  ///< whether to fill RunResult::host_check
  std::function<void(const RunProgress&)> progress = {};
};

/// The results of executing the schedule of a fit::Decision and, for comparison, the baseline.
struct RunResult {
  fit::Decision baseline;
  /// Execution of the baseline; none: memory does not suffice for it, so nothing is compared.
  std::optional<Execution> baseline_run;
  std::string why_no_baseline;
  Execution scheduled_run;
  /// Whether executions of baseline and schedule alternated. False if memory does not suffice for both at the same
  /// time.
  bool interleaved = false;
  /// Whether baseline and schedule were executed once before the timed executions. False if there was no time for it.
  bool warmed_up = false;
  Comparison comparison;
  /// Returns whether every output of the schedule has the same bits as that of the baseline; none if nothing was
  /// compared.
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
  const fit::Answer* answer;  ///< answer that the decision comes from; nullptr: the user gave the schedule
  const RunResult& result;
  std::int64_t nodes_in_free_memory = 0;  ///< FreeMemoryUse::nodes
};

/// Returns the seconds of an execution that the graph's costs predict, for the device that core::CostUnit::source
/// names. None if the costs are not times.
std::optional<double> predicted_seconds(const core::Graph& graph, const fit::Decision& decision);
/// Returns whether costs were measured on this backend in this precision, so that predicted and measured times can be
/// compared.
bool predicts(const core::Graph& graph, const Backend& backend, core::Precision precision);
/// The least and the largest timing of an execution, and the number of timings that other work on the machine
/// disturbed. A timing counts as disturbed if runtime::disturbed() says so and if it lost more than a tenth of a
/// millisecond. A smaller loss does not count, because even on an idle machine waking up a thread can take that long.
struct Spread {
  double least = 0, most = 0;
  std::int64_t disturbed = 0;
};
Spread spread_of(const Execution& execution);
/// Executes the baseline and a schedule of one graph and compares them. The baseline is loaded and can be executed
/// before a schedule is searched for, so that the caller knows how much of its time to keep for executions. If memory
/// does not suffice for the baseline, only the schedule is executed. The time of options.limit begins when the object
/// is constructed. The constructor's arguments must outlive the object.
class SideBySide {
 public:
  /// Plans and loads the baseline. Throws what Backend::load() throws, unless the baseline does not fit into memory.
  SideBySide(Backend& backend, const PreparedGraph& graph, std::int64_t alignment, std::int64_t guard_bytes,
             const RunOptions& options);
  ~SideBySide();

  /// Returns why memory does not suffice for the baseline; empty if it suffices.
  const std::string& why_no_baseline() const { return result_.why_no_baseline; }
  /// Executes the baseline once. On the host, the execution is stopped after `most` seconds. Returns the approximate
  /// seconds that a whole execution takes, or 0 if memory does not suffice for the baseline. If the loaded baseline
  /// leaves little memory for a search, unloads it; in that case run() loads it again. Throws what Executor::run()
  /// throws.
  double warm_up(double most);
  /// Executes baseline and schedule and compares them. Each is executed once to warm up. Then executions alternate
  /// (baseline, schedule, baseline, ...), and the medians of their times count. The decision must have been made for
  /// graph.prepared, with the same alignment and guards. May be called once. Throws what Backend::load() and
  /// Executor::run() throw.
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
/// has the former schedule with a new plan.
struct FreeMemoryUse {
  PreparedGraph graph;
  fit::Decision decision;
  std::int64_t nodes = 0;  ///< number of nodes whose scratch was changed
};
/// Gives ops more scratch if that makes them faster and memory stays within the task's budget
/// (runtime::use_free_memory). The schedule is not changed, but is planned again. Its plan stays within the budget, and
/// the baseline's peak does not rise. The graph's costs are not changed, so that bounds proved for the task also hold
/// for the new graph. Returns nothing if no op becomes faster, if the task's objective is not Objective::within_budget,
/// or if `stop` is raised. Throws what Backend::scratch_variants() throws.
std::optional<FreeMemoryUse> use_free_memory(Backend& backend, const PreparedGraph& graph, const fit::Task& task,
                                             const fit::Decision& decision, const std::atomic<bool>* stop);

/// Throws MemoryError in two cases:
/// - Memory is too small for an arena of the lower bound. In that case no schedule can be executed.
/// - Memory is too small for an arena of the budget and for the baseline's arena. In that case, it is likely that
///   schedules that a search finds cannot be executed either.
/// `rounded` is the problem of the prepared graph with sizes rounded up. Its graph has no resident tensors.
void require_memory(Backend& backend, const core::Graph& prepared, const fit::Problem& rounded);

/// Executes the baseline and the decision's schedule by means of a SideBySide.
RunResult run(Backend& backend, const PreparedGraph& graph, const fit::Decision& decision,
              const RunOptions& options = {});

}  // namespace cairn::pipeline
