#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/random.h"
#include "cairn/solvers/remat/internal/max_tree.h"
#include "cairn/solvers/remat/internal/refine.h"

namespace cairn::solvers {
namespace {

using core::NodeId;

/// Who reads what in a schedule, and the memory of every step.
struct Trace {
  Trace(const core::Graph& graph, const core::Schedule& schedule)
      : steps(schedule.steps),
        length(schedule.length()),
        last(steps.size()),
        read_begin(steps.size() + 1, 0),
        occurrences(graph.node_count()),
        during(steps.size()) {
    std::vector<std::int64_t> sources;
    std::vector<std::int64_t> latest(graph.node_count(), -1);
    for (std::int64_t i = 0; i < length; ++i) {
      for (const NodeId u : graph.inputs(steps[i])) {
        sources.push_back(latest[u]);
        ++read_begin[latest[u] + 1];
      }
      latest[steps[i]] = i;
      occurrences[steps[i]].push_back(i);
    }
    for (std::int64_t i = 0; i < length; ++i) read_begin[i + 1] += read_begin[i];
    reads.resize(sources.size());
    std::vector<std::int64_t> fill(read_begin.begin(), read_begin.end() - 1);
    std::size_t e = 0;
    for (std::int64_t i = 0; i < length; ++i) {
      for (std::size_t k = 0; k < graph.inputs(steps[i]).size(); ++k) reads[fill[sources[e++]]++] = i;
    }
    std::vector<std::int64_t> delta(length + 2, 0);
    for (std::int64_t i = 0; i < length; ++i) {
      const NodeId v = steps[i];
      last[i] = read_begin[i] == read_begin[i + 1] ? i : reads[read_begin[i + 1] - 1];
      if (graph.keep(v) && latest[v] == i) last[i] = length;
      delta[i] += graph.size(v);
      delta[last[i] + 1] -= graph.size(v);
    }
    std::int64_t live = 0;
    for (std::int64_t i = 0; i < length; ++i) {
      live += delta[i];
      during[i] = live + graph.scratch(steps[i]);
    }
  }

  /// The occurrence of v that a step inserted right before `position` would read.
  std::int64_t occurrence_before(NodeId v, std::int64_t position) const {
    const auto& all = occurrences[v];
    return *(std::lower_bound(all.begin(), all.end(), position) - 1);
  }

  const std::vector<NodeId>& steps;
  std::int64_t length;
  std::vector<std::int64_t> last;                      ///< end of each occurrence's lifetime
  std::vector<std::int64_t> read_begin, reads;         ///< steps that read each occurrence, ascending
  std::vector<std::vector<std::int64_t>> occurrences;  ///< of each node
  std::vector<std::int64_t> during;
};

/// A value dropped across the worst step, and what must run again right before `position` for it.
struct Drop {
  std::int64_t occurrence = 0;
  std::int64_t position = 0;
  std::vector<NodeId> closure;
  std::int64_t freed = 0;  ///< bytes at the worst step
  double price = 0;        ///< cost a byte
};

class Evictor {
 public:
  Evictor(const core::Graph& graph, std::int64_t budget, std::uint64_t noise_seed)
      : graph_(graph),
        budget_(budget),
        noisy_(noise_seed != 0),
        random_(noise_seed),
        rank_(graph.node_count()),
        stamp_(graph.node_count(), 0) {
    const auto order = graph.input_order();
    for (std::size_t i = 0; i < order.size(); ++i) rank_[order[i]] = static_cast<std::int32_t>(i);
  }

  /// The schedule with drops at its worst step, or nothing when no value can be dropped there.
  std::optional<core::Schedule> relieve(const Trace& trace, std::int64_t worst) {
    const MaxTree memory(trace.during);
    std::vector<Drop> drops;
    for (std::int64_t o = 0; o < worst; ++o) {
      if (trace.last[o] <= worst || graph_.size(trace.steps[o]) == 0) continue;
      if (auto drop = consider(trace, memory, o, worst)) drops.push_back(std::move(*drop));
    }
    std::sort(drops.begin(), drops.end(), [](const Drop& a, const Drop& b) {
      return a.price != b.price ? a.price < b.price : a.occurrence < b.occurrence;
    });
    return apply(trace, std::move(drops), trace.during[worst] - budget_);
  }

 private:
  static constexpr std::size_t kMostClosure = 256;

