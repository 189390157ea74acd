#include <algorithm>
#include <atomic>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <thread>

#include "cairn/core/threads.h"
#include "cairn/solvers/plan/internal/exact.h"
#include "cairn/solvers/plan/planner.h"

namespace cairn::solvers {
namespace {

using plan::Search;
using plan::Sections;
using plan::Verdict;

constexpr std::int64_t kMostCovers = std::int64_t{1} << 21;            // for the exact search; 16 bytes each
constexpr std::int64_t kMostBlocks = 4'000, kMostRectangles = 20'000;  // likewise: it nests as deep as there are blocks
constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max() / 2;
constexpr std::int64_t kUnit = 3;  // a unit of the search takes as long as so many comparisons

struct Answer {
  Verdict verdict = Verdict::unknown;
  std::vector<std::int64_t> offsets;  ///< of Sections::movable
};

/// Several searches side by side, as if in lockstep by their work: the first that knows says it, and of several the one
/// that comes first. So the answer does not depend on how many threads there are or how fast they run, unless the time
/// ends it.
class Portfolio {
 public:
  Portfolio(const Sections& sections, std::int64_t capacity, int strategies, int threads)
      : threads_(std::min(threads, strategies)) {
    for (int s = 0; s < strategies; ++s) searches_.emplace_back(sections, capacity, s);
  }

  /// For about `work` units more of each search.
  Answer run(std::int64_t work, core::Stopwatch& watch) {
    const std::int64_t begin = searches_.front().work();
    std::atomic<std::int64_t> most = begin + work;
    std::vector<Verdict> verdicts(searches_.size(), Verdict::unknown);
    std::atomic<std::size_t> next = 0;
    const auto take = [&] {
      for (std::size_t s = next++; s < searches_.size(); s = next++) {
        verdicts[s] = searches_[s].run(begin + work - searches_[s].work(), most, watch);
        if (verdicts[s] == Verdict::unknown) continue;
        std::int64_t least = most;
        while (searches_[s].work() < least && !most.compare_exchange_weak(least, searches_[s].work())) {
        }
      }
    };
    std::vector<std::thread> helpers;
    for (int t = 1; t < threads_; ++t) helpers.emplace_back(take);
    take();
    for (std::thread& helper : helpers) helper.join();

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
    watch.charge((done - begin) * kUnit * static_cast<std::int64_t>(searches_.size()));
    return answer;
  }

 private:
  std::vector<Search> searches_;
  int threads_;
};

/// All offsets of a plan whose blocks lie on one another are multiples of it.
std::int64_t granularity(const plan::Instance& instance) {
  std::int64_t unit = 0;
  for (const plan::Rectangle& rectangle : instance.rectangles) unit = std::gcd(unit, rectangle.size);
  for (const plan::Block& block : instance.blocks) {
    if (block.alignment > 1) unit = std::gcd(unit, block.alignment);
    if (block.fixed) unit = std::gcd(unit, *block.fixed);
  }
  for (const core::AddressRange& range : instance.forbidden) unit = std::gcd(unit, std::gcd(range.lower, range.upper));
  return std::max<std::int64_t>(unit, 1);
}

class Finder {
 public:
  Finder(const PlanProblem& problem, const PlanOptions& options)
      : options_(options), instance_(problem, options), watch_(options.limit) {
    std::int64_t movable = 0;
    for (const plan::Block& block : instance_.blocks) movable += !block.fixed;
    searchable_ = movable <= kMostBlocks && static_cast<std::int64_t>(instance_.rectangles.size()) <= kMostRectangles;
    PlanOptions quick = options;
    constexpr std::int64_t kQuickWork = 5'000'000;
    if (searchable_) quick.limit.work = std::min(options.limit.work / 8, kQuickWork);
    best_ = greedy_plan(problem, quick);
    watch_.charge(best_.work);
  }

  PlanSolution find() && {
    if (searchable_ && best_.status != Status::optimal && best_.status != Status::infeasible && !enough() &&
        !watch_.expired_now()) {
      sections_.emplace(instance_, kMostCovers);
      if (sections_->count >= 0) {
        improve();
        best_.timed_out = best_.plan.bytes > best_.lower_bound && !enough();
      }
    }
    best_.work = watch_.work();
    const std::int64_t bytes = best_.plan.bytes;
    if (options_.capacity && bytes > *options_.capacity) {
      best_.status = *options_.capacity < best_.lower_bound ? Status::infeasible : Status::not_found;
    } else {
      best_.status = bytes <= best_.lower_bound ? Status::optimal : Status::feasible;
    }
    if (best_.status == Status::infeasible) best_.timed_out = false;
    return std::move(best_);
  }

