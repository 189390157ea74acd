#include "cairn/solvers/remat/bound/stage_uses.h"

namespace cairn::solvers {

StageUses::StageUses(const FirstRunStages& stages)
    : stages_(stages), active_begin_(static_cast<std::size_t>(stages.chain_length()) + 2, 0) {
  const core::Graph& graph = stages.graph();
  const std::int32_t end = stages.chain_length();
  const auto last_of = [&](core::NodeId v) {
    std::int32_t last = stages.node(v).last;
    for (const core::ValueId x : graph.outputs(v)) last = std::max(last, stages.value(x).until + 1);
    return std::min(last, end);
  };
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    for (std::int32_t t = stages.node(v).first; t <= last_of(v); ++t) ++active_begin_[static_cast<std::size_t>(t) + 1];
  }
  for (std::size_t t = 1; t < active_begin_.size(); ++t) active_begin_[t] += active_begin_[t - 1];
  active_.resize(active_begin_.back());
  std::vector<std::size_t> next(active_begin_);
  for (const core::NodeId v : graph.input_order()) {
    for (std::int32_t t = stages.node(v).first; t <= last_of(v); ++t) active_[next[static_cast<std::size_t>(t)]++] = v;
  }
  for (core::ValueId x = 0; x < graph.value_count(); ++x) {
    uses_begin_.push_back(uses_.size());
    for (const core::NodeId reader : graph.readers(x)) {
      if (stages.node(reader).first == stages.node(reader).due) uses_.push_back(stages.node(reader).due);
    }
    if (graph.value_kept(x)) uses_.push_back(end);
    std::sort(uses_.begin() + static_cast<std::ptrdiff_t>(uses_begin_.back()), uses_.end());
  }
  uses_begin_.push_back(uses_.size());
}

}  // namespace cairn::solvers
