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
#include "cairn/runtime/overlap.h"
#include "cairn/runtime/scratch.h"
#include "cairn/sim/simulator.h"
#include "cairn/solvers/common/solution.h"

namespace cairn::pipeline {

/// A schedule with its plan, and options of its execution.
struct ExecuteRequest {
  const core::Graph& graph;
  const core::Schedule& schedule;
  const core::Plan& plan;
  core::Precision precision = core::Precision::fp32;
  std::uint64_t seed = 0;
  /// Bytes of the guard behind each buffer of the plan. If above 0, the executor fills the guards with a pattern and
  /// checks that no op overwrites it.
  std::int64_t guard_bytes = 0;
  bool poison = false;
  bool delays = false;              ///< runtime::ExecuteOptions::delays, which the host backend reads
  runtime::ArenaView arena = {};    ///< memory for the arena; if its `data` is nullptr, it is allocated
  std::int64_t reserved_bytes = 0;  ///< bytes of host memory that the caller needs during the execution
  /// A cudaStream_t of the caller, on which steps and copies run (cuda::ExecutorOptions::stream). If it is nullptr, the
  /// executor creates a stream. The host backend accepts only nullptr.
  void* stream = nullptr;
  int streams = 1;           ///< number of streams that execute the schedule (runtime/overlap.h); 1 on the host
  bool half_duplex = false;  ///< whether copies of both directions run one after another
  /// Seed of random delays that are added to the schedule's copies between device and host, or 0 for no delays. Only
  /// the host backend adds them. See runtime::ExecuteOptions::copy_delay_seed.
  std::uint64_t copy_delay_seed = 0;
  double rounding_noise = 0;  ///< relative size of noise that the host backend adds to all values
  /// Flag that ends the execution once it is true. The host checks it before every instruction, CUDA before every
  /// execution of the whole schedule.
  const std::atomic<bool>* stop = nullptr;
  /// Called before every instruction. Only the host backend calls it. May be empty.
  std::function<void(const runtime::Instruction&)> before_step = {};
};

/// The bytes of a kept output, copied out of an executor.
struct KeptBytes {
  core::NodeId node = core::kNoNode;
  std::int32_t output = 0;  ///< index among the node's outputs
  std::vector<std::byte> bytes;
};

/// The results of one or more executions of the same program.
struct Execution {
  /// The report of the only execution or, of several executions, of the execution with the median time.
  runtime::StepReport report;
  std::int64_t measured_peak_bytes = 0;  ///< bytes of the arena up to the highest written byte
  /// Bytes of the arena in host memory that holds the values that transfers copy to the host. host_planned_bytes is the
  /// size in the plan; host_measured_bytes counts the bytes up to the highest written byte.
  std::int64_t host_planned_bytes = 0, host_measured_bytes = 0;
  std::vector<runtime::Timing> timings;  ///< timings of the timed executions, in order
  std::vector<KeptBytes> outputs;        ///< kept outputs, in ascending order of node and output
  /// Digests (hashes) of the outputs that no node reads and that are not kept, ascending by node and output.
  std::vector<runtime::SinkDigest> sinks;
  std::optional<runtime::Overlap> overlap = {};  ///< set if the schedule ran on several streams
};

/// A device that executes graphs: the host or a GPU. Not thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;    ///< "host" or "cuda"
  virtual std::string device() const = 0;  ///< description for people
  /// Returns which library computes convolutions, or an empty text if the backend cannot choose between libraries.
  virtual std::string note() const { return ""; }

  /// Returns a copy of the graph in which every node has the scratch (temporary memory) that this device's kernels need
  /// in the precision. The copy shares all other data with `graph`. Throws InputError if the device does not support
  /// the precision.
  virtual core::Graph prepare(const core::Graph& graph, core::Precision precision) = 0;

  /// Returns the variants in which a node's op can be executed, which differ in scratch and time. The variant that is
  /// marked as usual needs the scratch that prepare() gave the node. Returns an empty list if there is only one
  /// variant.
  virtual std::vector<runtime::ScratchVariant> scratch_variants(const core::Graph& /*graph*/, core::NodeId /*v*/,
                                                                core::Precision /*precision*/) {
    return {};
  }

