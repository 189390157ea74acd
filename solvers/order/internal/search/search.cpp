// Searches for an order of low peak (internal/search/search.h). Alternates between beam searches
// (internal/search/beam.h) and simulated annealing (internal/search/anneal.h). A step raises memory by its `rise` when
// it begins.

#include "cairn/solvers/order/internal/search/search.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "cairn/core/machine/support/thread_pool.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/order/internal/search/anneal.h"
#include "cairn/solvers/order/internal/search/beam.h"

namespace cairn::solvers {
namespace {

// All constants were found by experiment.
constexpr double kBeamShare = 0.25;          // fraction of all work for beam searches
constexpr std::int64_t kBeamFree = 1 << 17;  // work of beam searches before annealing first runs
constexpr std::int64_t kLeastWidth = 16;     // number of states in the first beam; the width grows by factors of 4
// A beam search may have this many states (topological cuts) in all of its rounds together, which limits its memory.
constexpr std::int64_t kTraced = 1 << 23;
// Hot and warm runs of annealing start at these temperatures, given as multiples of the mean rise of a step.
constexpr double kHot = 5, kWarm = 0.5;
constexpr std::int64_t kAnnealing = 60;  // work per step in the first run of annealing; doubles every two runs
constexpr std::int64_t kLeastAnnealing = 100'000;
// Workers exchange their best orders after each slice of work. A slice grows from kFirstSlice to kLastSlice units of
// work per worker.
constexpr std::int64_t kFirstSlice = 250'000, kLastSlice = 16'000'000;

/// Runs the search of one thread. Alternates between beam searches and annealing, and can pause at any point, so that
/// workers can exchange orders after fixed amounts of work.
class Worker {
 public:
  Worker(const StepGraph& graph, const std::vector<StepId>& start, std::uint64_t seed, int index, int workers)
      : graph_(graph),
        order_(start),
        peak_(peak(graph, start)),
        annealing_(graph, start, seed),
        schedule_(std::max(kLeastAnnealing, kAnnealing * graph.step_count())),
        hot_(index % 2 == 0) {
    // A beam search does not depend on the seed, so one worker for each direction is enough. All further workers only
    // run annealing.
    if (index == 0) directions_.push_back(false);
    if (index == 1 || workers == 1) directions_.push_back(true);
    choose_task();
  }

  const std::vector<StepId>& order() const { return order_; }
  std::int64_t peak_bytes() const { return peak_; }
  bool proved() const { return proved_; }

  /// Replaces the worker's best order by `order` if the peak of `order`, `bytes`, is lower.
  void learn(const std::vector<StepId>& order, std::int64_t bytes) {
    if (bytes >= peak_) return;
    order_ = order;
    peak_ = bytes;
    annealing_.lower(bytes);
  }

  /// Searches until `watch` expires or the peak is proved to be the least.
  void advance(core::Stopwatch& watch) {
    while (!proved_) {
      // A beam search can take long, so it pauses when it has used its fraction (kBeamShare) of all work.
      core::Limit limit = watch.rest();
      if (task_ == Task::beam) limit.work = std::min(limit.work, std::max<std::int64_t>(beam_allowance(), 0));
      core::Stopwatch part(limit);
      const bool ended = task_ == Task::beam ? advance_beam(part) : advance_annealing(part);
      (task_ == Task::beam ? beam_work_ : annealing_work_) += part.work();
      if (ended && task_ == Task::beam) beam_.reset();
      if (watch.charge(part.work()).expired() || watch.expired_now()) return;
      if (ended || task_ == Task::beam) choose_task();
    }
  }

 private:
  enum class Task : std::uint8_t { beam, annealing };

  std::int64_t beam_allowance() const {
    return kBeamFree + static_cast<std::int64_t>(kBeamShare * static_cast<double>(beam_work_ + annealing_work_)) -
           beam_work_;
  }

  bool beam_is_due() const {
    const std::int64_t cuts = width_ * graph_.step_count();
    if (directions_.empty() || cuts > std::max(kTraced, kLeastWidth * graph_.step_count())) return false;
    return beam_ ? beam_allowance() > 0 : beam_allowance() >= cuts;
  }

