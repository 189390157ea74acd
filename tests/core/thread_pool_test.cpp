#include "cairn/core/machine/support/thread_pool.h"

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "cairn/tests/catch.h"

namespace cairn::tests::thread_pool_test {
namespace {

/// Runs a parallel loop over `n` elements in blocks of `block`, and returns how often the loop visits each element.
std::vector<int> visits(std::int64_t n, std::int64_t block, int threads) {
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(n));
  std::atomic<bool> good = true;
  core::parallel_blocks(n, block, threads, [&](std::int64_t begin, std::int64_t end, int thread) {
    if (begin % block != 0 || end != std::min(n, begin + block) || thread < 0 || thread >= threads) good = false;
    for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
  });
  CHECK(good);
  return {seen.begin(), seen.end()};
}

}  // namespace

TEST_CASE("a loop in blocks visits every element once, with any number of threads") {
  for (const int threads : {1, 2, 3, 7}) {
    for (const std::int64_t n : {0, 1, 5, 64, 1000}) {
      for (const std::int64_t block : {1, 3, 64, 5000}) {
        CHECK(visits(n, block, threads) == std::vector<int>(static_cast<std::size_t>(n), 1));
      }
    }
  }
}

TEST_CASE("a piece of a loop may run a loop, and several threads may run loops at once") {
  std::atomic<std::int64_t> sum = 0;
  const auto nested = [&] {
    core::parallel_blocks(20, 1, 3, [&](std::int64_t, std::int64_t, int) {
      core::parallel_blocks(50, 4, 4, [&](std::int64_t begin, std::int64_t end, int) { sum += end - begin; });
    });
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int k = 0; k < 20; ++k) nested();
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(sum == 4 * 20 * 20 * 50);
}

TEST_CASE("what a piece throws reaches the caller when the others have ended") {
  for (const int threads : {1, 4}) {
    std::atomic<int> ended = 0;
    CHECK_THROWS_AS(core::parallel_blocks(100, 1, threads,
                                          [&](std::int64_t begin, std::int64_t, int) {
                                            if (begin == 17) throw std::runtime_error("17");
                                            ++ended;
                                          }),
                    std::runtime_error);
    CHECK(ended == 99);
  }
}

TEST_CASE("every thread is there at once where a library needs it") {
  static std::mutex mutex;
  static std::set<std::thread::id> threads;
  core::set_thread_count(3);
  core::on_every_thread([] {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  CHECK(threads.size() == 3);
  core::set_thread_count(0);
  CHECK(core::thread_count() >= 1);
}

}  // namespace cairn::tests::thread_pool_test
