#include "cairn/runtime/scratch.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "cairn/core/profile.h"

namespace cairn::runtime {
namespace {

using core::NodeId;

constexpr std::int64_t kUnused =
    std::numeric_limits<std::int64_t>::max() / 2;  // result for nodes that no schedule executes

/// Returns, for every node, the number of bytes by which its scratch may grow. For a step that executes the node, let d
/// be the limit of the step's schedule minus the bytes that are in memory during the step. The returned number is the
/// minimum of d over all steps that execute the node. It is negative if one of these steps exceeds its limit.
std::vector<std::int64_t> free_bytes(const core::Graph& graph, std::span<const MemoryLimit> limits) {
  std::vector<std::int64_t> free(static_cast<std::size_t>(graph.node_count()), kUnused);
  core::Evaluator evaluator(graph);
  for (const MemoryLimit& limit : limits) {
    const std::vector<NodeId>& steps = limit.schedule.steps;
    const std::vector<std::int64_t> in_memory = evaluator.profile(limit.schedule);
    for (std::size_t i = 0; i < steps.size(); ++i)
      free[steps[i]] = std::min(free[steps[i]], limit.bytes - in_memory[1 + 2 * i]);  // during the step
  }
  return free;
}

/// Returns the fastest variant whose scratch is at most `scratch` bytes, or the usual variant (the default) if none of
/// these is faster than the usual one.
const ScratchVariant& fastest(const std::vector<ScratchVariant>& variants, const ScratchVariant& usual,
                              std::int64_t scratch) {
  const ScratchVariant* best = &usual;
  for (const ScratchVariant& variant : variants) {
    if (variant.ms > 0 && variant.ms < best->ms && variant.scratch <= scratch) best = &variant;
  }
  return *best;
}

}  // namespace

core::Graph use_free_memory(const core::Graph& graph, std::span<const MemoryLimit> limits,
                            const std::function<std::vector<ScratchVariant>(NodeId)>& variants) {
  const core::GraphView view = graph.view();
  std::vector<std::int64_t> scratch(view.scratch, view.scratch + graph.node_count());
  const std::vector<std::int64_t> free = free_bytes(graph, limits);
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (scratch[v] < 0) continue;
    const std::vector<ScratchVariant> all = variants(v);
    const auto usual = std::find_if(all.begin(), all.end(), [](const ScratchVariant& each) { return each.usual; });
    if (usual == all.end()) continue;
    const ScratchVariant& chosen = fastest(all, *usual, scratch[v] + std::max<std::int64_t>(free[v], 0));
    if (&chosen == &*usual) continue;
    scratch[v] = chosen.scratch;
  }
  return graph.with_scratch(std::move(scratch));
}

}  // namespace cairn::runtime
