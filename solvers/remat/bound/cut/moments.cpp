#include "cairn/solvers/remat/bound/cut/moments.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>
#include <utility>

namespace cairn::solvers {

Moments::Moments(const core::Graph& graph, Moment moment) : graph_(&graph) {
  moments_.push_back(std::move(moment));
  find_stages();
}

std::optional<Moments> Moments::with(Moment moment) const {
  if (count() == kMost || place(moment.node) < count()) return std::nullopt;
  const auto later = std::ranges::find_if(moments_, [&](const Moment& m) { return m.is_before(moment.node); });
  const auto is_before_it = [&](const Moment& m) { return moment.is_before(m.node); };
  if (!std::all_of(moments_.begin(), later, is_before_it)) return std::nullopt;
  Moments more = *this;
  more.moments_.insert(more.moments_.begin() + (later - moments_.begin()), std::move(moment));
  more.find_stages();
  return more;
}

int Moments::place(core::NodeId node) const {
  return static_cast<int>(std::ranges::find(moments_, node, &Moment::node) - moments_.begin());
}

void Moments::find_stages() {
  const core::NodeId n = graph_->node_count();
  earliest_.assign(n, 0);
  latest_.assign(n, static_cast<std::int8_t>(count()));
  free_.assign(graph_->value_count(), 0);
  for (int t = count(); t-- > 0;) {
    const Moment& moment = moments_[static_cast<std::size_t>(t)];
    for (core::NodeId v = 0; v < n; ++v) {
      if (moment.is_before(v) || v == moment.node) latest_[v] = static_cast<std::int8_t>(t);
      if (moment.is_after(v) && v != moment.node && earliest_[v] == 0) earliest_[v] = static_cast<std::int8_t>(t + 1);
    }
    for (core::ValueId x = 0; x < graph_->value_count(); ++x) {
      if (moment.free[x] != 0) free_[x] |= static_cast<StageSet>(1 << t);
    }
    for (const core::ValueId x : graph_->outputs(moment.node)) free_[x] |= static_cast<StageSet>(1 << t);
  }
}

namespace {

/// Makes the schedule of follow_choice().
class ChoiceFollower {
 public:
  ChoiceFollower(const core::Graph& graph, const MomentsChoice& choice)
      : graph_(graph), choice_(choice), there_(graph.value_count(), 0), ran_(graph.node_count(), 0) {}

  core::Schedule run() {
    for (std::size_t t = 0; t <= choice_.moments.size(); ++t) {
      const core::NodeId last = t < choice_.moments.size() ? choice_.moments[t] : core::kNoNode;
      for (const core::NodeId v : graph_.input_order()) {
        if (std::countr_zero(choice_.runs[v]) == static_cast<int>(t) && v != last && ran_[v] == 0) compute(v);
      }
      if (last == core::kNoNode) break;
      compute(last);
      for (core::ValueId x = 0; x < graph_.value_count(); ++x) {
        if ((choice_.held[x] >> t & 1) == 0 && !graph_.pinned(graph_.producer(x))) there_[x] = 0;
      }
    }
    for (core::ValueId x = 0; x < graph_.value_count(); ++x) {
      if (graph_.value_kept(x) && there_[x] == 0) compute(graph_.producer(x));
    }
    return std::move(schedule_);
  }

 private:
  /// Runs a node, and before it the nodes that make its missing inputs.
  void compute(core::NodeId target) {
    // Nodes that are to run, each with the index of its next input to check
    std::vector<std::pair<core::NodeId, std::size_t>> open{{target, 0}};
    while (!open.empty()) {
      auto& [v, next] = open.back();
      const std::span<const core::ValueId> inputs = graph_.inputs(v);
      while (next < inputs.size() && there_[inputs[next]] != 0) ++next;
      if (next < inputs.size()) {
        open.emplace_back(graph_.producer(inputs[next]), 0);
        continue;
      }
      schedule_.steps.push_back(v);
      ran_[v] = 1;
      for (const core::ValueId x : graph_.outputs(v)) there_[x] = 1;
      open.pop_back();
    }
  }

  const core::Graph& graph_;
  const MomentsChoice& choice_;
  std::vector<std::uint8_t> there_;  ///< for each value, whether it can be read
  std::vector<std::uint8_t> ran_;    ///< for each node, whether it has run
  core::Schedule schedule_;
};

}  // namespace

core::Schedule follow_choice(const core::Graph& graph, const MomentsChoice& choice) {
  return ChoiceFollower(graph, choice).run();
}

}  // namespace cairn::solvers
