#include "cairn/pipeline/backend.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/text.h"
#include "cairn/pipeline/internal/backends.h"

namespace cairn::pipeline {

// The one place that knows whether the build has CUDA.
#if CAIRN_HAS_CUDA
constexpr bool kHasCuda = true;
#else
constexpr bool kHasCuda = false;
std::unique_ptr<Backend> open_cuda_backend() { throw core::DeviceError(why_no_device()); }
std::shared_ptr<solvers::Accelerator> open_cuda_accelerator() { throw core::DeviceError(why_no_device()); }
std::unique_ptr<sim::Simulator> open_cuda_simulator(const core::Graph&) { throw core::DeviceError(why_no_device()); }
std::string why_no_device() { return "this build has no CUDA; build it where nvcc works, with -D CAIRN_CUDA=ON"; }
#endif

namespace {

/// What --backend names, of the two.
template <class OpenHost, class OpenCuda>
auto open(std::string_view name, const OpenHost& open_host, const OpenCuda& open_cuda) {
  if (name == "host") return open_host();
  if (name == "auto") {
    if (!kHasCuda || !why_no_device().empty()) return open_host();
    try {
      return open_cuda();
    } catch (const core::DeviceError&) {  // a device without its libraries
      return open_host();
    }
  }
  if (name == "cuda") {
    if (const std::string why = why_no_device(); !why.empty())
      throw core::DeviceError(fmt::format("--backend cuda: {}; use --backend host or auto", why));
    return open_cuda();
  }
  static constexpr std::array<std::string_view, 3> kNames = {"host", "cuda", "auto"};
  throw core::InputError(
      fmt::format("--backend '{}' must be host, cuda or auto{}", name, core::did_you_mean(name, kNames)));
}

std::shared_ptr<solvers::Accelerator> no_accelerator() { return nullptr; }

template <class StoredAs>
PreparedGraph prepare_stored(Backend& backend, core::Graph given, std::optional<core::Precision> precision,
                             const StoredAs& stored_as) {
  PreparedGraph graph;
  graph.given = std::move(given);
  graph.precision = precision.value_or(core::stored_precision(graph.given));
  graph.prepared = backend.prepare(stored_as(graph.given, graph.precision), graph.precision);
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
      name, [&] { return sim::host_simulator(graph, threads); }, [&] { return open_cuda_simulator(graph); });
}

void choose_device(int local_rank) {
  // CUDA has not been started yet, and looks at this then.
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

runtime::MeasuredGraph measure(Backend& backend, const PreparedGraph& graph,
                               const std::function<void(core::NodeId)>& before) {
  return runtime::measure_costs(graph.prepared, [&](core::NodeId v) {
    if (before) before(v);
    const std::int64_t copies = runtime::sample_copies(graph.prepared, v, backend.cache_bytes());
    return backend.time_step(runtime::sample_graph(graph.prepared, v, copies), graph.precision) /
           static_cast<double>(copies);
  });
}

}  // namespace cairn::pipeline
