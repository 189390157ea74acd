#include "cairn/cuda/internal/libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/cuda/internal/runtime.h"

namespace cairn::cuda {
namespace {

std::string last_error() {
  const char* text = dlerror();
  return text != nullptr ? text : "unknown error of the loader";
}

}  // namespace

SharedLibrary::SharedLibrary(std::string name, const std::string& file, int major, const char* version)
    : name_(std::move(name)), major_(major) {
  open(file);
  if (std::size_t(*const of_library)() = find(version); of_library != nullptr) {
    constexpr std::size_t kPerMajor = 10000;
    const std::size_t found = of_library() / kPerMajor;
    if (found != static_cast<std::size_t>(major)) reason_ = "it is of version " + std::to_string(found);
  }
}

void SharedLibrary::open(const std::string& file) {
  for (const std::string folder : {"", CAIRN_CUDA_LIBRARY_DIR "/", CAIRN_CUDNN_LIBRARY_DIR "/"}) {
    for (const std::string& path : {folder + file + "." + std::to_string(major_), folder + file}) {
      library_ = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
      if (library_ != nullptr) {
        reason_.clear();
        return;
      }
      // Keeps only the first error as the reason. If the first file exists but cannot be loaded, its error says why;
      // the errors of the files after it only say that these do not exist.
      const std::string reason = last_error();
      if (reason_.empty()) reason_ = reason;
    }
  }
}

SharedLibrary::Symbol SharedLibrary::find(const char* symbol) {
  if (library_ == nullptr) return {nullptr};
  void* address = dlsym(library_, symbol);
  if (address == nullptr && reason_.empty()) reason_ = last_error();
  return {address};
}

std::string SharedLibrary::why_not() const {
  if (reason_.empty()) return {};
  return name_ + " " + std::to_string(major_) + " cannot be loaded (" + reason_ +
         "): install it or put its folder on LD_LIBRARY_PATH";
}

std::vector<runtime::ScratchVariant> StreamLibrary::conv_variants(const runtime::device::ConvShape& shape) {
  const ConvVariants& found = convolutions_.variants(shape);
  std::vector<runtime::ScratchVariant> variants;
  for (const ConvVariant& variant : found.all) variants.push_back({.scratch = variant.scratch, .ms = variant.ms});
  if (!variants.empty()) variants[found.usual].usual = true;
  return variants;
}

std::optional<double> trial_ms(std::span<const std::int64_t> bytes,
                               const std::function<bool(std::span<std::byte* const>, cudaStream_t)>& execute) {
  constexpr int kTimedRuns = 3;
  constexpr float kLongMs = 1;  // milliseconds; a run that takes longer need not be repeated
  std::vector<DeviceMemory> memory;
  std::vector<std::byte*> buffers;
  try {
    for (const std::int64_t size : bytes) buffers.push_back(memory.emplace_back(device_memory(size)).get());
  } catch (const core::DeviceError&) {
    return 0;
  }
  const Stream stream = make_stream();
  const Event begin = make_event(cudaEventDefault), end = make_event(cudaEventDefault);
  for (std::size_t i = 0; i < buffers.size(); ++i) enqueue_fill(buffers[i], 0, bytes[i], stream.get());
  float least = std::numeric_limits<float>::infinity();
  for (int run = 0; run <= kTimedRuns; ++run) {
    check(cudaEventRecord(begin.get(), stream.get()), "an event");
    const bool accepted = execute(buffers, stream.get());
    const cudaError_t left_behind = cudaGetLastError();
    check(cudaEventRecord(end.get(), stream.get()), "an event");
    check(cudaStreamSynchronize(stream.get()), "a trial run of a library's plan");
    if (!accepted || left_behind != cudaSuccess) return std::nullopt;
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin.get(), end.get()), "the time between events");
    if (run == 0) continue;  // the first run loads the kernels
    least = std::min(least, ms);
    if (ms > kLongMs) break;
  }
  return least;
}

}  // namespace cairn::cuda
