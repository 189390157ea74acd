#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "cairn/sim/host/draw_lanes.h"
#include "cairn/sim/host/lockstep_families.h"
#include "cairn/sim/host/lockstep_lanes.h"

// Included by one file a processor family, as sim/internal/vectors.h.
namespace cairn::sim {
namespace {

template <class Id, int kVectorBytes>
std::unique_ptr<Lockstep<Id>> lockstep(const device::TablesView<Id>& graph, std::int32_t longest) {
  if (longest < std::numeric_limits<std::int16_t>::max())
    return std::make_unique<LockstepOf<Id, std::int16_t, kVectorBytes>>(graph, longest);
  return std::make_unique<LockstepOf<Id, std::int32_t, kVectorBytes>>(graph, longest);
}
template <class Id, int kVectorBytes>
std::unique_ptr<DrawKeys> draw_keys(const device::TablesView<Id>& graph) {
  return std::make_unique<DrawLanes<Id, kVectorBytes>>(graph);
}

template <int kVectorBytes>
ProcessorFamily family_of() {
  return {kVectorBytes, lockstep<std::uint16_t, kVectorBytes>, lockstep<std::uint32_t, kVectorBytes>,
          draw_keys<std::uint16_t, kVectorBytes>, draw_keys<std::uint32_t, kVectorBytes>};
}

}  // namespace
}  // namespace cairn::sim
