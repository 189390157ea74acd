#pragma once

#include <cstdint>
#include <vector>

#include "cairn/core/editable_schedule.h"
#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

/// Of each node, its place in the input order.
std::vector<std::int32_t> input_ranks(const core::Graph& graph);

/// The steps with what runs between two first runs sorted by rank, each node once, and without what comes after the
/// last: the nearest schedule of OrderRule::stages where first runs keep the input order. O(T log T).
std::vector<core::NodeId> in_stages(std::vector<core::NodeId> steps, const std::vector<std::int32_t>& ranks);

/// Removes recomputations wherever the value can stay in memory instead without any step exceeding `budget` bytes,
/// those first that save the highest cost a byte and step, all that is run for them alone included; unless `noise_seed`
/// is 0, by their own cost alone, randomised: faster, for searches that repeat it. Steps that exceed the budget already
/// never get worse. All occurrences must be needed. Ends early where `watch`, which it charges, expires. O((T + sum of
/// in-degrees) (64 + T / 64)) a round, few rounds.
void retain_where_it_fits(const core::Graph& graph, core::EditableSchedule& schedule, std::int64_t budget,
                          std::uint64_t noise_seed = 0, core::Stopwatch* watch = nullptr);

/// A schedule of more steps is not cleaned up: an EditableSchedule of it takes some hundred bytes a step.
inline constexpr std::int64_t kMostRetained = 4'000'000;
/// Offers what retain_where_it_fits() makes of a schedule all of whose steps are needed; `work` is where.
void offer_retained(const core::Graph& graph, const core::Schedule& schedule, std::int64_t budget,
                    core::EditableSchedule& work, Incumbent& incumbent, core::Stopwatch& watch);

/// The opposite: while the peak exceeds `budget`, values that lie unused across the worst step are evicted there and
/// computed again right before their next use, together with those of their inputs that are no longer in memory; the
/// cheapest a byte first, randomised by `noise_seed` unless that is 0. True if the schedule is within the budget then;
/// else it is that of the lowest peak that was met. A node that stands in it `max_occurrences` times (0: any) is not
/// chosen to run again, though two uses may have it once each. All occurrences must be needed. At most a few T rounds,
/// each O(T) and what it inserts and drops.
bool evict_until_it_fits(const core::Graph& graph, core::EditableSchedule& schedule, std::int64_t budget,
                         std::uint64_t noise_seed, core::Stopwatch& watch, std::int32_t max_occurrences = 0);

/// Where nothing that was offered is within the budget: evicts from the best, the schedule of lowest peak, until it is,
/// and offers that, then what retain_where_it_fits() makes of it if `retain` is set.
void bring_within_budget(const core::Graph& graph, std::int64_t budget, bool retain, Incumbent& incumbent,
                         core::Stopwatch& watch);

/// Ruin and recreate around the incumbent until the watch expires or `rounds` bring nothing: evict to a tighter budget,
/// then retain up to the real one. Needs a budget or takes the incumbent's peak as one. Deterministic for a seed and a
/// work limit.
void refine(const core::Graph& graph, const SolveOptions& options, Incumbent& incumbent, core::Stopwatch& watch,
            int rounds);

}  // namespace cairn::solvers
