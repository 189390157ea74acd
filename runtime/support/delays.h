#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "cairn/runtime/executor.h"

namespace cairn::runtime {

/// Measures what other work of the machine takes from this process, for the threads that exist when the clock is made
/// (Linux: /proc/self/task/*/schedstat). Only the thread that made it may use it.
class DelayClock {
 public:
  DelayClock();
  ~DelayClock();
  DelayClock(const DelayClock&) = delete;
  DelayClock& operator=(const DelayClock&) = delete;

  /// Starts to measure. Takes about a microsecond per thread, as since_start() does; neither allocates anything.
  void start();
  Delays since_start() const;

 private:
  /// The system's counters of a thread.
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
