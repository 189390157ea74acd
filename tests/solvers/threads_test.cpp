// Tests how many threads the searches of solvers use.
#include "cairn/core/threads.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

#include "cairn/core/profile.h"
#include "cairn/models/registry.h"
#include "cairn/solvers/registry.h"
#include "cairn/tests/catch.h"

namespace cairn::tests::threads_test {
namespace {

std::ptrdiff_t threads_now() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

/// Returns the largest number of threads that this process has while `work` runs. A further thread counts them every
/// millisecond, and does not count itself.
template <class Work>
std::ptrdiff_t most_threads(const Work& work) {
  std::atomic<bool> ended = false;
  std::atomic<std::ptrdiff_t> most = 0;
  std::thread counter([&] {
    while (!ended) {
      most = std::max(most.load(), threads_now() - 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  while (most == 0) std::this_thread::yield();
  work();
  ended = true;
  counter.join();
  return most;
}

}  // namespace

TEST_CASE("with one thread a search has one, whatever its limit, and the same answer for the same work", "[threads]") {
  const core::Graph graph = models::build_model("resnet18", {.values = {{"batch", 1}, {"image", 32}}});
  const std::int64_t peak = core::evaluate(graph, core::baseline_schedule(graph)).peak;
  const solvers::SolverInfo& solver = solvers::find_solver("auto");
  // Within this budget, no bound proves any schedule optimal. So the search uses its whole limit.
  solvers::SolveOptions options{.budget = peak * 6 / 10};
  const auto solve = [&](int threads, const core::Limit& limit) {
    core::set_thread_count(threads);
    options.limit = limit;
    return solver.solve(graph, options);
  };
  const std::ptrdiff_t before = threads_now();
  solvers::Solution alone;
  CHECK(most_threads([&] { alone = solve(1, {.work = 2'000'000}); }) == before);
  CHECK(most_threads([&] { solve(1, {.seconds = 2}); }) == before);
  const solvers::Solution together = solve(4, {.work = 2'000'000});
  CHECK(together.schedule.steps == alone.schedule.steps);
  CHECK(together.cost_bound.value == alone.cost_bound.value);
}

}  // namespace cairn::tests::threads_test
