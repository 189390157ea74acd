// Implements an evolutionary search (population.h). The schedules that survive a generation are called parents. Random
// edits of the parents make new schedules, which are called candidates.

#include "cairn/solvers/remat/anneal/population.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/machine/support/thread_pool.h"
#include "cairn/core/support/editable_schedule.h"
#include "cairn/core/support/random.h"
#include "cairn/core/threads.h"
#include "cairn/solvers/remat/repair/evict.h"
#include "cairn/solvers/remat/repair/input_ranks.h"

namespace cairn::solvers {
namespace {

using core::NodeId;
using core::Random;
using Step = std::int32_t;

constexpr Step kNoStep = -1;

std::int64_t draw_below(Random& random, std::int64_t count) {
  return static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(count));
}

template <class T>
const T& draw(Random& random, const std::vector<T>& list) {
  return list[static_cast<std::size_t>(draw_below(random, std::ssize(list)))];
}

/// Returns the rank of a schedule with the given peak (bytes) and cost. Schedules of lower rank are better.
auto rank_of(std::int64_t budget, std::int64_t peak, std::int64_t cost) {
  return std::tuple(std::max<std::int64_t>(0, peak - budget), cost, peak);
}

/// Stores a schedule that survived a generation. For each step, also stores the steps from which this step reads. Also
/// lists the steps at which random edits are possible.
struct Parent {
  Individual own;
  Step peak_step = 0;
  std::vector<std::int32_t> read_begin;  ///< indexed by step: index in `source` of the step's first entry
  std::vector<Step> source;              ///< for each step, the steps from which it reads, one after another
  std::vector<Step> first_read;  ///< indexed by step: first step that reads from this step; kNoStep: there is none
  std::vector<Step> last_read;
  std::vector<std::int32_t> readers;
  /// Previous step of the same node, indexed by step. kNoStep: there is none.
  std::vector<Step> before;
  /// Pairs of a step before the peak step and its next reader after the peak step. If no step reads its output again,
  /// but the output is kept, the second number is the number of steps. The outputs are in memory at the peak step but
  /// not read there.
  std::vector<std::pair<Step, Step>> evictable;
  std::vector<Step> recomputations;

  auto key(std::int64_t budget) const { return rank_of(budget, own.peak, own.cost); }
  Step length() const { return static_cast<Step>(own.schedule.steps.size()); }
};

/// Computes all fields except `own` and `peak_step`, which must be set before. O(T + sum of in-degrees) for T steps.
void complete(const core::Graph& graph, Parent& parent) {
  const auto& steps = parent.own.schedule.steps;
  const auto length = parent.length();
  const auto size = static_cast<std::size_t>(length);
  std::vector<Step> latest(static_cast<std::size_t>(graph.node_count()), kNoStep);
  parent.read_begin.assign(1, 0);
  parent.source.clear();
  parent.first_read.assign(size, kNoStep);
  parent.last_read.assign(size, kNoStep);
  parent.readers.assign(size, 0);
  parent.before.assign(size, kNoStep);
  // For each step s before the peak step, next_use[s] is the first step from the peak step on that reads from s.
  std::vector<Step> next_use(size, kNoStep);
  for (Step i = 0; i < length; ++i) {
    for (const NodeId u : graph.predecessors(steps[i])) {
      const Step s = latest[u];
      parent.source.push_back(s);
      if (parent.first_read[s] == kNoStep) parent.first_read[s] = i;
      parent.last_read[s] = i;
      ++parent.readers[s];
      if (i >= parent.peak_step && s < parent.peak_step && next_use[s] == kNoStep) next_use[s] = i;
    }
    parent.read_begin.push_back(static_cast<std::int32_t>(parent.source.size()));
    parent.before[i] = std::exchange(latest[steps[i]], i);
    if (parent.before[i] != kNoStep) parent.recomputations.push_back(i);
  }
  for (Step s = 0; s < parent.peak_step; ++s) {
    const NodeId v = steps[s];
    if (graph.pinned(v) || graph.size(v) == 0) continue;
    if (next_use[s] == parent.peak_step) continue;
    if (next_use[s] != kNoStep) {
      parent.evictable.emplace_back(s, next_use[s]);
    } else if (latest[v] == s && graph.keep(v)) {
      parent.evictable.emplace_back(s, length);
    }
  }
}

/// Makes candidates from survivors. Each thread needs its own editor.
class Editor {
 public:
  Editor(const core::Graph& graph, std::int64_t budget, const Scope& scope, const std::vector<std::int32_t>& rank)
      : graph_(graph), budget_(budget), scope_(scope), rank_(rank) {}

