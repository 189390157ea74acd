#include "cairn/solvers/remat/repair/input_ranks.h"

#include <algorithm>
#include <utility>

namespace cairn::solvers {

std::vector<std::int32_t> input_ranks(const core::Graph& graph) {
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(graph.node_count()));
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[graph.input_order()[i]] = static_cast<std::int32_t>(i);
  return ranks;
}

std::vector<core::NodeId> in_stages(std::vector<core::NodeId> steps, const std::vector<std::int32_t>& ranks) {
  std::vector<std::uint8_t> ran(ranks.size(), 0);
  auto begin = steps.begin();
  std::vector<core::NodeId> staged;
  for (auto step = steps.begin(); step != steps.end(); ++step) {
    if (std::exchange(ran[*step], 1) != 0) continue;
    std::sort(begin, step, [&](core::NodeId a, core::NodeId b) { return ranks[a] < ranks[b]; });
    staged.insert(staged.end(), begin, std::unique(begin, step));
    staged.push_back(*step);
    begin = step + 1;
  }
  return staged;
}

}  // namespace cairn::solvers
