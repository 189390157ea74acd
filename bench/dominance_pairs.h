#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <utility>

#include "cairn/bench/rate.h"

namespace cairn::bench {

/// Reports the number of pairs of profiles that are compared per second.
inline void count_pairs(benchmark::State& state, std::int64_t pairs_of_iteration) {
  state.counters["pairs_per_second"] = rate(static_cast<double>(pairs_of_iteration));
}

/// Registers a benchmark with the name "dominance/<name>". `args` are the function to measure and its arguments.
template <class... Args>
void add(const std::string& name, Args&&... args) {
  benchmark::RegisterBenchmark(("dominance/" + name).c_str(), std::forward<Args>(args)...)
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

}  // namespace cairn::bench
