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

/// Measures what ops cost on a machine, so that solvers optimise for that machine and not for a model of it.
namespace cairn::runtime {

/// Returns a string that is equal for nodes whose ops run the same kernels on tensors of the same sizes. It consists of
/// kind, shapes, types and attributes.
std::string op_signature(const core::Graph& graph, core::NodeId v);

/// Returns a graph whose nodes each execute the op of v alone, on resident random arguments of their own. One step runs
/// `copies` executions with caches as cold as in a real step. Each node has the scratch of v.
core::Graph sample_graph(const core::Graph& graph, core::NodeId v, std::int64_t copies);

/// Number of copies, from 1 to 32, with which the arguments of a sample exceed `cache_bytes` twice.
std::int64_t sample_copies(const core::Graph& graph, core::NodeId v, std::int64_t cache_bytes);

/// One timed execution.
struct Timing {
  double seconds = 0;
  Delays delays = {};

  /// Approximate time without the delays: while one of several threads waits, the others do its work.
  double undelayed_seconds() const { return seconds - delays.seconds / std::max(delays.threads, 1); }
};

/// Tells which of several timings of the same work were disturbed by other work on the machine, which can only slow
/// work down. Evidence of a disturbance is a preemption, or threads that waited for a core for more than a tenth of the
/// time. The reference is the least timing without evidence or, if all have some, the least of all. A timing is
/// disturbed if it is above twice the reference, if it is above 1.2 times the reference and has evidence, or if its
/// threads waited for more than half of the time. O(n).
std::vector<bool> disturbed(std::span<const Timing> timings);

/// Says how often work is timed.
struct TimingOptions {
  int least = 5, most = 1000;          ///< undisturbed timings; short ones must not all fall into one time slice
  double seconds = 0.02;               ///< total of undisturbed timings from which on `least` of them suffice
  double most_effort = 2;              ///< no repeats beyond this multiple of the time that would suffice undisturbed
  std::function<bool()> expired = {};  ///< called after every timing, returns whether to stop; empty: never
};

/// A measured time, and how it was found.
struct TimedWork {
  /// The median of the undisturbed timings. If more than a third were disturbed, some of the others may be too: then
  /// the least of them or, if that is less, the median of undelayed_seconds of the disturbed ones.
  double seconds = 0;
  std::int64_t timings = 0;   ///< number of timings, without the one to warm up
  std::int64_t repeated = 0;  ///< disturbed timings, which were replaced by others
  bool disturbed = false;     ///< whether none was undisturbed
};

/// Times `run`, which does the same work once or several times and returns how long each took. Runs it once to warm up,
/// which counts only if the time is over after that; then until there are enough undisturbed timings, or too many
/// repeats. Exceptions of `run` pass through.
TimedWork time_work(const std::function<std::vector<Timing>()>& run, const TimingOptions& options = {});

/// Nodes whose ops have one signature and are timed together.
struct DistinctOp {
  core::NodeId node = core::kNoNode;  ///< the first of these nodes
  std::int64_t nodes = 0;
  std::int64_t cost = 0;  ///< total cost of these nodes in the graph
};
/// Returns the distinct ops of a graph, the most expensive first; of equal ones, that with the smaller node first. O(n
/// log n) and the signatures.
std::vector<DistinctOp> distinct_ops(const core::Graph& graph);

/// Estimates the seconds that the remaining ops take, if the finished ones took `seconds`. Each op takes
/// `seconds_of_op`; the time beyond that is in proportion to its work, in any unit.
double remaining_seconds(double seconds, double seconds_of_op, std::int64_t ops_done, double work_done,
                         std::int64_t ops_left, double work_left);

struct MeasuredGraph {
  core::Graph graph;                     ///< measured costs in ns, at least 1
  std::int64_t measured_nodes = 0;       ///< nodes with an op that was timed
  std::int64_t distinct_ops = 0;         ///< number of distinct ops
  std::int64_t measured_ops = 0;         ///< number of distinct ops that were timed
  std::vector<core::NodeId> unmeasured;  ///< nodes with an op that was not timed, ascending
  /// Factor on the costs of unmeasured nodes: the median of measured cost / former cost, over ops whose former cost was
  /// above 0. 1: the costs were left as they were.
  double scale = 1;
};

/// Sets the cost of every node that has an op to the time in ns that `measure(v)` reports in seconds. `measure` is
/// called once for every distinct op, in the order of distinct_ops(). Once it reports nothing, it is not called again,
/// and the costs of the remaining nodes are scaled to those of the others. Nodes without an op keep their costs.
/// `source` says where the times come from; it goes into the graph's cost unit, which also says what was not measured.
/// Exceptions of `measure` pass through.
MeasuredGraph measure_costs(const core::Graph& graph, const std::function<std::optional<double>(core::NodeId)>& measure,
                            const std::string& source = "measured");

/// Returns the middle value, or the mean of the two middle ones if their number is even. `values` must not be empty.
double median(std::vector<double> values);

}  // namespace cairn::runtime
