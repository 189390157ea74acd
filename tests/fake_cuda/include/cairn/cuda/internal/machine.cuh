#pragma once

#include <cstdint>

#include "cairn/cuda/internal/machine.h"
#include "cairn/tests/fake_cuda/fake_cuda.h"
#include "cairn/tests/support/fiber_machine.h"

/// This file takes the place of cuda/internal/machine.cuh, so that the .cu files of cuda/ can be compiled for the host
/// without changes. Launches go to the fake runtime, which runs the kernels on the host.
namespace cairn::cuda {

/// The address of kKernel<F> identifies the kernel that runs the functor F.
template <class F>
inline char kKernel = 0;

template <class F>
void Machine::launch(const F& functor, std::int64_t teams, std::int64_t shared_bytes) const {
  if (teams == 0) return;
  const std::int64_t of_block = launch_shape(F::kThreads, teams, shared_bytes).shared_of_block;
  allow_shared(of_block, &kKernel<F>);
  const auto kernel = [=] {
#ifdef CAIRN_FAKE_FIBERS
    tests::fake::machine().launch(functor, teams, shared_bytes);
#else
    tests::fake::machine().launch_teams_of_one(functor, teams, shared_bytes);
#endif
  };
  tests::fake::require_shared(&kKernel<F>, of_block);
  check(tests::fake::enqueue_kernel(stream_, kernel), "the launch of a kernel");
}

template <class F>
std::int64_t Machine::resident_teams(std::int64_t shared_bytes) const {
  allow_shared(launch_shape(F::kThreads, 1, shared_bytes).shared_of_block, &kKernel<F>);
  return tests::fake::machine().resident_teams<F>(shared_bytes);
}

}  // namespace cairn::cuda
