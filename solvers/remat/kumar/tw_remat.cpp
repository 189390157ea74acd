// Implements the solver tw (tw_remat.h). TWRemat(k) recurses on parts of a tree decomposition, and stops at parts of
// fewer than k bags. A small k leads to long schedules that need little memory.

#include "cairn/solvers/remat/kumar/tw_remat.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/solvers/common/support/costs.h"
#include "cairn/solvers/common/support/incumbent.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"
#include "cairn/solvers/remat/kumar/tw_program.h"
#include "cairn/solvers/remat/repair/evict.h"
#include "cairn/solvers/remat/repair/least_peak.h"
#include "cairn/solvers/remat/repair/retain.h"

namespace cairn::solvers {
namespace {

using core::NodeId;

constexpr std::int64_t kMostWritten = kMostRetained;  // largest number of steps of a schedule that is written out
// Largest number of steps of a schedule that is only measured.
constexpr std::int64_t kMostLookedAt = 50'000'000;
// Largest number of steps of a schedule that stream_tw_remat() passes on piece by piece. One bit per step is stored.
constexpr std::int64_t kMostStreamed = std::int64_t{1} << 36;

/// Returns the given decomposition or, if there is none, the min-fill decomposition.
TreeDecomposition decomposition_for(const core::Graph& graph, const TwRematOptions& options, core::Stopwatch& watch) {
  if (options.decomposition != nullptr) return merge_nested_bags(*options.decomposition);
  return core::within(
      watch, 0.3, [&](core::Stopwatch& share) { return min_fill_decomposition(graph, kDefaultCoreDegree, &share); });
}

SeparatorTree separators_of(const core::Graph& graph, const TwRematOptions& options, core::Stopwatch& watch) {
  return separator_tree(decomposition_for(graph, options, watch), graph.node_count());
}

/// Returns the values of k that lead to different schedules, ascending. These are 1 and, for each part of the separator
/// tree, its number of bags plus one.
std::vector<std::int64_t> different_k(const SeparatorTree& separators) {
  std::vector<std::int64_t> ks{1};
  for (const auto& part : separators.parts) ks.push_back(part.bags + 1);
  std::sort(ks.begin(), ks.end());
  ks.erase(std::unique(ks.begin(), ks.end()), ks.end());
  return ks;
}

/// Throws InputError if TWRemat(k) has more than `most` steps.
void require_length(TwProgram& program, const SeparatorTree& separators, std::int64_t k, std::int64_t most,
                    core::Stopwatch& watch) {
  const auto length = program.length(k, watch);
  if (!length || *length <= most) return;
  // The length never grows with k, so bisection finds the least k whose length is within `most`.
  const std::vector<std::int64_t> ks = different_k(separators);
  const auto within = std::partition_point(ks.begin(), ks.end(), [&](std::int64_t other) {
    return program.length(other, watch).value_or(TwProgram::kAnyLength) > most;
  });
  const std::string steps = *length >= TwProgram::kAnyLength ? "more than 10^18" : fmt::format("{}", *length);
  throw core::InputError(fmt::format(
      "TWRemat({}) of this graph takes {} steps, above the limit of {}; {}", k, steps, most,
      within == ks.end() ? "so does every other k" : fmt::format("from k = {} on it is within the limit", *within)));
}

std::vector<NodeId> steps_of(TwProgram& program, const TwProgram::Trimmed& trimmed) {
  std::vector<NodeId> steps;
  steps.reserve(static_cast<std::size_t>(trimmed.steps));
  program.for_each_step(trimmed, [&](NodeId v) {
    steps.push_back(v);
    return true;
  });
  return steps;
}

/// Searches for the cheapest schedule within the budget or, without a budget, for the least peak. Tries schedules of
/// TWRemat(k) and of TwProgram::steps_within(). A schedule that is within the budget is then improved by the clean-up
/// pass.
class TwSearch {
 public:
  TwSearch(const core::Graph& graph, const TwRematOptions& options, const SeparatorTree& separators,
           Incumbent& incumbent, core::Stopwatch& watch)
      : graph_(graph),
        options_(options),
        program_(graph, separators),
        ks_(different_k(separators)),
        incumbent_(incumbent),
        watch_(watch),
        work_(graph),
        most_steps_(options.most_steps > 0 ? options.most_steps : 64 * std::int64_t{graph.node_count()} + 4096) {}

  void run() { options_.budget ? within_budget(*options_.budget) : least_peak(); }
  void run_by_bytes() { options_.budget ? by_bytes(*options_.budget) : least_peak_by_bytes(); }

 private:
  enum class Outcome : std::uint8_t { fits, exceeds, too_long };

  Outcome offer(std::vector<NodeId> steps) {
    const core::Schedule schedule = core::drop_unread(graph_, core::run_pinned_once(graph_, {std::move(steps)}));
    const std::int64_t peak = incumbent_.offer(schedule).peak;
    if (!incumbent_.fits(peak)) return Outcome::exceeds;
    if (options_.budget) clean_up(schedule, *options_.budget);
    return Outcome::fits;
  }

