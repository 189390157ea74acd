#include "cairn/pipeline/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/text.h"
#include "cairn/pipeline/internal/backends.h"
#include "cairn/solvers/common/support/accelerator.h"

namespace cairn::pipeline {

// Only this file depends on whether the build has CUDA.
#if CAIRN_HAS_CUDA
constexpr bool kHasCuda = true;
#else
constexpr bool kHasCuda = false;
std::unique_ptr<Backend> open_cuda_backend(int ordinal) { throw core::DeviceError(why_no_device(ordinal)); }
std::shared_ptr<solvers::Accelerator> open_cuda_accelerator(int ordinal) {
  throw core::DeviceError(why_no_device(ordinal));
}
std::unique_ptr<sim::Simulator> open_cuda_simulator(const core::Graph&, int ordinal) {
  throw core::DeviceError(why_no_device(ordinal));
}
std::string why_no_device(int) { return "this build has no CUDA; build it where nvcc works, with -D CAIRN_CUDA=ON"; }
#endif

namespace {

/// The two parts of a backend's name: "cuda:1" has the kind "cuda" and the device 1.
struct BackendName {
  std::string_view kind;
  int device = 0;
};

/// Throws InputError if `name` does not name a backend.
BackendName parse_backend(std::string_view name) {
  static constexpr std::array<std::string_view, 3> kKinds = {"host", "cuda", "auto"};
  const std::size_t colon = name.find(':');
  BackendName parts{name.substr(0, colon)};
  if (std::ranges::find(kKinds, parts.kind) == kKinds.end())
    throw core::InputError(fmt::format("{} must be host, cuda or auto{}",
                                       core::option("backend", fmt::format("'{}'", parts.kind)),
                                       core::did_you_mean(parts.kind, kKinds)));
  if (colon == std::string_view::npos) return parts;
  if (parts.kind == "host")
    throw core::InputError(fmt::format("{} needs {} or auto: the host has no devices",
                                       core::option("device", name.substr(colon + 1)),
                                       core::option("backend", "cuda")));
  const std::string_view number = name.substr(colon + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), parts.device);
  if (error != std::errc() || end != number.data() + number.size() || parts.device < 0)
    throw core::InputError(fmt::format("{} must be the number of a device, as cuda:0",
                                       core::option("backend", fmt::format("'{}'", name))));
  return parts;
}

template <class OpenHost, class OpenCuda>
auto open(std::string_view name, const OpenHost& open_host, const OpenCuda& open_cuda) {
  const auto [kind, device] = parse_backend(name);
  if (kind == "host") return open_host();
  if (kind == "auto") {
    if (!kHasCuda || !why_no_device(device).empty()) return open_host();
    try {
      return open_cuda(device);
    } catch (const core::DeviceError&) {  // for example because cuBLASLt is missing
      return open_host();
    }
  }
  if (const std::string why = why_no_device(device); !why.empty())
    throw core::DeviceError(
        fmt::format("{}: {}; use {} or auto", core::option("backend", "cuda"), why, core::option("backend", "host")));
  return open_cuda(device);
}

std::shared_ptr<solvers::Accelerator> no_accelerator() { return nullptr; }

template <class StoredAs>
PreparedGraph prepare_stored(Backend& backend, core::Graph given, std::optional<core::Precision> precision,
                             const StoredAs& stored_as) {
  PreparedGraph graph;
  graph.given = std::move(given);
  graph.precision = precision.value_or(core::stored_precision(graph.given));
  const core::Graph stored = stored_as(graph.given, graph.precision);
  if (precision) require_ops(stored, *precision);
  graph.prepared = backend.prepare(stored, graph.precision);
  return graph;
}

}  // namespace

std::unique_ptr<Backend> open_backend(std::string_view name) {
  return open(name, open_host_backend, open_cuda_backend);
}

std::shared_ptr<solvers::Accelerator> open_accelerator(std::string_view name) {
  return open(name, no_accelerator, open_cuda_accelerator);
}

std::unique_ptr<sim::Simulator> open_simulator(std::string_view name, const core::Graph& graph, int threads) {
  return open(
      name, [&] { return sim::host_simulator(graph, threads); },
      [&](int device) { return open_cuda_simulator(graph, device); });
}

