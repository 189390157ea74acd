// Searches for a low plan. A block is a group of buffers that share one offset. It consists of rectangles, each a range
// of steps and a range of addresses (plan/internal/instance.h). A beam search places the blocks in order of time
// (plan/internal/search/time_beam.h). A guided local search lowers the best plan
// (plan/internal/search/guided_search.h). The exact search divides time into sections, in each of which the same blocks
// are live, and can prove that no plan fits (plan/internal/exact/exact.h).

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "cairn/core/threads.h"
#include "cairn/solvers/plan/internal/exact/exact.h"
#include "cairn/solvers/plan/internal/search/guided_search.h"
#include "cairn/solvers/plan/internal/search/portfolio.h"
#include "cairn/solvers/plan/internal/search/time_beam.h"
#include "cairn/solvers/plan/planner.h"

namespace cairn::solvers {
namespace {

using plan::GuidedSearch;
using plan::Search;
using plan::Sections;
using plan::TimeBeam;
using plan::Verdict;

// Largest number of pairs of a section and a block live in it (sections.h) for which the exact search is used. Each
// pair takes 16 bytes.
constexpr std::int64_t kMostCovers = std::int64_t{1} << 21;
// Largest numbers of blocks and of rectangles for which the exact search is used, because its recursion can be as deep
// as the number of blocks.
constexpr std::int64_t kMostBlocks = 4'000, kMostRectangles = 20'000;
constexpr std::int64_t kQuickWork = 5'000'000;  // work limit of greedy_plan() if the exact search follows
// Work of the exact search if there is a capacity, as a multiple of the work of a beam search in the same round.
constexpr std::int64_t kCapacity = 4;
constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max() / 2;
/// Returns the greatest common divisor of all sizes, alignments, fixed offsets and ends of forbidden ranges. If no
/// block of a plan can be moved down, all offsets in the plan are multiples of this divisor.
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

/// Finds a plan by greedy_plan(), and improves it by the other searches in turn until it is low enough or time is up.
class PlanFinder {
 public:
  PlanFinder(const PlanProblem& problem, const PlanOptions& options)
      : options_(options),
        instance_(problem, options),
        watch_(options.limit),
        threads_(options.threads > 0 ? options.threads : core::thread_count()) {
    std::int64_t movable = 0;
    for (const plan::Block& block : instance_.blocks) movable += !block.fixed;
    searchable_ = movable <= kMostBlocks && static_cast<std::int64_t>(instance_.rectangles.size()) <= kMostRectangles;
    PlanOptions quick = options;
    if (searchable_) {
      quick.limit.work = std::min(options.limit.work / 8, kQuickWork);
    } else if (TimeBeam::takes(instance_)) {
      quick.limit = watch_.share(0.5);
    }
    best_ = greedy_plan(problem, quick);
    watch_.charge(best_.work);
  }

