#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/graph.h"
#include "runtime/executor.h"
#include "runtime/program.h"

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

/// Executes `repeats` (>= 1) times and reports the fastest, as the first one pays for pages and caches; the executor,
/// with its arena and resident tensors, is gone when this returns. Throws DeviceError where they do not fit into
/// memory, and Failure(kInterrupted) on Ctrl-C. Replaces `options.before_step`.
Execution execute(runtime::Program program, runtime::ExecuteOptions options, int repeats);

struct Comparison {
  std::int64_t outputs = 0;  ///< kept ones and sinks
  std::int64_t sinks = 0;
  std::int64_t bytes = 0;              ///< of the kept outputs
  std::vector<std::string> different;  ///< names of the nodes whose bytes differ
  bool identical() const { return different.empty(); }
};
/// Compares every kept output bit by bit, and every sink by the digest of its bytes.
Comparison compare(const core::Graph& graph, const Execution& a, const Execution& b);

/// The value of the first kept loss, where the graph has one.
std::optional<double> loss_of(const core::Graph& graph, const Execution& execution);

}  // namespace cairn::cli
