#include "cairn/runtime/internal/delays.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <system_error>

namespace cairn::runtime {
namespace {

/// The second number of "on_cpu_ns waiting_ns slices"; 0 where there is none.
std::int64_t waiting_ns(int file) {
  std::array<char, 96> text;
  const ssize_t length = pread(file, text.data(), text.size(), 0);
  if (length <= 0) return 0;
  const char* end = text.data() + length;
  const char* at = text.data();
  while (at != end && *at != ' ') ++at;
  if (at == end) return 0;
  std::int64_t ns = 0;
  std::from_chars(at + 1, end, ns);
  return ns;
}

}  // namespace

DelayClock::DelayClock() {
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const int file = open((task.path() / "schedstat").c_str(), O_RDONLY | O_CLOEXEC);
    if (file >= 0) files_.push_back(file);
  }
}

DelayClock::~DelayClock() {
  for (const int file : files_) close(file);
}

Delays DelayClock::now() const {
  Delays delays;
  for (const int file : files_) delays.seconds += static_cast<double>(waiting_ns(file)) / 1e9;
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) delays.preemptions = usage.ru_nivcsw;
  return delays;
}

}  // namespace cairn::runtime
