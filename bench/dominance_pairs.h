#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>

namespace cairn::bench {

inline void count_pairs(benchmark::State& state, std::int64_t pairs_of_iteration) {
  state.counters["pairs_per_second"] =
      benchmark::Counter(static_cast<double>(pairs_of_iteration), benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace cairn::bench