  /// Throws MemoryError if memory is known to be too small for three things together: an arena of `arena_bytes`, the
  /// resident tensors of the prepared graph (which are outside the arena), and the memory that a search leaves
  /// allocated. `least_bytes` is a lower bound on the arena of every schedule. If memory is too small even for an arena
  /// of that size, the message says so.
  virtual void require_memory(const core::Graph& /*graph*/, std::int64_t /*arena_bytes*/,
                              std::int64_t /*least_bytes*/) {}
  /// Returns the largest number of streams on which the backend can execute a schedule.
  virtual int most_streams() const { return 1; }
  /// Throws InputError if `streams` is below 1 or above most_streams().
  void require_streams(int streams) const;
  /// Works like require_streams(streams), and also throws InputError if options contradict each other: `overlap_steps`
  /// (solvers::PlanOptions) needs several streams, and executions that check memory (poison, guards) need exactly one
  /// stream.
  void require_streams(int streams, std::int64_t overlap_steps, bool checks_memory) const;
  /// Compiles the request's schedule and plan, and allocates the arena and the resident tensors. The graph must be a
  /// result of prepare(). The executor must not outlive the backend or what the request refers to. Throws MemoryError
  /// if arena and resident tensors do not fit into memory. The executor's run() throws InterruptedError once the
  /// request's stop flag is raised.
  virtual std::unique_ptr<runtime::Executor> load(const ExecuteRequest& request) = 0;
  /// Returns whether timing each op does not slow down the execution of a schedule.
  virtual bool times_ops_for_free() const = 0;
  /// Loads the request and executes it once. Throws the exceptions of load() and of Executor::run().
  Execution execute(const ExecuteRequest& request);

  /// Measures the seconds of one execution of a small graph (runtime::sample_graph). After an execution to warm up,
  /// repeats the execution until several timings were not disturbed by other work on the machine. Throws
  /// InterruptedError if `expired` returns true before the first timing.
  virtual runtime::TimedWork time_step(const core::Graph& graph, core::Precision precision,
                                       const std::function<bool()>& expired) = 0;
  virtual double seconds_of_timing() const = 0;  ///< seconds that time_step() takes if one execution is short
  /// Returns the bytes of the device's largest cache. To time an op, several copies of the op are executed one after
  /// another. Their tensors together have more bytes than this cache, so no copy finds its arguments in the cache. In a
  /// real training step, arguments are usually not in the cache either.
  virtual std::int64_t cache_bytes() const = 0;
};

/// Opens the backend `name`: `host`, `cuda`, or `auto`. `auto` opens CUDA if CUDA can execute graphs on this machine,
/// and the host otherwise. `cuda:1` and `auto:1` use the visible device with the ordinal 1; without a number, the first
/// device is used. Throws InputError for another name, and DeviceError if the device is missing.
std::unique_ptr<Backend> open_backend(std::string_view name);

/// Opens the device on which solvers run parts of their searches. `name` is as for open_backend(). Returns nullptr for
/// the host.
std::shared_ptr<solvers::Accelerator> open_accelerator(std::string_view name);

/// Opens the simulator that evaluates many schedules. `name` is as for open_backend(). `threads` is the number of
/// threads of the host; 0 stands for one per core.
std::unique_ptr<sim::Simulator> open_simulator(std::string_view name, const core::Graph& graph, int threads = 0);

/// Divides a machine's GPUs among the processes of one job. `local_rank` is the number of this process among the job's
/// processes on this machine. Of the n visible GPUs, hides all but the GPU with the index `local_rank % n`, so that
/// this process takes no memory of the hidden GPUs. Must be called before CUDA is used.
void choose_device(int local_rank);

/// A graph in two forms: as it was given, and as a backend executes it.
struct PreparedGraph {
  core::Graph given;
  core::Precision precision = core::Precision::fp32;
  core::Graph prepared;
};
/// Calls Backend::prepare() and returns the graph in both forms. By default, `precision` is the precision in which the
/// graph is stored.
PreparedGraph prepare(Backend& backend, core::Graph graph, std::optional<core::Precision> precision = std::nullopt);
/// Loads or builds the graph that `source` names, calls Backend::prepare(), and returns the graph in both forms.
PreparedGraph prepare(Backend& backend, const GraphSource& source,
                      std::optional<core::Precision> precision = std::nullopt);

/// Returns the text of core::CostUnit::source for costs measured on this backend in this precision.
std::string measured_on(const Backend& backend, core::Precision precision);

struct MeasureProgress {
  core::NodeId node = core::kNoNode;  ///< first node with the op that is measured next
  /// `measured` is the number of distinct ops measured so far, and `ops` the number of all distinct ops.
  std::int64_t measured = 0, ops = 0;
  double seconds = 0;                    ///< duration so far
  std::optional<double> remaining = {};  ///< estimated remaining seconds; none before the first op
};
struct MeasureOptions {
  std::function<void(const MeasureProgress&)> progress = {};  ///< called before every op
  /// Called often. If it returns true, the remaining ops are not measured.
  std::function<bool()> expired = {};
};
struct Measurement {
  runtime::MeasuredGraph result;
  std::int64_t timings = 0;             ///< number of timings of all ops
  std::int64_t repeated = 0;            ///< timings that were repeated because other work disturbed them
  std::vector<core::NodeId> disturbed;  ///< for each op of which all timings were disturbed, its first node
  double seconds = 0;
};
/// Returns graph.prepared with measured costs in ns. A node's cost becomes the time that its op takes alone on this
/// backend, after executions to warm up, with arguments that are not in the cache. The most expensive ops are measured
/// first (runtime::measure_costs).
Measurement measure(Backend& backend, const PreparedGraph& graph, const MeasureOptions& options = {});

}  // namespace cairn::pipeline