  void choose_task() {
    if (beam_is_due()) {
      task_ = Task::beam;
      if (beam_) return;
      beam_.emplace(graph_, directions_[beams_ % directions_.size()], static_cast<std::int32_t>(width_));
      beam_->start(peak_ - 1);
      if (++beams_ % directions_.size() == 0) width_ *= 4;
    } else {
      task_ = Task::annealing;
      annealing_.start(order_, schedule_, hot_ ? kHot : kWarm);
      hot_ = !hot_;
      if (++schedules_ % 2 == 0) schedule_ *= 2;
    }
  }

  /// Continues the current beam search. Returns true when it has ended, and false if `watch` expired first.
  bool advance_beam(core::Stopwatch& watch) {
    while (true) {
      switch (beam_->advance(watch)) {
        case Beam::Outcome::running:
          return false;
        case Beam::Outcome::found: {
          const std::vector<StepId> order = beam_->order();
          learn(order, peak(graph_, order));
          beam_->start(peak_ - 1);
          break;
        }
        case Beam::Outcome::none:
          proved_ = true;
          return true;
        case Beam::Outcome::truncated:
          return true;
      }
    }
  }

  bool advance_annealing(core::Stopwatch& watch) {
    const bool ended = !annealing_.advance(watch);
    if (annealing_.peak() < peak_) learn(annealing_.best(), annealing_.peak());
    return ended;
  }

  const StepGraph& graph_;
  std::vector<StepId> order_;
  std::int64_t peak_;
  bool proved_ = false;

  Task task_ = Task::beam;
  std::int64_t beam_work_ = 0, annealing_work_ = 0;
  std::optional<Beam> beam_;
  std::vector<bool> directions_;  ///< directions of the worker's beam searches, used in turn; true: backward
  std::size_t beams_ = 0;
  std::int64_t width_ = kLeastWidth;
  Annealing annealing_;
  std::int64_t schedule_;  ///< work of the next run of annealing
  int schedules_ = 0;
  bool hot_;
};

void advance_all(std::vector<Worker>& workers, std::int64_t work, core::Stopwatch& watch) {
  core::Limit limit = watch.rest();
  limit.work = std::min(limit.work / static_cast<std::int64_t>(workers.size()), work);
  std::vector<core::Stopwatch> watches(workers.size(), core::Stopwatch(limit));
  core::parallel_blocks(static_cast<std::int64_t>(workers.size()), 1, static_cast<int>(workers.size()),
                        [&](std::int64_t i, std::int64_t, int) {
                          workers[static_cast<std::size_t>(i)].advance(watches[static_cast<std::size_t>(i)]);
                        });
  std::int64_t done = 0;
  for (const core::Stopwatch& each : watches) done += each.work();
  watch.charge(done);
}

}  // namespace

std::vector<StepId> search_order(const StepGraph& graph, std::vector<StepId> start, const OrderSearchOptions& options,
                                 core::Stopwatch& watch, int threads) {
  if (start.empty()) start = graph.any_order();
  if (start.empty()) return start;
  threads = std::max(threads, 1);
  std::int64_t best = peak(graph, start);
  core::Random seeds(options.seed);
  std::vector<Worker> workers;
  workers.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) workers.emplace_back(graph, start, seeds.next(), i, threads);

  std::int64_t slice = kFirstSlice;
  while (best > options.lower_bound && !watch.expired_now()) {
    advance_all(workers, slice, watch);
    slice = std::min(slice + slice / 2, kLastSlice);
    for (const Worker& worker : workers) {
      if (worker.peak_bytes() >= best) continue;
      best = worker.peak_bytes();
      start = worker.order();
      if (options.found) options.found(start, best);
    }
    if (std::any_of(workers.begin(), workers.end(), [](const Worker& worker) { return worker.proved(); })) {
      if (options.proved) options.proved(best);
      break;
    }
    for (Worker& worker : workers) worker.learn(start, best);
  }
  return start;
}

}  // namespace cairn::solvers