  /// Returns a copy of the parent's schedule with a few random edits. The copy can be an invalid schedule, because two
  /// edits that are valid alone can be invalid together.
  std::vector<NodeId> edited(const Parent& parent, Random& random) {
    inserted_.clear();
    dropped_.assign(static_cast<std::size_t>(parent.length()), 0);
    do {
      const std::int64_t kind = draw_below(random, 100);
      const bool over = parent.own.peak > budget_;
      if (kind < (over ? 65 : 15)) {
        evict(parent, random);
      } else if (kind < (over ? 75 : 50)) {
        drop(parent, random);
      } else if (kind < (over ? 85 : 70)) {
        evict(parent, random);
        drop(parent, random);
      } else {
        shift(parent, random);
      }
    } while (draw_below(random, 2) == 0);
    return applied(parent);
  }

  /// Crosses two schedules: takes the steps of `first` up to a random position, followed by some steps of `second`.
  /// From `second`, takes the first runs of nodes that have not run yet. Takes a recomputation from `second` in two
  /// cases. Either the first run of its node was also taken from `second`, or `second` has by then run all nodes that
  /// the steps from `first` have run.
  std::vector<NodeId> crossed(const Parent& first, const Parent& second, Random& random) {
    const auto cut = static_cast<Step>(draw_below(random, first.length() + 1));
    const auto& begin = first.own.schedule.steps;
    std::vector<NodeId> steps(begin.begin(), begin.begin() + cut);
    known_.assign(static_cast<std::size_t>(graph_.node_count()), 0);
    std::int32_t ahead = 0;  // number of nodes that have run in the beginning of `first` but not yet in `second`
    for (const NodeId v : steps) ahead += !std::exchange(known_[v], 1);
    for (Step i = 0; i < second.length(); ++i) {
      const NodeId v = second.own.schedule.steps[i];
      if (second.before[i] != kNoStep) {
        if (ahead == 0 || known_[v] == 2) steps.push_back(v);
      } else if (known_[v] == 1) {
        --ahead;
      } else {
        known_[v] = 2;
        steps.push_back(v);
      }
    }
    return steps;
  }

 private:
  static constexpr std::size_t kMostRecomputed = 64;

  void evict(const Parent& parent, Random& random) {
    if (parent.evictable.empty() || scope_.max_occurrences == 1) return;
    const auto [from, use] = draw(random, parent.evictable);
    chain_.assign(1, from);
    for (std::size_t i = 0; i < chain_.size() && chain_.size() < kMostRecomputed; ++i) {
      for (std::int32_t k = parent.read_begin[chain_[i]]; k < parent.read_begin[chain_[i] + 1]; ++k) {
        const Step s = parent.source[k];
        const NodeId u = parent.own.schedule.steps[s];
        const bool there = parent.last_read[s] >= use || graph_.keep(u) || graph_.pinned(u) || graph_.size(u) == 0;
        if (there || std::find(chain_.begin(), chain_.end(), s) != chain_.end()) continue;
        // Usually the input is computed again as well. Otherwise it stays in memory until it is read.
        if (draw_below(random, 4) != 0) chain_.push_back(s);
      }
    }
    const auto node = [&](Step s) { return parent.own.schedule.steps[s]; };
    std::sort(chain_.begin(), chain_.end(), [&](Step a, Step b) { return rank_[node(a)] < rank_[node(b)]; });
    for (const Step s : chain_) inserted_.emplace_back(use, node(s));
  }

  void drop(const Parent& parent, Random& random) {
    if (parent.recomputations.empty()) return;
    chain_.assign(1, draw(random, parent.recomputations));
    lost_.clear();
    for (std::size_t i = 0; i < chain_.size(); ++i) {
      if (std::exchange(dropped_[chain_[i]], 1)) continue;
      for (std::int32_t k = parent.read_begin[chain_[i]]; k < parent.read_begin[chain_[i] + 1]; ++k) {
        const Step s = parent.source[k];
        if (parent.before[s] == kNoStep || dropped_[s]) continue;
        lost_.push_back(s);
        if (std::count(lost_.begin(), lost_.end(), s) == parent.readers[s]) chain_.push_back(s);
      }
    }
  }

  void shift(const Parent& parent, Random& random) {
    const bool any = scope_.order == OrderRule::free;
    if (!any && parent.recomputations.empty()) return;
    Step s = static_cast<Step>(draw_below(random, parent.length()));
    if (!any) s = draw(random, parent.recomputations);
    if (dropped_[s]) return;
    Step least = parent.before[s] + 1;
    for (std::int32_t k = parent.read_begin[s]; k < parent.read_begin[s + 1]; ++k)
      least = std::max(least, parent.source[k] + 1);
    const Step most = parent.first_read[s] == kNoStep ? parent.length() : parent.first_read[s];
    // The step moves to the position right before the step `to`. The step can run at all positions from `least` to
    // `most`. These two ends are preferred, because there the lifetimes of some values are shortest.
    const std::int64_t where = draw_below(random, 4);
    Step to = where == 0 ? least : most;
    if (where > 1) to = least + static_cast<Step>(draw_below(random, most - least + 1));
    if (to == s || to == s + 1) return;
    dropped_[s] = 1;
    inserted_.emplace_back(to, parent.own.schedule.steps[s]);
  }

