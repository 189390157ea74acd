#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cairn/runtime/executor.h"
#include "cairn/runtime/program.h"

/// This file has the parts that the executors of all machines (CPU and GPU) share.
namespace cairn::runtime {

// Bytes with which memory is filled. They are the same on every machine.
inline constexpr int kArenaPaint = 0xA5;  ///< for a new arena, so that bytes that were written can be found
inline constexpr int kPoison = 0xFF;      ///< for freed memory; every fp32 and bf16 value of such bytes is NaN
inline constexpr int kSentinel = 0xC5;    ///< for the gaps behind buffers
/// The byte for the scratch of nodes without an op. Differs from kSentinel, so that the check of a guard notices
/// scratch that overlaps the guard.
inline constexpr int kDirtyScratch = 0x5A;

/// The gap of program.guard_bytes bytes behind a live buffer. A kernel that writes beyond the buffer changes these
/// bytes.
struct Guard {
  core::NodeId node = core::kNoNode;  ///< node of the buffer before the gap
  std::int64_t offset = 0;            ///< offset of the gap in the arena
  bool operator==(const Guard&) const = default;
};

/// What executors need to know about the lifetimes of a program's buffers. The lists of guards are empty if
/// program.guard_bytes is 0.
struct Liveness {
  /// Largest number of bytes in live buffers at one time: during a step, or between two steps, where copies start and
  /// end.
  std::int64_t live_peak_bytes = 0;
  std::int64_t high_water_bytes = 0;       ///< end of the highest byte that is written, including guards
  std::int64_t host_live_peak_bytes = 0;   ///< largest number of live bytes in the host's arena
  std::int64_t host_high_water_bytes = 0;  ///< end of the highest byte that is written in the host's arena

  /// Returns the guards to fill before the kernel of a step runs.
  std::span<const Guard> filled_before(std::int64_t step) const { return range(before_, step); }
  /// Returns the guards to fill after the kernel of a step has run, before copies start.
  std::span<const Guard> filled_after(std::int64_t step) const { return range(after_, step); }
  /// Returns the guards that must be intact after the kernel of a step.
  std::span<const Guard> checked(std::int64_t step) const { return range(checked_, step); }
  /// Returns the checked guards of all steps in one list, ordered by step.
  const std::vector<Guard>& all_checked() const { return checked_.guards; }
  /// Returns the index in all_checked() at which the guards of a step begin.
  std::int64_t checked_begin(std::int64_t step) const { return checked_.begin[static_cast<std::size_t>(step)]; }

 private:
  friend class LivenessCount;
  struct Lists {
    std::vector<Guard> guards;
    /// For each step, the index in `guards` of its first guard. The last entry is the number of guards.
    std::vector<std::int64_t> begin{0};
    void end_step() { begin.push_back(static_cast<std::int64_t>(guards.size())); }
  };
  static std::span<const Guard> range(const Lists& lists, std::int64_t step) {
    const auto at = static_cast<std::size_t>(step);
    if (lists.begin.size() < at + 2) return {};
    return {lists.guards.data() + lists.begin[at], lists.guards.data() + lists.begin[at + 1]};
  }
  Lists before_, checked_, after_;
};

/// Finds the lifetimes of a program's buffers, and the guards (gaps behind buffers) if `guards` is set. For T steps,
/// takes O(T) time without guards. With guards, takes O(T * b) time if at most b buffers are live at a time.
Liveness liveness(const Program& program, bool guards);

/// Throws MemoryError if an arena that a caller gives has fewer than `bytes` bytes. Throws InputError if the arena is
/// not aligned to 256 bytes.
void require_arena(const ArenaView& arena, std::int64_t bytes);

/// Throws InputError if an instruction or a copy reaches outside its arena or refers to a resident that does not exist.
/// Also throws InputError if sentinels (known bytes in the guards) are requested and the program has no guards. O(steps
/// + operands + copies).
void check_program(const Program& program, const ExecuteOptions& options);

/// Returns the result of Executor::measured_peak_bytes() or, if `given` and `written` belong to the host's arena, of
/// measured_host_peak_bytes(). `given` is the end of the highest range of the arena that a kernel was given, in bytes
/// from the arena's start. `written` is the number of bytes up to the highest byte that differs from the pattern of a
/// new arena (kArenaPaint). `poison` is ExecuteOptions::poison.
std::int64_t measured_peak_bytes(const Program& program, bool poison, std::int64_t given, std::int64_t written);

/// Returns an entry for every output that is neither read nor kept, ascending by node and output.
std::vector<SinkDigest> sinks_of(const core::Graph& graph);

/// Returns the error message for a guard (gap behind a buffer) that an instruction has overwritten.
std::string broken_guard_message(const Program& program, const Instruction& instruction, const Guard& guard);

}  // namespace cairn::runtime
