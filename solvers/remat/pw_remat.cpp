#include "cairn/solvers/remat/pw_remat.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/solvers/common/incumbent.h"
#include "cairn/solvers/remat/internal/path_schedule.h"
#include "cairn/solvers/remat/internal/refine.h"

namespace cairn::solvers {
namespace {

/// One graph, its spine, and the schedules of any k.
class PwSearch {
 public:
  PwSearch(const core::Graph& graph, const PwRematOptions& options, const Spine& spine, Incumbent& incumbent,
           core::Stopwatch& watch)
      : graph_(graph),
        options_(options),
        scheduler_(graph, spine),
        incumbent_(incumbent),
        watch_(watch),
        bag_count_(static_cast<std::int64_t>(spine.decomposition.bags.size())),
        work_(graph) {}

  /// The schedule of options.k alone.
  void run_given() {
    const auto list = build(options_.k);
    if (!list) return;
    const std::int64_t length = scheduler_.program().length(*list);
    if (length > kMostPwRematSteps) {
      std::int64_t k = options_.k;
      std::optional<std::int32_t> shorter = list;
      while (shorter && scheduler_.program().length(*shorter) > kMostPwRematSteps) shorter = build(k *= 2);
      throw core::InputError(
          fmt::format("PWRemat({}) of this graph has {} steps, more than {}{}", options_.k, length, kMostPwRematSteps,
                      shorter ? fmt::format("; k={} has {}", k, scheduler_.program().length(*shorter)) : ""));
    }
    offer(*list);
  }

  /// k from above down along powers of two; then between the smallest that exceeds the budget and the largest that does
  /// not, since memory grows with k, if not always.
  void run_search() {
    std::int64_t above = bag_count_ + 1, fits = 0;
    for (std::int64_t k = above; k >= 1; k /= 2) {
      const Outcome outcome = attempt(k);
      if (outcome == Outcome::stopped || incumbent_.cannot_improve()) return;
      if (outcome == Outcome::too_long) break;  // smaller k are longer still
      if (outcome == Outcome::exceeds) above = k;
      if (outcome == Outcome::fits && fits == 0) fits = k;
    }
    if (fits == 0 || !options_.budget) return;
    for (std::int64_t low = fits, high = std::max(above, fits); high - low > 1;) {
      const std::int64_t middle = low + (high - low) / 2;
      const Outcome outcome = attempt(middle);
      if (outcome == Outcome::stopped) return;
      (outcome == Outcome::fits ? low : high) = middle;
    }
  }

 private:
  enum class Outcome { fits, exceeds, too_long, stopped };

  std::optional<std::int32_t> build(std::int64_t k) {
    constexpr std::int64_t kBytesAnEntry = 16;  // with its share of what finds equal lists
    return scheduler_.build(k, options_.memory_bytes / kBytesAnEntry, watch_);
  }

  std::int64_t offer(std::int32_t list) {
    core::Schedule schedule;
    scheduler_.measure(list, true, &schedule.steps);
    watch_.charge(schedule.length());
    const std::int64_t peak = incumbent_.offer(schedule).peak;
    if (options_.retain && options_.budget && incumbent_.fits(peak)) {
      schedule = core::run_pinned_once(graph_, std::move(schedule));
      work_.assign(core::drop_unread(graph_, schedule).steps);
      retain_where_it_fits(graph_, work_, *options_.budget);
      incumbent_.offer({work_.steps()});
    }
    return peak;
  }

  Outcome attempt(std::int64_t k) {
    if (watch_.expired_now()) return Outcome::stopped;
    const auto list = build(k);
    if (!list) return watch_.expired_now() ? Outcome::stopped : Outcome::too_long;
    if (scheduler_.program().length(*list) > 64 * std::int64_t{graph_.node_count()} + 4096) return Outcome::too_long;
    return incumbent_.fits(offer(*list)) ? Outcome::fits : Outcome::exceeds;
  }

  const core::Graph& graph_;
  const PwRematOptions& options_;
  PathScheduler scheduler_;
  Incumbent& incumbent_;
  core::Stopwatch& watch_;
  std::int64_t bag_count_;
  core::EditableSchedule work_;
};

}  // namespace

Solution pw_remat(const core::Graph& graph, const PwRematOptions& options) {
  core::Stopwatch watch(options.limit);
  Incumbent incumbent(graph, options, watch);
  if (options.k == 0) {
    incumbent.offer(core::baseline_schedule(graph));
    if (incumbent.proved_infeasible()) {
      // No k can reach the budget; the least peak is still worth knowing.
      SolveOptions least = options;
      least.budget.reset();
      Solution solution = pw_remat(graph, PwRematOptions{least});
      solution.status = Status::infeasible;
      return solution;
    }
    if (incumbent.cannot_improve()) return incumbent.finish(false);
  }
  const Spine spine =
      add_spine(graph, within(watch, 0.3, [&](core::Stopwatch& share) { return path_decomposition(graph, &share); }));
  PwSearch search(graph, options, spine, incumbent, watch);
  if (options.k > 0) {
    search.run_given();
  } else {
    search.run_search();
  }
  return incumbent.finish(watch.expired_now());
}

}  // namespace cairn::solvers
