#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cairn::runtime {

/// What a step takes of the memory of a machine or a device, in bytes.
struct MemoryNeed {
  std::int64_t arena = 0;
  std::int64_t beside = 0;  ///< residents, and whatever else the executor allocates
  std::int64_t slack = 0;   ///< to be left free for what nobody counts
  std::int64_t least = 0;   ///< what any arena of this graph needs, where that is known
};

/// Throws MemoryError where `free` bytes `where` ("here", "on NVIDIA H100") are too few: what was asked, what is free,
/// and the largest budget that would fit.
void require_memory(const MemoryNeed& need, std::int64_t free, std::string_view where);

/// The slack of a step in this process's own memory: stacks and buffers of threads, tables of the program, pages of
/// libraries that are loaded later, and what the kernel keeps to map the rest.
std::int64_t host_slack(std::int64_t bytes);

/// One allocation that holds every tensor of a program; RAII, movable. It is painted with a pattern first, so that what
/// was really written can be measured and compared with what was planned; that also maps its pages before the first
/// step.
class Arena {
 public:
  /// Throws MemoryError (asked, available) when the machine has not that much memory free. `bytes` may be 0.
  explicit Arena(std::int64_t bytes, std::int64_t alignment = 256);
  ~Arena();
  Arena(Arena&&) noexcept;
  Arena& operator=(Arena&&) noexcept;

  std::int64_t bytes() const { return bytes_; }
  /// The address of [offset, offset + bytes). Throws std::out_of_range outside the arena.
  std::byte* at(std::int64_t offset, std::int64_t bytes);
  /// Bytes up to the highest one that no longer shows the paint: what anybody wrote since the arena was made. Looks
  /// from the top down, so it costs what is unused.
  std::int64_t touched() const;
  /// How far up the addresses reach that at() gave out since the last reset.
  std::int64_t high_water() const { return high_water_; }
  void reset_high_water() { high_water_ = 0; }

 private:
  std::byte* base_ = nullptr;
  std::int64_t bytes_ = 0;
  std::int64_t high_water_ = 0;
};

}  // namespace cairn::runtime
