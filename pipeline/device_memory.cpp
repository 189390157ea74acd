#include "cairn/pipeline/device_memory.h"

#include "cairn/solvers/fit/solve.h"

namespace cairn::pipeline {

std::vector<std::pair<std::string, std::int64_t>> ResidentBytes::parts() const {
  std::vector<std::pair<std::string, std::int64_t>> parts{{"weights", weights},     {"gradients", gradients},
                                                          {"optimizer", optimizer}, {"inputs", inputs},
                                                          {"constants", constants}, {"unlisted", unlisted}};
  std::erase_if(parts, [](const auto& part) { return part.second == 0; });
  return parts;
}

ResidentBytes resident_bytes(const core::Graph& graph) {
  using Role = core::Resident::Role;
  ResidentBytes bytes;
  for (const core::Resident& resident : graph.residents()) {
    std::int64_t& part = resident.role == Role::weight        ? bytes.weights
                         : resident.role == Role::weight_grad ? bytes.gradients
                         : resident.role == Role::optimizer   ? bytes.optimizer
                         : resident.role == Role::data        ? bytes.inputs
                                                              : bytes.constants;
    part += resident.bytes();
  }
  bytes.unlisted = graph.resident_bytes() - bytes.total();
  return bytes;
}

DeviceShare share_device(const core::Graph& graph, const DeviceMemory& device) {
  DeviceShare share;
  share.device = device.bytes;
  share.resident = resident_bytes(graph);
  share.context = device.context;
  if (fit::has_ops(graph)) share.workspace = kWorkspaceBytes;
  return share;
}

}  // namespace cairn::pipeline
