#pragma once

#include <string>

#include "cairn/sim/device/machine_simulator.h"
#include "cairn/sim/simulator.h"

namespace cairn::tests {

inline sim::Outcomes evaluated(sim::Simulator& simulator, const sim::ScheduleBatch& batch) {
  sim::Outcomes outcomes;
  simulator.evaluate(batch, outcomes);
  return outcomes;
}

/// The simulator for GPUs, on any Machine. `Id` is the integer type in which it stores the numbers of nodes.
template <class Machine, class Id>
class OnMachine : public sim::device::MachineSimulator<Machine, Id> {
 public:
  using sim::device::MachineSimulator<Machine, Id>::MachineSimulator;
  std::string backend() const override { return "test"; }
  std::string device() const override { return "test"; }
};

}  // namespace cairn::tests
