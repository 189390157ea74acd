#pragma once

#include <cstdint>
#include <vector>

namespace cairn::runtime {

/// What the other work of the machine has taken from this process so far.
struct Delays {
  /// Of all threads together: ready to run, but another one had the core. 0 where the system does not tell.
  double seconds = 0;
  std::int64_t preemptions = 0;  ///< involuntary context switches of the process

  Delays operator-(const Delays& before) const { return {seconds - before.seconds, preemptions - before.preemptions}; }
};

/// Reads them, for the threads that there are when it is made (Linux: /proc/self/task/*/schedstat). For one thread at a
/// time.
class DelayClock {
 public:
  DelayClock();
  ~DelayClock();
  DelayClock(const DelayClock&) = delete;
  DelayClock& operator=(const DelayClock&) = delete;

  /// About a microsecond a thread; allocates nothing.
  Delays now() const;

 private:
  std::vector<int> files_;
};

}  // namespace cairn::runtime
