#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/precision.h"
#include "cairn/runtime/executor.h"
#include "cairn/runtime/measure.h"

namespace cairn::cli {

/// The bytes of a kept output, copied out of an executor.
struct KeptBytes {
  core::NodeId node = core::kNoNode;
  std::vector<std::byte> bytes;
};

/// What one execution did and left behind.
struct Execution {
  runtime::StepReport report;
  std::vector<KeptBytes> outputs;          ///< ascending by node
  std::vector<runtime::SinkDigest> sinks;  ///< of what nobody reads and nobody keeps, ascending by node
};

/// Copies what an executor shows.
std::vector<KeptBytes> keep_bytes(const std::vector<runtime::Output>& outputs);

/// Runs `repeats` times and gives the report of the median time; where there are several runs, the first one warms up
/// and is not counted.
template <class Run>
runtime::StepReport median_report(int repeats, const Run& run) {
  std::vector<runtime::StepReport> reports;
  for (int i = 0; i < repeats; ++i) {
    runtime::StepReport report = run();
    if (i > 0 || repeats == 1) reports.push_back(std::move(report));
  }
  const auto middle = reports.begin() + static_cast<std::ptrdiff_t>((reports.size() - 1) / 2);
  std::nth_element(reports.begin(), middle, reports.end(),
                   [](const runtime::StepReport& a, const runtime::StepReport& b) { return a.seconds < b.seconds; });
  return std::move(*middle);
}

/// Seconds of a step: after one to warm up, the median of as many as fit into `seconds`, from 5 to 100.
template <class Executor>
double median_of_runs(Executor& executor, double seconds) {
  constexpr std::size_t kLeast = 5, kMost = 100;
  executor.run();
  std::vector<double> times;
  double total = 0;
  while (times.size() < kLeast || (times.size() < kMost && total < seconds)) {
    times.push_back(executor.run().seconds);
    total += times.back();
  }
  return runtime::median(std::move(times));
}

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
/// computes once more with every value disturbed by that much, and 16 times the
/// noise and the change that it makes is allowed.
struct Closeness {
  std::int64_t outputs = 0;
  std::int64_t undecided = 0;  ///< outputs that rounding alone may change by more than half of their norm
  double worst_error = 0;      ///< of the output that comes closest to what is allowed, or exceeds it most
  double worst_allowed = 0;
  std::string worst_output;  ///< empty: all outputs have the host's bits
  bool close = true;
};

/// Relative error of one op in this precision, as Closeness counts it.
double rounding_of(core::Precision precision);

/// `host` executed the same nodes in fp32, `disturbed` the same with rounding_of(precision) as noise. Nodes without an
/// op compare bit by bit. A NaN where the host has none is never close.
Closeness compare_close(const core::Graph& graph, const Execution& execution, const Execution& host,
                        const Execution& disturbed, core::Precision precision);

/// The value of the first kept loss, where the graph has one.
std::optional<double> loss_of(const core::Graph& graph, const Execution& execution);

}  // namespace cairn::cli
