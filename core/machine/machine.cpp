#include "cairn/core/machine/machine.h"

#include <omp.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

namespace cairn::core {
namespace {

/// Pieces of work that threads take one by one.
struct Job {
  std::int64_t piece, pieces, count;
  const std::function<void(std::int64_t, std::int64_t, int)>& body;
  std::atomic<std::int64_t> next = 0;
  int started = 1, at_work = 0;  // guarded by the pool's mutex
  std::mutex failing;
  std::exception_ptr failure;

  void help(int thread) {
    for (std::int64_t i = next++; i < pieces; i = next++) {
      try {
        body(i * piece, std::min(count, (i + 1) * piece), thread);
      } catch (...) {
        const std::lock_guard lock(failing);
        if (!failure) failure = std::current_exception();
      }
    }
  }
};

/// Threads that help if they come in time: nobody waits for one that has not begun. OpenMP's teams wait at a barrier,
/// spinning, which makes short loops many times slower where the cores have other work too.
class Pool {
 public:
  static Pool& instance() {
    static Pool pool;
    return pool;
  }
  void run(Job& job, int threads) {
    std::unique_lock lock(mutex_);
    try {
      while (static_cast<int>(threads_.size()) < threads - 1) threads_.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
      // The system gives no more; those that there are do the work.
    }
    tickets_.insert(tickets_.end(), static_cast<std::size_t>(threads - 1), &job);
    lock.unlock();
    work_.notify_all();
    job.help(0);
    lock.lock();
    std::erase(tickets_, &job);
    done_.wait(lock, [&] { return job.at_work == 0; });
  }

 private:
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads_) {
      // A process that was forked from the one that has them has none to wait for.
      owner_ == getpid() ? thread.join() : thread.detach();
    }
  }
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_.wait(lock, [&] { return ending_ || !tickets_.empty(); });
      if (ending_) return;
      Job& job = *tickets_.front();
      tickets_.pop_front();
      const int thread = job.started++;
      ++job.at_work;
      lock.unlock();
      job.help(thread);
      lock.lock();
      if (--job.at_work == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::deque<Job*> tickets_;
  std::vector<std::thread> threads_;
  bool ending_ = false;
  const pid_t owner_ = getpid();
};

}  // namespace

HostMachine::HostMachine(int threads) : threads_(threads > 0 ? threads : omp_get_max_threads()) {}

void HostMachine::for_each(std::int64_t count, std::int64_t grain,
                           const std::function<void(std::int64_t, std::int64_t, int)>& body) const {
  if (count <= 0) return;
  // Enough pieces that the last ones to end do not leave the others idle for long.
  constexpr std::int64_t kPiecesOfThread = 32;
  const std::int64_t piece = std::max(grain, count / (threads_ * kPiecesOfThread) + 1);
  const std::int64_t pieces = (count + piece - 1) / piece;
  if (threads_ == 1 || pieces == 1) return body(0, count, 0);
  Job job{piece, pieces, count, body};
  Pool::instance().run(job, threads_);
  if (job.failure) std::rethrow_exception(job.failure);
}

void HostMachine::sort_pairs(const std::uint64_t* keys, std::uint64_t* sorted_keys, const std::int32_t* values,
                             std::int32_t* sorted_values, std::int64_t count) const {
  std::vector<std::int64_t> places(static_cast<std::size_t>(count));
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [=](std::int64_t a, std::int64_t b) { return keys[a] < keys[b]; });
  for (std::int64_t i = 0; i < count; ++i) {
    sorted_keys[i] = keys[places[i]];
    sorted_values[i] = values[places[i]];
  }
}

void HostMachine::sort_by_key(const std::int32_t* keys, std::int32_t* sorted_keys, std::int32_t* sorted_places,
                              std::int64_t count, std::int64_t /*limit*/, void* /*workspace*/) const {
  std::iota(sorted_places, sorted_places + count, 0);
  std::stable_sort(sorted_places, sorted_places + count,
                   [=](std::int32_t a, std::int32_t b) { return keys[a] < keys[b]; });
  for (std::int64_t i = 0; i < count; ++i) sorted_keys[i] = keys[sorted_places[i]];
}

std::int64_t HostMachine::select(const std::uint8_t* flags, std::int64_t count, std::int64_t* out) const {
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (flags[i] != 0) out[found++] = i;
  }
  return found;
}

std::int64_t HostMachine::free_bytes() const {
  return static_cast<std::int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

}  // namespace cairn::core
