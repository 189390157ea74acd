#include "cairn/sim/generator.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/sim/device/drawing/random_order.h"
#include "cairn/sim/device/transfers/copies.h"

namespace cairn::sim {

std::int64_t most_steps(const Generator& generator, core::NodeId nodes, std::int64_t edges) {
  if (generator.moves < 0)
    throw core::InputError("a generator has " + std::to_string(generator.moves) + " moves; it takes 0 or more");
  if (generator.transfers < 0)
    throw core::InputError("a generator has " + std::to_string(generator.transfers) + " transfers; it takes 0 or more");
  return nodes + std::min<std::int64_t>(generator.moves, edges);
}

namespace {

/// Returns candidate `index` of the generator without its transfers.
core::Schedule generate_steps(const core::Graph& graph, const Generator& generator, std::int64_t index) {
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

/// Draws the transfers of candidate `index` and adds them to `schedule`, which holds the candidate's steps.
void add_transfers(const core::Graph& graph, const Generator& generator, std::int64_t index, core::Schedule& schedule) {
  const auto length = static_cast<std::uint32_t>(schedule.length());
  const std::vector<device::MovedValue> values = device::moved_values(graph);
  const std::uint32_t wanted = device::below(device::random_word(generator.seed, index, device::kTransferCount, 0),
                                             static_cast<std::uint32_t>(generator.transfers) + 1);
  auto& [evicts, fetches] = schedule.transfers;
  struct Use {
    std::uint32_t step = 0, made = 0;
    bool drawn = false;
  };
  std::vector<Use> uses(values.size());
  for (std::uint32_t i = 0; i < length && std::ssize(evicts) < generator.transfers; ++i) {
    const auto inputs = graph.inputs(schedule.steps[i]);
    const Philox words = device::random_words(generator.seed, index, device::kTransfers, i);
    if (!inputs.empty() && device::below(words.word[0], length) < wanted) {
      const core::ValueId x = inputs[device::below(words.word[1], static_cast<std::uint32_t>(inputs.size()))];
      if (Use& use = uses[x]; !use.drawn && values[x].time >= 0) {
        use.drawn = true;
        const std::uint32_t finish = use.step + 1 + device::below(words.word[2], i - use.step);
        const std::uint32_t start = finish - 1 + device::below(words.word[3], i - finish + 1);
        fetches.push_back({static_cast<std::int32_t>(evicts.size()), start, i});
        evicts.push_back({x, use.made, use.step, finish});
      }
    }
    for (const core::ValueId x : inputs) uses[x].step = i;
    for (const core::ValueId x : graph.outputs(schedule.steps[i])) {
      uses[x].step = uses[x].made = i;
    }
  }
}

}  // namespace

core::Schedule generate(const core::Graph& graph, const Generator& generator, std::int64_t index) {
  core::Schedule schedule = generate_steps(graph, generator, index);
  if (generator.transfers > 0) add_transfers(graph, generator, index, schedule);
  return schedule;
}

}  // namespace cairn::sim
