#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cairn/tests/ptx/machine/warp.h"

/// The simulated GPU behind the fake CUDA runtime (tests/fake_cuda). It runs kernels that nvcc has compiled, by
/// interpreting the PTX in the executable. launch.cpp defines the functions of cudart that register and launch kernels.
namespace cairn::tests::ptx {

/// Returns the options of all launches from now on. Tests may change them.
LaunchOptions& launch_options();

/// Lets the kernel whose name contains this text read memory that was never written. Such a kernel looks at memory
/// whatever it holds. An empty text: there is no such kernel.
void set_inspector(const std::string& part_of_name);

/// Returns the counts of each kernel since the last call of reset_counts(), by the kernel's name.
const std::map<std::string, Counts>& counts();
void reset_counts();

}  // namespace cairn::tests::ptx
