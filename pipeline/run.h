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

/// What two executions left behind, compared. What a synthetic kernel leaves is a digest of all that it depends on, not
/// a result.
struct Comparison {
  std::int64_t outputs = 0;            ///< kept ones and sinks
  std::int64_t sinks = 0;              ///< outputs that nobody reads or keeps: compared by digest
  std::int64_t synthetic = 0;          ///< kept outputs of synthetic kernels: they are digests
  std::int64_t bytes = 0;              ///< of all kept outputs
  std::vector<std::string> different;  ///< names of the nodes whose bytes differ
  bool identical() const { return different.empty(); }
  std::int64_t digests() const { return sinks + synthetic; }
};
/// Compares every kept output bit by bit, and every sink by the digest of its bytes.
Comparison compare(const core::Graph& graph, const Execution& a, const Execution& b);
/// Kept outputs beside the host's. The error of an output is ||difference|| / ||host's||. What it may be depends on how
/// the model amplifies rounding (batch norm over few values amplifies it without bounds), so it is measured: the host
/// computes once more with every value disturbed by that much, and 16 times the noise and the change that it makes is
/// allowed.
struct Closeness {
  std::int64_t outputs = 0;
  std::int64_t undecided = 0;  ///< outputs that rounding alone may change by more than half of their norm
  double worst_error = 0;      ///< of the output that comes closest to what is allowed, or exceeds it most
  double worst_allowed = 0;
  std::string worst_output;  ///< empty: all outputs have the host's bits
  bool close = true;
};
/// Executes the graph as it was given on the host, in fp32, and compares. Nodes without an op compare bit by bit; a NaN
/// where the host has none is never close.
Closeness check_with_host(const PreparedGraph& graph, const Execution& execution, std::int64_t alignment,
                          std::uint64_t seed, const std::atomic<bool>* stop = nullptr);

/// The value of the first kept loss, where the graph has one.
std::optional<double> loss_of(const core::Graph& graph, const Execution& execution);

/// Guards behind every buffer of an execution that checks them, in bytes.
inline constexpr std::int64_t kGuardBytes = 256;

/// Nodes of a graph without an op, which the synthetic kernel executes.
std::int64_t synthetic_nodes(const core::Graph& graph);
/// "real", "synthetic", or "mixed": the kernels that execute the graph.
std::string_view kernels_of(const core::Graph& graph);
/// How far a run is.
struct RunProgress {
  bool baseline = false;             ///< it executes the baseline, else the schedule
  std::int64_t step = 0, steps = 0;  ///< of that execution
  std::int64_t execution = 0;        ///< of that schedule: 0 warms up, then come those that are timed
};

struct RunOptions {
  std::uint64_t seed = 0;      ///< of the resident tensors' values
  bool poison = false;         ///< fills a buffer with NaN when it dies
  int repeats = 0;             ///< timed executions; 0: 3 to 15, those that fit into a second and into the limit
  core::Limit limit = {};      ///< no execution that is not needed is begun that would end after it; stop ends all
  bool check_on_host = false;  ///< fills RunResult::host_check
  std::function<void(const RunProgress&)> progress = {};
};

/// A decision executed, and the baseline beside it.
struct RunResult {
  fit::Decision baseline;
  std::optional<Execution> baseline_run;  ///< none where memory does not suffice for it: nothing is compared then
  std::string why_no_baseline;
  Execution scheduled_run;
  /// Baseline and schedule were executed by turns; else, where memory does not suffice for both, one after the other.
  bool interleaved = false;
  bool warmed_up = false;  ///< both were executed once more before, untimed; not where the time was over
  Comparison comparison;
  /// Whether every output has the baseline's bits; none: nothing was compared.
  std::optional<bool> identical() const { return baseline_run ? std::optional(comparison.identical()) : std::nullopt; }
  std::optional<double> loss;
  std::optional<Closeness> host_check;
};

/// A run with all that is reported of it.
struct RunOutcome {
  const fit::Task& task;  ///< of the graph that was executed
  const Backend& backend;
  core::Precision precision;
  const fit::Decision& decision;
  const fit::Answer* answer;  ///< that it is from; nullptr: the schedule was given
  const RunResult& result;
};

/// The seconds of an execution that the costs of its graph predict: for the machine that they are of, which
/// core::CostUnit::source names. None where they are no times.
std::optional<double> predicted_seconds(const core::Graph& graph, const fit::Decision& decision);
/// Whether costs were measured on this backend in this precision, so that predictions and times are of one machine.
bool predicts(const core::Graph& graph, const Backend& backend, core::Precision precision);
/// Least and most of what was timed, and how many of the executions other work of the machine disturbed: those of
/// runtime::disturbed that lost more than any wake-up takes.
struct Spread {
  double least = 0, most = 0;
  std::int64_t disturbed = 0;
};
Spread spread_of(const Execution& execution);
/// The baseline and a schedule of one graph, executed and compared. The baseline is there before anybody has decided on
/// the schedule, so that what an execution takes is known while there is time to divide. Where memory does not suffice
/// for it, the schedule is executed alone. The time of options.limit runs from the beginning; what the constructor is
/// given must outlive it.
class SideBySide {
 public:
  /// Plans and loads the baseline. Throws as Backend::load, but where it does not fit.
  SideBySide(Backend& backend, const PreparedGraph& graph, std::int64_t alignment, std::int64_t guard_bytes,
             const RunOptions& options);
  ~SideBySide();

  /// Why memory does not suffice for the baseline; empty: it does.
  const std::string& why_no_baseline() const { return result_.why_no_baseline; }
  /// Executes the baseline once; the host stops after `most` seconds. About the seconds of a whole execution; 0 where
  /// there is no memory for it. Where it leaves little memory for a search, it is loaded again later. Throws as
  /// Executor::run.
  double warm_up(double most);
  /// Executes both and compares them: each once to warm up, then both by turns (baseline, schedule, baseline, ...), and
  /// the medians count. The decision was made for graph.prepared, with the same alignment and guards. Once. Throws as
  /// Backend::load and Executor::run.
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

/// Throws MemoryError where no schedule of the problem can be executed, as memory has no room for an arena of the lower
/// bound, or where what is found within its budget would hardly be, as there is none for the budget, nor for the
/// baseline. `rounded`: the problem of that prepared graph with sizes rounded up, which has no resident tensors.
void require_memory(Backend& backend, const core::Graph& prepared, const fit::Problem& rounded);

/// All of that at once.
RunResult run(Backend& backend, const PreparedGraph& graph, const fit::Decision& decision,
              const RunOptions& options = {});

}  // namespace cairn::pipeline
