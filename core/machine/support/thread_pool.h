#pragma once

#include <cstdint>
#include <memory>

#include "cairn/core/threads.h"

/// The threads of this process that share its loops: one pool for the runtime's kernels, the simulator and the solvers.
/// The thread that starts a loop works on it, and the pool's threads help if they come in time. Nobody waits for a
/// thread that has not begun. All waiting blocks after some microseconds, so that a loop slows down only in proportion
/// when the cores have other work too.
namespace cairn::core {

/// The body of a loop: runs [begin, end) on one of the loop's threads, numbered from 0 (the one that started the loop).
using LoopBody = void (*)(const void* context, std::int64_t begin, std::int64_t end, int thread);

/// Calls body(context, begin, end, thread) for [0, block), [block, 2 block), ... below n, on at most `threads` threads.
/// The blocks do not depend on the number of threads, so results can be made independent of it. Blocks begin in
/// ascending order. Returns when all have ended, and rethrows what one of them threw. Any thread may call it, even one
/// that runs such a block. Allocates nothing once `threads` threads have been at work (on_every_thread).
void run_blocks(std::int64_t n, std::int64_t block, int threads, LoopBody body, const void* context);

/// Calls run_blocks() with body(begin, end, thread).
template <class F>
void parallel_blocks(std::int64_t n, std::int64_t block, int threads, const F& body) {
  run_blocks(
      n, block, threads,
      [](const void* context, std::int64_t begin, std::int64_t end, int thread) {
        (*static_cast<const F*>(context))(begin, end, thread);
      },
      std::addressof(body));
}

/// Calls body() on thread_count() threads at once, for what libraries set up per thread. Starts threads if the pool has
/// fewer. If some are not there within a tenth of a second, some may call it twice and others not at all.
void on_every_thread(void (*body)());

}  // namespace cairn::core
