#include <string>

#include "cairn/core/error.h"
#include "cairn/cuda/device.h"
#include "cairn/cuda/internal/machine.cuh"
#include "cairn/cuda/support/dominance.h"
#include "cairn/cuda/support/simulator.h"
#include "cairn/sim/device/machine_simulator.h"
#include "cairn/sim/device/transfer.h"

namespace cairn::cuda {
namespace {

template <class Id>
class DeviceSimulator final : private sim::device::OwnedMachine<Machine>,
                              public sim::device::MachineSimulator<Machine, Id> {
 public:
  DeviceSimulator(const core::Graph& graph, std::string device)
      : sim::device::MachineSimulator<Machine, Id>(sim::device::OwnedMachine<Machine>::machine, graph),
        device_(std::move(device)) {}
  std::string backend() const override { return "cuda"; }
  std::string device() const override { return device_; }
  std::vector<std::int64_t> non_dominated(const sim::CanonicalBatch& profiles) override {
    return cuda::dominance_set(profiles)->non_dominated();
  }

 private:
  std::string device_;
};

}  // namespace

std::unique_ptr<sim::Simulator> device_simulator(const core::Graph& graph) {
  const Probe found = probe();
  if (!found.available) throw core::DeviceError(found.reason);
  const OnDevice on;
  const std::string& name = found.device->name;
  if (sim::ScheduleBatch(graph.node_count()).narrow())
    return std::make_unique<DeviceSimulator<std::uint16_t>>(graph, name);
  return std::make_unique<DeviceSimulator<std::uint32_t>>(graph, name);
}

}  // namespace cairn::cuda
