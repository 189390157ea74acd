#pragma once

#include <cstdint>
#include <memory>

#include "cairn/core/threads.h"

/// This header declares the pool of threads on which this process runs its loops: those of the runtime's kernels, the
/// simulator and the solvers. The thread that starts a loop works on it, and idle threads of the pool join. A loop is
/// divided into blocks. At the end, the loop waits only for threads that have begun one of its blocks, and not for
/// threads to which the system has given no core yet. A waiting thread spins for some microseconds and then sleeps, so
/// it takes no core from threads that have work. If other processes use the cores too, a loop therefore slows down only
/// in proportion to the share of the cores that they take.
namespace cairn::core {

/// The body of a loop. It runs [begin, end) on one of the loop's threads. Threads are numbered from 0, the thread that
/// started the loop.
using LoopBody = void (*)(const void* context, std::int64_t begin, std::int64_t end, int thread);

/// Calls body(context, begin, end, thread) for [0, block), [block, 2 block), ... up to n, on at most `threads` threads.
/// The blocks do not depend on the number of threads, so that results need not depend on it either. Blocks begin in
/// ascending order. Returns once all have ended, and rethrows an exception that one of them threw. Every thread may
/// call this function, even from within a block. Allocates nothing once the pool has `threads` threads, which
/// on_every_thread() ensures.
void run_blocks(std::int64_t n, std::int64_t block, int threads, LoopBody body, const void* context);

template <class F>
void parallel_blocks(std::int64_t n, std::int64_t block, int threads, const F& body) {
  run_blocks(
      n, block, threads,
      [](const void* context, std::int64_t begin, std::int64_t end, int thread) {
        (*static_cast<const F*>(context))(begin, end, thread);
      },
      std::addressof(body));
}

/// Calls body() on thread_count() threads at once, to set up data that a library keeps for each thread. Starts threads
/// if the pool has fewer. If a thread does not respond within 1 s, a different thread may call body() twice instead.
void on_every_thread(void (*body)());

}  // namespace cairn::core
