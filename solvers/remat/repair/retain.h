#pragma once

#include <cstdint>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/solvers/common/support/incumbent.h"

namespace cairn::solvers {

/// Removes recomputations. A recomputation is removed if its value can stay in memory until the time of the
/// recomputation without raising any step above `budget` bytes. The memory of steps that already exceed the budget does
/// not rise. Every step of the schedule must make a value that a later step reads or that is kept.
///
/// The recomputations of highest worth are removed first. The worth is `saved cost / (bytes * steps)`, where `bytes` is
/// the size of the value, and `steps` is the number of steps during which it additionally stays in memory. The saved
/// cost includes all steps that run only for the recomputation. With a `noise_seed` other than 0, only the
/// recomputation's own cost counts, and the worth is multiplied by a random factor. This is faster, which helps
/// searches that call the function many times.
///
/// Charges `watch`, if given, and ends early when the watch expires. Makes at most a few rounds. For a schedule of T
/// steps, a round takes O((T + sum of in-degrees) (64 + T / 64)) time.
void retain_where_it_fits(const core::Graph& graph, core::EditableSchedule& schedule, std::int64_t budget,
                          std::uint64_t noise_seed = 0, core::Stopwatch* watch = nullptr);

/// Largest number of steps of a schedule to which offer_retained() applies. An EditableSchedule of this many steps
/// takes hundreds of megabytes.
inline constexpr std::int64_t kMostRetained = 4'000'000;
/// Applies retain_where_it_fits() to a schedule and offers the result to the incumbent. Every step of the schedule must
/// make a value that a later step reads or that is kept. The old contents of `work` are overwritten.
void offer_retained(const core::Graph& graph, const core::Schedule& schedule, std::int64_t budget,
                    core::EditableSchedule& work, Incumbent& incumbent, core::Stopwatch& watch);

}  // namespace cairn::solvers
