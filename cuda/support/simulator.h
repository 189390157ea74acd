#pragma once

#include <memory>

#include "cairn/core/graph.h"
#include "cairn/sim/simulator.h"

namespace cairn::cuda {

/// The simulator on the first visible GPU: the same answers as the host's. Throws DeviceError with the probe's reason
/// where there is none, and, here and later, where memory does not suffice.
std::unique_ptr<sim::Simulator> device_simulator(const core::Graph& graph);

}  // namespace cairn::cuda
