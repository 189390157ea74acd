#pragma once

#include <benchmark/benchmark.h>

namespace cairn::bench {

/// Returns a counter of what every iteration processes, shown per second.
inline benchmark::Counter rate(double each, benchmark::Counter::OneK unit = benchmark::Counter::kIs1000) {
  return {each, benchmark::Counter::kIsIterationInvariantRate, unit};
}

}  // namespace cairn::bench
