#pragma once

#include <cstdint>
#include <iterator>

#include "cairn/runtime/device/call.h"
#include "cairn/runtime/device/kernels/synthetic.h"
#include "cairn/runtime/device/step.h"
#include "cairn/runtime/support/execution.h"

namespace cairn::cuda {

/// Small arrays in device memory that an executor needs in addition to the arena and the resident tensors.
struct Control {
  /// Takes the memory of the arrays from `scratch`. If `scratch` only counts bytes, all pointers are nullptr.
  Control(const runtime::Program& program, const runtime::Liveness& lives, int streams,
          runtime::device::Scratch scratch)
      : parts(runtime::device::touched_parts(program.arena_bytes)) {
    const auto guards = std::ssize(lives.all_checked());
    hash = scratch.take<runtime::device::HashMemory>(streams);
    dropout_key = scratch.take<std::uint64_t>(1);
    sinks = scratch.take<std::uint64_t>(std::ssize(runtime::sinks_of(program.graph)));
    guard_offsets = scratch.take<std::int64_t>(guards);
    broken_guards = scratch.take<std::uint8_t>(guards);
    ends = scratch.take<std::int64_t>(parts);
    bytes = scratch.used();
  }
  std::int64_t parts, bytes;
  runtime::device::HashMemory* hash;  ///< one for each stream
  std::uint64_t* dropout_key;
  std::uint64_t* sinks;
  std::int64_t* guard_offsets;
  std::uint8_t* broken_guards;
  std::int64_t* ends;  ///< for each of `parts` ranges of the arena, the end of its last written byte
};

}  // namespace cairn::cuda