  std::vector<NodeId> applied(const Parent& parent) {
    std::stable_sort(inserted_.begin(), inserted_.end(), [](auto& a, auto& b) { return a.first < b.first; });
    std::vector<NodeId> steps;
    steps.reserve(parent.own.schedule.steps.size() + inserted_.size());
    auto next = inserted_.begin();
    for (Step i = 0; i <= parent.length(); ++i) {
      const auto group = steps.size();
      for (; next != inserted_.end() && next->first == i; ++next) {
        if (std::find(steps.begin() + static_cast<std::ptrdiff_t>(group), steps.end(), next->second) == steps.end())
          steps.push_back(next->second);
      }
      if (i < parent.length() && !dropped_[i]) steps.push_back(parent.own.schedule.steps[i]);
    }
    return steps;
  }

  const core::Graph& graph_;
  std::int64_t budget_;
  Scope scope_;
  const std::vector<std::int32_t>& rank_;
  /// Nodes to insert, each with the step of the parent before which it is inserted.
  std::vector<std::pair<Step, NodeId>> inserted_;
  std::vector<std::uint8_t> dropped_, known_;
  std::vector<Step> chain_, lost_;
};

/// Holds the islands, i.e. groups of schedules that evolve separately, and makes one generation after another.
class Population {
 public:
  Population(const core::Graph& graph, std::span<const core::Schedule> starts, std::int64_t budget,
             const PopulationOptions& options, sim::Simulator& simulator)
      : graph_(graph), budget_(budget), options_(options), simulator_(simulator), rank_(input_ranks(graph)) {
    for (const core::Schedule& start : starts) candidates_.push_back({start.steps, islands_++});
    const int threads = options.threads > 0 ? options.threads : core::thread_count();
    for (int t = 0; t < threads; ++t) editors_.emplace_back(graph, budget, options.scope, rank_);
    survivors_.resize(islands_);
    evaluate();
    select();
    for (const auto& island : survivors_) {
      if (island.empty()) throw std::logic_error("evolve() was given an invalid schedule, or one outside the scope");
    }
  }

  void generation(int number) {
    candidates_.clear();
    candidates_.resize(static_cast<std::size_t>(count()));
    constexpr std::int64_t kBlock = 8;
    core::parallel_blocks(std::ssize(candidates_), kBlock, static_cast<int>(editors_.size()),
                          [&](std::int64_t begin, std::int64_t end, int thread) {
                            for (std::int64_t c = begin; c < end; ++c)
                              make(number, static_cast<std::size_t>(c), editors_[static_cast<std::size_t>(thread)]);
                          });
    evaluate();
    select();
  }

  std::int64_t take_work() { return std::exchange(work_, 0); }

  std::vector<Individual> best() && {
    std::vector<Parent> best;
    for (auto& island : survivors_) {
      if (!island.empty()) best.push_back(std::move(island.front()));
    }
    std::stable_sort(best.begin(), best.end(), [&](auto& a, auto& b) { return a.key(budget_) < b.key(budget_); });
    std::vector<Individual> result;
    for (Parent& parent : best) result.push_back(std::move(parent.own));
    return result;
  }

 private:
  struct Candidate {
    std::vector<NodeId> steps;
    std::size_t island = 0;
  };

  /// Returns the number of candidates of the next generation. It is limited so that a generation of a large graph is
  /// fast.
  std::int64_t count() const {
    constexpr std::int64_t kMostSteps = 1 << 20;
    std::int64_t longest = 1;
    for (const auto& island : survivors_) {
      for (const Parent& parent : island) longest = std::max<std::int64_t>(longest, parent.length());
    }
    return std::max<std::int64_t>(static_cast<std::int64_t>(islands_),
                                  std::min<std::int64_t>(options_.candidates, kMostSteps / longest));
  }

  void make(int generation, std::size_t c, Editor& editor) {
    // Each candidate has its own seed, so that it does not depend on which thread makes it.
    Random seeds(options_.seed + 0x632be59bd9b4e019ULL * static_cast<std::uint64_t>(generation));
    Random random(seeds.next() + 0x9e6c63d0876a9a47ULL * static_cast<std::uint64_t>(c));
    Candidate& candidate = candidates_[c];
    candidate.island = c % islands_;
    const std::vector<Parent>& island = survivors_[candidate.island];
    const Parent& parent = draw(random, island);
    if (draw_below(random, 16) == 0) {
      candidate.steps = editor.crossed(parent, draw(random, island), random);
    } else {
      candidate.steps = editor.edited(parent, random);
    }
  }

