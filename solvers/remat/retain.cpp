#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cairn/core/random.h"
#include "cairn/solvers/remat/internal/max_tree.h"
#include "cairn/solvers/remat/internal/refine.h"

namespace cairn::solvers {
namespace {

using core::NodeId;

/// A schedule whose steps can be taken out one by one while every lifetime stays known.
class Retainer {
 public:
  Retainer(const core::Graph& graph, const core::Schedule& schedule)
      : graph_(graph),
        steps_(schedule.steps),
        length_(schedule.length()),
        reads_(steps_.size()),
        previous_(steps_.size(), -1),
        next_(steps_.size(), -1),
        removed_(steps_.size(), 0),
        memory_(profile()) {}

  std::int64_t length() const { return length_; }
  bool is_recomputation(std::int64_t j) const { return !removed_[j] && previous_[j] >= 0; }
  std::int64_t gap(std::int64_t j) const { return j - last(previous_[j]); }
  NodeId node(std::int64_t j) const { return steps_[j]; }

  /// Takes recomputation j out if its value can stay in memory until then within the budget.
  bool retain(std::int64_t j, std::int64_t budget) {
    const std::int64_t p = previous_[j];
    const std::int64_t bytes = graph_.size(steps_[j]);
    if (bytes > 0 && memory_.max(last(p) + 1, j - 1) > budget - bytes) return false;
    memory_.add(last(p) + 1, j - 1, bytes);
    memory_.add(j, j, -graph_.scratch(steps_[j]));
    reads_[p].insert(reads_[p].end(), reads_[j].begin(), reads_[j].end());
    reads_[j].clear();
    unlink(j);
    return true;
  }

  core::Schedule result() const {
    core::Schedule schedule;
    for (std::int64_t i = 0; i < length_; ++i) {
      if (!removed_[i]) schedule.steps.push_back(steps_[i]);
    }
    return schedule;
  }

 private:
  /// The end of occurrence i's lifetime.
  std::int64_t last(std::int64_t i) const {
    if (next_[i] < 0 && graph_.keep(steps_[i])) return length_;
    return reads_[i].empty() ? i : reads_[i].back();
  }

  std::vector<std::int64_t> profile() {
    std::vector<std::int64_t> latest(graph_.node_count(), -1);
    source_begin_.push_back(0);
    for (std::int64_t i = 0; i < length_; ++i) {
      const NodeId v = steps_[i];
      for (const NodeId u : graph_.inputs(v)) {
        reads_[latest[u]].push_back(i);
        sources_.push_back(latest[u]);
      }
      source_begin_.push_back(sources_.size());
      previous_[i] = latest[v];
      if (latest[v] >= 0) next_[latest[v]] = i;
      latest[v] = i;
    }
    std::vector<std::int64_t> delta(length_ + 2, 0);
    for (std::int64_t i = 0; i < length_; ++i) {
      delta[i] += graph_.size(steps_[i]);
      delta[last(i) + 1] -= graph_.size(steps_[i]);
    }
    std::partial_sum(delta.begin(), delta.end(), delta.begin());
    delta.resize(length_);
    for (std::int64_t i = 0; i < length_; ++i) delta[i] += graph_.scratch(steps_[i]);
    return delta;
  }

  /// Takes step `first` out: its reads end, and what nobody reads any more goes as well.
  void unlink(std::int64_t first) {
    std::vector<std::int64_t> unread{first};
    while (!unread.empty()) {
      const std::int64_t j = unread.back();
      unread.pop_back();
      removed_[j] = 1;
      if (previous_[j] >= 0) next_[previous_[j]] = next_[j];
      if (next_[j] >= 0) previous_[next_[j]] = previous_[j];
      for (std::size_t e = source_begin_[j]; e < source_begin_[j + 1]; ++e) {
        if (const std::int64_t source = end_read(j, sources_[e]); source >= 0) unread.push_back(source);
      }
    }
  }

  /// Step j no longer reads what `source` provided. Returns the occurrence if it is now unread and out of memory, else
  /// -1.
  std::int64_t end_read(std::int64_t j, std::int64_t source) {
    // Whoever provided the value may have been taken out since; then the one before it does.
    while (removed_[source]) source = previous_[source];
    const std::int64_t before = last(source);
    auto& row = reads_[source];
    row.erase(std::lower_bound(row.begin(), row.end(), j));
    const std::int64_t after = last(source);
    memory_.add(after + 1, std::min(before, length_ - 1), -graph_.size(steps_[source]));
    if (!row.empty() || (next_[source] < 0 && graph_.required(steps_[source]))) return -1;
    memory_.add(source, source, -graph_.size(steps_[source]) - graph_.scratch(steps_[source]));
    return source;
  }

  const core::Graph& graph_;
  std::vector<NodeId> steps_;
  std::int64_t length_;
  std::vector<std::vector<std::int64_t>> reads_;  ///< steps that read each occurrence, ascending
  std::vector<std::int64_t> previous_, next_;     ///< occurrences of the same node
  std::vector<std::uint8_t> removed_;
  std::vector<std::int64_t> sources_;  ///< the occurrences that each step read at first
  std::vector<std::size_t> source_begin_;
  MaxTree memory_;  ///< during(i), initialised last
};

}  // namespace

core::Schedule retain_where_it_fits(const core::Graph& graph, const core::Schedule& schedule, std::int64_t budget,
                                    std::uint64_t noise_seed) {
  constexpr int kMostRounds = 4;
  core::Random random(noise_seed);
  core::Schedule current = core::drop_unread(graph, schedule);
  for (int round = 0; round < kMostRounds; ++round) {
    Retainer retainer(graph, current);
    struct Candidate {
      double worth;
      std::int64_t step;
    };
    std::vector<Candidate> candidates;
    for (std::int64_t j = 0; j < retainer.length(); ++j) {
      if (!retainer.is_recomputation(j)) continue;
      const NodeId v = retainer.node(j);
      const double area = static_cast<double>(graph.size(v)) * static_cast<double>(retainer.gap(j)) + 1.0;
      const double noise = noise_seed == 0 ? 1.0 : 0.25 + 1.5 * random.uniform();
      candidates.push_back({(static_cast<double>(graph.cost(v)) + 1e-3) / area * noise, j});
    }
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.worth != b.worth ? a.worth > b.worth : a.step > b.step;
    });
    bool changed = false;
    for (const Candidate& candidate : candidates) {
      if (retainer.is_recomputation(candidate.step)) changed |= retainer.retain(candidate.step, budget);
    }
    if (!changed) break;
    current = retainer.result();
  }
  return current;
}

}  // namespace cairn::solvers
