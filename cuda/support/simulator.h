#pragma once

#include <memory>

#include "cairn/core/graph.h"
#include "cairn/sim/simulator.h"

namespace cairn::cuda {

/// Returns a simulator on the visible GPU with that ordinal. It gives the same results as the host's. Throws
/// DeviceError with the probe's reason if there is no such GPU. The simulator's functions throw DeviceError if memory
/// does not suffice.
std::unique_ptr<sim::Simulator> device_simulator(const core::Graph& graph, int ordinal = 0);

}  // namespace cairn::cuda
