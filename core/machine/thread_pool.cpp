#include "cairn/core/machine/support/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace cairn::core {
namespace {

using std::chrono::steady_clock;

/// How long a thread spins before it sleeps. The next loop often follows within microseconds, and falling asleep and
/// waking up again takes about as long as kSpin.
constexpr std::chrono::microseconds kSpin{20};

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Waits for the condition by spinning for at most kSpin. A thread on `core` is expected to make the condition true.
/// Returns immediately if this thread runs on the same core, as can happen on a busy machine. In that case the other
/// thread runs only once this one sleeps.
template <class F>
void spin_until(int core, const F& condition) {
  if (core == sched_getcpu()) return;
  const auto end = steady_clock::now() + kSpin;
  while (!condition() && steady_clock::now() < end) {
    for (int i = 0; i < 8; ++i) pause();
  }
}

/// A loop in progress. It is on the stack of the thread that started the loop.
struct Loop {
  std::int64_t n, block;
  LoopBody body;
  const void* context;
  /// Number of helpers (other threads of the pool) that may still join. The pool's mutex guards it.
  int places;
  int core;                            ///< core on which the loop was started
  int joined = 1;                      ///< number of threads that have joined so far; guarded by the pool's mutex
  Loop* next_loop = nullptr;           ///< the next loop that helpers may join; guarded by the pool's mutex
  std::atomic<std::int64_t> next = 0;  ///< first iteration of the next block
  std::atomic<int> helpers = 0;        ///< number of helpers at work
  std::atomic<int> helper_core = -1;   ///< core of the helper that joined last
  std::atomic_flag failed = {};
  std::exception_ptr failure;

  void work(int thread) {
    for (std::int64_t begin = next++ * block; begin < n; begin = next++ * block) {
      try {
        body(context, begin, std::min(n, begin + block), thread);
      } catch (...) {
        if (!failed.test_and_set()) failure = std::current_exception();
      }
    }
  }
};

class Pool {
 public:
  /// Returns the pool. It is never destroyed, because its threads may wait for work until the process ends. Threads do
  /// not survive fork(), so a forked process starts a new pool.
  static Pool& instance() {
    static std::atomic<Pool*> pool = [] {
      pthread_atfork(nullptr, nullptr, [] { pool = new Pool; });
      return new Pool;
    }();
    return *pool;
  }

  void start(int threads) {
    const std::lock_guard lock(mutex_);
    try {
      while (static_cast<int>(threads_.size()) < threads - 1) threads_.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
      // The system cannot start more threads. The existing threads do the work.
    }
    started_ = std::max(started_.load(), threads);
  }

  void run(Loop& loop) {
    const int helpers = loop.places;
    if (started_ <= helpers) start(helpers + 1);
    {
      const std::lock_guard lock(mutex_);
      loop.next_loop = open_;
      open_ = &loop;
    }
    helpers == 1 ? wake_.notify_one() : wake_.notify_all();
    loop.work(0);
    {
      const std::lock_guard lock(mutex_);
      close(loop);
    }
    spin_until(loop.helper_core, [&] { return loop.helpers == 0; });
    if (loop.helpers > 0) {
      std::unique_lock lock(mutex_);
      done_.wait(lock, [&] { return loop.helpers == 0; });
    }
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    int core = -1;  // core on which the latest loop was started
    for (;;) {
      while (Loop* loop = open_) {
        core = loop->core;
        loop->helper_core = sched_getcpu();
        const int thread = loop->joined++;
        if (--loop->places == 0) close(*loop);
        ++loop->helpers;
        lock.unlock();
        loop->work(thread);
        lock.lock();
        close(*loop);  // all of its blocks have begun
        if (--loop->helpers == 0) done_.notify_all();
      }
      lock.unlock();
      spin_until(core, [&] { return open_ != nullptr; });
      lock.lock();
      wake_.wait(lock, [&] { return open_ != nullptr; });
    }
  }

  /// Removes the loop from the list, so that no more threads join it.
  void close(const Loop& loop) {
    if (open_ == &loop) {
      open_ = loop.next_loop;
      return;
    }
    for (Loop* before = open_; before != nullptr; before = before->next_loop) {
      if (before->next_loop == &loop) before->next_loop = loop.next_loop;
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  /// List of the loops that helpers may join, the latest first. It is written only while the mutex is locked.
  std::atomic<Loop*> open_ = nullptr;
  std::vector<std::thread> threads_;
  std::atomic<int> started_ = 1;  ///< largest number of threads that was asked for, including the caller
};

}  // namespace

void run_blocks(std::int64_t n, std::int64_t block, int threads, LoopBody body, const void* context) {
  const std::int64_t blocks = (n + block - 1) / block;
  const auto helpers = static_cast<int>(std::min<std::int64_t>(threads, blocks)) - 1;
  Loop loop{.n = n, .block = block, .body = body, .context = context, .places = helpers, .core = sched_getcpu()};
  helpers > 0 ? Pool::instance().run(loop) : loop.work(0);
  if (loop.failure) std::rethrow_exception(loop.failure);
}

void on_every_thread(void (*body)()) {
  const int threads = thread_count();
  std::mutex mutex;
  std::condition_variable all_here;
  int here = 0;
  parallel_blocks(threads, 1, threads, [&](std::int64_t, std::int64_t, int) {
    {
      std::unique_lock lock(mutex);
      if (++here == threads) all_here.notify_all();
      all_here.wait_for(lock, std::chrono::seconds(1), [&] { return here == threads; });
    }
    body();
  });
}

}  // namespace cairn::core
