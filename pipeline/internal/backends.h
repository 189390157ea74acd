#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cairn/pipeline/backend.h"
#include "cairn/runtime/measure.h"
#include "cairn/solvers/plan/planner.h"

/// What the backends have in common, and how they are opened.
namespace cairn::pipeline {

std::unique_ptr<Backend> open_host_backend();
/// Only in builds with CUDA. These throw DeviceError where there is no device.
std::unique_ptr<Backend> open_cuda_backend();
std::shared_ptr<solvers::Accelerator> open_cuda_accelerator();
std::unique_ptr<sim::Simulator> open_cuda_simulator(const core::Graph& graph);
/// Why there is no device; empty where there is one. Only in builds with CUDA.
std::string why_no_device();

inline bool is_raised(const std::atomic<bool>* stop) { return stop != nullptr && *stop; }

/// Copies what an executor shows.
inline std::vector<KeptBytes> keep_bytes(const std::vector<runtime::Output>& outputs) {
  std::vector<KeptBytes> kept;
  for (const auto& output : outputs) {
    kept.push_back({output.node, output.output, {output.bytes.begin(), output.bytes.end()}});
  }
  return kept;
}

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
inline double median_of_runs(runtime::Executor& executor, double seconds) {
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

/// The baseline order with a plan that took no time.
inline runtime::Program compile_quickly(const core::Graph& graph, const runtime::CompileOptions& options) {
  const core::Schedule schedule = core::baseline_schedule(graph);
  return runtime::compile(graph, schedule,
                          solvers::plan_memory(graph, schedule, {.alignment = 256, .limit = {.work = 0}}), options);
}

}  // namespace cairn::pipeline
