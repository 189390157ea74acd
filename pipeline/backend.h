#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/precision.h"
#include "cairn/core/schedule.h"
#include "cairn/pipeline/problem.h"
#include "cairn/runtime/executor.h"
#include "cairn/runtime/measure.h"
#include "cairn/sim/simulator.h"
#include "cairn/solvers/common/accelerator.h"
#include "cairn/solvers/common/solution.h"

namespace cairn::pipeline {

/// What to execute, and how.
struct ExecuteRequest {
  const core::Graph& graph;
  const core::Schedule& schedule;
  const core::Plan& plan;
  core::Precision precision = core::Precision::fp32;
  std::uint64_t seed = 0;
  std::int64_t guard_bytes = 0;  ///< of the plan; above 0: sentinels are checked
  bool poison = false;
  int repeats = 1;                          ///< where above 1, the first warms up and the median time is reported
  double rounding_noise = 0;                ///< runtime::ExecuteOptions::rounding_noise; the host alone has it
  const std::atomic<bool>* stop = nullptr;  ///< polled between steps
};

/// The bytes of a kept output, copied out of an executor.
struct KeptBytes {
  core::NodeId node = core::kNoNode;
  std::int32_t output = 0;  ///< which one of the node's
  std::vector<std::byte> bytes;
};

/// What one execution did and left behind.
struct Execution {
  runtime::StepReport report;
  std::vector<KeptBytes> outputs;          ///< ascending by node and output
  std::vector<runtime::SinkDigest> sinks;  ///< of what nobody reads and nobody keeps, ascending by node and output
};

/// The machine that executes. For one thread at a time.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;    ///< host or cuda
  virtual std::string device() const = 0;  ///< in words
  /// Who computes convolutions, where that is a choice.
  virtual std::string note() const { return ""; }

  /// The graph with the scratch that this machine's kernels need in that precision; all else is shared. Throws
  /// InputError where the machine does not have the precision.
  virtual core::Graph prepare(const core::Graph& graph, core::Precision precision) = 0;

  /// Executes a prepared graph; arena and resident tensors are gone when this returns. Throws DeviceError where they do
  /// not fit into memory, and InterruptedError where the request's stop flag was raised.
  virtual Execution execute(const ExecuteRequest& request) = 0;

  /// Seconds of one step of a small graph (runtime::sample_graph): warmed up, the median of several.
  virtual double time_step(const core::Graph& graph, core::Precision precision) = 0;
  /// Bytes of the largest cache, which a sample must exceed to be as cold as a real step.
  virtual std::int64_t cache_bytes() const = 0;
};

/// `host`, `cuda`, or `auto`: CUDA where it can execute. Throws InputError for another name, DeviceError where the
/// named one is missing.
std::unique_ptr<Backend> open_backend(std::string_view name);

/// The same for solvers; nullptr: the host.
std::shared_ptr<solvers::Accelerator> open_accelerator(std::string_view name);

/// The same for sweeps. `threads` is the host's: as many as there are cores for 0.
std::unique_ptr<sim::Simulator> open_simulator(std::string_view name, const core::Graph& graph, int threads = 0);

/// Divides the devices of a machine among its processes: from now on this one sees only one of those visible to it.
/// Must come before anything else that has to do with CUDA.
void choose_device(int local_rank);

/// A graph as it was given, and as a backend executes it.
struct PreparedGraph {
  core::Graph given;
  core::Precision precision = core::Precision::fp32;
  core::Graph prepared;
};
/// Without a precision: as the graph is stored.
PreparedGraph prepare(Backend& backend, core::Graph graph, std::optional<core::Precision> precision = std::nullopt);
PreparedGraph prepare(Backend& backend, const GraphSource& source,
                      std::optional<core::Precision> precision = std::nullopt);

/// The prepared graph with the time of every op on this machine as its cost, in ns. Each is executed alone, warmed up,
/// on memory that is not in a cache. `before` is called before each; what it throws passes through.
runtime::MeasuredGraph measure(Backend& backend, const PreparedGraph& graph,
                               const std::function<void(core::NodeId)>& before = {});

}  // namespace cairn::pipeline
