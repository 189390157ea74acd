#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/runtime/executor.h"

/// Measuring what ops cost on a machine, so that solvers optimise that machine and not a model of it.
namespace cairn::runtime {

/// Equal for nodes whose ops run the same kernels on tensors of the same sizes: kind, shapes, types, attributes.
std::string op_signature(const core::Graph& graph, core::NodeId v);

/// A graph whose nodes each execute the op of v alone, on arguments of their own (resident, random), so that one step
/// of it is `copies` executions with caches as cold as in a real step. Scratch is that of v.
core::Graph sample_graph(const core::Graph& graph, core::NodeId v, std::int64_t copies);

/// How many copies a sample should have for its arguments to exceed `cache_bytes` twice, from 1 to 32.
std::int64_t sample_copies(const core::Graph& graph, core::NodeId v, std::int64_t cache_bytes);

/// One timed execution.
struct Timing {
  double seconds = 0;
  Delays delays = {};

  /// About what it had taken without its delays: while one of several threads waits, the others do its work.
  double undelayed_seconds() const { return seconds - delays.seconds / std::max(delays.threads, 1); }
};

/// Which of several timings of the same work something else on the machine disturbed, as work can be slowed down but
/// not sped up: those above twice the reference, and those above 1.2 times it with evidence, a preemption or threads
/// that waited for a core for more than a tenth of the time. The reference is the least timing without evidence, or the
/// least of all; then it is disturbed, too, where its threads waited for more than half of the time. O(n).
std::vector<bool> disturbed(std::span<const Timing> timings);

/// How often work is timed.
struct TimingOptions {
  int least = 5, most = 1000;          ///< undisturbed timings; short ones must not all fall into one time slice
  double seconds = 0.02;               ///< of undisturbed timings, beyond which the least number of them suffices
  double most_effort = 2;              ///< times what would do undisturbed; no repeats beyond it
  std::function<bool()> expired = {};  ///< asked after every timing: whether to stop; empty: never
};

/// A time, and how it was found.
struct TimedWork {
  /// The median of the undisturbed timings. Where more than a third were disturbed, some of the others pass that should
  /// not: then the least of them or, if that is less, the median of undelayed_seconds of the disturbed ones.
  double seconds = 0;
  std::int64_t timings = 0;   ///< taken in all, that which warms up aside
  std::int64_t repeated = 0;  ///< disturbed ones, in whose place others were taken
  bool disturbed = false;     ///< none was undisturbed
};

/// Times `run`, which does the same work once or several times and says how long each took: once to warm up, which
/// counts only where the time is over after that, then until there are enough undisturbed timings, or repeats. What
/// `run` throws passes through.
TimedWork time_work(const std::function<std::vector<Timing>()>& run, const TimingOptions& options = {});

/// Nodes whose ops are timed together, as they have one signature.
struct DistinctOp {
  core::NodeId node = core::kNoNode;  ///< the first of them
  std::int64_t nodes = 0;
  std::int64_t cost = 0;  ///< of all of them, as the graph has it
};
/// The distinct ops of a graph, the most expensive ones first, of equal ones that with the smaller node.
/// O(n log n) and the signatures.
std::vector<DistinctOp> distinct_ops(const core::Graph& graph);

/// Seconds that the rest will take, where `seconds` have gone into some ops: each takes `seconds_of_op`, and beyond
/// that in proportion to its work, in any unit.
double remaining_seconds(double seconds, double seconds_of_op, std::int64_t ops_done, double work_done,
                         std::int64_t ops_left, double work_left);

struct MeasuredGraph {
  core::Graph graph;                     ///< measured costs in ns, at least 1
  std::int64_t measured_nodes = 0;       ///< those with an op that was timed
  std::int64_t distinct_ops = 0;         ///< of all nodes with an op
  std::int64_t measured_ops = 0;         ///< of them, those that were timed
  std::vector<core::NodeId> unmeasured;  ///< nodes with an op that was not timed, ascending
  /// What the costs of unmeasured nodes were multiplied by: the median of measured by former cost where the former was
  /// a time or an estimate above 0. 1: left as they were.
  double scale = 1;
};

/// Gives every node that has an op the seconds that `measure(v)` reports for it, in ns. It is called once for every
/// distinct op, in their order; once it reports nothing, no more are timed, and the costs of the nodes that are left
/// are scaled to those of the others. Nodes without an op keep their costs. `source` is where the times come from, for
/// the graph's cost unit, which then tells, too, what was not measured. What `measure` throws passes through.
MeasuredGraph measure_costs(const core::Graph& graph, const std::function<std::optional<double>(core::NodeId)>& measure,
                            const std::string& source = "measured");

/// The middle value; the mean of the two middle ones where their number is even. `values` must not be empty.
double median(std::vector<double> values);

}  // namespace cairn::runtime
