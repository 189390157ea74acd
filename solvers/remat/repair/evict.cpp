// Brings a schedule within a budget by evictions (evict.h). An occurrence is one step of the schedule, and its place is
// its position. An eviction removes a value from memory and computes it again before its next use.

#include "cairn/solvers/remat/repair/evict.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/support/random.h"
#include "cairn/solvers/remat/repair/input_ranks.h"
#include "cairn/solvers/remat/repair/retain.h"

namespace cairn::solvers {
namespace {

using core::EditableSchedule;
using core::NodeId;
using Occurrence = EditableSchedule::Occurrence;
using Place = EditableSchedule::Place;

/// Describes an eviction: the outputs of an occurrence are not in memory during the worst step, which is the step of
/// highest memory.
struct Eviction {
  Occurrence occurrence = 0;
  Place place = 0;
  /// Next step after the worst step that reads the outputs.
  Occurrence use = 0;
  /// Nodes to run again right before `use`.
  std::vector<NodeId> recomputed;
  std::int64_t freed = 0;  ///< bytes freed at the worst step
  double price = 0;        ///< cost per byte freed
};

/// Evicts values from the schedule, in rounds. Each round relieves the worst step.
class Evictor {
 public:
  Evictor(const core::Graph& graph, EditableSchedule& schedule, std::int64_t budget, std::uint64_t noise_seed,
          std::int32_t max_occurrences)
      : graph_(graph),
        schedule_(schedule),
        budget_(budget),
        max_occurrences_(max_occurrences),
        noisy_(noise_seed != 0),
        random_(noise_seed),
        rank_(input_ranks(graph)),
        stamp_(graph.node_count(), 0),
        value_stamp_(graph.value_count(), 0) {}

  /// Evicts values that are in memory at the step `worst`, until this step is within the budget or no more values can
  /// be evicted. Returns false if no value at all can be evicted.
  bool relieve(Occurrence worst) {
    const Place at_worst = schedule_.place(worst);
    if (max_occurrences_ > 0) {
      occurrences_.assign(static_cast<std::size_t>(graph_.node_count()), 0);
      for (Occurrence o = schedule_.first(); o != schedule_.end(); o = schedule_.next(o))
        ++occurrences_[schedule_.node(o)];
    }
    std::vector<Eviction> evictions;
    for (Occurrence o = schedule_.first(); o != worst; o = schedule_.next(o)) {
      const NodeId v = schedule_.node(o);
      if (schedule_.last_use(o) <= at_worst || graph_.size(v) == 0 || !may_run_again(v)) continue;
      if (auto eviction = consider(o, at_worst)) evictions.push_back(std::move(*eviction));
    }
    std::sort(evictions.begin(), evictions.end(), [](const Eviction& a, const Eviction& b) {
      return a.price != b.price ? a.price < b.price : a.place < b.place;
    });
    const std::vector<const Eviction*> chosen = choose(evictions, schedule_.during(at_worst) - budget_);
    apply(chosen);
    return !chosen.empty();
  }

 private:
  static constexpr std::size_t kMostRecomputed = 256;

  bool may_run_again(NodeId v) const {
    return !graph_.pinned(v) && (max_occurrences_ == 0 || occurrences_[v] < max_occurrences_);
  }

  std::optional<Eviction> consider(Occurrence o, Place worst) {
    const Occurrence reader = schedule_.first_reader(o, worst);
    if (reader != EditableSchedule::kNone && schedule_.place(reader) == worst) return std::nullopt;
    const NodeId root = schedule_.node(o);
    Eviction eviction;
    eviction.occurrence = o;
    eviction.place = schedule_.place(o);
    eviction.use = reader == EditableSchedule::kNone ? schedule_.end() : reader;
    eviction.freed = schedule_.live_bytes(o, worst + 1);
    if (eviction.freed == 0) return std::nullopt;
    eviction.recomputed.push_back(root);
    const Place use = schedule_.place(eviction.use), before_use = schedule_.place(schedule_.previous(eviction.use));
    ++current_;
    stamp_[root] = current_;
    std::int64_t cost = 0;
    for (std::size_t i = 0; i < eviction.recomputed.size(); ++i) {
      cost += graph_.cost(eviction.recomputed[i]);
      for (const core::ValueId x : graph_.inputs(eviction.recomputed[i])) {
        const auto [u, output] = graph_.output_ref(x);
        if (stamp_[u] == current_ || value_stamp_[x] == current_) continue;
        value_stamp_[x] = current_;
        const Place last = schedule_.last_use(schedule_.latest_before(u, use), output);
        const std::int64_t bytes = graph_.value_size(x);
        if (last >= use || bytes == 0) continue;  // the input is still in memory
        if (last >= worst) {
          // The input can stay in memory until `use` if its bytes raise no step until then above the budget.
          if (schedule_.max(last + 1, before_use) <= budget_ - bytes) continue;
          if (!may_run_again(u)) return std::nullopt;
        } else if (bytes < eviction.freed && (!may_run_again(u) || prefers_to_stay(bytes, eviction.freed))) {
          eviction.freed -= bytes;
          continue;
        }
        if (!may_run_again(u) || eviction.recomputed.size() == kMostRecomputed) return std::nullopt;
        stamp_[u] = current_;
        eviction.recomputed.push_back(u);
      }
    }
    const double noise = noisy_ ? 0.5 + random_.uniform() : 1.0;
    eviction.price = (static_cast<double>(cost) + 1e-3) / static_cast<double>(eviction.freed) * noise;
    sort_by_rank(eviction.recomputed);
    return eviction;
  }

