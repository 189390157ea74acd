#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cairn::runtime {

/// The memory of the host or of a device that a step needs, in bytes.
struct MemoryNeed {
  std::int64_t arena = 0;
  std::int64_t beside = 0;  ///< bytes of the residents, and of everything else that the executor allocates
  std::int64_t slack = 0;   ///< bytes to be left free for memory that is not counted anywhere
  std::int64_t least = 0;   ///< lower bound on the bytes of any arena for this graph; 0 if none is known
};

/// Throws MemoryError if `free` bytes are too few for `need`. `where` names the place in the message ("here", "on
/// NVIDIA H100"). The message says what was asked for, what is free, and the largest budget that would fit.
void require_memory(const MemoryNeed& need, std::int64_t free, std::string_view where);

/// Returns MemoryNeed::slack for a step that needs `bytes` bytes of this process's own memory. The slack is for stacks
/// and buffers of threads, tables of the program, pages of libraries that are loaded later, and the system's page
/// tables for all this memory.
std::int64_t host_slack(std::int64_t bytes);

/// One allocation that holds many tensors. An Arena can be moved, and frees its memory when it is destroyed. A new
/// arena is filled with a pattern (painted). Bytes that differ from it later were written, so the memory that is really
/// used can be measured and compared with the plan. Painting also makes the system map the arena's pages before the
/// first step.
class Arena {
 public:
  /// Allocates the memory, which can be 0 bytes. Throws MemoryError if there is too little free memory. The message
  /// says what was asked for and what is available.
  explicit Arena(std::int64_t bytes, std::int64_t alignment = 256);
  /// Uses memory of the caller, which must outlive the object. Fills it with the pattern of a new arena.
  Arena(std::byte* memory, std::int64_t bytes);
  ~Arena();
  Arena(Arena&&) noexcept;
  Arena& operator=(Arena&&) noexcept;

  std::int64_t bytes() const { return bytes_; }
  /// Returns the address of the bytes [offset, offset + bytes). Throws std::out_of_range if they are not all in the
  /// arena.
  std::byte* at(std::int64_t offset, std::int64_t bytes);
  /// Returns the number of bytes up to the highest byte that differs from the pattern of a new arena. Searches from the
  /// arena's end, so the time grows with the number of unused bytes there.
  std::int64_t touched() const;
  /// Returns the highest end of a range that at() has returned since the last reset.
  std::int64_t high_water() const { return high_water_; }
  void reset_high_water() { high_water_ = 0; }

 private:
  std::byte* base_ = nullptr;
  std::int64_t bytes_ = 0;
  std::int64_t high_water_ = 0;
  bool owned_ = true;
};

}  // namespace cairn::runtime
