#include "cairn/runtime/scratch.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/schedules.h"
#include "cairn/tests/support/transfers.h"

namespace cairn::tests::scratch_test {

using core::Graph;
using core::NodeId;
using core::Schedule;
using runtime::MemoryLimit;
using runtime::ScratchVariant;
using runtime::use_free_memory;

namespace {

using Variants = std::vector<std::vector<ScratchVariant>>;

/// Returns up to three variants for each of about half of the nodes. The variants of a node have different scratch. The
/// one that is used by default has the scratch of the node in the graph.
Variants random_variants(Random& random, const Graph& graph) {
  Variants variants(static_cast<std::size_t>(graph.node_count()));
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.scratch(v) < 0 || random.chance(40)) continue;
    std::vector<ScratchVariant>& own = variants[static_cast<std::size_t>(v)];
    own.push_back({graph.scratch(v), static_cast<double>(random.between(1, 9)), true});
    while (own.size() < 3 && random.chance(80)) {
      const ScratchVariant more{random.between(0, 60), static_cast<double>(random.between(0, 9)), false};
      if (std::ranges::none_of(own, [&](const ScratchVariant& each) { return each.scratch == more.scratch; }))
        own.push_back(more);
    }
  }
  return variants;
}

Graph changed(const Graph& graph, const Variants& variants, std::initializer_list<MemoryLimit> limits) {
  return use_free_memory(graph, std::vector(limits), [&](NodeId v) { return variants[static_cast<std::size_t>(v)]; });
}

std::int64_t peak(const Graph& graph, const Schedule& schedule) { return core::evaluate(graph, schedule).peak; }

/// Returns the sum of the nodes' times in ms. The time of a node with variants is that of the variant with the node's
/// scratch. If there is no such variant, the result is infinite.
double time_of(const Graph& graph, const Variants& variants) {
  double sum = 0;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    const std::vector<ScratchVariant>& own = variants[static_cast<std::size_t>(v)];
    if (own.empty()) continue;
    const auto found = std::ranges::find(own, graph.scratch(v), &ScratchVariant::scratch);
    if (found == own.end()) return std::numeric_limits<double>::infinity();
    sum += found->ms;
  }
  return sum;
}

/// Tries all combinations of variants for the nodes from `from` on. Returns the least time with which the peaks of both
/// schedules in `limits` stay within their limits. `scratch` has the choices for the nodes before `from`.
double least_time(const Graph& graph, const Variants& variants, const std::array<MemoryLimit, 2>& limits, NodeId from,
                  std::vector<std::int64_t>& scratch) {
  if (from == graph.node_count()) {
    const Graph trial = graph.with_scratch(scratch);
    for (const MemoryLimit& limit : limits)
      if (peak(trial, limit.schedule) > limit.bytes) return std::numeric_limits<double>::infinity();
    return time_of(trial, variants);
  }
  const auto at = static_cast<std::size_t>(from);
  if (variants[at].empty()) return least_time(graph, variants, limits, from + 1, scratch);
  double least = std::numeric_limits<double>::infinity();
  for (const ScratchVariant& variant : variants[at]) {
    if (variant.ms <= 0) continue;  // a time of 0 stands for "unknown"
    scratch[at] = variant.scratch;
    least = std::min(least, least_time(graph, variants, limits, from + 1, scratch));
  }
  scratch[at] = graph.scratch(from);
  return least;
}

}  // namespace

TEST_CASE("free memory includes the bytes that transfers free") {
  const Graph graph = relay();
  const auto variants = [](NodeId v) {
    return v == 3 ? std::vector<ScratchVariant>{{0, 2, true}, {4096, 1, false}} : std::vector<ScratchVariant>{};
  };
  const auto scratch_within = [&](const Schedule& schedule, std::int64_t bytes) {
    return use_free_memory(graph, std::vector<MemoryLimit>{{schedule, bytes}}, variants).scratch(3);
  };
  const std::int64_t bytes = 3 * 4096;  // memory for nodes 2 and 3, and for the scratch
  CHECK(scratch_within(relay_once(), bytes) == 4096);
  CHECK(scratch_within(relay_once(), bytes - 1) == 0);
  CHECK(scratch_within({relay_once().steps}, bytes) == 0);  // without the transfers, node 0 is in memory, too
}

TEST_CASE("free memory makes nodes faster and raises no peak") {
  int faster = 0;
  for_each_schedule(1500, [&](Random& random, const Graph& graph, const Schedule& schedule) {
    const Variants variants = random_variants(random, graph);
    const Schedule baseline = core::baseline_schedule(graph);
    const std::int64_t before = peak(graph, schedule), baseline_before = peak(graph, baseline);
    const std::int64_t limit = random.between(before / 2, before + 40);
    const Graph result = changed(graph, variants, {{schedule, limit}, {baseline, baseline_before}});
    REQUIRE(peak(result, schedule) <= std::max(before, limit));
    REQUIRE(peak(result, baseline) <= baseline_before);
    REQUIRE(time_of(result, variants) <= time_of(graph, variants));
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      REQUIRE(result.cost(v) == graph.cost(v));
      if (variants[static_cast<std::size_t>(v)].empty()) REQUIRE(result.scratch(v) == graph.scratch(v));
    }
    faster += time_of(result, variants) < time_of(graph, variants) ? 1 : 0;
  });
  CHECK(faster > 200);
}

TEST_CASE("no combination of variants within the limits is faster than the one chosen") {
  for_each_seed(300, [&](Random& random) {
    const Graph graph = random_graph(random, any_graph(random.below(4), {.min_nodes = 2, .max_nodes = 7}));
    const Schedule schedule = random_schedule(random, graph);
    const Schedule baseline = core::baseline_schedule(graph);
    const Variants variants = random_variants(random, graph);
    const std::array<MemoryLimit, 2> limits = {
        {{schedule, peak(graph, schedule) + random.below(30)}, {baseline, peak(graph, baseline) + random.below(30)}}};
    const Graph result = changed(graph, variants, {limits[0], limits[1]});
    std::vector<std::int64_t> scratch;
    for (NodeId v = 0; v < graph.node_count(); ++v) scratch.push_back(graph.scratch(v));
    REQUIRE(time_of(result, variants) == least_time(graph, variants, limits, 0, scratch));
  });
}

}  // namespace cairn::tests::scratch_test
