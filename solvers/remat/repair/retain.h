#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

/// Removes recomputations. A recomputation is removed if its value can stay in memory instead and no step exceeds
/// `budget` bytes because of this. Steps that exceeded the budget before never get worse. All occurrences must be
/// needed. The recomputations that save the highest cost per byte and step are removed first. The cost saved includes
/// all steps that run only for the recomputation. With a `noise_seed` other than 0, recomputations are ranked by their
/// own cost only, times random factors. This is faster, for searches that call the function many times. Charges
/// `watch`, and ends early when the watch expires. Takes a few rounds. For a schedule of T steps, a round takes O((T +
/// sum of in-degrees) (64 + T / 64)) time.
void retain_where_it_fits(const core::Graph& graph, core::EditableSchedule& schedule, std::int64_t budget,
                          std::uint64_t noise_seed = 0, core::Stopwatch* watch = nullptr);

/// Largest number of steps of a schedule for which offer_retained() calls retain_where_it_fits(). Longer schedules are
/// left unchanged to save memory, because an EditableSchedule of this length takes hundreds of megabytes.
inline constexpr std::int64_t kMostRetained = 4'000'000;
/// Applies retain_where_it_fits() to a schedule and offers the result. All steps of the schedule must be needed. `work`
/// is scratch memory.
void offer_retained(const core::Graph& graph, const core::Schedule& schedule, std::int64_t budget,
                    core::EditableSchedule& work, Incumbent& incumbent, core::Stopwatch& watch);

}  // namespace cairn::solvers
