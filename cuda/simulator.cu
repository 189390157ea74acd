#include <string>
#include <utility>

#include "cairn/cuda/device.h"
#include "cairn/cuda/internal/machine.cuh"
#include "cairn/cuda/support/dominance.h"
#include "cairn/cuda/support/simulator.h"
#include "cairn/sim/device/machine_simulator.h"
#include "cairn/sim/device/transfers/transfer.h"

namespace cairn::cuda {
namespace {

template <class Id>
class DeviceSimulator final : private sim::device::OwnedMachine<Machine>,
                              public sim::device::MachineSimulator<Machine, Id> {
 public:
  DeviceSimulator(const core::Graph& graph, DeviceInfo device)
      : sim::device::MachineSimulator<Machine, Id>(sim::device::OwnedMachine<Machine>::machine, graph),
        device_(std::move(device)) {}
  std::string backend() const override { return "cuda"; }
  std::string device() const override { return device_.name; }
  std::vector<std::int64_t> non_dominated(const sim::CanonicalBatch& profiles) override {
    return cuda::dominance_set(profiles, device_.ordinal)->non_dominated();
  }

 private:
  DeviceInfo device_;
};

}  // namespace

std::unique_ptr<sim::Simulator> device_simulator(const core::Graph& graph, int ordinal) {
  const DeviceInfo device = require_device(ordinal);
  const OnDevice on(ordinal);
  if (sim::ScheduleBatch(graph.node_count()).narrow())
    return std::make_unique<DeviceSimulator<std::uint16_t>>(graph, device);
  return std::make_unique<DeviceSimulator<std::uint32_t>>(graph, device);
}

}  // namespace cairn::cuda