  std::optional<Drop> consider(const Trace& trace, const MaxTree& memory, std::int64_t o, std::int64_t worst) {
    const auto begin = trace.reads.begin() + trace.read_begin[o], end = trace.reads.begin() + trace.read_begin[o + 1];
    const auto next = std::lower_bound(begin, end, worst);
    if (next != end && *next == worst) return std::nullopt;
    Drop drop;
    drop.occurrence = o;
    drop.position = next == end ? trace.length : *next;
    drop.freed = graph_.size(trace.steps[o]);
    drop.closure.push_back(trace.steps[o]);
    ++current_;
    stamp_[trace.steps[o]] = current_;
    std::int64_t cost = 0;
    for (std::size_t i = 0; i < drop.closure.size(); ++i) {
      cost += graph_.cost(drop.closure[i]);
      for (const NodeId u : graph_.inputs(drop.closure[i])) {
        if (stamp_[u] == current_) continue;
        stamp_[u] = current_;
        const std::int64_t source = trace.occurrence_before(u, drop.position);
        const std::int64_t last = trace.last[source], bytes = graph_.size(u);
        if (last >= drop.position || bytes == 0) continue;  // still there
        if (last >= worst) {
          if (memory.max(last + 1, drop.position - 1) <= budget_ - bytes) continue;  // it may as well stay until then
        } else if (bytes < drop.freed && prefers_to_hold(bytes, drop.freed)) {
          drop.freed -= bytes;
          continue;
        }
        if (drop.closure.size() == kMostClosure) return std::nullopt;
        drop.closure.push_back(u);
      }
    }
    const double noise = noisy_ ? 0.5 + random_.uniform() : 1.0;
    drop.price = (static_cast<double>(cost) + 1e-3) / static_cast<double>(drop.freed) * noise;
    std::sort(drop.closure.begin(), drop.closure.end(), [&](NodeId a, NodeId b) { return rank_[a] < rank_[b]; });
    return drop;
  }

  /// Whether an input that is dead at the worst step should live on across it rather than be computed again.
  bool prefers_to_hold(std::int64_t bytes, std::int64_t freed) {
    if (noisy_) return random_.uniform() < 0.5 && 2 * bytes < freed;
    return 16 * bytes < freed;
  }

  std::optional<core::Schedule> apply(const Trace& trace, std::vector<Drop> drops, std::int64_t excess) {
    std::vector<std::int64_t> available_from(trace.length, -1);  // where a dropped occurrence comes back
    std::vector<std::uint8_t> pinned(trace.length, 0);           // read by what runs again
    std::vector<const Drop*> chosen;
    for (const Drop& drop : drops) {
      if (excess <= 0) break;
      if (pinned[drop.occurrence]) continue;
      const bool usable = std::none_of(drop.closure.begin(), drop.closure.end(), [&](NodeId v) {
        return std::any_of(graph_.inputs(v).begin(), graph_.inputs(v).end(), [&](NodeId u) {
          return available_from[trace.occurrence_before(u, drop.position)] > drop.position;
        });
      });
      if (!usable && !chosen.empty()) continue;
      for (const NodeId v : drop.closure) {
        for (const NodeId u : graph_.inputs(v)) pinned[trace.occurrence_before(u, drop.position)] = 1;
      }
      available_from[drop.occurrence] = drop.position;
      excess -= drop.freed;
      chosen.push_back(&drop);
    }
    if (chosen.empty()) return std::nullopt;
    std::stable_sort(chosen.begin(), chosen.end(),
                     [](const Drop* a, const Drop* b) { return a->position < b->position; });
    core::Schedule result;
    auto next = chosen.begin();
    for (std::int64_t i = 0; i <= trace.length; ++i) {
      ++current_;
      std::vector<NodeId> again;
      for (; next != chosen.end() && (*next)->position == i; ++next) {
        for (const NodeId v : (*next)->closure) {
          if (stamp_[v] != current_) again.push_back(v);
          stamp_[v] = current_;
        }
      }
      std::sort(again.begin(), again.end(), [&](NodeId a, NodeId b) { return rank_[a] < rank_[b]; });
      result.steps.insert(result.steps.end(), again.begin(), again.end());
      if (i < trace.length) result.steps.push_back(trace.steps[i]);
    }
    return result;
  }

  const core::Graph& graph_;
  std::int64_t budget_;
  bool noisy_;
  core::Random random_;
  std::vector<std::int32_t> rank_;
  std::vector<std::uint64_t> stamp_;
  std::uint64_t current_ = 0;
};

}  // namespace

Eviction evict_until_it_fits(const core::Graph& graph, const core::Schedule& schedule, std::int64_t budget,
                             std::uint64_t noise_seed, core::Stopwatch& watch) {
  constexpr int kPatience = 40;
  Evictor evictor(graph, budget, noise_seed);
  Eviction current{core::drop_unread(graph, schedule), false};
  Eviction best = current;
  std::int64_t best_peak = std::numeric_limits<std::int64_t>::max();
  int stalled = 0;
  while (true) {
    const Trace trace(graph, current.schedule);
    const auto worst = std::max_element(trace.during.begin(), trace.during.end()) - trace.during.begin();
    const std::int64_t peak = trace.during.empty() ? 0 : trace.during[worst];
    if (peak <= budget) return {std::move(current.schedule), true};
    if (peak < best_peak) {
      best_peak = peak;
      best.schedule = current.schedule;
      stalled = 0;
    }
    const bool too_long = trace.length > 16 * static_cast<std::int64_t>(graph.node_count()) + 64;
    if (++stalled > kPatience || too_long || watch.charge(trace.length).expired()) return best;
    auto next = evictor.relieve(trace, worst);
    if (!next) return best;
    current.schedule = core::drop_unread(graph, *next);
  }
}

}  // namespace cairn::solvers
