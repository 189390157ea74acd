#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/common/support/incumbent.h"

namespace cairn::solvers {

/// Describes one round of ruin and recreate. The round changes a schedule in two phases. Ruin: values are evicted, and
/// recomputations are added. Recreate: recomputations are removed where a budget has room to keep the values in memory,
/// i.e. to retain them. All amounts are in bytes.
struct RuinRound {
  /// Whether the round starts from the baseline. If not, it starts from the best known schedule.
  bool from_baseline = false;
  /// Budget up to which values are retained before the eviction. Absent: the round begins with the eviction.
  std::optional<std::int64_t> lifted;
  /// Budget of the eviction.
  std::int64_t evict_to = 0;
  /// Budget up to which values are retained after the eviction. Once a schedule within the user's budget is known, this
  /// is the user's budget. Before that, it is slightly below the lowest known peak.
  std::int64_t goal = 0;
  std::uint64_t noise = 0;  ///< seed that randomises the eviction and all but the last retention; 0: not random
};

/// Draws random rounds of ruin and recreate. Each round depends on the incumbent, i.e. on the best schedule known when
/// the round is drawn. The rounds are deterministic for SolveOptions::seed.
class RuinRounds {
 public:
  /// After `most_idle` consecutive rounds without a better schedule, next() draws no more rounds. If `plain_first` is
  /// true, the first round has no noise (RuinRound::noise). The options and the incumbent must outlive the object.
  RuinRounds(const SolveOptions& options, const Incumbent& incumbent, int most_idle, bool plain_first)
      : options_(options),
        incumbent_(incumbent),
        random_(options.seed + 1),
        most_idle_(most_idle),
        plain_(plain_first) {}

  /// Draws the next round. Charges the watch by `work` for it. Returns nothing if the search is over: the watch has
  /// expired, the incumbent cannot be improved, or there were too many rounds without a better schedule.
  std::optional<RuinRound> next(core::Stopwatch& watch, std::int64_t work);

 private:
  const SolveOptions& options_;
  const Incumbent& incumbent_;
  core::Random random_;
  int most_idle_, idle_ = -1;  // idle_: number of rounds since the last better schedule; -1: no round was drawn yet
  bool plain_;
  std::int64_t cost_ = 0, peak_ = 0;  // cost and peak of the incumbent before the latest round
  bool met_ = false;                  // whether the incumbent was within the user's budget before the latest round
};

/// Runs a round on `work`, which must contain the schedule from which the round starts. After the eviction, tries two
/// retentions, one with noise and one without. Calls offer() after the eviction and after each retention, when `work`
/// contains the result.
void ruin_and_recreate(const core::Graph& graph, const RuinRound& round, std::int32_t max_occurrences,
                       core::EditableSchedule& work, core::Stopwatch& watch, const std::function<void()>& offer);

/// Improves the incumbent, i.e. the best schedule known, by rounds of ruin and recreate. Each round first evicts values
/// until the schedule is within a budget that can be tighter than the user's (evict.h). Then the round retains values
/// up to the user's budget (retain.h). If there is no budget, rounds aim slightly below the incumbent's peak instead.
/// The function ends when the watch expires or after `rounds` consecutive rounds without a better schedule.
/// Deterministic for a seed and a work limit.
void refine(const core::Graph& graph, const SolveOptions& options, Incumbent& incumbent, core::Stopwatch& watch,
            int rounds);

}  // namespace cairn::solvers
