#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

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

}  // namespace cairn::solvers
