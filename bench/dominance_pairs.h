#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <utility>

namespace cairn::bench {

inline void count_pairs(benchmark::State& state, std::int64_t pairs_of_iteration) {
  state.counters["pairs_per_second"] =
      benchmark::Counter(static_cast<double>(pairs_of_iteration), benchmark::Counter::kIsIterationInvariantRate);
}

template <class... Args>
void add(const std::string& name, Args&&... args) {
  benchmark::RegisterBenchmark(("dominance/" + name).c_str(), std::forward<Args>(args)...)
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

}  // namespace cairn::bench