  void clean_up(const core::Schedule& schedule, std::int64_t budget) {
    if (options_.retain) offer_retained(graph_, schedule, budget, work_, incumbent_, watch_);
  }

  Outcome attempt(std::int64_t k) {
    if (const auto known = tried_.find(k); known != tried_.end()) return known->second;
    const auto length = program_.length(k, watch_);
    if (!length || *length > most_steps_) return tried_[k] = Outcome::too_long;
    const auto trimmed = program_.trim(k, watch_);
    if (!trimmed) return tried_[k] = Outcome::too_long;
    return tried_[k] = offer(steps_of(program_, *trimmed));
  }

  Outcome attempt_within(std::int64_t bytes) {
    auto steps = program_.steps_within(bytes, most_steps_, watch_);
    return steps ? offer(std::move(*steps)) : Outcome::too_long;
  }

  bool done() { return watch_.expired_now() || incumbent_.cannot_improve(); }

  /// Returns indices of ks_ in descending order, from the last one to 0. Each k is about half of the one before.
  std::vector<std::ptrdiff_t> halves() const {
    std::vector<std::ptrdiff_t> grid;
    for (std::int64_t k = ks_.back(); k >= 1; k /= 2) {
      const auto at = std::lower_bound(ks_.begin(), ks_.end(), k) - ks_.begin();
      if (grid.empty() || grid.back() != at) grid.push_back(at);
    }
    if (grid.back() != 0) grid.push_back(0);
    return grid;
  }

  void within_budget(std::int64_t budget) {
    const std::vector<std::ptrdiff_t> grid = halves();
    std::ptrdiff_t fits = -1, above = static_cast<std::ptrdiff_t>(ks_.size()) - 1;
    for (const std::ptrdiff_t at : grid) {
      const Outcome outcome = attempt(ks_[at]);
      if (done()) return;
      if (outcome == Outcome::too_long) break;  // schedules of smaller k are even longer
      if (outcome == Outcome::fits) {
        fits = at;
        break;
      }
      above = at;
    }
    by_bytes(budget);
    if (fits >= 0 && !done()) {
      // As k grows, the cost usually falls and the peak usually grows. So look for the largest k within the budget
      // first, and afterwards try a few smaller ones.
      std::ptrdiff_t low = fits, high = above;
      while (high - low > 1 && !done()) {
        const std::ptrdiff_t middle = low + (high - low) / 2;
        (attempt(ks_[middle]) == Outcome::fits ? low : high) = middle;
      }
      for (std::ptrdiff_t offset = 1; offset <= 4 && !done(); ++offset) {
        if (low - offset >= 0) attempt(ks_[low - offset]);
      }
      // Schedules of far smaller k often need less memory, so the clean-up pass can keep more values in memory. Some of
      // these schedules end up cheaper.
      for (const std::ptrdiff_t at : grid) {
        if (at < low && (done() || attempt(ks_[at]) == Outcome::too_long)) break;
      }
    }
    bring_within_budget(graph_, budget, options_.retain, incumbent_, watch_);
  }

  /// Tries schedules of steps_within(bytes). First looks for the largest `bytes` whose schedule is within the budget.
  /// Afterwards tries fewer bytes, which leave more room for the clean-up pass.
  void by_bytes(std::int64_t budget) {
    constexpr int kSteps = 5;
    std::int64_t low = budget, high = std::max(budget, baseline_peak_);
    const bool fits = attempt_within(budget) == Outcome::fits;
    for (int i = 0; fits && i < kSteps && !done(); ++i) {
      const std::int64_t middle = low + (high - low) / 2;
      (attempt_within(middle) == Outcome::fits ? low : high) = middle;
    }
    for (int i = 0; i < 2 * kSteps && !done(); ++i) {
      low -= low / 4;
      if (attempt_within(low) == Outcome::too_long) break;
    }
  }

  void least_peak() {
    for (const std::ptrdiff_t at : halves()) {
      if (attempt(ks_[at]) == Outcome::too_long || done()) break;
    }
    least_peak_by_bytes();
  }

  void least_peak_by_bytes() {
    // With 0 bytes, calls recurse wherever this lowers the peak. In the loop below, a call also stops recursing if it
    // fits into `bytes`, which can lower the cost.
    if (!done()) attempt_within(0);
    const std::int64_t floor = incumbent_.lower_bound();
    for (std::int64_t bytes = incumbent_.peak(); bytes > floor / 4 && !done(); bytes -= bytes / 5 + 1) {
      if (attempt_within(bytes) == Outcome::too_long) break;
    }
    clean_up(incumbent_.schedule(), incumbent_.peak());
  }

