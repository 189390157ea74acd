#include "cli/backend.h"

#include <fmt/format.h>

#include <array>

#include "cli/common.h"
#include "core/error.h"
#include "core/text.h"

namespace cairn::cli {

// The one place of the command that knows whether the build has CUDA.
#if CAIRN_HAS_CUDA
constexpr bool kHasCuda = true;
#else
constexpr bool kHasCuda = false;
std::unique_ptr<Backend> open_cuda_backend() { throw core::DeviceError(why_no_device()); }
std::string why_no_device() { return "this build has no CUDA; build it where nvcc works, with -D CAIRN_CUDA=ON"; }
#endif

std::unique_ptr<Backend> open_backend(std::string_view name) {
  if (name == "host") return open_host_backend();
  if (name == "auto") {
    if (!kHasCuda || !why_no_device().empty()) return open_host_backend();
    try {
      return open_cuda_backend();
    } catch (const core::DeviceError&) {  // a device without its libraries
      return open_host_backend();
    }
  }
  if (name == "cuda") {
    if (const std::string why = why_no_device(); !why.empty())
      throw core::DeviceError(fmt::format("--backend cuda: {}; use --backend host or auto", why));
    return open_cuda_backend();
  }
  static constexpr std::array<std::string_view, 3> kNames = {"host", "cuda", "auto"};
  throw core::InputError(
      fmt::format("--backend '{}' must be host, cuda or auto{}", name, core::did_you_mean(name, kNames)));
}

PreparedGraph prepare_graph(const GraphSource& source, Backend& backend, const PrecisionChoice& choice) {
  PreparedGraph graph;
  graph.given = source.load();
  graph.precision = choice.find(graph.given);
  graph.prepared = backend.prepare(source.stored_as(graph.given, graph.precision), graph.precision);
  return graph;
}

}  // namespace cairn::cli
