#include "cairn/runtime/support/delays.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

namespace cairn::runtime {
namespace {

std::int64_t preemptions() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

}  // namespace

DelayClock::DelayClock() {
  const std::string own = std::to_string(gettid());
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const int file = open((task.path() / "schedstat").c_str(), O_RDONLY | O_CLOEXEC);
    if (file >= 0) threads_.push_back({file, task.path().filename() == own, {}});
  }
}

DelayClock::~DelayClock() {
  for (const Thread& thread : threads_) close(thread.file);
}

/// Parses a thread's schedstat file, which holds "running_ns waiting_ns slices". Returns zeros if the file does not
/// hold such numbers.
DelayClock::Counts DelayClock::read(int file) {
  std::array<char, 96> text;
  const ssize_t length = pread(file, text.data(), text.size(), 0);
  Counts counts;
  if (length <= 0) return counts;
  const char* const end = text.data() + length;
  const char* at = text.data();
  for (std::int64_t* count : {&counts.running_ns, &counts.waiting_ns, &counts.slices}) {
    at = std::from_chars(at, end, *count).ptr;
    if (at != end) ++at;  // a space
  }
  return counts;
}

void DelayClock::start() {
  for (Thread& thread : threads_) thread.at_start = read(thread.file);
  preemptions_at_start_ = preemptions();
  start_ = std::chrono::steady_clock::now();
}

Delays DelayClock::since_start() const {
  // The system adds the time of a wait to a thread's counter only once the thread runs again. So if the thread already
  // waited before start(), the difference also includes time before start(). Therefore, it is limited to the elapsed
  // time.
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  Delays delays;
  for (const Thread& thread : threads_) {
    const Counts now = read(thread.file);
    delays.seconds += std::min(elapsed, static_cast<double>(now.waiting_ns - thread.at_start.waiting_ns) / 1e9);
    delays.threads += thread.own || now != thread.at_start ? 1 : 0;
  }
  delays.preemptions = preemptions() - preemptions_at_start_;
  return delays;
}

}  // namespace cairn::runtime
