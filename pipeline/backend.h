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
  std::int64_t guard_bytes = 0;  ///< bytes of the plan's guards; above 0: sentinels are checked
  bool poison = false;
  std::int64_t reserved_bytes = 0;          ///< runtime::ExecuteOptions::reserved_bytes
  double rounding_noise = 0;                ///< runtime::ExecuteOptions::rounding_noise; on the host only
  const std::atomic<bool>* stop = nullptr;  ///< the host polls it between instructions, CUDA between executions
  /// Called before every instruction, by the host only; may be empty.
  std::function<void(const runtime::Instruction&)> before_step = {};
};

/// The bytes of a kept output, copied out of an executor.
struct KeptBytes {
  core::NodeId node = core::kNoNode;
  std::int32_t output = 0;  ///< index among the node's outputs
  std::vector<std::byte> bytes;
};

/// What one execution did and left behind.
struct Execution {
  runtime::StepReport report;              ///< report of the execution with the median time, where there are several
  std::vector<runtime::Timing> timings;    ///< timings of the timed executions, in order
  std::vector<KeptBytes> outputs;          ///< ascending by node and output
  std::vector<runtime::SinkDigest> sinks;  ///< digests of outputs that nobody reads or keeps, in the same order
};

/// The machine that executes. Not thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;    ///< host or cuda
  virtual std::string device() const = 0;  ///< description for people
  /// Says what computes convolutions, where there is a choice.
  virtual std::string note() const { return ""; }

  /// Returns the graph with the scratch that this machine's kernels need in that precision; the rest is shared with
  /// `graph`. Throws InputError where the machine does not support the precision.
  virtual core::Graph prepare(const core::Graph& graph, core::Precision precision) = 0;

  /// Throws MemoryError where an arena of `arena_bytes` is known not to fit into memory beside the prepared graph's
  /// resident tensors, as load() would, or beside those and what a search leaves allocated. `least_bytes`: what any
  /// arena of the graph needs.
  virtual void require_memory(const core::Graph& graph, std::int64_t arena_bytes, std::int64_t least_bytes) {
    static_cast<void>(graph), static_cast<void>(arena_bytes), static_cast<void>(least_bytes);
  }
  /// Prepares a prepared graph, its schedule and plan for execution. Arena and resident tensors live as long as the
  /// executor, which may not outlive the backend or what the request refers to. Throws MemoryError where they do not
  /// fit into memory. The executor's run() throws InterruptedError where the request's stop flag was raised.
  virtual std::unique_ptr<runtime::Executor> load(const ExecuteRequest& request) = 0;
  /// Whether timing the ops leaves the time of the step unchanged.
  virtual bool times_ops_for_free() const = 0;
  /// Loads and executes the request once. Throws what load() and run() throw.
  Execution execute(const ExecuteRequest& request);

  /// Measures one step of a small graph (runtime::sample_graph), in seconds: after a warm-up, from several timings that
  /// were not disturbed. Throws InterruptedError where `expired` returns true before there is one.
  virtual runtime::TimedWork time_step(const core::Graph& graph, core::Precision precision,
                                       const std::function<bool()>& expired) = 0;
  virtual double seconds_of_timing() const = 0;  ///< seconds that time_step() takes for a short step
  /// Bytes of the largest cache. A sample must be larger to be as cold as a real step.
  virtual std::int64_t cache_bytes() const = 0;
};

/// Opens `host`, `cuda`, or `auto`: CUDA where it can execute, else the host. Throws InputError for another name,
/// DeviceError where the named one is missing.
std::unique_ptr<Backend> open_backend(std::string_view name);

/// Opens the accelerator that solvers use, by the same names. Returns nullptr for the host.
std::shared_ptr<solvers::Accelerator> open_accelerator(std::string_view name);

/// Opens the simulator that sweeps use, by the same names. `threads` is the host's; 0: as many as there are cores.
std::unique_ptr<sim::Simulator> open_simulator(std::string_view name, const core::Graph& graph, int threads = 0);

/// Divides the devices of a machine among its processes: afterwards this process sees only one of the devices that are
/// visible to it now. Must be called before anything else that uses CUDA.
void choose_device(int local_rank);

/// A graph as it was given, and as a backend executes it.
struct PreparedGraph {
  core::Graph given;
  core::Precision precision = core::Precision::fp32;
  core::Graph prepared;
};
/// Prepares the graph for the backend; without a precision, in the one that the graph is stored in.
PreparedGraph prepare(Backend& backend, core::Graph graph, std::optional<core::Precision> precision = std::nullopt);
PreparedGraph prepare(Backend& backend, const GraphSource& source,
                      std::optional<core::Precision> precision = std::nullopt);

/// The name of this backend as a source of measured times, for core::CostUnit::source.
std::string measured_on(const Backend& backend, core::Precision precision);

struct MeasureProgress {
  core::NodeId node = core::kNoNode;     ///< the first node with the op that comes next
  std::int64_t measured = 0, ops = 0;    ///< number of distinct ops measured so far, and in all
  double seconds = 0;                    ///< duration so far
  std::optional<double> remaining = {};  ///< estimated seconds; none before the first op
};
struct MeasureOptions {
  std::function<void(const MeasureProgress&)> progress = {};  ///< called before every op
  std::function<bool()> expired = {};                         ///< called often; true: the rest is not measured
};
struct Measurement {
  runtime::MeasuredGraph result;
  std::int64_t timings = 0;             ///< number of timings of all ops
  std::int64_t repeated = 0;            ///< timings that were repeated because other work of the machine disturbed them
  std::vector<core::NodeId> disturbed;  ///< for each op without an undisturbed timing, its first node
  double seconds = 0;
};
/// Returns the prepared graph with the time of every op on this machine as its cost, in ns. Each op is executed alone,
/// warmed up, on memory that is not in a cache; the most expensive ops come first (runtime::measure_costs).
Measurement measure(Backend& backend, const PreparedGraph& graph, const MeasureOptions& options = {});

}  // namespace cairn::pipeline
