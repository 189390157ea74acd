#pragma once

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cairn/bench/rate.h"

namespace cairn::bench {

/// Returns the bytes per second, read plus written, of memcpy on one thread for an array of 256 MiB. A thread that
/// reads or writes each byte of large arrays once cannot reach a higher rate. The first call in a process measures
/// several times and takes the best rate.
inline double copy_bandwidth() {
  static const double bandwidth = [] {
    constexpr std::size_t kBytes = std::size_t{1} << 28;
    std::vector<std::uint8_t> from(kBytes, 1), to(kBytes, 2);
    double best = 0;
    for (int i = 0; i < 5; ++i) {
      const auto start = std::chrono::steady_clock::now();
      std::memcpy(to.data(), from.data(), kBytes);
      benchmark::DoNotOptimize(to.data());
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      best = best * seconds > 2.0 * kBytes ? best : 2.0 * kBytes / seconds;
    }
    return best;
  }();
  return bandwidth;
}

/// Reports items/s, bytes/s, and bytes/s as a fraction of copy_bandwidth(). `count` is the number of items that an
/// iteration of the benchmark processes, and `bytes` the number of bytes that it reads plus writes.
inline void report_rate(benchmark::State& state, const char* items, std::int64_t count, std::int64_t bytes) {
  state.counters[items] = rate(static_cast<double>(count));
  state.counters["bytes/s"] = rate(static_cast<double>(bytes));
  state.counters["of_copy"] = rate(static_cast<double>(bytes) / copy_bandwidth());
}

}  // namespace cairn::bench