 private:
  bool enough() const { return options_.capacity && best_.plan.bytes <= *options_.capacity; }

  /// Looks for offsets below `capacity`, with at most `work` of what is left of the limit.
  Verdict fit(std::int64_t capacity, std::int64_t work) {
    const bool everywhere_alike = options_.limit.work < kEndless;
    const int threads = options_.threads > 0 ? options_.threads : core::thread_count();
    const int strategies = everywhere_alike ? 2 : std::clamp(threads, 2, 8);
    core::Limit limit = watch_.rest();
    limit.work = std::min(limit.work, work);
    core::Stopwatch watch(limit);
    Portfolio portfolio(*sections_, capacity, strategies, threads);
    Answer answer;
    for (std::int64_t part = 10'000'000; answer.verdict == Verdict::unknown && !watch.expired_now(); part += part / 2) {
      const std::int64_t rest = watch.rest().work / kUnit / strategies;
      if (rest <= 0) break;
      answer = portfolio.run(std::min(part, rest), watch);
    }
    watch_.charge(watch.work());
    if (answer.verdict == Verdict::fits) take(answer.offsets);
    return answer.verdict;
  }

  void take(const std::vector<std::int64_t>& offsets) {
    std::vector<std::int64_t> of_block(instance_.blocks.size(), 0);
    for (std::size_t b = 0; b < of_block.size(); ++b) of_block[b] = instance_.blocks[b].fixed.value_or(0);
    for (std::size_t i = 0; i < offsets.size(); ++i) of_block[sections_->movable[i]] = offsets[i];
    std::int64_t height = 0;
    for (const plan::Block& block : instance_.blocks) {
      const std::int64_t offset = of_block[&block - instance_.blocks.data()];
      for (const plan::Rectangle& rectangle : instance_.of(block)) height = std::max(height, offset + rectangle.size);
    }
    best_.plan.bytes = height;
    for (std::size_t b = 0; b < best_.plan.buffers.size(); ++b)
      best_.plan.buffers[b].offset = of_block[instance_.block_of[b]];
  }

  void improve() {
    if (options_.capacity) {
      if (fit(*options_.capacity, kEndless) == Verdict::impossible)
        best_.lower_bound = std::max(best_.lower_bound, *options_.capacity + 1);
      return;
    }
    // At the bound, where the answer most often lies; then nearer and nearer to the best plan; and again with twice the
    // effort. Where the bound is shown to be too low it rises in steps that double.
    constexpr double kLevels[] = {0, 0.125, 0.25, 0.5, 0.75, 1};
    const std::int64_t unit = granularity(instance_);
    best_.lower_bound = (best_.lower_bound + unit - 1) / unit * unit;
    std::int64_t effort = 15'000'000, step = 0, before = -1;
    std::size_t level = 0;
    while (best_.plan.bytes > best_.lower_bound && !watch_.expired_now() && watch_.work() > before) {
      before = watch_.work();
      // A plan that follows hints need not be as high as one whose blocks lie on one another.
      const std::int64_t room = (best_.plan.bytes - 1) / unit * unit - best_.lower_bound;
      const auto above = static_cast<std::int64_t>(kLevels[level] * static_cast<double>(room));
      const std::int64_t capacity = best_.lower_bound + std::min(room, std::max(step, above) / unit * unit);
      const Verdict verdict = fit(capacity, level == 0 ? 4 * effort : effort);
      step = verdict == Verdict::impossible ? std::max(2 * step, unit) : 0;
      if (verdict == Verdict::impossible) best_.lower_bound = capacity + unit;
      if (verdict != Verdict::unknown) continue;
      if (++level < std::size(kLevels)) continue;
      level = 0;
      if (effort < kEndless / 8) effort *= 2;
    }
  }

  const PlanOptions& options_;
  plan::Instance instance_;
  core::Stopwatch watch_;
  bool searchable_ = false;
  std::optional<Sections> sections_;
  PlanSolution best_;
};

}  // namespace

PlanSolution find_plan(const PlanProblem& problem, const PlanOptions& options) {
  return Finder(problem, options).find();
}

}  // namespace cairn::solvers
