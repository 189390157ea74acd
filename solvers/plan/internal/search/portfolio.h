#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <iterator>
#include <vector>

#include "cairn/core/limit.h"
#include "cairn/core/machine/support/thread_pool.h"
#include "cairn/solvers/plan/internal/exact/verdict.h"

namespace cairn::solvers::plan {

/// One unit of a Searcher's work takes as long as this number of comparisons of buffers, which are the unit of
/// PlanOptions::limit.
constexpr std::int64_t kComparisonsOfUnit = 3;

/// Runs several searches for the same plan in parallel, and returns the verdict that was reached with the least work.
/// If several searches needed equal work, takes the verdict of the search with the lowest number. So the answer does
/// not depend on the number or speed of threads, unless the time limit ends the run. Searcher is Search (exact.h),
/// TimeBeam (time_beam.h) or GuidedSearch (guided_search.h).
template <class Searcher>
class Portfolio {
 public:
  struct Answer {
    Verdict verdict = Verdict::unknown;
    std::vector<std::int64_t> offsets;  ///< set if the verdict is `fits`
  };

  /// Makes `searchers` searches, numbered from `first` on. Each search uses its number as its seed or strategy.
  template <class Problem>
  Portfolio(const Problem& problem, std::int64_t capacity, int first, int searchers, int threads)
      : threads_(std::min(threads, searchers)) {
    for (int s = 0; s < searchers; ++s) searches_.emplace_back(problem, capacity, first + s);
  }

  /// Continues each search for about `work` units, or until another search has reached a verdict with less work.
  Answer run(std::int64_t work, core::Stopwatch& watch) {
    const std::int64_t begin = searches_.front().work();
    std::atomic<std::int64_t> most = begin + work;
    std::vector<Verdict> verdicts(searches_.size(), Verdict::unknown);
    core::parallel_blocks(std::ssize(searches_), 1, threads_, [&](std::int64_t first, std::int64_t, int) {
      const auto s = static_cast<std::size_t>(first);
      verdicts[s] = searches_[s].run(begin + work - searches_[s].work(), most, watch);
      if (verdicts[s] == Verdict::unknown) return;
      std::int64_t least = most;
      while (searches_[s].work() < least && !most.compare_exchange_weak(least, searches_[s].work())) {
      }
    });

    Answer answer;
    std::int64_t done = begin + work;
    for (std::size_t s = 0; s < searches_.size(); ++s) {
      const bool first =
          verdicts[s] != Verdict::unknown && (answer.verdict == Verdict::unknown || searches_[s].work() < done);
      if (!first) continue;
      done = searches_[s].work();
      answer.verdict = verdicts[s];
      if (answer.verdict == Verdict::fits) answer.offsets = searches_[s].offsets();
    }
    watch.charge((done - begin) * kComparisonsOfUnit * static_cast<std::int64_t>(searches_.size()));
    return answer;
  }

 private:
  std::deque<Searcher> searches_;
  int threads_;
};

}  // namespace cairn::solvers::plan
