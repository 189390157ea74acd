// Recomputes values from checkpoints (chen_remat() in baselines.h). The forward part, a prefix of the input order, is
// divided into segments. A value that only its own segment reads is dropped at the end of the segment.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "cairn/solvers/common/support/incumbent.h"
#include "cairn/solvers/remat/baselines/baselines.h"

namespace cairn::solvers {
namespace {

using core::NodeId;

std::int32_t forward_length(const core::Graph& graph) {
  const auto order = graph.input_order();
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (graph.backward(order[i])) return static_cast<std::int32_t>(i);
  }
  return static_cast<std::int32_t>(core::evaluate(graph, core::baseline_schedule(graph)).peak_step) + 1;
}

/// Divides the first `length` steps of the input order into about `count` segments with about equally many bytes of
/// values. Returns the segment of each of these steps.
std::vector<std::int32_t> cut(const core::Graph& graph, std::int32_t length, std::int32_t count) {
  const auto order = graph.input_order();
  // Each node counts as one byte more than its size, so that nodes of size 0 are also divided among the segments.
  const auto weight = [&](std::int32_t i) { return static_cast<double>(graph.size(order[i])) + 1.0; };
  double total = 0;
  for (std::int32_t i = 0; i < length; ++i) total += weight(i);
  std::vector<std::int32_t> segment(length);
  double before = 0;
  for (std::int32_t i = 0; i < length; ++i) {
    segment[i] = std::min(count - 1, static_cast<std::int32_t>(before / total * count));
    before += weight(i);
  }
  return segment;
}

/// Builds the schedule for one division of the forward part into segments. `segment` holds the number of the segment of
/// each step of the forward part. Takes O(n + m) time for n nodes and m edges.
core::Schedule checkpointed(const core::Graph& graph, const std::vector<std::int32_t>& segment) {
  constexpr std::int32_t kTail = -1;
  const auto order = graph.input_order();
  const auto length = static_cast<std::int32_t>(segment.size());
  const std::int32_t count = segment.empty() ? 0 : segment.back() + 1;

  std::vector<std::int32_t> segment_of(graph.node_count(), kTail);
  for (std::int32_t i = 0; i < length; ++i) segment_of[order[i]] = segment[i];
  // A value is dropped at the end of its segment if no other segment reads it. Values of the last segment are not
  // dropped, because the steps after the forward part follow directly and would have to compute them again at once.
  std::vector<std::uint8_t> dropped(graph.node_count(), 0);
  for (std::int32_t i = 0; i < length; ++i) {
    const NodeId v = order[i];
    dropped[v] = segment[i] + 1 < count && !graph.keep(v) &&
                 std::all_of(graph.successors(v).begin(), graph.successors(v).end(),
                             [&](NodeId w) { return segment_of[w] == kTail || segment_of[w] == segment[i]; });
  }
  // A node runs again if its dropped value is read after the forward part, or is needed to compute such a value again.
  // `again` lists these nodes for each segment, in reverse order.
  std::vector<std::uint8_t> wanted(graph.node_count(), 0);
  std::vector<std::vector<NodeId>> again(count);
  for (std::int32_t i = length; i-- > 0;) {
    const NodeId v = order[i];
    if (!dropped[v]) continue;
    wanted[v] = std::any_of(graph.successors(v).begin(), graph.successors(v).end(),
                            [&](NodeId w) { return segment_of[w] == kTail || (dropped[w] && wanted[w]); });
    if (wanted[v]) again[segment[i]].push_back(v);
  }

  core::Schedule schedule{{order.begin(), order.begin() + length}};
  std::vector<std::uint8_t> restored(count, 0);
  for (std::size_t i = length; i < order.size(); ++i) {
    for (const NodeId u : graph.predecessors(order[i])) {
      if (!dropped[u] || restored[segment_of[u]]) continue;
      restored[segment_of[u]] = 1;
      schedule.steps.insert(schedule.steps.end(), again[segment_of[u]].rbegin(), again[segment_of[u]].rend());
    }
    schedule.steps.push_back(order[i]);
  }
  return schedule;
}

}  // namespace

Solution chen_remat(const core::Graph& graph, const SolveOptions& options) {
  core::Stopwatch watch(options.limit);
  Incumbent incumbent(graph, options, watch);
  incumbent.offer(core::baseline_schedule(graph));
  if (graph.node_count() == 0 || incumbent.cannot_improve()) return incumbent.finish(false);

  const std::int32_t length = forward_length(graph);
  if (length == 0) return incumbent.finish(false);  // the first node is marked as backward, so there is no forward part
  const auto root = static_cast<std::int32_t>(std::lround(std::sqrt(static_cast<double>(length))));
  std::set<std::int32_t> others;
  for (std::int32_t count = 2; count <= std::min(length, 4 * root); ++count) others.insert(count);
  for (double count = 4.0 * root; count <= length; count *= 1.1) others.insert(static_cast<std::int32_t>(count));
  std::vector<std::int32_t> counts;
  counts.reserve(others.size() + 1);
  counts.push_back(std::max(root, 1));
  for (const std::int32_t count : others) counts.push_back(count);
  for (const std::int32_t count : counts) {
    if (watch.charge(graph.node_count()).expired()) break;
    incumbent.offer(checkpointed(graph, cut(graph, length, count)));
  }
  return incumbent.finish(watch.expired_now());
}

}  // namespace cairn::solvers
