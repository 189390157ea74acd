#pragma once

#include <benchmark/benchmark.h>

namespace cairn::bench {

/// Returns a counter that shows a rate per second. `each` is the number of items or bytes that one iteration processes.
inline benchmark::Counter rate(double each, benchmark::Counter::OneK unit = benchmark::Counter::kIs1000) {
  return {each, benchmark::Counter::kIsIterationInvariantRate, unit};
}

}  // namespace cairn::bench
