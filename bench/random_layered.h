#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <utility>

#include "cairn/core/graph.h"

namespace cairn::bench {

/// Returns a random graph with layers of 100 nodes, in which edges join neighbouring layers. Outputs have up to 1 MiB,
/// and costs are at most 1000. A seed gives the same graph on every platform.
inline core::Graph random_layered(core::NodeId nodes, std::int64_t edges, std::uint64_t seed = 1) {
  constexpr core::NodeId kWidth = 100;
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  core::GraphBuilder builder("random_layered");
  for (core::NodeId v = 0; v < nodes; ++v) {
    core::Node node;
    node.size = 1 + below(1 << 20);
    node.cost = 1 + below(1000);
    builder.add(std::move(node));
  }
  std::set<std::pair<core::NodeId, core::NodeId>> known;
  const auto connect = [&](core::NodeId v) {
    const auto u = static_cast<core::NodeId>((v / kWidth - 1) * kWidth + below(kWidth));
    if (known.emplace(u, v).second) builder.add_input(v, u);
  };
  for (core::NodeId v = kWidth; v < nodes; ++v) connect(v);
  while (static_cast<std::int64_t>(known.size()) < edges) {
    connect(static_cast<core::NodeId>(kWidth + below(nodes - kWidth)));
  }
  return builder.build();
}

/// Returns the training graph of a chain with residual edges. The graph consists of a forward half and a backward half.
/// For each i, the i-th node from the end, which is a backward node, reads the i-th node.
inline core::Graph training_chain(core::NodeId nodes, std::int64_t edges, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  const core::NodeId half = nodes / 2;
  core::GraphBuilder builder("training_chain");
  std::set<std::pair<core::NodeId, core::NodeId>> known;
  for (core::NodeId v = 0; v < nodes; ++v) {
    core::Node node;
    node.size = static_cast<std::int64_t>(1 + random() % (1 << 20));
    node.cost = static_cast<std::int64_t>(1 + random() % 1000);
    node.backward = v >= half;
    builder.add(std::move(node));
  }
  const auto connect = [&](core::NodeId u, core::NodeId v) {
    if (u < v && v < nodes && known.emplace(u, v).second) builder.add_input(v, u);
  };
  for (core::NodeId v = 1; v < nodes; ++v) connect(v - 1, v);
  for (core::NodeId v = half; v < nodes; ++v) connect(2 * half - 1 - v, v);
  while (static_cast<std::int64_t>(known.size()) < edges) {
    const auto u = static_cast<core::NodeId>(random() % static_cast<std::uint64_t>(half - 8));
    connect(u, u + 2 + static_cast<core::NodeId>(random() % 7));
  }
  return builder.build();
}

}  // namespace cairn::bench
