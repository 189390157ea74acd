#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/solvers/order/internal/papers/node_sum.h"
#include "cairn/tests/reference/reference_order.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/show.h"

/// Makes random sequences, node-sum graphs and orders, for tests of definitions in Jin et al., "New Tools for Peak
/// Memory Scheduling".
namespace cairn::tests {

using Values = core::reference::Bytes;
using core::reference::Order;

/// Draws an upper bound for random weights. Small bounds make ties and zeros frequent.
inline std::int64_t random_bound(Random& random) {
  return random.pick(std::vector<std::int64_t>{0, 1, 1, 2, 2, 3, 10, 1000, std::int64_t{1} << 40});
}

/// Returns one to `max_length` random values. Half of the sequences repeat many values.
inline Values random_values(Random& random, std::int64_t max_length) {
  const std::int64_t bound = random_bound(random);
  const int flat = random.chance(50) ? 30 : 0;
  Values values;
  for (std::int64_t length = random.between(1, max_length); length > 0; --length) {
    const bool repeat = !values.empty() && random.chance(flat);
    values.push_back(repeat ? values.back() : random.between(-bound, bound));
  }
  return values;
}

/// Copies `values` entry by entry, sometimes repeats or skips an entry, and adds or subtracts small amounts. So in most
/// cases it is a close call whether `values` dominates the result, i.e. whether two pointers can go through both
/// sequences such that the entry of `values` is never above the entry of the result.
inline Values near_dominated(Random& random, const Values& values) {
  Values near;
  const int more = random.chance(50) ? 50 : 10, less = random.chance(50) ? 0 : 10;
  for (std::size_t i = 0; i < values.size();) {
    if (!near.empty() && i + 1 < values.size() && random.chance(10)) {
      ++i;  // skips an entry
      continue;
    }
    near.push_back(values[i] + (random.chance(more) ? random.between(0, 2) : 0) - (random.chance(less) ? 1 : 0));
    if (random.chance(70)) ++i;
  }
  return near;
}

/// Returns `values` after at most two small changes. Each change adds at most 1 to an entry or subtracts at most 1, or
/// inserts or removes an entry.
inline Values near_values(Random& random, Values values) {
  for (std::int64_t k = random.between(0, 2); k > 0; --k) {
    const auto place = random.place(values);
    switch (random.below(3)) {
      case 0:
        values[place] += random.between(-1, 1);
        break;
      case 1:
        values.insert(values.begin() + static_cast<std::ptrdiff_t>(place), values[place] + random.between(-1, 1));
        break;
      default:
        if (values.size() > 1) values.erase(values.begin() + static_cast<std::ptrdiff_t>(place));
    }
  }
  return values;
}

/// Calls visit(sequence) for every sequence of 1 to `max_length` values, each from 0 to `highest`.
template <class Visit>
void for_each_sequence(std::int64_t highest, std::size_t max_length, const Visit& visit) {
  std::vector<Values> shorter{{}};
  for (std::size_t length = 1; length <= max_length; ++length) {
    std::vector<Values> longer;
    for (const Values& values : shorter) {
      for (std::int64_t next = 0; next <= highest; ++next) {
        longer.push_back(values);
        longer.back().push_back(next);
        visit(longer.back());
      }
    }
    shorter = std::move(longer);
  }
}

/// Calls visit(sequence) for every sequence of 1 to `max_length` values from {0, 2^62 - 1, 2^62}. Profiles have no
/// larger values, because the sizes of all nodes of a graph sum to at most 2^62.
template <class Visit>
void for_each_wide_sequence(std::size_t max_length, const Visit& visit) {
  constexpr std::int64_t kTop = std::int64_t{1} << 62;
  for_each_sequence(2, max_length, [&](Values values) {
    for (std::int64_t& value : values) value = value == 2 ? kTop : value == 1 ? kTop - 1 : 0;
    visit(values);
  });
}

/// Returns `start`, followed by the prefix sums of `steps` with `start` added to each.
inline Values summed(std::int64_t start, const Values& steps) {
  Values values{start};
  for (const std::int64_t step : steps) values.push_back(values.back() + step);
  return values;
}

/// Returns a profile that begins at `start` and goes through these segments: up by a segment's rise to a peak, then
/// down by its drop to a valley, and so on.
inline Values zigzag(std::int64_t start, std::span<const core::Segment> segments) {
  Values values{start};
  for (const core::Segment& segment : segments) {
    values.push_back(values.back() + segment.rise);
    values.push_back(values.back() - segment.drop);
  }
  return values;
}

/// The weights and edges of a random node-sum graph. Some edges occur twice.
struct NodeSumCase {
  std::vector<std::int64_t> weights;
  std::vector<solvers::NodeSumGraph::Edge> edges;
};

inline NodeSumCase random_node_sum(Random& random, core::NodeId min_nodes, core::NodeId max_nodes) {
  const auto n = static_cast<core::NodeId>(random.between(min_nodes, max_nodes));
  const std::int64_t bound = random_bound(random);
  NodeSumCase result;
  for (core::NodeId v = 0; v < n; ++v) result.weights.push_back(random.between(-bound, bound));
  const RandomShape shape = random_shape(random, n);
  Order id = numbers_below(n);
  random.shuffle(id);
  for (core::NodeId p = 0; p < n; ++p) {
    for (const core::NodeId input : shape.inputs[static_cast<std::size_t>(p)]) {
      result.edges.emplace_back(id[static_cast<std::size_t>(input)], id[static_cast<std::size_t>(p)]);
      if (random.chance(5)) result.edges.push_back(result.edges.back());
    }
  }
  random.shuffle(result.edges);
  return result;
}

inline solvers::NodeSumGraph random_node_sum_graph(Random& random, core::NodeId min_nodes, core::NodeId max_nodes) {
  NodeSumCase parts = random_node_sum(random, min_nodes, max_nodes);
  return solvers::NodeSumGraph(std::move(parts.weights), std::move(parts.edges));
}

/// Returns a random topological order. If `eager` is set, the order is eager in the sense of section 4.1 of Jin et al.:
/// it runs a node of positive weight only when no node of weight 0 or less is ready.
template <class Weight>
Order random_order(Random& random, const core::reference::OrderModel& model, bool eager, const Weight& weight) {
  Order order;
  for (core::reference::NodeSet done = 0; done != core::reference::first(model.count);) {
    Order ready, ready_at_once;
    for (core::NodeId v = 0; v < model.count; ++v) {
      if (!model.ready(done, v)) continue;
      ready.push_back(v);
      if (weight(v) <= 0) ready_at_once.push_back(v);
    }
    order.push_back(random.pick(eager && !ready_at_once.empty() ? ready_at_once : ready));
    done |= core::reference::bit(order.back());
  }
  return order;
}
inline Order random_order(Random& random, const core::reference::OrderModel& model) {
  return random_order(random, model, false, [](core::NodeId) { return 0; });
}
inline Order random_eager_order(Random& random, const solvers::NodeSumGraph& graph) {
  return random_order(random, graph, true, [&](core::NodeId v) { return graph.weight(v); });
}

}  // namespace cairn::tests
