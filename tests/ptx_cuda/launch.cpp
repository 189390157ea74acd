#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "cairn/tests/fake_cuda/fake_cuda.h"
#include "cairn/tests/ptx_cuda/interpreter.h"

namespace cairn::tests::ptx {

/// Returns the PTX in a fat binary, i.e. in the data that nvcc puts into an executable. It consists of a header and of
/// entries, each with code for one architecture. Throws std::runtime_error if there is no PTX, or only compressed PTX.
std::string_view ptx_of(const void* fat_binary) {
  struct Wrapper {
    std::uint32_t magic, version;
    const std::byte* data;
    const void* file;
  };
  struct Header {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t bytes;  ///< size of all entries together
  };
  struct Entry {
    std::uint16_t kind, version;
    std::uint32_t header_bytes;
    std::uint64_t bytes;
    std::uint32_t compressed_bytes;
  };
  constexpr std::uint32_t kWrapperMagic = 0x466243b1, kHeaderMagic = 0xba55ed50;
  constexpr std::uint16_t kPtx = 1;
  const auto* const wrapper = static_cast<const Wrapper*>(fat_binary);
  if (wrapper->magic != kWrapperMagic) throw std::runtime_error("a fat binary of an unknown form");
  Header header;
  std::memcpy(&header, wrapper->data, sizeof(header));
  if (header.magic != kHeaderMagic) throw std::runtime_error("a fat binary's data of an unknown form");
  const std::byte* at = wrapper->data + header.header_bytes;
  for (const std::byte* const end = at + header.bytes; at < end;) {
    Entry entry;
    std::memcpy(&entry, at, sizeof(entry));
    if (entry.kind == kPtx) {
      const std::string_view text(reinterpret_cast<const char*>(at + entry.header_bytes), entry.bytes);
      if (entry.compressed_bytes != 0 || text.find(".version") == std::string_view::npos)
        throw std::runtime_error("the PTX is compressed: compile with nvcc --no-compress");
      return text.substr(0, text.find('\0'));
    }
    at += entry.header_bytes + entry.bytes;
  }
  throw std::runtime_error("there is no PTX in the executable");
}

/// Returns the value of an environment variable, or an empty text if it is not set.
std::string value_of(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

/// Writes lines to the file that an environment variable names. Does nothing if the variable is not set.
void write_to(const char* variable, const std::vector<std::string>& lines) {
  const std::string path = value_of(variable);
  std::FILE* const file = path.empty() ? nullptr : std::fopen(path.c_str(), "w");
  if (file == nullptr) return;
  for (const std::string& line : lines) std::fprintf(file, "%s\n", line.c_str());
  std::fclose(file);
}

/// Returns the architecture that the directive .target names, such as 90 for sm_90, or 0 if there is no such directive.
int target_of(std::string_view ptx) {
  constexpr std::string_view kName = ".target sm_";
  const std::size_t at = ptx.find(kName);
  return at == std::string_view::npos ? 0 : std::atoi(std::string(ptx.substr(at + kName.size(), 4)).c_str());
}

class Device;
/// The simulated device of this process. It is never destroyed, because it is used before and after main().
Device& device();

/// The device code of one object file. It is parsed when one of its kernels runs for the first time.
struct Object {
  const void* fat_binary = nullptr;
  std::unique_ptr<Module> module;
  Symbols symbols;
  std::vector<std::unique_ptr<std::byte[]>> variables;
  std::map<std::string, std::unique_ptr<Program>> programs;
};

/// A kernel that the host program has registered.
struct Kernel {
  Object* object = nullptr;
  std::string name;
  std::uint64_t launches = 0;
};

class Device : public fake::MemoryWatch {
 public:
  Device() {
    fake::set_watch(this);
    std::atexit([] { device().list(); });
  }

  void allocated(void* memory, std::size_t bytes) override { global_.add(memory, bytes); }
  void freed(void* memory) override { global_.remove(memory); }
  void written(void* memory, std::size_t bytes) override {
    if (Region* const region = region_with(memory, bytes))
      region->mark_written(region->offset_of(reinterpret_cast<std::uint64_t>(memory)), bytes);
  }
  void forgotten(void* memory, std::size_t bytes) override {
    if (Region* const region = region_with(memory, bytes))
      region->mark_unwritten(region->offset_of(reinterpret_cast<std::uint64_t>(memory)), bytes);
  }
  std::string read(const void* memory, std::size_t bytes) override {
    if (bytes == 0) return {};
    const auto address = reinterpret_cast<std::uint64_t>(memory);
    const Region* const region = region_with(memory, bytes);
    std::string wrong;
    if (region == nullptr) {
      wrong = "reads " + std::to_string(bytes) + " bytes " + global_.describe(address);
    } else if (std::uint64_t first = 0; !region->written(region->offset_of(address), bytes, first)) {
      wrong = "reads byte " + std::to_string(first) + " of an allocation of " + std::to_string(region->bytes()) +
              ", which was never written";
    }
    if (!wrong.empty()) std::fprintf(stderr, "%s\n", wrong.c_str());
    return wrong;
  }

  Object* add(const void* fat_binary) {
    objects_.push_back(std::make_unique<Object>());
    objects_.back()->fat_binary = fat_binary;
    return objects_.back().get();
  }
  void add(const void* host, Object* object, const char* name) { kernels_[host] = {object, name}; }

  const Program& program(const void* host) {
    const auto kernel = kernels_.find(host);
    if (kernel == kernels_.end()) throw std::runtime_error("a launch of what is no kernel");
    ++kernel->second.launches;
    Object& object = *kernel->second.object;
    if (!object.module) load(object);
    std::unique_ptr<Program>& program = object.programs[kernel->second.name];
    if (program) return *program;
    for (const Function& function : object.module->functions) {
      if (function.name != kernel->second.name) continue;
      program = decode(*object.module, function, object.symbols);
      drop_wait(*program);
    }
    if (!program) throw std::runtime_error("the kernel " + kernel->second.name + " is not in its PTX");
    return *program;
  }

  /// Returns the architecture of the PTX that runs, or 0 if there is no PTX. CUB chooses the shapes of its kernels by
  /// this architecture.
  int target() {
    try {
      if (!objects_.empty()) return target_of(ptx_of(objects_.front()->fat_binary));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    return 0;
  }

  cudaError_t launch(const void* host, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                     cudaStream_t stream) {
    fake::require_shared(host, static_cast<std::int64_t>(shared));
    auto work = std::make_shared<Launch>();
    try {
      work->program = &program(host);
    } catch (const std::exception& error) {
      fail(error);
      return cudaErrorInvalidDeviceFunction;
    }
    const Program& program = *work->program;
    work->grid = {grid.x, grid.y, grid.z};
    work->block = {block.x, block.y, block.z};
    work->dynamic_shared = shared;
    work->params.resize(program.param_bytes);
    for (std::size_t i = 0; i < program.param_offsets.size(); ++i)
      std::memcpy(work->params.data() + program.param_offsets[i], arguments[i], program.param_sizes[i]);
    return enqueue(work, stream);
  }
  cudaError_t enqueue(const std::shared_ptr<Launch>& work, cudaStream_t stream) {
    return fake::enqueue_kernel(stream, [this, work] { run(*work); });
  }

  /// Writes two lists to the files that the environment variables CAIRN_PTX_KERNELS and CAIRN_PTX_WAITS name. The first
  /// list has the name of each kernel with its number of launches. The second has each instruction of these
  /// kernels that waits for other threads or orders memory. The environment variable CAIRN_PTX_DROP can name an
  /// instruction of the second list, which drop_wait() then removes from its kernel.
  void list() const {
    if (dropped_ran) std::fprintf(stderr, "the dropped instruction was reached\n");
    // Launches are summed over object files, because several of them can have the same kernel.
    std::map<std::string, std::uint64_t> launches;
    for (const auto& [host, kernel] : kernels_) launches[kernel.name] += kernel.launches;
    std::vector<std::string> kernels;
    for (const auto& [name, count] : launches) kernels.push_back(std::to_string(count) + " " + name);
    write_to("CAIRN_PTX_KERNELS", kernels);
    write_to("CAIRN_PTX_WAITS", waits_);
    if (std::getenv("CAIRN_PTX_KERNELS") == nullptr) return;
    std::uint64_t lanes = 0;
    for (const auto& [name, count] : counts) lanes += count.lanes();
    std::fprintf(stderr, "%.0f million instructions of lanes in %.1f s of CPU time\n", static_cast<double>(lanes) / 1e6,
                 static_cast<double>(std::clock()) / CLOCKS_PER_SEC);
  }

  LaunchOptions options;
  std::vector<std::string> inspectors;  ///< parts of the names of the kernels that may read unwritten memory
  std::map<std::string, Counts> counts;

 private:
  /// Returns the allocation that contains all of these bytes, or nullptr if there is none.
  Region* region_with(const void* memory, std::size_t bytes) {
    const auto address = reinterpret_cast<std::uint64_t>(memory);
    Region* const region = global_.find(address);
    return region != nullptr && region->holds(region->offset_of(address), bytes) ? region : nullptr;
  }

  static void fail(const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    fake::fail_device(error.what());
  }

  /// Adds the barriers, synchronisations of warps and fences of a decoded program to the list `waits_`. If the
  /// environment variable CAIRN_PTX_DROP is equal to the list's text for one of these instructions, removes the
  /// instruction from the program. Tests should notice this defect.
  void drop_wait(Program& program) {
    for (Instruction& instruction : program.code) {
      const bool waits = instruction.kind == Class::fence ||
                         (instruction.kind == Class::barrier && instruction.reduction == Reduction::none);
      if (!waits) continue;
      waits_.push_back(program.where(instruction) + " of " + program.name);
      if (waits_.back() != dropped_) continue;
      instruction.flow = Instruction::Flow::plain;
      instruction.run = [](Warp&, const Instruction&, Mask) { dropped_ran = true; };
    }
  }

  void load(Object& object) {
    object.module = std::make_unique<Module>(parse(ptx_of(object.fat_binary)));
    for (const Variable& variable : object.module->variables) {
      if (variable.space != Space::global && variable.space != Space::constant) continue;
      constexpr std::size_t kAlignment = 16;
      auto memory = std::make_unique<std::byte[]>(variable.bytes + kAlignment);
      const auto begin = (reinterpret_cast<std::uint64_t>(memory.get()) + kAlignment - 1) / kAlignment * kAlignment;
      std::copy(variable.initial.begin(), variable.initial.end(), reinterpret_cast<std::byte*>(begin));
      global_.add(reinterpret_cast<void*>(begin), variable.bytes);
      written(reinterpret_cast<void*>(begin), variable.bytes);
      object.symbols[variable.name] = begin;
      object.variables.push_back(std::move(memory));
    }
  }

  void run(Launch launch) {
    constexpr std::uint32_t kNumbers = (1U << kLaunchBits) - 1;
    if (launches_ == kNumbers) {
      launches_ = 0;
      global_.forget_accesses();
    }
    launch.number = ++launches_;
    LaunchOptions own = options;
    own.reads_unwritten = std::any_of(inspectors.begin(), inspectors.end(), [&](const std::string& part) {
      return launch.program->name.find(part) != std::string::npos;
    });
    try {
      counts[launch.program->name].add(ptx::run(launch, global_, own));
    } catch (const std::exception& error) {
      fail(error);
    }
  }

  GlobalMemory global_;
  std::vector<std::unique_ptr<Object>> objects_;
  std::map<const void*, Kernel> kernels_;
  std::uint32_t launches_ = 0;
  static inline bool dropped_ran = false;
  std::vector<std::string> waits_;
  std::string dropped_ = value_of("CAIRN_PTX_DROP");
};

Device& device() {
  static Device* const instance = new Device();
  return *instance;
}

struct Configuration {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};
std::vector<Configuration>& configurations() {
  static std::vector<Configuration> instance;
  return instance;
}

LaunchOptions& launch_options() { return device().options; }
cudaError_t launch(const Program& program, Extent grid, Extent block, const std::vector<std::uint64_t>& params,
                   cudaStream_t stream, std::size_t dynamic_shared) {
  fake::require_shared(&program, static_cast<std::int64_t>(dynamic_shared));
  auto work = std::make_shared<Launch>(Launch{&program, grid, block, {}, dynamic_shared});
  work->params.resize(params.size() * sizeof(std::uint64_t));
  std::memcpy(work->params.data(), params.data(), work->params.size());
  return device().enqueue(work, stream);
}
void set_inspectors(std::vector<std::string> parts_of_names) { device().inspectors = std::move(parts_of_names); }
const std::map<std::string, Counts>& counts() { return device().counts; }
void reset_counts() { device().counts.clear(); }

}  // namespace cairn::tests::ptx

// The following functions have the names and parameters from crt/host_runtime.h and cuda_runtime_api.h.

using cairn::tests::ptx::configurations;
using cairn::tests::ptx::device;
namespace fake = cairn::tests::fake;

extern "C" {

void** __cudaRegisterFatBinary(void* fatCubin) { return reinterpret_cast<void**>(device().add(fatCubin)); }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
void __cudaRegisterFunction(void** fatCubinHandle, const char* hostFun, char*, const char* deviceName, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  device().add(hostFun, reinterpret_cast<cairn::tests::ptx::Object*>(fatCubinHandle), deviceName);
}

unsigned __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, std::size_t sharedMem, cudaStream_t stream) {
  configurations().push_back({gridDim, blockDim, sharedMem, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* gridDim, dim3* blockDim, std::size_t* sharedMem, void* stream) {
  const auto one = configurations().back();
  configurations().pop_back();
  *gridDim = one.grid;
  *blockDim = one.block;
  *sharedMem = one.shared;
  *static_cast<cudaStream_t*>(stream) = one.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* entry) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(entry));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void** args, std::size_t sharedMem,
                               cudaStream_t stream) {
  return device().launch(kernel, gridDim, blockDim, args, sharedMem, stream);
}

}  // extern "C"

cudaError_t cudaLaunchKernel(const void* func, dim3 gridDim, dim3 blockDim, void** args, std::size_t sharedMem,
                             cudaStream_t stream) {
  return device().launch(func, gridDim, blockDim, args, sharedMem, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* func, void** args) {
  return device().launch(func, config->gridDim, config->blockDim, args, config->dynamicSmemBytes, config->stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attr, const void*) {
  *attr = {};
  attr->ptxVersion = attr->binaryVersion = device().target();
  attr->maxThreadsPerBlock = 1024;
  if (attr->ptxVersion == 0) return cudaErrorNoKernelImageForDevice;
  return fake::call("kernel image");
}

cudaError_t cudaPeekAtLastError() { return fake::last_error(); }

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, const void*, int blockSize,
                                                                   std::size_t, unsigned) {
  constexpr int kThreads = 2048, kMost = 32;
  *numBlocks = std::min(kThreads / blockSize, kMost);
  return fake::call("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags");
}
