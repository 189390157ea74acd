#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "cairn/core/machine/support/machine.h"
#include "cairn/core/machine/support/team.h"
#include "cairn/tests/support/fiber_teams.h"

namespace cairn::tests {

/// Says how a FiberMachine (see below) runs the threads of a team, i.e. of a warp or a block of threads.
enum class Threads {
  one,  ///< each team has one thread
  /// Each team has as many threads as on a GPU. A thread runs until its next sync, and then the thread of the next
  /// higher rank runs.
  forward,
  reverse,  ///< the same in descending order of ranks; if a sync is missing, results can differ from those of `forward`
};

/// A Machine (core/machine/support/machine.h) on the CPU. Its teams have as many threads as on a GPU, and the threads
/// are coroutines. Shared memory has the limit of a GPU. At first, it contains garbage that is NaN if it is read as
/// float.
class FiberMachine : public core::HostMachine {
 public:
  explicit FiberMachine(Threads threads = Threads::forward, std::int64_t shared_limit = 96 * 1024)
      : core::HostMachine(1), threads_(threads), shared_limit_(shared_limit) {}

  std::int64_t shared_limit() const { return shared_limit_; }
  template <class F>
  std::int64_t resident_teams(std::int64_t /*shared_bytes*/) const {
    return 3;
  }

  template <class F>
  void launch(const F& functor, std::int64_t teams, std::int64_t shared_bytes = 0) {
    if (F::kThreads == 1 || threads_ == Threads::one) return launch_teams_of_one(functor, teams, shared_bytes);
    const bool reverse = threads_ == Threads::reverse;
    for_teams<F>(teams, shared_bytes, [&](std::byte* shared, std::int64_t index) {
      fibers_.run(F::kThreads, shared, reverse, [&](const FiberTeams::Team& team) { functor(team, index); });
    });
  }
  /// Works like launch() for Threads::one. Code that calls only this function does not instantiate the functor for
  /// larger teams.
  template <class F>
  void launch_teams_of_one(const F& functor, std::int64_t teams, std::int64_t shared_bytes) {
    for_teams<F>(teams, shared_bytes,
                 [&](std::byte* shared, std::int64_t index) { functor(core::SerialTeam(shared), index); });
  }

  std::int64_t sort_workspace(std::int64_t count) const { return 16 + count; }
  void sort_by_key(const std::int32_t* keys, std::int32_t* sorted_keys, std::int32_t* sorted_places, std::int64_t count,
                   std::int64_t limit, void* workspace) {
    std::memset(workspace, 0xFF, static_cast<std::size_t>(sort_workspace(count)));
    if (std::any_of(keys, keys + count, [=](std::int32_t key) { return key < 0 || key >= limit; })) {
      throw std::logic_error("a key out of range");
    }
    core::HostMachine::sort_by_key(keys, sorted_keys, sorted_places, count, limit, workspace);
  }

 private:
  template <class F, class Body>
  void for_teams(std::int64_t teams, std::int64_t shared_bytes, const Body& body) {
    static_assert(std::is_trivially_copyable_v<F> && sizeof(F) <= 4096 - 16);
    static_assert(F::kThreads == 1 || (F::kThreads >= 32 && F::kThreads <= 1024 && F::kThreads % 32 == 0));
    const std::int64_t teams_of_block = F::kThreads == 1 ? 128 : F::kThreads == 32 ? core::kWarpsOfBlock : 1;
    if (teams < 0 || shared_bytes < 0 || shared_bytes * teams_of_block > shared_limit_ ||
        (F::kThreads == 1 && shared_bytes > 0))
      throw std::logic_error("a launch that a device would refuse");
    constexpr std::uint16_t kRubbish = 0xFFA5;  // NaN as a bf16; two of these numbers in a row are NaN as a float
    std::vector<std::max_align_t> memory(static_cast<std::size_t>(shared_bytes) / sizeof(std::max_align_t) + 1);
    auto* words = reinterpret_cast<std::uint16_t*>(memory.data());
    for (std::int64_t i = 0; i < teams; ++i) {
      std::fill_n(words, (shared_bytes + 1) / 2, kRubbish);
      body(reinterpret_cast<std::byte*>(words), threads_ == Threads::reverse ? teams - 1 - i : i);
    }
  }

  Threads threads_;
  std::int64_t shared_limit_;
  FiberTeams fibers_;
};

}  // namespace cairn::tests
