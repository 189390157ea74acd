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
#include "cairn/pipeline/graph_source.h"
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
  std::int64_t reserved_bytes = 0;          ///< runtime::ExecuteOptions::reserved_bytes
  double rounding_noise = 0;                ///< runtime::ExecuteOptions::rounding_noise; the host alone has it
  const std::atomic<bool>* stop = nullptr;  ///< polled between instructions by the host, else between executions
  /// Called before every instruction, by the host alone; empty: by nobody.
  std::function<void(const runtime::Instruction&)> before_step = {};
};

/// The bytes of a kept output, copied out of an executor.
struct KeptBytes {
  core::NodeId node = core::kNoNode;
  std::int32_t output = 0;  ///< which one of the node's
  std::vector<std::byte> bytes;
};

/// What one execution did and left behind.
struct Execution {
  runtime::StepReport report;              ///< of the execution of the median time, where there are several
  std::vector<runtime::Timing> timings;    ///< of every execution that was timed, in order
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

  /// Throws MemoryError where an arena of that many bytes is known not to fit into memory beside the prepared graph's
  /// resident tensors, as load() would, nor beside what a search leaves taken. `least_bytes`: what any arena of the
  /// graph needs.
  virtual void require_memory(const core::Graph& graph, std::int64_t arena_bytes, std::int64_t least_bytes) {
    static_cast<void>(graph), static_cast<void>(arena_bytes), static_cast<void>(least_bytes);
  }
  /// A prepared graph, its schedule and plan, ready to be executed: arena and resident tensors live as long as the
  /// executor, which may not outlive the backend nor what the request refers to. Throws MemoryError where they do not
  /// fit into memory. Its run() throws InterruptedError where the request's stop flag was raised.
  virtual std::unique_ptr<runtime::Executor> load(const ExecuteRequest& request) = 0;
  /// Whether the step's time stays as it is where its ops are timed, too.
  virtual bool times_ops_for_free() const = 0;
  /// Executes it once. Throws as load() and run().
  Execution execute(const ExecuteRequest& request);

  /// Seconds of one step of a small graph (runtime::sample_graph): warmed up, of several timings that were not
  /// disturbed. Throws InterruptedError where `expired` comes true before there is one.
  virtual runtime::TimedWork time_step(const core::Graph& graph, core::Precision precision,
                                       const std::function<bool()>& expired) = 0;
  virtual double seconds_of_timing() const = 0;  ///< that time_step() takes for a short step
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

/// Where times on this backend come from, for core::CostUnit::source.
std::string measured_on(const Backend& backend, core::Precision precision);

struct MeasureProgress {
  core::NodeId node = core::kNoNode;     ///< the first one with the op that comes next
  std::int64_t measured = 0, ops = 0;    ///< distinct ops so far, and in all
  double seconds = 0;                    ///< so far
  std::optional<double> remaining = {};  ///< seconds, once there is an op to judge by
};
struct MeasureOptions {
  std::function<void(const MeasureProgress&)> progress = {};  ///< before every op
  std::function<bool()> expired = {};                         ///< asked often; true: the rest is not measured
};
struct Measurement {
  runtime::MeasuredGraph result;
  std::int64_t timings = 0;   ///< of all ops
  std::int64_t repeated = 0;  ///< timings that other work of the machine disturbed, in whose place others were taken
  std::vector<core::NodeId> disturbed;  ///< the first nodes with each op of which no timing was undisturbed
  double seconds = 0;
};
/// The prepared graph with the time of every op on this machine as its cost, in ns. Each is executed alone, warmed up,
/// on memory that is not in a cache; the most expensive ones first (runtime::measure_costs).
Measurement measure(Backend& backend, const PreparedGraph& graph, const MeasureOptions& options = {});

}  // namespace cairn::pipeline
