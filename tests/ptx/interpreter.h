#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cairn/tests/ptx/machine/warp.h"

/// The device behind the fake runtime (tests/fake_cuda): kernels that nvcc has compiled, run from the PTX in the
/// executable. launch.cpp defines the functions of cudart by which kernels are registered and launched.
namespace cairn::tests::ptx {

/// Options of all launches from now on.
LaunchOptions& launch_options();

/// What each kernel did since the last reset, by its name.
const std::map<std::string, Counts>& counts();
void reset_counts();

}  // namespace cairn::tests::ptx
