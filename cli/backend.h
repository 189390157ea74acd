#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cairn/cli/common.h"
#include "cairn/cli/execute.h"
#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/precision.h"
#include "cairn/core/schedule.h"
#include "cairn/sim/simulator.h"
#include "cairn/solvers/order/device/accelerator.h"

namespace cairn::cli {

/// What to execute, and how.
struct ExecuteRequest {
  const core::Graph& graph;
  const core::Schedule& schedule;
  const core::Plan& plan;
  core::Precision precision = core::Precision::fp32;
  std::uint64_t seed = 0;
  std::int64_t guard_bytes = 0;  ///< of the plan; above 0: sentinels are checked
  bool poison = false;
  int repeats = 1;            ///< see median_report
  double rounding_noise = 0;  ///< runtime::ExecuteOptions::rounding_noise; the host alone has it
};

/// The machine that executes.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;    ///< host or cuda
  virtual std::string device() const = 0;  ///< in words
  /// Who computes convolutions, where that is a choice.
  virtual std::string note() const { return ""; }

  /// The graph as this machine executes it in that precision: how tensors are stored, and the scratch that its kernels
  /// need. Throws InputError where the machine does not have the precision.
  virtual core::Graph prepare(const core::Graph& graph, core::Precision precision) = 0;

  /// Executes a prepared graph; arena and resident tensors are gone when this returns. Throws DeviceError where they do
  /// not fit into memory, and Failure(kInterrupted) on Ctrl-C.
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
std::unique_ptr<sim::Simulator> open_simulator(std::string_view name, const core::Graph& graph, int threads);

/// Divides the devices of a machine among its processes: from now on this one sees only one of those visible to it.
/// Must come before anything else that has to do with CUDA.
void choose_device(int local_rank);

std::unique_ptr<Backend> open_host_backend();
/// Only in builds with CUDA. These throw DeviceError where there is no device.
std::unique_ptr<Backend> open_cuda_backend();
std::shared_ptr<solvers::Accelerator> open_cuda_accelerator();
std::unique_ptr<sim::Simulator> open_cuda_simulator(const core::Graph& graph);
/// Why there is no device; empty where there is one. Only in builds with CUDA.
std::string why_no_device();

/// A graph named on the command line, and as a backend executes it.
struct PreparedGraph {
  core::Graph given;
  core::Precision precision = core::Precision::fp32;
  core::Graph prepared;
};
PreparedGraph prepare_graph(const GraphSource& source, Backend& backend, const PrecisionChoice& choice);

}  // namespace cairn::cli
