#include "cairn/core/support/memory.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

#include "cairn/core/internal/control_groups.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace cairn::core {
namespace {

std::optional<std::int64_t> machine_memory_left() {
  std::istringstream lines(read_text("/proc/meminfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("MemAvailable:", 0) == 0) return std::strtoll(line.c_str() + 13, nullptr, 10) * 1024;  // given in kB
  }
  return std::nullopt;
}

}  // namespace

std::int64_t available_memory() {
  constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();
  const auto of_groups = group_memory_left(read_text("/proc/self/cgroup").value_or(""), read_text);
  return std::min(machine_memory_left().value_or(kUnknown), of_groups.value_or(kUnknown));
}

void give_back_freed_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace cairn::core
