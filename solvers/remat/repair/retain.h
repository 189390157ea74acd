#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

/// Removes recomputations wherever the value can stay in memory instead without any step exceeding `budget` bytes.
/// Recomputations that save the highest cost a byte and step go first, counting all steps that run only for them. With
/// a `noise_seed` other than 0 they are ranked by their own cost only, randomised: this is faster, for searches that
/// call the function again and again. Steps that already exceed the budget never get worse. All occurrences must be
/// needed. Charges `watch`, and ends early when it expires. O((T + sum of in-degrees) (64 + T / 64)) a round, few
/// rounds.
void retain_where_it_fits(const core::Graph& graph, core::EditableSchedule& schedule, std::int64_t budget,
                          std::uint64_t noise_seed = 0, core::Stopwatch* watch = nullptr);

/// Most steps of a schedule that retain_where_it_fits() cleans up: an EditableSchedule takes some hundred bytes a step.
inline constexpr std::int64_t kMostRetained = 4'000'000;
/// Offers the schedule that retain_where_it_fits() makes of a schedule whose steps are all needed; `work` is scratch
/// space.
void offer_retained(const core::Graph& graph, const core::Schedule& schedule, std::int64_t budget,
                    core::EditableSchedule& work, Incumbent& incumbent, core::Stopwatch& watch);

}  // namespace cairn::solvers
