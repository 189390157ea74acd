#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <typeinfo>

#include "cairn/core/machine/support/machine.h"
#include "cairn/core/op.h"
#include "cairn/cuda/internal/launch_shape.h"
#include "cairn/tests/catch.h"

/// These classes check, without running anything, that launches are valid on several cards.
namespace cairn::tests {

/// A graphics card and its limits.
struct Card {
  const char* name;
  std::int64_t shared;  ///< bytes of shared memory that a block may opt in to
  std::int64_t memory;  ///< memory of the card in GiB
  int multiprocessors;
  int threads;  ///< the most threads that run on one multiprocessor at a time
};
inline constexpr std::int64_t kKiB = 1024;
inline constexpr std::int64_t kThreadsOfBlock = 1024, kBlocks = (std::int64_t{1} << 31) - 1;
inline constexpr Card kCards[] = {
    {"A100", 163 * kKiB, 80, 108, 2048},  {"H100", 227 * kKiB, 80, 132, 2048},    {"H200", 227 * kKiB, 141, 132, 2048},
    {"B200", 227 * kKiB, 180, 148, 2048}, {"RTX 4090", 99 * kKiB, 24, 128, 1536},
};

/// Checks that the card permits a launch of `teams` teams. A team is a group of threads that execute a kernel's functor
/// together: one thread, a warp or a block. Each team has `threads` threads and `shared_bytes` bytes of shared memory.
inline void check_launch(const Card& card, int threads, std::int64_t teams, std::int64_t shared_bytes) {
  CHECK((threads == 1 || (threads >= 32 && threads <= kThreadsOfBlock && threads % 32 == 0)));
  CHECK((threads > 1 || shared_bytes == 0));
  const cuda::LaunchShape shape = cuda::launch_shape(threads, teams, shared_bytes);
  CHECK((shape.blocks >= 1 && shape.blocks <= kBlocks));
  CHECK((shape.threads >= 32 && shape.threads <= kThreadsOfBlock && shape.threads % 32 == 0));
  CHECK(shape.blocks * cuda::teams_of_block(threads) >= teams);
  CHECK((shape.shared_of_team >= shared_bytes && shape.shared_of_team % 16 == 0));
  CHECK(shape.shared_of_block == shape.shared_of_team * cuda::teams_of_block(threads));
  CHECK(shape.shared_of_block + cuda::kStaticShared <= card.shared);
}

/// A Machine (core/machine/support/machine.h) with the limits of a card. It checks launches, but runs nothing. Arrays
/// reduce the card's free memory but are not allocated, so they can be as large as on the card. Downloads give zeros,
/// and select() selects all elements.
class LaunchChecker {
 public:
  /// Gives the bytes of a destroyed array back to the machine's free memory.
  struct GiveBack {
    std::int64_t* free = nullptr;
    std::int64_t bytes = 0;
    void operator()(std::byte* /*memory*/) const noexcept { *free += bytes; }
  };
  template <class T>
  using ArrayOf = core::Array<T, GiveBack>;

  explicit LaunchChecker(const Card& card) : card_(card), free_bytes_(card.memory << 30) {}
  LaunchChecker(const LaunchChecker&) = delete;
  LaunchChecker& operator=(const LaunchChecker&) = delete;

  std::int64_t shared_limit() const { return cuda::dynamic_shared_limit(card_.shared); }
  template <class F>
  void launch(const F& functor, std::int64_t teams, std::int64_t shared_bytes = 0) {
    static_assert(std::is_trivially_copyable_v<F> && sizeof(F) <= 4096 - 16);
    if (teams == 0) return;
    if constexpr (requires { functor.part.grid.count(); }) {
      CHECK(functor.part.grid.count() <= INT32_MAX);  // kernels on grids use indices of 32 bits
    }
    ++launches_;
    kernels_.insert(typeid(F));
    if (checked_.insert({F::kThreads, teams, shared_bytes}).second)
      check_launch(card_, F::kThreads, teams, shared_bytes);
  }
  /// Returns the number of teams that can run at the same time, if registers do not limit it.
  template <class F>
  std::int64_t resident_teams(std::int64_t shared_bytes) const {
    check_launch(card_, F::kThreads, 1, shared_bytes);
    const int blocks = card_.threads / cuda::launch_shape(F::kThreads, 1, shared_bytes).threads;
    return std::int64_t{card_.multiprocessors} * std::max(1, blocks) * cuda::teams_of_block(F::kThreads);
  }

  template <class T>
  ArrayOf<T> array(std::int64_t count) {
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
    CHECK((bytes >= 0 && bytes <= free_bytes_));
    free_bytes_ -= bytes;
    auto* const address = reinterpret_cast<std::byte*>(std::uintptr_t{256});  // a dummy address, which nothing accesses
    return {std::unique_ptr<std::byte[], GiveBack>(address, GiveBack{&free_bytes_, bytes}),
            reinterpret_cast<T*>(address), count};
  }
  std::int64_t free_bytes() const { return free_bytes_; }
  template <class T>
  void upload(const T*, std::int64_t, T*) const {}
  template <class T>
  void download(const T*, std::int64_t count, T* to) const {
    if (count > 0) std::memset(static_cast<void*>(to), 0, static_cast<std::size_t>(count) * sizeof(T));
  }
  void fill(void*, int, std::int64_t bytes) const { CHECK(bytes >= 0); }
  template <class T>
  void exclusive_sum(const T*, std::int64_t*, std::int64_t) const {}
  void sort_pairs(const std::uint64_t*, std::uint64_t*, const std::int32_t*, std::int32_t*, std::int64_t) const {}
  std::int64_t select(const std::uint8_t*, std::int64_t count, std::int64_t*) const { return count; }
  std::int64_t sort_workspace(std::int64_t count) const { return count; }
  void sort_by_key(const std::int32_t*, std::int32_t*, std::int32_t*, std::int64_t, std::int64_t, void*) const {}
  struct [[maybe_unused]] Bound {};
  Bound bind() const { return {}; }

  std::int64_t launches() const { return launches_; }
  /// Returns whether the functor F has been launched.
  template <class F>
  bool has_launched() const {
    return kernels_.contains(typeid(F));
  }

 private:
  const Card& card_;
  std::int64_t free_bytes_;
  std::int64_t launches_ = 0;
  std::set<std::type_index> kernels_;
  /// Threads, teams and shared bytes of the launches that were already checked.
  std::set<std::tuple<int, std::int64_t, std::int64_t>> checked_;
};

/// Draws random sizes. The logarithms of the sizes are about evenly distributed, so small sizes are as frequent as
/// large.
class Sizes {
 public:
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(limit));
  }
  std::int64_t up_to(std::int64_t most) {
    std::int64_t bound = 1;
    for (std::int64_t doublings = below(64); doublings > 0 && bound < most; --doublings) bound *= 2;
    return 1 + below(std::min(bound, std::max<std::int64_t>(1, most)));
  }
  /// Returns a shape with `rank` axes and at most `most` elements in all.
  core::Shape shape(std::size_t rank, std::int64_t most) {
    core::Shape shape(rank);
    for (std::int64_t& extent : shape) {
      extent = up_to(most);
      if (below(2) == 0 && extent >= 8) extent = extent / 8 * 8;
      most /= extent;
    }
    std::shuffle(shape.begin(), shape.end(), random_);
    return shape;
  }

 private:
  std::mt19937_64 random_{1};
};

}  // namespace cairn::tests
