#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cairn/tests/ptx/code/program.h"
#include "cairn/tests/ptx/machine/warp.h"
#include "cairn/tests/ptx/text/module.h"

/// These classes hold kernels that tests give as PTX text, and memory for the kernels.
namespace cairn::tests::ptx {

/// The memory of the simulated GPU, which a test fills and reads.
class Memory {
 public:
  /// Allocates `count` numbers. If `written` is false, a kernel that reads a number before writing it commits a fault.
  std::uint64_t* numbers(std::size_t count, bool written = true) {
    blocks_.push_back(std::make_unique<std::uint64_t[]>(count));
    std::uint64_t* const block = blocks_.back().get();
    global.add(block, count * sizeof(std::uint64_t));
    if (written) global.find(reinterpret_cast<std::uint64_t>(block))->mark_written(0, count * sizeof(std::uint64_t));
    return block;
  }
  GlobalMemory global;
  std::uint32_t launches = 0;

 private:
  std::vector<std::unique_ptr<std::uint64_t[]>> blocks_;
};

/// A kernel with `params` parameters p0, p1, ... of 64 bits each. The registers of the kernel are %p<8> (predicates),
/// %h<8> (16 bits), %w<16> (32 bits) and %x<24> (64 bits).
class Kernel {
 public:
  Kernel(int params, const std::string& body, const std::string& variables = "") {
    std::string text = ".version 9.0\n.target sm_90\n.address_size 64\n" + variables + ".visible .entry test(";
    for (int i = 0; i < params; ++i) text += (i > 0 ? ", .param .u64 p" : ".param .u64 p") + std::to_string(i);
    text += ")\n{\n.reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %w<16>;\n.reg .b64 %x<24>;\n" + body + "\nret;\n}\n";
    module_ = std::make_unique<Module>(parse(text));
    program_ = decode(*module_, module_->functions.front(), {});
  }

  Counts run(Memory& memory, const std::vector<std::uint64_t>& params, Extent grid, Extent block,
             std::uint64_t seed = 0) {
    Launch launch{program_.get(), grid, block, {}, 0, ++memory.launches};
    launch.params.resize(params.size() * sizeof(std::uint64_t));
    std::memcpy(launch.params.data(), params.data(), launch.params.size());
    return ptx::run(launch, memory.global, {.seed = seed, .count_memory = true});
  }
  const Program& program() const { return *program_; }

 private:
  std::unique_ptr<Module> module_;
  std::unique_ptr<Program> program_;
};

inline std::uint64_t address(const void* memory) { return reinterpret_cast<std::uint64_t>(memory); }

}  // namespace cairn::tests::ptx
