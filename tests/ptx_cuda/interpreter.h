#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cairn/tests/ptx/machine/warp.h"

/// The simulated GPU behind the fake CUDA runtime (tests/fake_cuda). It runs kernels that nvcc has compiled, by
/// interpreting the PTX in the executable. launch.cpp defines the functions of cudart that register and launch kernels.
namespace cairn::tests::ptx {

/// Returns the options of all launches from now on. Tests may change them.
LaunchOptions& launch_options();

/// Enqueues a kernel that a test has as text. `params` has a value for each of its parameters of 64 bits.
cudaError_t launch(const Program& program, Extent grid, Extent block, const std::vector<std::uint64_t>& params,
                   cudaStream_t stream, std::size_t dynamic_shared = 0);

/// Lets kernels whose names contain one of these texts read memory that was never written.
void set_inspectors(std::vector<std::string> parts_of_names);

/// Returns the counts of each kernel since the last call of reset_counts(), by the kernel's name.
const std::map<std::string, Counts>& counts();
void reset_counts();

}  // namespace cairn::tests::ptx
