#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cairn/tests/ptx/machine/warp.h"

/// This file is the interface of the simulated GPU behind the fake CUDA runtime (tests/fake_cuda). It runs kernels that
/// nvcc has compiled, by interpreting the PTX in the executable. launch.cpp defines the functions of cudart that
/// register and launch kernels.
namespace cairn::tests::ptx {

/// Returns the options that apply to all launches. Tests may change them; a change applies to later launches.
LaunchOptions& launch_options();

/// Enqueues a kernel that a test has parsed from a text. `params` has one value for each of its 64-bit parameters.
cudaError_t launch(const Program& program, Extent grid, Extent block, const std::vector<std::uint64_t>& params,
                   cudaStream_t stream, std::size_t dynamic_shared = 0);

/// Allows kernels to read memory that was never written, if their names contain one of these texts.
void set_inspectors(std::vector<std::string> parts_of_names);

/// Returns what each kernel has done since the last call of reset_counts(), by the name of the kernel.
const std::map<std::string, Counts>& counts();
void reset_counts();

}  // namespace cairn::tests::ptx
