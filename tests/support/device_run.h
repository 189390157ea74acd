#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/precision.h"
#include "cairn/runtime/device/step.h"
#include "cairn/runtime/program.h"
#include "cairn/runtime/support/execution.h"
#include "cairn/runtime/support/residents.h"
#include "cairn/tests/support/fiber_machine.h"
#include "cairn/tests/support/host_library.h"

namespace cairn::tests {

/// Runs a program in the same way as the executor of a GPU, but on a FiberMachine, so that no GPU is needed.
class DeviceRun {
 public:
  DeviceRun(FiberMachine& machine, HostLibrary& library, runtime::Program program, bool poison = false)
      : machine_(machine),
        library_(library),
        program_(std::move(program)),
        lives_(runtime::liveness(program_, program_.guard_bytes > 0)),
        layout_(program_.graph),
        arena_(words(program_.arena_bytes)),
        residents_(words(layout_.bytes)),
        sinks_(runtime::sinks_of(program_.graph).size()),
        broken_(lives_.all_checked().size()),
        poison_(poison) {
    std::memset(bytes_of(arena_), runtime::kArenaPaint, static_cast<std::size_t>(program_.arena_bytes));
    memory_.arena = bytes_of(arena_);
    const auto tensors = program_.graph.residents();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      std::byte* at = layout_.offsets[i] < 0 ? nullptr : bytes_of(residents_) + layout_.offsets[i];
      memory_.residents.push_back(at);
      if (at == nullptr) continue;
      const std::span<std::byte> bytes(at, static_cast<std::size_t>(tensors[i].bytes()));
      runtime::fill_resident(tensors[i], static_cast<std::int32_t>(i), 1, bytes);
      runtime::check_indices(program_.graph, static_cast<std::int32_t>(i), bytes);
    }
    for (const runtime::Guard& guard : lives_.all_checked()) guard_offsets_.push_back(guard.offset);
    memory_.hash = &hash_;
    memory_.sink_digests = sinks_.data();
    memory_.guard_offsets = guard_offsets_.data();
    memory_.broken_guards = broken_.data();
  }
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;

  void step() {
    runtime::device::Step step(program_, lives_, poison_, memory_, library_);
    step.begin(machine_);
    for (const runtime::Instruction& instruction : program_.instructions) step.issue(machine_, instruction);
  }

  std::vector<std::pair<core::OutputRef, std::vector<std::byte>>> outputs() {
    std::vector<std::pair<core::OutputRef, std::vector<std::byte>>> result;
    const runtime::device::Step step(program_, lives_, poison_, memory_, library_);
    for (const runtime::KeptOutput& kept : program_.kept) {
      const std::byte* at = step.address(kept.location);
      result.emplace_back(core::OutputRef(kept.node, kept.output),
                          std::vector<std::byte>(at, at + kept.location.bytes));
    }
    return result;
  }

  std::vector<std::uint64_t> sink_digests() const { return sinks_; }
  std::int64_t broken_guards() const { return std::count(broken_.begin(), broken_.end(), std::uint8_t{1}); }
  std::int64_t live_peak_bytes() const { return lives_.live_peak_bytes; }

  std::int64_t measured_peak_bytes() {
    std::vector<std::int64_t> ends(static_cast<std::size_t>(runtime::device::touched_parts(program_.arena_bytes)));
    runtime::device::find_touched(machine_, memory_.arena, program_.arena_bytes, runtime::kArenaPaint, ends.data());
    const std::int64_t written = ends.empty() ? 0 : *std::max_element(ends.begin(), ends.end());
    return runtime::measured_peak_bytes(program_, poison_, lives_.high_water_bytes, written);
  }

 private:
  using Memory = std::vector<runtime::device::Pack<double>>;  // memory that is aligned to 16 bytes
  static std::size_t words(std::int64_t bytes) { return static_cast<std::size_t>(bytes) / 16 + 1; }
  static std::byte* bytes_of(Memory& memory) { return reinterpret_cast<std::byte*>(memory.data()); }

  FiberMachine& machine_;
  HostLibrary& library_;
  runtime::Program program_;
  runtime::Liveness lives_;
  runtime::ResidentLayout layout_;
  Memory arena_, residents_;
  std::vector<std::uint64_t> sinks_;
  std::vector<std::uint8_t> broken_;
  std::vector<std::int64_t> guard_offsets_;
  runtime::device::HashMemory hash_{};
  runtime::device::StepMemory memory_;
  bool poison_;
};

}  // namespace cairn::tests