  /// Returns whether an input of a node that runs again should stay in memory during the worst step, rather than be
  /// computed again afterwards. Neither the worst step nor a later step reads the input. The input has `bytes` bytes,
  /// and the eviction frees `freed` bytes.
  bool prefers_to_stay(std::int64_t bytes, std::int64_t freed) {
    if (noisy_) return random_.uniform() < 0.5 && 2 * bytes < freed;
    return 16 * bytes < freed;
  }

  /// Selects the cheapest evictions that together free `excess` bytes. Skips an eviction that conflicts with an
  /// eviction selected before. Two evictions conflict if one evicts a value that the other must read to recompute its
  /// nodes.
  std::vector<const Eviction*> choose(const std::vector<Eviction>& evictions, std::int64_t excess) {
    std::vector<const Eviction*> chosen;
    back_at_.assign(static_cast<std::size_t>(schedule_.occurrence_limit()), -1);
    must_stay_.assign(back_at_.size(), 0);
    for (const Eviction& eviction : evictions) {
      if (excess <= 0) break;
      if (must_stay_[eviction.occurrence]) continue;
      const Place use = schedule_.place(eviction.use);
      const auto is_there = [&](NodeId u) { return back_at_[schedule_.latest_before(u, use)] <= use; };
      const bool usable = std::all_of(eviction.recomputed.begin(), eviction.recomputed.end(), [&](NodeId v) {
        return std::all_of(graph_.predecessors(v).begin(), graph_.predecessors(v).end(), is_there);
      });
      if (!usable && !chosen.empty()) continue;
      for (const NodeId v : eviction.recomputed) {
        for (const NodeId u : graph_.predecessors(v)) must_stay_[schedule_.latest_before(u, use)] = 1;
      }
      back_at_[eviction.occurrence] = use;
      excess -= eviction.freed;
      chosen.push_back(&eviction);
    }
    return chosen;
  }

  /// Inserts the runs that the chosen evictions need. A node runs only once for all evictions with the same next use.
  /// Drops steps that become unneeded.
  void apply(std::vector<const Eviction*> chosen) {
    std::ranges::stable_sort(chosen, {}, [&](const Eviction* eviction) { return schedule_.place(eviction->use); });
    std::vector<Occurrence> unneeded;
    std::vector<NodeId> again;
    for (auto next = chosen.begin(); next != chosen.end();) {
      const Occurrence use = (*next)->use;
      ++current_;
      again.clear();
      for (; next != chosen.end() && (*next)->use == use; ++next) {
        for (const NodeId v : (*next)->recomputed) {
          if (std::exchange(stamp_[v], current_) != current_) again.push_back(v);
        }
      }
      sort_by_rank(again);
      for (const NodeId v : again) {
        // Later readers of the previous occurrence of v now read the new one, so the previous one may be unneeded.
        const Occurrence before = schedule_.previous_of_node(schedule_.insert(v, use));
        if (!schedule_.needed(before)) unneeded.push_back(before);
      }
    }
    for (const Occurrence o : unneeded) {
      if (schedule_.place(o) >= 0 && !schedule_.needed(o)) schedule_.drop_with_unneeded(o);
    }
  }

  void sort_by_rank(std::vector<NodeId>& nodes) const {
    std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return rank_[a] < rank_[b]; });
  }

  const core::Graph& graph_;
  EditableSchedule& schedule_;
  std::int64_t budget_;
  std::int32_t max_occurrences_;
  bool noisy_;
  core::Random random_;
  std::vector<std::int32_t> rank_;  ///< index of each node in the input order
  /// Number of occurrences of each node. Computed only if max_occurrences_ limits it.
  std::vector<std::int32_t> occurrences_;
  /// Marks for the current computation, which has the number current_.
  /// - stamp_[v] == current_: node v runs again.
  /// - value_stamp_[x] == current_: value x has been considered as an input.
  std::vector<std::uint64_t> stamp_, value_stamp_;
  std::uint64_t current_ = 0;
  /// Position before which the evicted outputs are made again. Indexed by occurrence; -1: not evicted.
  std::vector<Place> back_at_;
  std::vector<std::uint8_t> must_stay_;  ///< whether an inserted node reads the occurrence; indexed by occurrence
};

}  // namespace

bool evict_until_it_fits(const core::Graph& graph, EditableSchedule& schedule, std::int64_t budget,
                         std::uint64_t noise_seed, core::Stopwatch& watch, std::int32_t max_occurrences) {
  constexpr int kPatience = 40;
  const std::int64_t most_steps = 16 * static_cast<std::int64_t>(graph.node_count()) + 64;
  Evictor evictor(graph, schedule, budget, noise_seed, max_occurrences);
  std::vector<NodeId> best;
  std::int64_t best_peak = std::numeric_limits<std::int64_t>::max();
  int stagnation = 0;  // number of rounds without a lower peak
  while (true) {
    const std::int64_t peak = schedule.peak();
    if (peak <= budget) return true;
    if (peak < best_peak) {
      best_peak = peak;
      best = schedule.steps();
      stagnation = 0;
    }
    if (++stagnation > kPatience || schedule.length() > most_steps || watch.charge(schedule.length()).expired() ||
        !evictor.relieve(schedule.peak_step())) {
      break;
    }
  }
  schedule.assign(best);
  return false;
}

void bring_within_budget(const core::Graph& graph, std::int64_t budget, bool retain, Incumbent& incumbent,
                         core::Stopwatch& watch) {
  if (incumbent.within_budget() || incumbent.cannot_improve() || watch.expired_now()) return;
  if (incumbent.schedule().length() > kMostRetained) return;
  core::EditableSchedule work(graph);
  work.assign(incumbent.schedule().steps);
  if (!evict_until_it_fits(graph, work, budget, 0, watch)) return;
  const core::Schedule fits{work.steps()};
  incumbent.offer(fits);
  if (retain) offer_retained(graph, fits, budget, work, incumbent, watch);
}

}  // namespace cairn::solvers
