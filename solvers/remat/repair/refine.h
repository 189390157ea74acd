#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/common/incumbent.h"

namespace cairn::solvers {

/// One round of ruin and recreate: where it starts, how far it evicts, and up to what it retains. In bytes.
struct RuinRound {
  bool from_baseline = false;          ///< whether it starts from the baseline, else from the best known schedule
  std::optional<std::int64_t> lifted;  ///< budget up to which values first stay, so that others are evicted later
  std::int64_t evict_to = 0;
  std::int64_t goal = 0;    ///< the budget or, while it is not met, a little less than the peak so far
  std::uint64_t noise = 0;  ///< 0: none
};

/// Draws rounds, each from the incumbent as it then is. Deterministic for SolveOptions::seed.
class RuinRounds {
 public:
  /// `most_idle`: rounds in a row without a better schedule that end the search. `plain_first`: the first round has no
  /// noise. Options and incumbent must outlive the object.
  RuinRounds(const SolveOptions& options, const Incumbent& incumbent, int most_idle, bool plain_first)
      : options_(options),
        incumbent_(incumbent),
        random_(options.seed + 1),
        most_idle_(most_idle),
        plain_(plain_first) {}

  /// Draws the next round; empty: the search is over. Charges `work`.
  std::optional<RuinRound> next(core::Stopwatch& watch, std::int64_t work);

 private:
  const SolveOptions& options_;
  const Incumbent& incumbent_;
  core::Random random_;
  int most_idle_, idle_ = -1;  // idle_: rounds in a row that brought nothing; -1: there was no round
  bool plain_;
  std::int64_t cost_ = 0, peak_ = 0;  // of the incumbent, before the latest round
  bool met_ = false;                  // whether it met the budget then
};

/// Plays a round on `work`, which must be where the round starts, and calls offer() whenever `work` is worth it: after
/// values were evicted, and after values were retained, with noise and without.
void ruin_and_recreate(const core::Graph& graph, const RuinRound& round, std::int32_t max_occurrences,
                       core::EditableSchedule& work, core::Stopwatch& watch, const std::function<void()>& offer);

/// Improves the incumbent by ruin and recreate, until the watch expires or `rounds` bring nothing: evicts values to a
/// tighter budget (evict.h), then retains values up to the real one (retain.h). Without a budget, the incumbent's peak
/// is the budget. Deterministic for a seed and a work limit.
void refine(const core::Graph& graph, const SolveOptions& options, Incumbent& incumbent, core::Stopwatch& watch,
            int rounds);

}  // namespace cairn::solvers