void choose_device(int local_rank) {
  // CUDA reads this variable when it is first used. That has not happened yet, so a change takes effect.
  constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";
  std::vector<std::string> devices;
  if (const char* visible = std::getenv(kVisible); visible != nullptr) {
    std::istringstream names(visible);
    for (std::string device; std::getline(names, device, ',');) devices.push_back(device);
  } else {
    for (int device = 0; std::filesystem::exists(fmt::format("/dev/nvidia{}", device)); ++device)
      devices.push_back(std::to_string(device));
  }
  if (devices.size() < 2) return;
  ::setenv(kVisible, devices[static_cast<std::size_t>(local_rank) % devices.size()].c_str(), 1);
}

PreparedGraph prepare(Backend& backend, core::Graph graph, std::optional<core::Precision> precision) {
  return prepare_stored(backend, std::move(graph), precision, &core::with_precision);
}

PreparedGraph prepare(Backend& backend, const GraphSource& source, std::optional<core::Precision> precision) {
  return prepare_stored(backend, source.load(), precision, [&](const core::Graph& graph, core::Precision stored) {
    return source.stored_as(graph, stored);
  });
}

void Backend::require_streams(int streams) const {
  if (streams >= 1 && streams <= most_streams()) return;
  throw core::InputError(most_streams() == 1
                             ? fmt::format("the {} executes steps on one stream only; drop {} or use {}", name(),
                                           core::option("streams"), core::option("backend", "cuda"))
                             : fmt::format("a step can have 1 to {} streams, not {}", most_streams(), streams));
}

void Backend::require_streams(int streams, std::int64_t overlap_steps, bool checks_memory) const {
  require_streams(streams);
  if (streams > 1 && checks_memory)
    throw core::InputError(fmt::format("{} and {} check steps on one stream; drop them or {}", core::option("poison"),
                                       core::option("sentinels"), core::option("streams")));
  if (streams == 1 && overlap_steps > 0)
    throw core::InputError(fmt::format("{} is for steps on several streams; give {} or drop it",
                                       core::option("overlap-steps"), core::option("streams", "2")));
}

Execution Backend::execute(const ExecuteRequest& request) {
  const std::unique_ptr<runtime::Executor> executor = load(request);
  Execution execution;
  execution.report = executor->run();
  read_results(*executor, execution);
  return execution;
}

std::string measured_on(const Backend& backend, core::Precision precision) {
  return fmt::format("measured on {}, {}", backend.device(), core::to_string(precision));
}

Measurement measure(Backend& backend, const PreparedGraph& graph, const MeasureOptions& options) {
  const core::Graph& given = graph.prepared;
  const core::Stopwatch watch{core::Limit{}};
  const auto copies_of = [&](core::NodeId v) { return runtime::sample_copies(given, v, backend.cache_bytes()); };
  const auto work_of = [&](core::NodeId v) {
    return static_cast<double>(std::max<std::int64_t>(given.cost(v), 1) * copies_of(v));
  };
  Measurement measurement;
  MeasureProgress progress;
  double work_left = 0, work_done = 0;
  for (const runtime::DistinctOp& op : runtime::distinct_ops(given)) {
    ++progress.ops;
    work_left += work_of(op.node);
  }
  const auto time = [&](core::NodeId v) -> std::optional<double> {
    if (options.expired && options.expired()) return std::nullopt;
    progress.node = v;
    progress.seconds = watch.seconds();
    if (progress.measured > 0)
      progress.remaining = runtime::remaining_seconds(progress.seconds, backend.seconds_of_timing(), progress.measured,
                                                      work_done, progress.ops - progress.measured, work_left);
    if (options.progress) options.progress(progress);
    const std::int64_t copies = copies_of(v);
    runtime::TimedWork timed;
    try {
      timed = backend.time_step(runtime::sample_graph(given, v, copies), graph.precision, options.expired);
    } catch (const core::InterruptedError&) {
      return std::nullopt;
    }
    measurement.timings += timed.timings;
    measurement.repeated += timed.repeated;
    if (timed.disturbed) measurement.disturbed.push_back(v);
    ++progress.measured;
    work_done += work_of(v);
    work_left -= work_of(v);
    return timed.seconds / static_cast<double>(copies);
  };
  measurement.result = runtime::measure_costs(given, time, measured_on(backend, graph.precision));
  measurement.seconds = watch.seconds();
  return measurement;
}

}  // namespace cairn::pipeline