  void evaluate() {
    sim::ScheduleBatch batch(graph_.node_count());
    for (const Candidate& candidate : candidates_) batch.add(candidate.steps);
    work_ += batch.total_steps();
    if (!instead_) {
      try {
        simulator_.evaluate(batch, outcomes_);
        return;
      } catch (const core::DeviceError&) {
        instead_ = sim::host_simulator(graph_, options_.threads);  // gives the same answers
      }
    }
    instead_->evaluate(batch, outcomes_);
  }

  /// Replaces survivors by better candidates. Of several schedules of an island with equal peak and cost, only one
  /// survives.
  void select() {
    std::vector<std::vector<std::size_t>> order(islands_);
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      if (outcomes_.valid[c]) order[candidates_[c].island].push_back(c);
    }
    const auto key = [&](std::size_t c) { return rank_of(budget_, outcomes_.peak[c], outcomes_.cost[c]); };
    const auto most = static_cast<std::size_t>(options_.survivors);
    for (std::size_t i = 0; i < islands_; ++i) {
      auto& island = survivors_[i];
      std::stable_sort(order[i].begin(), order[i].end(), [&](auto a, auto b) { return key(a) < key(b); });
      for (const std::size_t c : order[i]) {
        const auto at = std::lower_bound(island.begin(), island.end(), key(c),
                                         [&](const Parent& parent, const auto& k) { return parent.key(budget_) < k; });
        if (at == island.begin() + static_cast<std::ptrdiff_t>(most)) break;
        if (at != island.end() && at->key(budget_) == key(c)) continue;
        Parent parent;
        parent.own = {{std::move(candidates_[c].steps)}, outcomes_.peak[c], outcomes_.cost[c]};
        if (options_.scope != kAnySchedule && !options_.scope.contains(graph_, parent.own.schedule)) continue;
        parent.peak_step = outcomes_.peak_step[c];
        complete(graph_, parent);
        island.insert(at, std::move(parent));
        if (island.size() > most) island.pop_back();
      }
    }
  }

  const core::Graph& graph_;
  std::int64_t budget_;
  const PopulationOptions& options_;
  sim::Simulator& simulator_;
  /// Simulator on the host, which replaces simulator_ after the device of simulator_ has failed. Until then, it is
  /// null.
  std::unique_ptr<sim::Simulator> instead_;
  std::vector<std::int32_t> rank_;
  std::vector<Editor> editors_;
  std::size_t islands_ = 0;
  std::vector<std::vector<Parent>> survivors_;  ///< survivors of each island, best first
  std::vector<Candidate> candidates_;
  sim::Outcomes outcomes_;
  std::int64_t work_ = 0;
};

}  // namespace

std::vector<Individual> evolve(const core::Graph& graph, std::span<const core::Schedule> starts, std::int64_t budget,
                               const PopulationOptions& options, sim::Simulator& simulator, core::Stopwatch& watch) {
  if (starts.empty()) return {};
  Population population(graph, starts, budget, options, simulator);
  for (int i = 0; i < options.generations; ++i) {
    if (watch.charge(population.take_work()).expired_now()) break;
    population.generation(i);
  }
  watch.charge(population.take_work());
  return std::move(population).best();
}

void offer_evolved(const core::Graph& graph, const SolveOptions& options, Incumbent& incumbent,
                   core::Stopwatch& watch) {
  constexpr double kPart = 0.1;
  constexpr int kGenerations = 200;
  constexpr std::uint64_t kStarts = 4;
  if (!options.budget || options.simulator == nullptr || incumbent.schedule().steps.empty()) return;
  core::within(watch, kPart, [&](core::Stopwatch& part) {
    std::vector<core::Schedule> starts{incumbent.schedule()};
    core::EditableSchedule work(graph);
    for (std::uint64_t i = 1; i < kStarts && incumbent.scope().max_occurrences == 0 && !part.expired_now(); ++i) {
      work.assign(incumbent.schedule().steps);
      core::within(part, 0.1, [&](core::Stopwatch& one) {
        evict_until_it_fits(graph, work, *options.budget, kStarts * options.seed + i, one);
      });
      core::Schedule start{work.steps()};
      if (incumbent.scope().contains(graph, start)) starts.push_back(std::move(start));
    }
    const PopulationOptions population{
        .generations = kGenerations, .seed = options.seed, .scope = incumbent.scope(), .threads = 0};
    for (const Individual& one : evolve(graph, starts, *options.budget, population, *options.simulator, part))
      incumbent.offer(one.schedule);
  });
}

}  // namespace cairn::solvers
