#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/link.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/reference/transfer_search.h"
#include "cairn/tests/support/random_graph.h"

/// This file makes small random problems with a link. They are so small that brute force can solve them.
namespace cairn::tests {

/// A graph, limits on memory, and a link over which a copy takes about as long as a node.
struct TransferInstance {
  core::Graph graph;
  core::Link link;
  core::reference::TransferLimits limits;
};

/// Returns a random instance of at most `nodes` nodes. Returns nothing if memory is not scarce in it, or if it has more
/// than `values` values.
inline std::optional<TransferInstance> random_transfer_instance(Random& random, core::NodeId nodes,
                                                                core::ValueId values) {
  core::Graph graph = tests::random_graph(random, tests::any_graph(random, {.max_nodes = nodes}));
  if (graph.value_count() > values) return std::nullopt;
  std::vector<std::int64_t> costs;
  std::int64_t largest = 1;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) costs.push_back(random.between(1, 20));
  for (core::ValueId x = 0; x < graph.value_count(); ++x) largest = std::max(largest, graph.value_size(x));
  const std::int64_t low = core::reference::peak_lower_bound(graph);
  const std::int64_t high = core::reference::least_peak_without_recomputation(graph);
  if (low == high) return std::nullopt;
  const std::int64_t device = random.between(low, high - 1);
  return TransferInstance{.graph = graph.with_costs(costs, core::CostUnit{.name = "ns", .source = ""}),
                          .link = {.bytes_per_second = largest * 1'000'000'000 / random.between(1, 30),
                                   .latency_ns = random.below(3),
                                   .duplex = random.chance(50)},
                          .limits = {.device = device, .host = random.below(1 + 2 * device)}};
}

}  // namespace cairn::tests
