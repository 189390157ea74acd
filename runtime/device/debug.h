#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/machine.h"
#include "cairn/runtime/device/rows.h"

/// What shows that a program kept to its plan.
namespace cairn::runtime::device {

/// broken[i] = 1 where the gap at arena + offsets[i] no longer holds `byte` alone; else it is left as it is.
struct CheckGuards {
  static constexpr int kThreads = 32;
  const std::byte* arena;
  const std::int64_t* offsets;
  std::int64_t bytes;  ///< of each gap
  std::byte byte;
  std::uint8_t* broken;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    const std::byte* guard = arena + offsets[index];
    int wrong = 0;
    for (std::int64_t i = team.rank(); i < bytes; i += team.size()) wrong |= guard[i] != byte ? 1 : 0;
    wrong = team.reduce(wrong, Max());
    if (team.rank() == 0 && wrong != 0) broken[index] = 1;
  }
};

/// ends[index] = the end of the last byte of part `index` that is not `paint`, counted from the start of the arena; 0
/// where there is none.
struct FindTouched {
  static constexpr int kThreads = 256;
  static constexpr std::int64_t kPart = 1 << 20;
  const std::byte* arena;
  std::int64_t bytes;
  std::byte paint;
  std::int64_t* ends;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    const std::int64_t begin = index * kPart;
    const std::int64_t end = begin + kPart < bytes ? begin + kPart : bytes;
    std::int64_t last = 0;
    const std::int64_t words = (end - begin) / 8;
    const auto* values = reinterpret_cast<const std::uint64_t*>(arena + begin);
    const std::uint64_t painted = 0x0101010101010101ULL * static_cast<std::uint64_t>(paint);
    for (std::int64_t j = team.rank(); j < words; j += team.size()) {
      if (values[j] != painted) last = begin + 8 * (j + 1);
    }
    for (std::int64_t i = begin + 8 * words + team.rank(); i < end; i += team.size()) {
      if (arena[i] != paint) last = i + 1;
    }
    last = team.reduce(last, Max());
    if (team.rank() != 0) return;
    while (last > begin && arena[last - 1] == paint) --last;  // within its word
    ends[index] = last > begin ? last : 0;
  }
};

/// Parts whose ends find_touched gives.
inline std::int64_t touched_parts(std::int64_t bytes) { return blocks_of(bytes, FindTouched::kPart); }

/// ends[i] for every part of the arena: the largest is what was written up to.
template <class Machine>
void find_touched(Machine& machine, const std::byte* arena, std::int64_t bytes, int paint, std::int64_t* ends) {
  if (bytes > 0) machine.launch(FindTouched{arena, bytes, static_cast<std::byte>(paint), ends}, touched_parts(bytes));
}

}  // namespace cairn::runtime::device
