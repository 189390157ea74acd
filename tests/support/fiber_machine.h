#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "cairn/core/machine/machine.h"
#include "cairn/core/machine/team.h"
#include "cairn/tests/support/fiber_teams.h"

namespace cairn::tests {

/// A Machine of sim/machine.h whose teams have as many threads as on a device, as coroutines: where a sync is missing,
/// forwards and backwards differ. Shared memory is as scarce as there, and holds rubbish at first.
class FiberMachine : public core::HostMachine {
 public:
  explicit FiberMachine(bool reverse = false, std::int64_t shared_limit = 96 * 1024)
      : core::HostMachine(1), reverse_(reverse), shared_limit_(shared_limit) {}

  std::int64_t shared_limit() const { return shared_limit_; }
  template <class F>
  std::int64_t resident_teams(std::int64_t /*shared_bytes*/) const {
    return 3;
  }

  template <class F>
  void launch(const F& functor, std::int64_t teams, std::int64_t shared_bytes = 0) {
    static_assert(std::is_trivially_copyable_v<F> && sizeof(F) <= 4096 - 16);
    static_assert(F::kThreads == 1 || (F::kThreads >= 32 && F::kThreads <= 1024 && F::kThreads % 32 == 0));
    const std::int64_t teams_of_block = F::kThreads == 1 ? 128 : F::kThreads == 32 ? core::kWarpsOfBlock : 1;
    if (teams < 0 || shared_bytes < 0 || shared_bytes * teams_of_block > shared_limit_ ||
        (F::kThreads == 1 && shared_bytes > 0))
      throw std::logic_error("a launch that a device would refuse");
    std::vector<std::max_align_t> memory(static_cast<std::size_t>(shared_bytes) / sizeof(std::max_align_t) + 1);
    auto* shared = reinterpret_cast<std::byte*>(memory.data());
    for (std::int64_t i = 0; i < teams; ++i) {
      const std::int64_t index = reverse_ ? teams - 1 - i : i;
      std::memset(shared, 0xA5, static_cast<std::size_t>(shared_bytes));
      if constexpr (F::kThreads == 1) {
        functor(core::SerialTeam(), index);
      } else {
        fibers_.run(F::kThreads, shared, reverse_, [&](const FiberTeams::Team& team) { functor(team, index); });
      }
    }
  }

 private:
  bool reverse_;
  std::int64_t shared_limit_;
  FiberTeams fibers_;
};

}  // namespace cairn::tests
