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

/// The outputs of two executions, compared. A synthetic kernel's output is a digest of all that it depends on, not a
/// result.
struct Comparison {
  std::int64_t outputs = 0;            ///< kept outputs and sinks
  std::int64_t sinks = 0;              ///< outputs that nobody reads or keeps; compared by digest
  std::int64_t synthetic = 0;          ///< kept outputs of synthetic kernels, which are digests
  std::int64_t bytes = 0;              ///< bytes of all kept outputs
  std::vector<std::string> different;  ///< names of the outputs whose bytes differ
  bool identical() const { return different.empty(); }
  std::int64_t digests() const { return sinks + synthetic; }
};
/// Compares every kept output bit by bit, and every sink by the digest of its bytes.
Comparison compare(const core::Graph& graph, const Execution& a, const Execution& b);
/// Kept outputs compared with the host's. The error of an output is ||difference|| / ||host's||. The allowed error
/// depends on how the model amplifies rounding, so it is measured (batch norm over few values amplifies it without
/// bounds). The host computes once more with the rounding of the precision added to every value as noise. Allowed is 16
/// times the sum of that noise and the change that it makes.
struct Closeness {
  std::int64_t outputs = 0;
  std::int64_t undecided = 0;  ///< outputs that rounding alone may change by more than half of their norm
  double worst_error = 0;      ///< error of the output that comes closest to what is allowed, or exceeds it most
  double worst_allowed = 0;
  std::string worst_output;  ///< empty: all outputs have the host's bits
  bool close = true;
};
/// Executes the given graph on the host, in fp32, and compares. Nodes without an op are compared bit by bit; a NaN
/// where the host has none is never close.
Closeness check_with_host(const PreparedGraph& graph, const Execution& execution, std::int64_t alignment,
                          std::uint64_t seed, const std::atomic<bool>* stop = nullptr);

/// The value of the first kept loss; none where the graph has no loss.
std::optional<double> loss_of(const core::Graph& graph, const Execution& execution);

/// Bytes of guards behind every buffer, for executions that check them.
inline constexpr std::int64_t kGuardBytes = 256;

/// Number of nodes without an op, which the synthetic kernel executes.
std::int64_t synthetic_nodes(const core::Graph& graph);
/// Names the kernels that execute the graph: "real", "synthetic", or "mixed".
std::string_view kernels_of(const core::Graph& graph);
/// Progress of a run.
struct RunProgress {
  bool baseline = false;             ///< whether the baseline is executed, not the schedule
  std::int64_t step = 0, steps = 0;  ///< steps of the current execution: done, and in all
  std::int64_t execution = 0;        ///< number of the execution: 0 is the warm-up, the others are timed
};

struct RunOptions {
  std::uint64_t seed = 0;      ///< seed of the resident tensors' values
  bool poison = false;         ///< fills a buffer with NaN when it dies
  int repeats = 0;             ///< timed executions; 0: 3 to 15, as many as fit into a second and into the limit
  core::Limit limit = {};      ///< no optional execution starts that would end after it; its stop flag ends all
  bool check_on_host = false;  ///< fills RunResult::host_check
  std::function<void(const RunProgress&)> progress = {};
};

/// The results of executing a decision, and the baseline beside it.
struct RunResult {
  fit::Decision baseline;
  /// Execution of the baseline; none: memory does not suffice, so nothing is compared.
  std::optional<Execution> baseline_run;
  std::string why_no_baseline;
  Execution scheduled_run;
  /// Whether baseline and schedule were executed by turns; false where memory does not suffice for both at once.
  bool interleaved = false;
  bool warmed_up = false;  ///< whether each was executed once before, untimed; false: time did not suffice
  Comparison comparison;
  /// Whether every output has the same bits as the baseline's; none: nothing was compared.
  std::optional<bool> identical() const { return baseline_run ? std::optional(comparison.identical()) : std::nullopt; }
  std::optional<double> loss;
  std::optional<Closeness> host_check;
};

/// A run and everything that is reported of it.
struct RunOutcome {
  const fit::Task& task;  ///< task of the executed graph
  const Backend& backend;
  core::Precision precision;
  const fit::Decision& decision;
  const fit::Answer* answer;  ///< answer that the decision comes from; nullptr: the schedule was given
  const RunResult& result;
};

/// The seconds of an execution as the costs of its graph predict them, for the machine that core::CostUnit::source
/// names. None where the costs are no times.
std::optional<double> predicted_seconds(const core::Graph& graph, const fit::Decision& decision);
/// Whether costs were measured on this backend in this precision, so that predictions and measured times are
/// comparable.
bool predicts(const core::Graph& graph, const Backend& backend, core::Precision precision);
/// The least and the largest timing, and the number of executions that other work of the machine disturbed. Counted are
/// the executions that runtime::disturbed() names and that lost more than a wake-up takes.
struct Spread {
  double least = 0, most = 0;
  std::int64_t disturbed = 0;
};
Spread spread_of(const Execution& execution);
/// Executes the baseline and a schedule of one graph and compares them. The baseline is loaded before a schedule is
/// decided on, so that the time of an execution is known while there is time to divide. Where memory does not suffice
/// for the baseline, the schedule is executed alone. The time of options.limit starts with the constructor, whose
/// arguments must outlive the object.
class SideBySide {
 public:
  /// Plans and loads the baseline. Throws what Backend::load throws, except where the baseline does not fit into
  /// memory.
  SideBySide(Backend& backend, const PreparedGraph& graph, std::int64_t alignment, std::int64_t guard_bytes,
             const RunOptions& options);
  ~SideBySide();

  /// Why memory does not suffice for the baseline; empty: it does.
  const std::string& why_no_baseline() const { return result_.why_no_baseline; }
  /// Executes the baseline once; the host stops after `most` seconds. Returns about the seconds of a whole execution; 0
  /// where there is no memory for it. Where the baseline leaves little memory for a search, it is unloaded and loaded
  /// again later. Throws what Executor::run throws.
  double warm_up(double most);
  /// Executes both and compares them: each once to warm up, then both by turns (baseline, schedule, baseline, ...); the
  /// medians count. The decision was made for graph.prepared, with the same alignment and guards. May be called once.
  /// Throws what Backend::load and Executor::run throw.
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

/// Throws MemoryError where memory has no room for an arena of the lower bound, so no schedule can be executed. Throws
/// it, too, where there is room neither for an arena of the budget nor for the baseline's: what a search finds would
/// hardly be executable. `rounded`: the problem of that prepared graph with sizes rounded up; it has no resident
/// tensors.
void require_memory(Backend& backend, const core::Graph& prepared, const fit::Problem& rounded);

/// Executes the baseline and the decision's schedule with a SideBySide.
RunResult run(Backend& backend, const PreparedGraph& graph, const fit::Decision& decision,
              const RunOptions& options = {});

}  // namespace cairn::pipeline
