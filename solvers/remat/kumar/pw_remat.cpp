// Implements the solver pw (pw_remat.h). PWRemat(k) recurses on a path decomposition, which is a sequence of bags (sets
// of nodes), and stops at fewer than k bags. A small k leads to long schedules that need little memory.

#include "cairn/solvers/remat/kumar/pw_remat.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/solvers/common/support/incumbent.h"
#include "cairn/solvers/remat/kumar/path_schedule.h"
#include "cairn/solvers/remat/repair/evict.h"
#include "cairn/solvers/remat/repair/least_peak.h"
#include "cairn/solvers/remat/repair/retain.h"

namespace cairn::solvers {
namespace {

/// Tries schedules for one graph. They differ in k and in their variant: the topological order (PwRematOptions::order)
/// and the choice of the middle bag.
class PwSearch {
 public:
  PwSearch(const core::Graph& graph, const PwRematOptions& options, Incumbent& incumbent, core::Stopwatch& watch)
      : graph_(graph), options_(options), incumbent_(incumbent), watch_(watch), work_(graph) {}

  void add(const Spine& spine) {
    schedulers_.emplace_back(graph_, spine);
    bag_count_ = std::max(bag_count_, static_cast<std::int64_t>(spine.decomposition.bags.size()));
  }

  void run_given() {
    std::int64_t least = kUnknown;
    for (const Variant& variant : variants()) {
      const Outcome outcome = attempt(options_.k, variant, kMostPwRematSteps);
      if (outcome.stopped) return;
      least = std::min(least, outcome.length);
    }
    if (least <= kMostPwRematSteps) return;
    if (least == kUnknown) {
      throw core::InputError(
          fmt::format("PWRemat({}) of this graph does not fit into the {} bytes that solvers may take; give a larger k",
                      options_.k, options_.memory_bytes));
    }
    std::string proposal;
    for (std::int64_t k = 2 * options_.k; proposal.empty() && k <= 2 * bag_count_; k *= 2) {
      for (const Variant& variant : variants()) {
        const auto list = build(k, variant);
        const std::int64_t length = list ? program(variant).length(*list) : kUnknown;
        if (length <= kMostPwRematSteps) proposal = fmt::format("; k={} has {}", k, length);
      }
    }
    throw core::InputError(fmt::format("PWRemat({}) of this graph has {} steps, more than {}{}", options_.k, least,
                                       kMostPwRematSteps, proposal));
  }

  /// Searches each variant for the best k. First, k descends in powers of two as long as a smaller k improves the
  /// result. Afterwards, bisection looks for a larger k within the budget. This works because the peak usually grows
  /// with k.
  void run_search() {
    constexpr int kMostVain = 3, kBisections = 5;
    const std::int64_t most_steps = 64 * std::int64_t{graph_.node_count()} + 4096;
    for (const Variant& variant : variants()) {
      std::int64_t above = bag_count_ + 1, fits = 0;
      int vain = 0;
      for (std::int64_t k = above; k >= 1 && vain < kMostVain; k /= 2) {
        const Outcome outcome = attempt(k, variant, most_steps);
        if (outcome.stopped || incumbent_.cannot_improve()) return;
        if (outcome.length > most_steps) break;  // schedules of smaller k are even longer
        if (outcome.fits && fits == 0) fits = k;
        if (fits == 0) above = k;
        vain = fits == 0 || outcome.improved ? 0 : vain + 1;
      }
      if (!options_.budget || fits == 0) continue;
      for (int i = 0; i < kBisections && above - fits > 1; ++i) {
        const std::int64_t middle = fits + (above - fits) / 2;
        const Outcome outcome = attempt(middle, variant, most_steps);
        if (outcome.stopped) return;
        (outcome.fits ? fits : above) = middle;
      }
    }
  }

