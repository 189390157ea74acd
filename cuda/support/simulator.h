#pragma once

#include <memory>

#include "cairn/core/graph.h"
#include "cairn/sim/simulator.h"

namespace cairn::cuda {

/// Returns a simulator on the first visible GPU, with the same answers as the host's. Throws DeviceError with the
/// probe's reason if there is none. The simulator throws it, too, if memory does not suffice.
std::unique_ptr<sim::Simulator> device_simulator(const core::Graph& graph);

}  // namespace cairn::cuda
