#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/precision.h"
#include "cairn/pipeline/backend.h"
#include "cairn/pipeline/problem.h"
#include "cairn/pipeline/solve.h"
#include "cairn/solvers/common/solution.h"

namespace cairn::pipeline {

/// What two executions left behind, compared.
struct Comparison {
  std::int64_t outputs = 0;  ///< kept ones and sinks
  std::int64_t sinks = 0;
  std::int64_t bytes = 0;              ///< of the kept outputs
  std::vector<std::string> different;  ///< names of the nodes whose bytes differ
  bool identical() const { return different.empty(); }
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

struct RunOptions {
  std::uint64_t seed = 0;      ///< of the resident tensors' values
  bool poison = false;         ///< fills a buffer with NaN when it dies
  int repeats = 1;             ///< ExecuteRequest::repeats
  bool check_on_host = false;  ///< fills RunResult::host_check
  const std::atomic<bool>* stop = nullptr;
};

/// A decision executed, and the baseline beside it.
struct RunResult {
  Decision baseline;
  Execution baseline_run, scheduled_run;
  Comparison comparison;
  std::optional<double> loss;
  std::optional<Closeness> host_check;
};

/// Executes the baseline and `decision`, which was made for graph.prepared, with the same alignment and guards, and
/// compares them. Throws as Backend::execute.
RunResult run(Backend& backend, const PreparedGraph& graph, const Decision& decision, const RunOptions& options = {});

/// Chrome/Perfetto trace of a run (core/formats/files.h): both executions with their measured times.
std::string run_trace(const core::Graph& graph, const Decision& decision, const RunResult& result);

/// One self-contained HTML page of a run (report/report.h). `tradeoffs`: other schedules known.
std::string run_page(const Problem& problem, const Backend& backend, const Decision& decision, const RunResult& result,
                     const std::vector<solvers::Tradeoff>& tradeoffs = {});

}  // namespace cairn::pipeline
