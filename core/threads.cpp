#include "cairn/core/threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <thread>

#include "cairn/core/internal/control_groups.h"

namespace cairn::core {
namespace {

int default_thread_count() {
  for (const char* variable : {"CAIRN_THREADS", "OMP_NUM_THREADS"}) {
    const char* value = std::getenv(variable);
    // If the value is a list (one number per nesting level), strtol reads the outermost level.
    const long threads = value == nullptr ? 0 : std::strtol(value, nullptr, 10);
    if (threads > 0) return static_cast<int>(std::min(threads, 4096L));
  }
  return available_cores();
}

std::atomic<int> chosen_threads = 0;

}  // namespace

int available_cores() {
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t bound;
  if (sched_getaffinity(0, sizeof(bound), &bound) == 0) cores = CPU_COUNT(&bound);
  // With more threads than the quota allows, the process would use up its quota before the end of each period. The
  // system would then stop all threads until the next period.
  const std::optional<double> quota = quota_cores(read_text("/proc/self/cgroup").value_or(""), read_text);
  if (quota && *quota < cores) cores = static_cast<int>(*quota);
  return std::max(cores, 1);
}

int thread_count() {
  static const int usual = default_thread_count();
  const int chosen = chosen_threads;
  return chosen > 0 ? chosen : usual;
}

void set_thread_count(int threads) { chosen_threads = threads; }

}  // namespace cairn::core