  const core::Graph& graph_;
  const TwRematOptions& options_;
  TwProgram program_;
  std::vector<std::int64_t> ks_;
  Incumbent& incumbent_;
  core::Stopwatch& watch_;
  core::EditableSchedule work_;
  const std::int64_t most_steps_;
  const std::int64_t baseline_peak_ = core::evaluate(graph_, core::baseline_schedule(graph_)).peak;
  std::map<std::int64_t, Outcome> tried_;
};

}  // namespace

Solution tw_remat(const core::Graph& graph, const TwRematOptions& options) {
  core::Stopwatch watch(options.limit);
  Incumbent incumbent(graph, options, watch);
  if (options.k == 0) {
    incumbent.offer(core::baseline_schedule(graph));
    if (incumbent.proved_infeasible()) return infeasible_with_least_peak(tw_remat, graph, options);
    if (incumbent.cannot_improve()) return incumbent.finish(false);
    const TreeDecomposition decomposition = decomposition_for(graph, options, watch);
    const SeparatorTree by_bags = separator_tree(decomposition, graph, Balance::bags);
    TwSearch(graph, options, by_bags, incumbent, watch).run();
    if (!watch.expired_now() && !incumbent.cannot_improve()) {
      const SeparatorTree by_bytes = separator_tree(decomposition, graph, Balance::bytes);
      TwSearch(graph, options, by_bytes, incumbent, watch).run_by_bytes();
    }
    return incumbent.finish(watch.expired_now());
  }
  const SeparatorTree separators = separators_of(graph, options, watch);
  TwProgram program(graph, separators);
  require_length(program, separators, options.k, options.most_steps > 0 ? options.most_steps : kMostWritten, watch);
  if (const auto trimmed = program.trim(options.k, watch)) {
    const core::Schedule schedule{steps_of(program, *trimmed)};
    incumbent.offer(schedule);
    if (options.retain) {
      core::EditableSchedule work(graph);
      offer_retained(graph, schedule, std::max(options.budget.value_or(0), trimmed->peak), work, incumbent, watch);
    }
  }
  return incumbent.finish(watch.expired_now());
}

std::vector<TwPoint> tw_sweep(const core::Graph& graph, const TwRematOptions& options, std::int32_t most_points) {
  core::Stopwatch watch(options.limit);
  const SeparatorTree separators = separators_of(graph, options, watch);
  TwProgram program(graph, separators);
  const std::int64_t most_steps = options.most_steps > 0 ? options.most_steps : kMostLookedAt;
  const std::vector<std::int64_t> ks = different_k(separators);
  core::EditableSchedule work(graph);
  std::vector<TwPoint> points;
  double next = std::log(static_cast<double>(ks.back()));
  const double step = most_points > 1 ? next / (most_points - 1) : next;
  for (auto k = ks.rbegin(); k != ks.rend(); ++k) {
    // If there are more values of k than points, skip those above the next mark on the logarithmic scale.
    if (std::cmp_greater(ks.size(), most_points) && std::log(static_cast<double>(*k)) > next && *k > 1) continue;
    next = std::log(static_cast<double>(*k)) - step;
    const auto length = program.length(*k, watch);
    if (!length) break;
    TwPoint point{.k = *k, .length = *length};
    if (*length <= most_steps) {
      const auto trimmed = program.trim(*k, watch);
      if (!trimmed) break;
      point.steps = trimmed->steps;
      point.peak = trimmed->peak;
      point.cost = trimmed->cost;
      if (options.retain && trimmed->steps <= kMostRetained && !watch.expired_now()) {
        work.assign(steps_of(program, *trimmed));
        retain_where_it_fits(graph, work, trimmed->peak, 0, &watch);
        if (!watch.expired_now()) {
          const std::vector<NodeId> retained = work.steps();
          point.retained_steps = static_cast<std::int64_t>(retained.size());
          point.retained_cost = cost_of(graph, retained);
        }
      }
    }
    points.push_back(point);
    if (watch.expired_now()) break;
  }
  return points;
}

TwPoint stream_tw_remat(const core::Graph& graph, const TwRematOptions& options,
                        const std::function<void(std::span<const NodeId>)>& write) {
  constexpr std::size_t kAtOnce = 4096;
  core::Stopwatch watch(options.limit);
  const SeparatorTree separators = separators_of(graph, options, watch);
  TwProgram program(graph, separators);
  require_length(program, separators, options.k, kMostStreamed, watch);
  const auto stop = [&]() {
    throw core::InterruptedError(fmt::format("TWRemat({}) was not written: {}", options.k,
                                             watch.interrupted() ? "interrupted" : "the time limit was too short"));
  };
  const auto trimmed = program.trim(options.k, watch);
  if (!trimmed) stop();
  std::vector<NodeId> steps;
  program.for_each_step(*trimmed, [&](NodeId v) {
    steps.push_back(v);
    if (steps.size() < kAtOnce) return true;
    write(steps);
    steps.clear();
    return !watch.charge(static_cast<std::int64_t>(kAtOnce)).expired();
  });
  if (watch.expired_now()) stop();
  write(steps);
  return {
      .k = options.k, .length = trimmed->length, .steps = trimmed->steps, .peak = trimmed->peak, .cost = trimmed->cost};
}

}  // namespace cairn::solvers
