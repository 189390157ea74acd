#pragma once

#include <memory>

#include "cairn/core/graph.h"
#include "cairn/sim/simulator.h"

namespace cairn::cuda {

/// Returns a simulator that evaluates schedules of the graph on the visible GPU with the index `ordinal`. It gives the
/// same results as the simulator on the host. Throws DeviceError, which says why, if Cairn cannot use this GPU. The
/// simulator's functions throw DeviceError if the GPU's memory does not suffice.
std::unique_ptr<sim::Simulator> device_simulator(const core::Graph& graph, int ordinal = 0);

}  // namespace cairn::cuda
