#include "cairn/runtime/support/host_arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/graph.h"
#include "cairn/core/support/memory.h"
#include "cairn/core/support/saturating.h"
#include "cairn/core/support/text.h"
#include "cairn/runtime/support/execution.h"

namespace cairn::runtime {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

/// Rounds a budget of at least 1 MiB down to whole MiB, so that a user can type it easily.
std::int64_t typed_budget(std::int64_t bytes) { return bytes >= kMiB ? bytes / kMiB * kMiB : bytes; }

}  // namespace

void require_memory(const MemoryNeed& need, std::int64_t free, std::string_view where) {
  const std::int64_t fitting = free - core::saturating_add(need.beside, need.slack);
  if (need.arena <= fitting) return;
  const auto advice = [&]() -> std::string {
    if (fitting <= 0)
      return "the memory needed besides the arena does not fit, even without an arena; use a smaller model or batch";
    const std::int64_t budget = typed_budget(fitting);
    if (budget < need.least)
      return fmt::format("no budget below {} can be met; use a smaller model or batch", core::format_bytes(need.least));
    return fmt::format("a budget of {} would fit",
                       budget >= kMiB ? core::format_bytes(budget) : fmt::format("{} bytes", budget));
  };
  throw core::MemoryError(
      fmt::format("the step needs {} (arena {}, beside it {}, to be left free {}), but only {} are free {}; {}",
                  core::format_bytes(core::saturating_add(core::saturating_add(need.arena, need.beside), need.slack)),
                  core::format_bytes(need.arena), core::format_bytes(need.beside), core::format_bytes(need.slack),
                  core::format_bytes(free), where, advice()));
}

std::int64_t host_slack(std::int64_t bytes) {
  constexpr std::int64_t kLeast = 64 * kMiB;
  constexpr std::int64_t kShare = 32;
  return kLeast + bytes / kShare;
}

Arena::Arena(std::int64_t bytes, std::int64_t alignment) : bytes_(bytes) {
  if (bytes < 0) throw core::InputError(fmt::format("an arena of {} bytes is not possible", bytes));
  if (alignment < 1 || (alignment & (alignment - 1)) != 0) {
    throw core::InputError(fmt::format("the arena's alignment {} is not a power of two", alignment));
  }
  if (bytes == 0) return;
  if (const std::int64_t available = core::available_memory(); bytes > available) {
    throw core::MemoryError(fmt::format("an arena of {} was asked for, but only {} of memory are available",
                                        core::format_bytes(bytes), core::format_bytes(available)));
  }
  const std::int64_t grain = std::max<std::int64_t>(alignment, alignof(std::max_align_t));
  base_ = static_cast<std::byte*>(
      std::aligned_alloc(static_cast<std::size_t>(grain), static_cast<std::size_t>(core::align_up(bytes, grain))));
  if (base_ == nullptr) {
    throw core::MemoryError(fmt::format("the system refused an arena of {}", core::format_bytes(bytes)));
  }
  std::memset(base_, kArenaPaint, static_cast<std::size_t>(bytes));
}

Arena::Arena(std::byte* memory, std::int64_t bytes) : base_(memory), bytes_(bytes), owned_(false) {
  std::memset(base_, kArenaPaint, static_cast<std::size_t>(bytes));
}

std::int64_t Arena::touched() const {
  std::int64_t end = bytes_;
  while (end > 0 && base_[end - 1] == std::byte{kArenaPaint}) --end;
  return end;
}

Arena::~Arena() {
  if (owned_) std::free(base_);
}

Arena::Arena(Arena&& other) noexcept { *this = std::move(other); }

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(high_water_, other.high_water_);
  std::swap(owned_, other.owned_);
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
