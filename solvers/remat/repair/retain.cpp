// Removes recomputations from a schedule where values can stay in memory instead (retain.h). An occurrence is one step
// of the schedule, and its place is its position.

#include "cairn/solvers/remat/repair/retain.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/support/random.h"
#include "cairn/core/support/saturating.h"

namespace cairn::solvers {
namespace {

using core::EditableSchedule;
using Occurrence = EditableSchedule::Occurrence;

/// Computes the cost of a recomputation and of all steps that run only for it.
class Savings {
 public:
  Savings(const core::Graph& graph, const EditableSchedule& schedule) : graph_(graph), schedule_(schedule) {}

  std::int64_t of(Occurrence o) {
    if (mark_.size() < static_cast<std::size_t>(schedule_.occurrence_limit()))
      mark_.resize(schedule_.occurrence_limit(), 0);
    ++current_;
    mark_[o] = current_;
    dropped_.assign(1, o);
    std::int64_t cost = 0;
    for (std::size_t i = 0; i < dropped_.size(); ++i) {
      const core::NodeId v = schedule_.node(dropped_[i]);
      cost = core::saturating_add(cost, graph_.cost(v));
      if (dropped_.size() > kMostFollowed) continue;
      const auto inputs = static_cast<std::int32_t>(graph_.inputs(v).size());
      for (std::int32_t k = 0; k < inputs; ++k) {
        const Occurrence source = schedule_.source(dropped_[i], k);
        const bool stays =
            mark_[source] == current_ ||
            (schedule_.next_of_node(source) == EditableSchedule::kNone && graph_.required(schedule_.node(source))) ||
            !schedule_.all_readers(source, [&](Occurrence reader) { return mark_[reader] == current_; });
        if (stays) continue;
        mark_[source] = current_;
        dropped_.push_back(source);
      }
    }
    return cost;
  }

 private:
  // Largest number of steps that of() examines for one recomputation, which limits the time of a call. If more steps
  // run only for the recomputation, the result is too low.
  static constexpr std::size_t kMostFollowed = 256;

  const core::Graph& graph_;
  const EditableSchedule& schedule_;
  // Number of the last call of Savings::of() that visited the occurrence; indexed by occurrence.
  std::vector<std::int32_t> mark_;
  std::int32_t current_ = 0;
  std::vector<Occurrence> dropped_;
};

}  // namespace

void retain_where_it_fits(const core::Graph& graph, EditableSchedule& schedule, std::int64_t budget,
                          std::uint64_t noise_seed, core::Stopwatch* watch) {
  constexpr int kMostRounds = 4;
  struct Candidate {
    double worth;
    EditableSchedule::Place place;
    Occurrence recomputation;
    double noise;
    bool operator<(const Candidate& other) const {
      return worth != other.worth ? worth < other.worth : place < other.place;
    }
  };
  core::Random random(noise_seed);
  const auto expired = [&](std::int64_t work) { return watch != nullptr && watch->charge(work).expired(); };
  Savings savings(graph, schedule);
  const auto worth = [&](Occurrence o, double noise) {
    const core::NodeId v = schedule.node(o);
    const auto steps_between = static_cast<double>(schedule.place(o) - schedule.last_use(schedule.previous_of_node(o)));
    const double area = static_cast<double>(graph.size(v)) * steps_between + 1.0;
    const auto saved = static_cast<double>(noise_seed == 0 ? savings.of(o) : graph.cost(v));
    return (saved + 1e-3) / area * noise;
  };
  bool changed = true;
  for (int round = 0; round < kMostRounds && changed; ++round) {
    schedule.close_gaps();
    std::vector<Candidate> candidates;
    for (auto o = schedule.first(); o != schedule.end(); o = schedule.next(o)) {
      if (schedule.previous_of_node(o) == EditableSchedule::kNone) continue;
      if (expired(1)) return;
      const double noise = noise_seed == 0 ? 1.0 : 0.25 + 1.5 * random.uniform();
      candidates.push_back({worth(o, noise), schedule.place(o), o, noise});
    }
    std::priority_queue queue(std::less<Candidate>(), std::move(candidates));
    changed = false;
    while (!queue.empty()) {
      if (expired(1)) return;
      Candidate best = queue.top();
      queue.pop();
      const Occurrence o = best.recomputation;
      if (schedule.place(o) < 0) continue;
      const Occurrence before = schedule.previous_of_node(o);
      if (before == EditableSchedule::kNone) continue;
      // Recomputations that were dropped since this candidate was queued can have lowered its worth. If another
      // candidate is now better, queue this candidate again.
      best.worth = worth(o, best.noise);
      if (!queue.empty() && best < queue.top()) {
        queue.push(best);
        continue;
      }
      // Without the recomputation o, every output of o that is read later must stay in memory from its last use before
      // o until o. The first step of this period is `first`. The period includes the positions of steps that were
      // dropped in this round, because the memory at these positions is updated as well.
      std::int64_t bytes = 0;
      EditableSchedule::Place first = best.place;
      const std::int32_t outputs = graph.output_count(schedule.node(o));
      for (std::int32_t k = 0; k < outputs; ++k) {
        if (outputs > 1 && schedule.last_use(o, k) == schedule.place(o)) continue;
        bytes += graph.value_size(graph.value({schedule.node(o), k}));
        first = std::min(first, schedule.last_use(before, k) + 1);
      }
      if (bytes > 0 && schedule.max(first, best.place - 1) > budget - bytes) continue;
      schedule.drop_with_unneeded(o);
      changed = true;
    }
  }
}

void offer_retained(const core::Graph& graph, const core::Schedule& schedule, std::int64_t budget,
                    core::EditableSchedule& work, Incumbent& incumbent, core::Stopwatch& watch) {
  if (schedule.length() > kMostRetained || watch.expired_now()) return;
  work.assign(schedule.steps);
  retain_where_it_fits(graph, work, budget, 0, &watch);
  incumbent.offer({work.steps()});
}

}  // namespace cairn::solvers
