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

/// This file measures how long ops take on a machine, so that solvers optimise for that machine instead of for a model
/// of it.
namespace cairn::runtime {

/// Returns a string that is equal for nodes whose ops run the same kernels on tensors of the same sizes. It is made
/// from the op's kind, shapes, types and attributes.
std::string op_signature(const core::Graph& graph, core::NodeId v);

/// Returns a graph with which the op of node v can be timed. The graph has `copies` nodes. Each node executes this op
/// on its own arguments, which have random values, and has as much scratch as v. With enough nodes (sample_copies()), a
/// node finds as little of its data in caches as in a real training step.
core::Graph sample_graph(const core::Graph& graph, core::NodeId v, std::int64_t copies);

/// Returns the number of copies that sample_graph() needs so that all their arguments and outputs together take at
/// least twice `cache_bytes`. With this number of copies, the caches hold no data of a copy any more when it runs
/// again. Returns at least 1, and at most 32 even if more copies are needed.
std::int64_t sample_copies(const core::Graph& graph, core::NodeId v, std::int64_t cache_bytes);

/// The measured duration of one execution, and how long other work on the machine delayed it.
struct Timing {
  double seconds = 0;
  Delays delays = {};

  /// Returns an estimate of the seconds that the execution would have taken without delays. While one of several
  /// threads waits for a core, the remaining threads take over its work, so the sum of all delays is divided by the
  /// number of threads.
  double undelayed_seconds() const { return seconds - delays.seconds / std::max(delays.threads, 1); }
};

/// Returns, for each of several timings of the same work, whether other work on the machine disturbed it. A timing has
/// evidence of a disturbance if there was a preemption, or if threads waited for a core for more than a tenth of the
/// time. Other work can only make a timing longer. So timings are compared with a reference: the shortest timing
/// without evidence, or the shortest of all if every timing has evidence. A timing counts as disturbed in any of these
/// cases:
/// - the timing is longer than twice the reference;
/// - the timing has evidence and is longer than 1.2 times the reference;
/// - threads waited for a core for more than half of the time.
/// O(timings).
std::vector<bool> disturbed(std::span<const Timing> timings);

/// Decides how often work is timed.
struct TimingOptions {
  /// least, most: smallest and largest number of undisturbed timings. `most` is large, so that the timings of short
  /// work spread over several time slices of the system.
  int least = 5, most = 1000;
  /// Timing ends once at least `least` timings are undisturbed and these together took at least so many seconds.
  double seconds = 0.02;
  /// Limits how long disturbed timings are repeated. Repetitions end once all timings together took longer than
  /// `most_effort * t`. Here, t is the time of `least` undisturbed timings or `seconds`, whichever is longer.
  double most_effort = 2;
  std::function<bool()> expired = {};  ///< returns whether to stop; called after every timing; may be empty
};

/// The measured duration of some work, and the number of timings from which it was computed.
struct TimedWork {
  /// If at most a third of the timings were disturbed, this is the median of the undisturbed timings. If more were
  /// disturbed, some of the timings that count as undisturbed probably were disturbed, too. In that case, this is the
  /// lesser of two times: the shortest undisturbed timing, and the median of undelayed_seconds() of the disturbed
  /// timings.
  double seconds = 0;
  std::int64_t timings = 0;   ///< number of timings, not counting the warm-up
  std::int64_t repeated = 0;  ///< number of disturbed timings
  bool disturbed = false;     ///< whether all timings were disturbed
};

/// Times the work of `run`, which does the same work once or several times and returns the timing of each. The first
/// call of `run` is a warm-up; its timings count only if TimingOptions::expired returns true directly after it. Further
/// calls follow until there are enough undisturbed timings or too many disturbed ones (TimingOptions). Exceptions of
/// `run` pass through.
TimedWork time_work(const std::function<std::vector<Timing>()>& run, const TimingOptions& options = {});

/// A set of nodes whose ops have the same signature (op_signature()). One of them is timed for all.
struct DistinctOp {
  core::NodeId node = core::kNoNode;  ///< the first of these nodes
  std::int64_t nodes = 0;             ///< number of these nodes
  std::int64_t cost = 0;              ///< total cost of these nodes in the graph
};
/// Returns the distinct ops of a graph, in descending order of their total costs. Of two ops with equal costs, the one
/// whose first node has the smaller id comes first. For n nodes, takes O(n log n) and the time to compute n signatures.
std::vector<DistinctOp> distinct_ops(const core::Graph& graph);

/// Returns an estimate of the seconds that `ops_left` ops will take, given that `ops_done` ops took `seconds`. Each op
/// is assumed to take `seconds_of_op` plus a time in proportion to its work, and the finished ops give the factor of
/// proportion. work_done and work_left are the total work of the finished and of the remaining ops, in any common unit.
double remaining_seconds(double seconds, double seconds_of_op, std::int64_t ops_done, double work_done,
                         std::int64_t ops_left, double work_left);

struct MeasuredGraph {
  core::Graph graph;                     ///< the graph with its new costs; measured costs are in ns, and at least 1
  std::int64_t measured_nodes = 0;       ///< number of nodes with an op that was timed
  std::int64_t distinct_ops = 0;         ///< number of distinct ops
  std::int64_t measured_ops = 0;         ///< number of distinct ops that were timed
  std::vector<core::NodeId> unmeasured;  ///< nodes with an op that was not timed, ascending
  /// Factor by which the costs of unmeasured nodes were multiplied. It is the median of (measured cost / former cost)
  /// over the measured ops whose former cost was above 0. If the factor is 1, these costs are unchanged.
  double scale = 1;
};

/// Sets the cost of every node that has an op to the time that `measure(v)` returns, converted from seconds to ns.
/// `measure` is called once for every distinct op, in the order of distinct_ops(). Once it returns std::nullopt, it is
/// not called again, and the costs of the nodes that were not measured are multiplied by MeasuredGraph::scale. Nodes
/// without an op keep their costs. `source` describes where the times come from. This text, with a note on what was not
/// measured, becomes CostUnit::source of the new graph. Exceptions of `measure` pass through.
MeasuredGraph measure_costs(const core::Graph& graph, const std::function<std::optional<double>(core::NodeId)>& measure,
                            const std::string& source = "measured");

/// Returns the median: the middle value, or the mean of the two middle values if the number of values is even. `values`
/// must not be empty.
double median(std::vector<double> values);

}  // namespace cairn::runtime
