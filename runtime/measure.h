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

/// Returns a string that is equal for nodes whose ops run the same kernels on tensors of the same sizes. It is made
/// from the op's kind, shapes, types and attributes.
std::string op_signature(const core::Graph& graph, core::NodeId v);

/// Returns a graph with which the op of node v can be timed. Each of its `copies` nodes executes this op, on arguments
/// of its own with random values, and with as much scratch as v has. With enough copies (sample_copies()), a copy finds
/// as little of its data in caches as in a real training step.
core::Graph sample_graph(const core::Graph& graph, core::NodeId v, std::int64_t copies);

/// Returns the number of copies that sample_graph() needs so that all their arguments and outputs together take at
/// least twice `cache_bytes`. With that many copies, caches hold nothing of a copy when it runs again. Returns at least
/// 1, and at most 32 even if more are needed.
std::int64_t sample_copies(const core::Graph& graph, core::NodeId v, std::int64_t cache_bytes);

/// The measured duration of one execution, and how long other work on the machine delayed it.
struct Timing {
  double seconds = 0;
  Delays delays = {};

  /// Returns an estimate of the seconds without the delays. While one of several threads waits for a core, the others
  /// do its work, so the sum of all delays is divided by the number of threads.
  double undelayed_seconds() const { return seconds - delays.seconds / std::max(delays.threads, 1); }
};

/// Returns which of several timings of the same work were disturbed by other work on the machine. Other work can only
/// slow the timed work down. There is evidence of a disturbance if there was a preemption, or if threads waited for a
/// core for more than a tenth of the time. The reference is the shortest timing without evidence. If every timing has
/// evidence, the reference is the shortest timing of all. A timing counts as disturbed in any of these cases:
/// - it is above twice the reference;
/// - it has evidence and is above 1.2 times the reference;
/// - its threads waited for more than half of the time.
/// O(timings).
std::vector<bool> disturbed(std::span<const Timing> timings);

/// How often work is timed.
struct TimingOptions {
  /// least, most: smallest and largest number of undisturbed timings. `most` is large, so that short timings do not all
  /// fall into one time slice of the system.
  int least = 5, most = 1000;
  /// Seconds. `least` timings suffice if the undisturbed timings together take at least this long.
  double seconds = 0.02;
  /// Limits how long disturbed timings are repeated. Repetitions end once all timings together took longer than
  /// `most_effort * t`. Here, t is the time of `least` undisturbed timings or `seconds`, whichever is longer.
  double most_effort = 2;
  std::function<bool()> expired = {};  ///< returns whether to stop; called after every timing; may be empty
};

/// A measured time, and the number of timings from which it was computed.
struct TimedWork {
  /// If at most a third of the timings were disturbed, this is the median of the undisturbed timings. If more were
  /// disturbed, it is likely that other disturbances were not detected. In that case, this is the lesser of two times:
  /// the shortest undisturbed timing, and the median of undelayed_seconds() of the disturbed timings.
  double seconds = 0;
  std::int64_t timings = 0;   ///< number of timings, not counting the warm-up
  std::int64_t repeated = 0;  ///< number of disturbed timings
  bool disturbed = false;     ///< whether all timings were disturbed
};

/// Times `run`, which does the same work once or several times and returns the duration of each. The first call of
/// `run` is a warm-up. Its timings count only if `expired` returns true after it. Further calls follow until there are
/// enough undisturbed timings or too many disturbed ones (TimingOptions). Exceptions of `run` pass through.
TimedWork time_work(const std::function<std::vector<Timing>()>& run, const TimingOptions& options = {});

/// Nodes whose ops have the same signature, so that they are timed together.
struct DistinctOp {
  core::NodeId node = core::kNoNode;  ///< the first of these nodes
  std::int64_t nodes = 0;
  std::int64_t cost = 0;  ///< total cost of these nodes in the graph
};
/// Returns the distinct ops of a graph, those with the highest total cost first. Among equal costs, the one with the
/// smaller node comes first. O(n log n), and the time to compute n signatures.
std::vector<DistinctOp> distinct_ops(const core::Graph& graph);

/// Estimates the seconds that the remaining ops take, given that the finished ops took `seconds`. Each op is assumed to
/// take `seconds_of_op` plus a time in proportion to its work. The factor of proportion is taken from the finished ops.
/// Work may have any unit.
double remaining_seconds(double seconds, double seconds_of_op, std::int64_t ops_done, double work_done,
                         std::int64_t ops_left, double work_left);

struct MeasuredGraph {
  core::Graph graph;                     ///< the graph with costs in ns, at least 1 where they were measured
  std::int64_t measured_nodes = 0;       ///< number of nodes with an op that was timed
  std::int64_t distinct_ops = 0;         ///< number of distinct ops
  std::int64_t measured_ops = 0;         ///< number of distinct ops that were timed
  std::vector<core::NodeId> unmeasured;  ///< nodes with an op that was not timed, ascending
  /// Factor by which the costs of unmeasured nodes were multiplied. It is the median of (measured cost / former cost)
  /// over the measured ops whose former cost was above 0. If it is 1, these costs are unchanged.
  double scale = 1;
};

/// Sets the cost of every node that has an op to the time that `measure(v)` returns, converted from seconds to ns.
/// `measure` is called once for every distinct op, in the order of distinct_ops(). Once it returns nothing, it is not
/// called again, and the costs of the remaining nodes are multiplied by MeasuredGraph::scale. Nodes without an op keep
/// their costs. `source` describes where the times come from. The source of the graph's cost unit consists of this text
/// and a note on what was not measured. Exceptions of `measure` pass through.
MeasuredGraph measure_costs(const core::Graph& graph, const std::function<std::optional<double>(core::NodeId)>& measure,
                            const std::string& source = "measured");

/// Returns the middle value, or the mean of the two middle values if their number is even. `values` must not be empty.
double median(std::vector<double> values);

}  // namespace cairn::runtime