 private:
  static constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();
  struct Variant {
    std::size_t scheduler;
    double slack;
  };
  struct Outcome {
    bool stopped = false;  ///< whether the limit ended the attempt early
    bool fits = false;
    bool improved = false;  ///< whether the schedule is better than the best known one
    std::int64_t length = kUnknown;
  };

  std::vector<Variant> variants() const {
    std::vector<Variant> all;
    for (std::size_t scheduler = 0; scheduler < schedulers_.size(); ++scheduler) {
      for (const double slack : {0.0, 0.1}) all.push_back({scheduler, slack});
    }
    return all;
  }

  std::optional<std::int32_t> build(std::int64_t k, const Variant& variant) {
    constexpr std::int64_t kBytesAnEntry = 16;  // bytes of an entry and of its share of the index of lists
    return schedulers_[variant.scheduler].build(k, variant.slack, options_.memory_bytes / kBytesAnEntry, watch_);
  }
  const CompressedSchedule& program(const Variant& variant) const { return schedulers_[variant.scheduler].program(); }

  /// Builds the schedule for k. If the schedule has at most `most_steps` steps, offers it. If it is within the budget,
  /// also offers the result of the clean-up pass (PwRematOptions::retain).
  Outcome attempt(std::int64_t k, const Variant& variant, std::int64_t most_steps) {
    Outcome outcome;
    const auto list = build(k, variant);
    outcome.stopped = watch_.expired_now();
    if (outcome.stopped || !list) return outcome;
    outcome.length = program(variant).length(*list);
    if (outcome.length > most_steps) return outcome;
    const auto best = [&] { return std::pair(incumbent_.peak(), incumbent_.cost()); };
    const auto before = best();
    core::Schedule schedule;
    schedulers_[variant.scheduler].measure(*list, true, &schedule.steps);
    watch_.charge(schedule.length());
    outcome.fits = incumbent_.fits(incumbent_.offer(schedule).peak);
    if (outcome.fits && options_.retain && options_.budget) {
      schedule = core::run_pinned_once(graph_, std::move(schedule));
      offer_retained(graph_, core::drop_unread(graph_, schedule), *options_.budget, work_, incumbent_, watch_);
    }
    outcome.improved = best() != before;
    return outcome;
  }

  const core::Graph& graph_;
  const PwRematOptions& options_;
  Incumbent& incumbent_;
  core::Stopwatch& watch_;
  core::EditableSchedule work_;
  std::vector<PathScheduler> schedulers_;
  std::int64_t bag_count_ = 0;
};

}  // namespace

Solution pw_remat(const core::Graph& graph, const PwRematOptions& options) {
  core::Stopwatch watch(options.limit);
  Incumbent incumbent(graph, options, watch);
  if (options.k == 0) {
    incumbent.offer(core::baseline_schedule(graph));
    // The budget is too small for any schedule, so no k can help.
    if (incumbent.proved_infeasible()) return infeasible_with_least_peak(pw_remat, graph, options);
    if (incumbent.cannot_improve()) return incumbent.finish(false);
  }
  const PathDecomposition decomposition =
      within(watch, 0.3, [&](core::Stopwatch& share) { return path_decomposition(graph, &share); });
  if (decomposition.bags.size() <= 1) {  // there is nothing to recurse on
    incumbent.offer(core::baseline_schedule(graph));
    return incumbent.finish(watch.expired_now());
  }
  PwSearch search(graph, options, incumbent, watch);
  const bool one_order = !hamiltonian_path(graph).empty();
  if (options.order != 1 || one_order) {
    search.add({{graph.input_order().begin(), graph.input_order().end()}, decomposition, false});
  }
  if (options.order != 2 && !one_order) search.add(add_spine(graph, decomposition));
  if (options.k > 0) {
    search.run_given();
  } else {
    search.run_search();
    if (options.budget) bring_within_budget(graph, *options.budget, options.retain, incumbent, watch);
  }
  return incumbent.finish(watch.expired_now());
}

}  // namespace cairn::solvers
