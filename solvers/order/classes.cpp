// Implements the solvers for classes of graphs. These solvers only check that the graph is in the class. Reduction
// (internal/reduction/reduction.h) finds the order. An order is dominant if it dominates all other orders. An order
// dominates another one if the two memory profiles can be walked at such speeds that the first is never above the
// second (core/dominance.h).
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/text.h"
#include "cairn/solvers/common/support/incumbent.h"
#include "cairn/solvers/order/internal/reduction/reduction.h"
#include "cairn/solvers/order/internal/search/exact.h"
#include "cairn/solvers/order/support/order.h"

namespace cairn::solvers {
namespace {

using core::Graph;
using core::NodeId;
using core::ValueId;

core::InputError not_in_class(const char* name, const std::string& why) {
  return core::InputError(
      fmt::format("the graph is not {}: {}; {} takes any graph", name, why, core::option("solver", "order")));
}

NodeId apart(const Graph& graph) {
  for (ValueId x = 0; x < graph.value_count(); ++x) {
    const NodeId v = graph.producer(x);
    if (graph.readers(x).size() > 1 && graph.readers(x).size() < graph.successors(v).size()) return v;
  }
  return 0;
}

Solution reduce(const Graph& graph, const OrderOptions& options) {
  core::Stopwatch watch(options.limit);
  Incumbent incumbent(graph, options, watch, kWithoutRecomputation);
  // Until the reduction ends, the input order is the only known order, so its peak is reported as progress.
  const core::Evaluation baseline = core::evaluate(graph, core::baseline_schedule(graph));
  const auto tick = [&] {
    if (options.progress) options.progress({baseline.peak, baseline.cost, watch.seconds()});
  };
  tick();
  // The reduction gets three quarters of the limit, because an exact search follows if the limit ends the reduction
  // before all its orders are dominant.
  core::Stopwatch reduction_watch(watch.share(0.75));
  Reduction reduction(graph, Reduction::Unfinished::take, options.memory_bytes, options.thread_count(), reduction_watch,
                      tick, options.accelerator);
  reduction.run();
  watch.charge(reduction_watch.work());
  if (const auto& large = reduction.too_large()) {
    const bool countable = large->bytes < std::int64_t{1} << 50;
    throw core::InputError(
        fmt::format("node '{}' has {} readers, whose table of subsets needs {} ({} allowed); raise {}, or take "
                    "{}, which goes without the table",
                    graph.name(large->source), graph.successors(large->source).size(),
                    countable ? "up to " + core::format_bytes(large->bytes) : "more than a PiB",
                    core::format_bytes(options.memory_bytes), core::option("memory"), core::option("solver", "order")));
  }
  if (!reduction.done()) {
    const std::vector<NodeId> left = reduction.vertices();
    const NodeId v = reduction.first_left();
    throw not_in_class(
        "a series-parallel graph",
        v == core::kNoNode
            ? fmt::format("node '{}' has outputs that not all of its readers read", graph.name(apart(graph)))
            : fmt::format("{} nodes remain after all series and parallel reductions, among them '{}'",
                          std::count_if(left.begin(), left.end(), [&](NodeId u) { return u < graph.node_count(); }),
                          graph.name(v)));
  }
  incumbent.offer({nodes_of(reduction.chain(), reduction.ropes())});
  if (reduction.exact()) {
    // The input order is not offered to the incumbent, because it need not be dominant, even if its peak is as low as
    // that of the reduction's order.
    incumbent.raise_lower_bound(incumbent.least_peak());
  } else {
    incumbent.offer(core::baseline_schedule(graph));
    // The limit ended the search for a dominant order. An order of least peak, which need not be dominant, can be
    // easier to find.
    exact_search(graph, incumbent, options.memory_bytes, watch);
  }
  return incumbent.finish(!incumbent.cannot_improve() && watch.expired_now());
}

}  // namespace

Solution series_parallel(const Graph& graph, const OrderOptions& options) { return reduce(graph, options); }

Solution pumpkin(const Graph& graph, const OrderOptions& options) {
  NodeId source = core::kNoNode, sink = core::kNoNode;
  const auto end = [&](NodeId& known, NodeId v, const char* what) {
    if (known != core::kNoNode)
      throw not_in_class("a pumpkin",
                         fmt::format("it has two {}, '{}' and '{}'", what, graph.name(known), graph.name(v)));
    known = v;
  };
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.predecessors(v).empty()) end(source, v, "sources");
    if (graph.successors(v).empty()) end(sink, v, "sinks");
  }
  if (graph.node_count() == 1) throw not_in_class("a pumpkin", "it needs a source and a sink");
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (v == source || v == sink || (graph.predecessors(v).size() == 1 && graph.successors(v).size() == 1)) continue;
    throw not_in_class("a pumpkin",
                       fmt::format("node '{}' has {} inputs and {} readers; inside a branch it is one each",
                                   graph.name(v), graph.predecessors(v).size(), graph.successors(v).size()));
  }
  return reduce(graph, options);
}

Solution in_tree(const Graph& graph, const OrderOptions& options) {
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.successors(v).size() > 1)
      throw not_in_class("an in-tree",
                         fmt::format("node '{}' has {} readers", graph.name(v), graph.successors(v).size()));
  }
  return reduce(graph, options);
}

Solution out_tree(const Graph& graph, const OrderOptions& options) {
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.predecessors(v).size() > 1)
      throw not_in_class("an out-tree",
                         fmt::format("node '{}' has {} inputs", graph.name(v), graph.predecessors(v).size()));
  }
  return reduce(graph, options);
}

}  // namespace cairn::solvers
