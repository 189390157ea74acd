#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cairn::runtime {

/// Memory of a machine or a device that a step takes, in bytes.
struct MemoryNeed {
  std::int64_t arena = 0;
  std::int64_t beside = 0;  ///< bytes of the residents, and of all else that the executor allocates
  std::int64_t slack = 0;   ///< bytes to be left free for memory that nobody counts
  std::int64_t least = 0;   ///< bytes that any arena of this graph needs, if known
};

/// Throws MemoryError if `free` bytes `where` ("here", "on NVIDIA H100") are too few. The message gives what was asked,
/// what is free, and the largest budget that would fit.
void require_memory(const MemoryNeed& need, std::int64_t free, std::string_view where);

/// Slack of a step in this process's own memory: stacks and buffers of threads, tables of the program, pages of
/// libraries that are loaded later, and what the kernel keeps to map the rest.
std::int64_t host_slack(std::int64_t bytes);

/// One allocation that holds every tensor of a program; RAII, movable. A new arena is painted with a pattern, so that
/// what was really written can be measured and compared with the plan. Painting also maps its pages before the first
/// step.
class Arena {
 public:
  /// Throws MemoryError (asked, available) if the machine has not that much memory free. `bytes` may be 0.
  explicit Arena(std::int64_t bytes, std::int64_t alignment = 256);
  ~Arena();
  Arena(Arena&&) noexcept;
  Arena& operator=(Arena&&) noexcept;

  std::int64_t bytes() const { return bytes_; }
  /// Returns the address of [offset, offset + bytes). Throws std::out_of_range outside the arena.
  std::byte* at(std::int64_t offset, std::int64_t bytes);
  /// Bytes up to the highest one that no longer shows the paint, that is, was written since the arena was made.
  /// Searches from the top down, so the time grows with the unused bytes.
  std::int64_t touched() const;
  /// The highest end of a range that at() gave out since the last reset.
  std::int64_t high_water() const { return high_water_; }
  void reset_high_water() { high_water_ = 0; }

 private:
  std::byte* base_ = nullptr;
  std::int64_t bytes_ = 0;
  std::int64_t high_water_ = 0;
};

}  // namespace cairn::runtime
