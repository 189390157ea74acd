#include "cairn/runtime/internal/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/graph.h"
#include "cairn/core/text.h"
#include "cairn/runtime/internal/execution.h"

namespace cairn::runtime {
namespace {

std::optional<std::int64_t> number_in(const char* path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

std::optional<std::int64_t> system_available() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("MemAvailable:", 0) == 0) return std::strtoll(line.c_str() + 13, nullptr, 10) * 1024;  // given in kB
  }
  return std::nullopt;
}

std::optional<std::int64_t> group_available() {
  const auto limit = number_in("/sys/fs/cgroup/memory.max");  // "max", no number, where there is no limit
  const auto used = number_in("/sys/fs/cgroup/memory.current");
  if (limit && used) return std::max<std::int64_t>(0, *limit - *used);
  return std::nullopt;
}

}  // namespace

std::int64_t available_memory() {
  constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();
  return std::min(system_available().value_or(kUnknown), group_available().value_or(kUnknown));
}

void require_memory(std::string_view what, std::int64_t bytes) {
  const std::int64_t available = available_memory();
  if (bytes > available) {
    throw core::MemoryError(
        fmt::format("{} needs {} of memory, but only {} are available; lower the budget or the batch", what,
                    core::format_bytes(bytes), core::format_bytes(available)));
  }
}

Arena::Arena(std::int64_t bytes, std::int64_t alignment) : bytes_(bytes) {
  if (bytes < 0) throw core::InputError(fmt::format("an arena of {} bytes is not possible", bytes));
  if (alignment < 1 || (alignment & (alignment - 1)) != 0) {
    throw core::InputError(fmt::format("the arena's alignment {} is not a power of two", alignment));
  }
  if (bytes == 0) return;
  require_memory("the arena", bytes);
  const std::int64_t grain = std::max<std::int64_t>(alignment, alignof(std::max_align_t));
  base_ = static_cast<std::byte*>(
      std::aligned_alloc(static_cast<std::size_t>(grain), static_cast<std::size_t>(core::align_up(bytes, grain))));
  if (base_ == nullptr) {
    throw core::MemoryError(fmt::format("the system refused an arena of {}", core::format_bytes(bytes)));
  }
  std::memset(base_, kArenaPaint, static_cast<std::size_t>(bytes));
}

std::int64_t Arena::touched() const {
  std::int64_t end = bytes_;
  while (end > 0 && base_[end - 1] == std::byte{kArenaPaint}) --end;
  return end;
}

Arena::~Arena() { std::free(base_); }

Arena::Arena(Arena&& other) noexcept { *this = std::move(other); }

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(high_water_, other.high_water_);
  return *this;
}

std::byte* Arena::at(std::int64_t offset, std::int64_t bytes) {
  if (offset < 0 || bytes < 0 || offset > bytes_ - bytes) {
    throw std::out_of_range(
        fmt::format("bytes [{}, {}+{}) are outside the arena of {}", offset, offset, bytes, bytes_));
  }
  high_water_ = std::max(high_water_, offset + bytes);
  return base_ + offset;
}

}  // namespace cairn::runtime
