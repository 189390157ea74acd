#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "cairn/tests/ptx/machine/warp.h"

/// This file has data of GPUs from their data sheets, and computes the least time that counted work takes on them.
namespace cairn::tests::ptx {

struct Card {
  std::string_view name;
  double multiprocessors, clock_ghz, dram_gb_per_s;
};
inline constexpr std::array<Card, 5> kCards{{{"A100", 108, 1.41, 2039},
                                             {"H100", 132, 1.755, 3352},
                                             {"H200", 132, 1.755, 4800},
                                             {"B200", 148, 1.85, 8000},
                                             {"RTX 4090", 128, 2.52, 1008}}};
inline constexpr std::array<std::string_view, 4> kLimiters{"instructions", "shared memory", "L1", "DRAM"};

/// Returns, for each of kLimiters, a lower bound in microseconds on the time of the counted work on the card. In one
/// cycle, a multiprocessor can start four warp instructions, make one pass over its shared memory, and get four sectors
/// from its L1 cache. DRAM moves each sector that a launch reads or writes once.
using LeastTimes = std::array<double, kLimiters.size()>;
inline LeastTimes least_times(const Counts& counts, const Card& card) {
  constexpr double kStartsOfCycle = 4, kSectorsOfCycle = 4, kCyclesOfUs = 1e3, kBytesOfUs = 1e3, kSectorBytes = 32;
  const auto instructions = static_cast<double>(counts.warps());
  // Cycles per microsecond, summed over all multiprocessors.
  const double cycles = card.multiprocessors * card.clock_ghz * kCyclesOfUs;
  const double dram_bytes = kSectorBytes * static_cast<double>(counts.read_sectors + counts.written_sectors);
  return {instructions / kStartsOfCycle / cycles, static_cast<double>(counts.shared_wavefronts) / cycles,
          static_cast<double>(counts.global_sectors) / kSectorsOfCycle / cycles,
          dram_bytes / (card.dram_gb_per_s * kBytesOfUs)};
}

/// The sum of the least times of several kernels, and what limits the longest of these kernels.
struct Bound {
  double us = 0, longest_us = 0;
  std::string_view limiter;

  void add(const LeastTimes& times) {
    const auto* const most = std::max_element(times.begin(), times.end());
    us += *most;
    if (*most <= longest_us) return;
    longest_us = *most;
    limiter = kLimiters[static_cast<std::size_t>(most - times.begin())];
  }
};

}  // namespace cairn::tests::ptx
