#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cairn/runtime/program.h"

namespace cairn::runtime {

/// The gap behind a live buffer, program.guard_bytes long.
struct Guard {
  core::NodeId node = core::kNoNode;  ///< whose buffer it follows
  std::int64_t offset = 0;            ///< of the gap in the arena
  bool operator==(const Guard&) const = default;
};

/// When a program's buffers live, as every executor needs it. Guards are there where program.guard_bytes > 0.
struct Liveness {
  std::int64_t live_peak_bytes = 0;   ///< most bytes in live buffers at once
  std::int64_t high_water_bytes = 0;  ///< the highest address that is written, guards included

  /// To be filled before the kernel of a step runs, and after it.
  std::span<const Guard> filled_before(std::int64_t step) const { return range(before_, step); }
  std::span<const Guard> filled_after(std::int64_t step) const { return range(after_, step); }
  /// To be whole when the kernel of a step has run.
  std::span<const Guard> checked(std::int64_t step) const { return range(checked_, step); }
  /// The same for all steps, one behind the other, and where a step's begin.
  const std::vector<Guard>& all_checked() const { return checked_.guards; }
  std::int64_t checked_begin(std::int64_t step) const { return checked_.begin[static_cast<std::size_t>(step)]; }

 private:
  friend Liveness liveness(const Program& program, bool guards);
  struct Lists {
    std::vector<Guard> guards;
    std::vector<std::int64_t> begin{0};  ///< of every step, and the end
    void end_step() { begin.push_back(static_cast<std::int64_t>(guards.size())); }
  };
  static std::span<const Guard> range(const Lists& lists, std::int64_t step) {
    const auto at = static_cast<std::size_t>(step);
    if (lists.begin.size() < at + 2) return {};
    return {lists.guards.data() + lists.begin[at], lists.guards.data() + lists.begin[at + 1]};
  }
  Lists before_, checked_, after_;
};

/// O(T), with guards O(T * buffers live at once).
Liveness liveness(const Program& program, bool guards);

}  // namespace cairn::runtime
