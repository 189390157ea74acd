#include "cli/backend.h"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <thread>

#include "core/error.h"
#include "core/text.h"
#if CAIRN_HAS_CUDA
#include "cuda/device.h"
#endif

namespace cairn::cli {
namespace {

Backend host() {
  std::string model = "CPU";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      model = line.substr(colon + 2);
      break;
    }
  }
  return {"host", fmt::format("{}, {} threads", model, std::thread::hardware_concurrency())};
}

std::string why_no_cuda() {
#if CAIRN_HAS_CUDA
  const auto probe = cuda::probe();
  return probe.available ? "this version executes on the host only" : probe.reason;
#else
  return "this build has no CUDA";
#endif
}

}  // namespace

Backend choose_backend(std::string_view name) {
  if (name == "host" || name == "auto") return host();
  if (name == "cuda")
    throw core::DeviceError(fmt::format("--backend cuda: {}; use --backend host or auto", why_no_cuda()));
  static constexpr std::array<std::string_view, 3> kNames = {"host", "cuda", "auto"};
  throw core::InputError(
      fmt::format("--backend '{}' must be host, cuda or auto{}", name, core::did_you_mean(name, kNames)));
}

}  // namespace cairn::cli
