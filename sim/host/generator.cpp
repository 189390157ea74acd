#include "cairn/sim/generator.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/sim/device/random_order.h"

namespace cairn::sim {

std::int64_t most_steps(const Generator& generator, core::NodeId nodes, std::int64_t edges) {
  if (generator.moves < 0)
    throw core::InputError("a generator has " + std::to_string(generator.moves) + " moves; it takes 0 or more");
  return nodes + std::min<std::int64_t>(generator.moves, edges);
}

core::Schedule generate(const core::Graph& graph, const Generator& generator, std::int64_t index) {
  const core::NodeId n = graph.node_count();
  const std::vector<std::int32_t> levels = device::node_levels(graph);
  const std::uint32_t shift =
      device::waiting_time_shift(levels.empty() ? 0 : *std::max_element(levels.begin(), levels.end()) + 1);
  std::vector<std::uint32_t> key(static_cast<std::size_t>(n));
  std::vector<core::NodeId> order = device::nodes_by_level(levels);
  for (core::NodeId i = 0; i < n; ++i) {
    const core::NodeId v = order[i];
    std::uint32_t ready = 0;
    for (const core::NodeId u : graph.predecessors(v)) ready = std::max(ready, key[u]);
    const Philox words = device::random_words(generator.seed, index, device::kWaitingTimes,
                                              static_cast<std::uint32_t>(i / device::kHalves));
    key[v] = ready + device::waiting_time(device::half_of(words, i % device::kHalves), shift);
  }
  std::sort(order.begin(), order.end(),
            [&](core::NodeId a, core::NodeId b) { return key[a] != key[b] ? key[a] < key[b] : a < b; });
  const std::int32_t* edge_begin = graph.view().predecessor_begin;
  const auto edges = static_cast<std::uint32_t>(edge_begin[n]);
  if (generator.moves == 0 || edges == 0) return {std::move(order)};

  std::vector<std::uint8_t> chosen(edges, 0);
  const std::int32_t moves = device::move_count(generator.seed, index, generator.moves);
  for (std::int32_t move = 0; move < moves; ++move) {
    chosen[device::below(device::random_word(generator.seed, index, device::kMoves, move), edges)] = 1;
  }
  core::Schedule schedule;
  for (const core::NodeId v : order) {
    std::int32_t e = edge_begin[v];
    for (const core::NodeId u : graph.predecessors(v)) {
      if (chosen[e++] != 0 && !graph.pinned(u)) schedule.steps.push_back(u);
    }
    schedule.steps.push_back(v);
  }
  return schedule;
}

}  // namespace cairn::sim
