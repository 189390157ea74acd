#pragma once

#include <cstdint>
#include <memory>

#include "cairn/core/threads.h"

/// The threads of this process that share its loops: the one pool under the runtime's kernels, the simulator and the
/// solvers. A thread that starts a loop works on it itself, and the pool's threads help if they come in time; nobody
/// waits for one that has not begun, and all waiting blocks after some microseconds, so that a loop slows down in
/// proportion where the cores have other work too.
namespace cairn::core {

/// A piece of a loop: [begin, end), on one of its threads, numbered from 0 (the one that started the loop).
using LoopBody = void (*)(const void* context, std::int64_t begin, std::int64_t end, int thread);

/// body(context, begin, end, thread) for [0, block), [block, 2 block), ... below n, on at most `threads` threads; by
/// that cut results can be made independent of the number of threads. Blocks begin in ascending order. Returns when all
/// have ended; what one of them threw is thrown again then. Any thread may call it, one that runs such a piece
/// too. Allocates nothing once `threads` have been at work (on_every_thread).
void run_blocks(std::int64_t n, std::int64_t block, int threads, LoopBody body, const void* context);

/// The same for body(begin, end, thread).
template <class F>
void parallel_blocks(std::int64_t n, std::int64_t block, int threads, const F& body) {
  run_blocks(
      n, block, threads,
      [](const void* context, std::int64_t begin, std::int64_t end, int thread) {
        (*static_cast<const F*>(context))(begin, end, thread);
      },
      std::addressof(body));
}

/// body() on thread_count() threads at once, which are started first where the pool has fewer: for what libraries set
/// up per thread. Where they are not there within a tenth of a second, some of them may call it twice and others not.
void on_every_thread(void (*body)());

}  // namespace cairn::core
