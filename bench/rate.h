#pragma once

#include <benchmark/benchmark.h>

namespace cairn::bench {

/// Returns a benchmark counter that shows a rate per second. `each` is the number of items or bytes that one iteration
/// of the benchmark processes.
inline benchmark::Counter rate(double each, benchmark::Counter::OneK unit = benchmark::Counter::kIs1000) {
  return {each, benchmark::Counter::kIsIterationInvariantRate, unit};
}

}  // namespace cairn::bench