  PlanSolution find() && {
    if (best_.status != Status::infeasible && !done()) {
      if (searchable_) sections_.emplace(instance_, kMostCovers);
      if (sections_ && sections_->count < 0) sections_.reset();
      if (TimeBeam::takes(instance_)) beams_.emplace(instance_);
      if (GuidedSearch::takes(instance_)) guided_.emplace(instance_);
      improve();
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
  bool done() {
    const bool impossible = options_.capacity && best_.lower_bound > *options_.capacity;
    return impossible || best_.plan.bytes <= floor() || watch_.expired_now();
  }
  /// Returns the height in bytes at or below which a plan is good enough.
  std::int64_t floor() const { return std::max(best_.lower_bound, options_.capacity.value_or(0)); }
  int searchers() const { return options_.limit.counts_work() ? 2 : std::clamp(threads_, 2, 8); }

  /// Runs beam searches, guided searches and the exact search in turn, in rounds. Each round may do twice the work
  /// (`effort`) of the previous round.
  void improve() {
    constexpr std::int64_t kFirst = 2'000'000;
    constexpr std::int64_t kGuided = 4;  // work of a guided search, as a multiple of the work of a beam search
    constexpr int kEnough = 8;           // number of rounds, if there is neither a limit nor an exact search
    // If the exact search has had no success in this number of consecutive rounds, its effort is divided by kLess,
    // unless beam search cannot be used.
    constexpr int kFewFruitless = 2;
    constexpr std::int64_t kLess = 4;
    const bool limited = options_.limit.counts_work() || std::isfinite(options_.limit.seconds);
    // The exact search solves most small problems immediately. So on small problems, it runs before the first beam
    // search.
    constexpr std::size_t kSmall = 200;  // largest number of blocks of a small problem
    const bool at_once = sections_ && instance_.blocks.size() <= kSmall;
    std::int64_t effort = kFirst, before = -1;
    int fruitless = 0;  // consecutive rounds in which the exact search improved neither the plan nor the bound
    for (int round = 0; !done() && watch_.work() > before; ++round) {
      before = watch_.work();
      if (round > 0 || !at_once) {
        sweep(effort);
        if (!done()) guide(sections_ && round == 0 ? effort : kGuided * effort);
      }
      if (done()) break;
      if (sections_) {
        const std::pair known(best_.plan.bytes, best_.lower_bound);
        search(beams_ && fruitless >= kFewFruitless ? effort / kLess : effort);
        fruitless = known == std::pair(best_.plan.bytes, best_.lower_bound) ? fruitless + 1 : 0;
        if (done()) break;
      } else if ((!beams_ && !guided_) || (!limited && round == kEnough)) {
        return;
      }
      if (effort < kEndless / 8) effort *= 2;
    }
    best_.timed_out = best_.plan.bytes > floor();
  }

  /// Lowers the best plan by beam searches, until two of them have failed. Each may do `effort` units of work.
  void sweep(std::int64_t effort) {
    constexpr std::int64_t kPasses = 4;  // least effort of a beam search, in passes over all blocks
    // The capacity of the next beam search is best_.plan.bytes minus `step`. Each failure makes `step` smaller by the
    // factor kSmaller.
    constexpr std::int64_t kPart = 8, kPartOfAll = 150, kSmaller = 4;
    if (!beams_) return;
    effort = std::max(effort, kPasses * beams_->pass_work());
    const auto above = [&] { return best_.plan.bytes - std::max(floor(), beams_->load); };
    std::int64_t smaller = 1;
    for (int failed = 0; failed < 2 && above() > 0 && !watch_.expired_now();) {
      const std::int64_t step = std::max(above() / kPart, best_.plan.bytes / kPartOfAll) / smaller;
      const std::int64_t capacity = best_.plan.bytes - std::clamp<std::int64_t>(step, 1, above());
      plan::Portfolio<TimeBeam> beams(*beams_, capacity, beams_begun_, searchers(), threads_);
      beams_begun_ += searchers();
      const auto answer = beams.run(affordable(effort), watch_);
      if (answer.verdict == Verdict::fits) {
        take(answer.offsets);
      } else {
        ++failed;
        smaller *= kSmaller;
      }
    }
  }

  /// Lowers the best plan by guided searches that begin with it, until several have failed. Each may do `effort` units
  /// of work.
  void guide(std::int64_t effort) {
    constexpr std::int64_t kPasses = 20;  // least effort of a guided search, in visits of each pair of blocks
    constexpr int kFailures = 3;
    // The next plan must save the fraction guided_step_ of the bytes by which the best plan exceeds floor(). Each
    // success multiplies this fraction by kMore, up to kMost. Each failure multiplies it by kLess, down to kLeast.
    constexpr double kMore = 1.5, kLess = 0.5, kMost = 0.5, kLeast = 0.002;
    if (!guided_) return;
    effort = std::max(effort, kPasses * std::ssize(guided_->pairs));
    const std::int64_t unit = guided_->unit;
    const auto above = [&] { return best_.plan.bytes - floor(); };
    for (int failed = 0; failed < kFailures && above() > 0 && !watch_.expired_now();) {
      const auto step = static_cast<std::int64_t>(guided_step_ * static_cast<double>(above()));
      const std::int64_t capacity = (best_.plan.bytes - std::max<std::int64_t>(step, 1)) / unit * unit;
      if (capacity < std::max(best_.lower_bound, floor() / unit * unit)) return;
      guided_->start.assign(instance_.blocks.size(), 0);
      for (std::size_t b = 0; b < best_.plan.buffers.size(); ++b)
        guided_->start[instance_.block_of[b]] = best_.plan.buffers[b].offset;
      plan::Portfolio<GuidedSearch> searches(*guided_, capacity, guided_begun_, searchers(), threads_);
      guided_begun_ += searchers();
      const auto answer = searches.run(affordable(effort), watch_);
      if (answer.verdict == Verdict::fits) {
        take(answer.offsets);
        guided_step_ = std::min(kMost, kMore * guided_step_);
      } else {
        ++failed;
        guided_step_ = std::max(kLeast, kLess * guided_step_);
      }
    }
  }

  std::int64_t affordable(std::int64_t effort) const {
    return std::min(effort, watch_.rest().work / plan::kComparisonsOfUnit / searchers());
  }

  /// Runs the exact search for a plan within the capacity or, without one, at several heights from the lower bound up.
  void search(std::int64_t effort) {
    if (options_.capacity) {
      if (!at_capacity_) at_capacity_.emplace(*sections_, *options_.capacity, 0, searchers(), threads_);
      const auto answer = at_capacity_->run(affordable(kCapacity * effort), watch_);
      if (answer.verdict == Verdict::fits) take_movable(answer.offsets);
      if (answer.verdict == Verdict::impossible)
        best_.lower_bound = std::max(best_.lower_bound, *options_.capacity + 1);
      return;
    }
    // Heights to try, as fractions of a range: 0 stands for the lower bound, 1 for the height just below the best plan.
    // The lower bound comes first, because usually some plan is as low as the bound. If a height is proved impossible,
    // the bound rises above it, and the search continues from the new bound in steps that double.
    constexpr double kLevels[] = {0, 0.125, 0.25, 0.5, 0.75, 1};
    const std::int64_t unit = granularity(instance_);
    best_.lower_bound = (best_.lower_bound + unit - 1) / unit * unit;
    std::int64_t step = 0;
    for (std::size_t level = 0; level < std::size(kLevels) && !done();) {
      // The lowest plan's height is a multiple of `unit`. The height of the best plan so far need not be, because
      // buffers can lie at their hints.
      const std::int64_t room = (best_.plan.bytes - 1) / unit * unit - best_.lower_bound;
      const auto above = static_cast<std::int64_t>(kLevels[level] * static_cast<double>(room));
      const std::int64_t capacity = best_.lower_bound + std::min(room, std::max(step, above) / unit * unit);
      plan::Portfolio<Search> portfolio(*sections_, capacity, 0, searchers(), threads_);
      const auto answer = portfolio.run(affordable(level == 0 ? 4 * effort : effort), watch_);
      if (answer.verdict == Verdict::fits) take_movable(answer.offsets);
      step = answer.verdict == Verdict::impossible ? std::max(2 * step, unit) : 0;
      if (answer.verdict == Verdict::impossible) best_.lower_bound = capacity + unit;
      if (answer.verdict == Verdict::unknown) ++level;
    }
  }

  void take_movable(const std::vector<std::int64_t>& offsets) {
    std::vector<std::int64_t> of_block(instance_.blocks.size(), 0);
    for (std::size_t b = 0; b < of_block.size(); ++b) of_block[b] = instance_.blocks[b].fixed.value_or(0);
    for (std::size_t i = 0; i < offsets.size(); ++i) of_block[sections_->movable[i]] = offsets[i];
    take(of_block);
  }

  void take(const std::vector<std::int64_t>& of_block) {
    std::int64_t height = 0;
    for (std::size_t b = 0; b < of_block.size(); ++b)
      height = std::max(height, of_block[b] + instance_.bounds(instance_.blocks[b]).size);
    best_.plan.bytes = height;
    for (std::size_t b = 0; b < best_.plan.buffers.size(); ++b)
      best_.plan.buffers[b].offset = of_block[instance_.block_of[b]];
  }

  const PlanOptions& options_;
  plan::Instance instance_;
  core::Stopwatch watch_;
  const int threads_;
  bool searchable_ = false;
  std::optional<Sections> sections_;
  std::optional<plan::Portfolio<Search>> at_capacity_;
  std::optional<TimeBeam::Problem> beams_;       ///< data of the beam searches; empty: beam search cannot be used
  std::optional<GuidedSearch::Problem> guided_;  ///< data of the guided searches; empty: guided search cannot be used
  int beams_begun_ = 0, guided_begun_ = 0;
  /// The next guided search must save this fraction of the bytes by which the best plan exceeds floor().
  double guided_step_ = 0.1;
  PlanSolution best_;
};

}  // namespace

PlanSolution find_plan(const PlanProblem& problem, const PlanOptions& options) {
  return PlanFinder(problem, options).find();
}

}  // namespace cairn::solvers
