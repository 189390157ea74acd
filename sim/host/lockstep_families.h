#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cairn/sim/host/draw_keys.h"
#include "cairn/sim/host/lockstep.h"

/// What is compiled once a processor family; the caller must see to it that the processor belongs to it.
namespace cairn::sim {

struct ProcessorFamily {
  template <class Id>
  using MakeLockstep = std::unique_ptr<Lockstep<Id>> (*)(const device::TablesView<Id>& graph, std::int32_t longest);
  template <class Id>
  using MakeDrawKeys = std::unique_ptr<DrawKeys> (*)(const device::TablesView<Id>& graph);

  int vector_bytes;
  MakeLockstep<std::uint16_t> lockstep16;
  MakeLockstep<std::uint32_t> lockstep32;
  MakeDrawKeys<std::uint16_t> draw_keys16;
  MakeDrawKeys<std::uint32_t> draw_keys32;
};

ProcessorFamily any_processor();
ProcessorFamily avx2();
ProcessorFamily avx512();

/// The families that this processor belongs to, the fastest first.
std::span<const ProcessorFamily> families();

}  // namespace cairn::sim
