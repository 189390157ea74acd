// cuda/simulator.cu with the device's teams on the host.
#include "cairn/core/error.h"
#include "cairn/core/machine/machine.h"
#include "cairn/cuda/device.h"
#include "cairn/cuda/simulator.h"
#include "cairn/sim/device/machine_simulator.h"

namespace cairn::cuda {
namespace {

struct OwnedMachine {
  core::HostMachine machine{1};
};

template <class Id>
class FakeSimulator final : private OwnedMachine, public sim::device::MachineSimulator<core::HostMachine, Id> {
 public:
  explicit FakeSimulator(const core::Graph& graph)
      : sim::device::MachineSimulator<core::HostMachine, Id>(OwnedMachine::machine, graph) {}
  std::string backend() const override { return "cuda"; }
  std::string device() const override { return "fake"; }
};

}  // namespace

std::unique_ptr<sim::Simulator> device_simulator(const core::Graph& graph) {
  const Probe found = probe();
  if (!found.available) throw core::DeviceError(found.reason);
  if (sim::ScheduleBatch(graph.node_count()).narrow()) return std::make_unique<FakeSimulator<std::uint16_t>>(graph);
  return std::make_unique<FakeSimulator<std::uint32_t>>(graph);
}

}  // namespace cairn::cuda
