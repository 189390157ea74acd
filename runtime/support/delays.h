#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "cairn/runtime/executor.h"

namespace cairn::runtime {

/// Measures how long other work on the machine delays this process. Covers the threads that exist when the clock is
/// created (Linux: /proc/self/task/*/schedstat). Only the thread that created the clock may use it.
class DelayClock {
 public:
  DelayClock();
  ~DelayClock();
  DelayClock(const DelayClock&) = delete;
  DelayClock& operator=(const DelayClock&) = delete;

  /// Starts to measure. Takes about a microsecond per thread and allocates nothing.
  void start();
  /// Returns the delays since the last call of start(). Takes as long as start() and allocates nothing.
  Delays since_start() const;

 private:
  /// The system's counters for a thread.
  struct Counts {
    std::int64_t running_ns = 0, waiting_ns = 0, slices = 0;
    bool operator==(const Counts&) const = default;
  };
  struct Thread {
    int file;
    bool own;
    Counts at_start;
  };
  static Counts read(int file);

  std::vector<Thread> threads_;
  std::int64_t preemptions_at_start_ = 0;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace cairn::runtime
