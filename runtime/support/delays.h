#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "cairn/runtime/executor.h"

namespace cairn::runtime {

/// What the other work of the machine takes from this process: of the threads that there are when it is made (Linux:
/// /proc/self/task/*/schedstat). For one thread at a time, the one that made it.
class DelayClock {
 public:
  DelayClock();
  ~DelayClock();
  DelayClock(const DelayClock&) = delete;
  DelayClock& operator=(const DelayClock&) = delete;

  /// About a microsecond a thread each; they allocate nothing.
  void start();
  Delays since_start() const;

 private:
  /// What the system counts of a thread.
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
