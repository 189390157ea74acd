#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cairn/core/graph.h"

/// Measuring what ops cost on a machine, so that solvers optimise that machine and not a model of it.
namespace cairn::runtime {

/// Equal for nodes whose ops run the same kernels on tensors of the same sizes: kind, shapes, types, attributes.
std::string op_signature(const core::Graph& graph, core::NodeId v);

/// A graph whose nodes each execute the op of v alone, on arguments of their own (resident, random), so that one step
/// of it is `copies` executions with caches as cold as in a real step. Scratch is that of v.
core::Graph sample_graph(const core::Graph& graph, core::NodeId v, std::int64_t copies);

/// How many copies a sample should have for its arguments to exceed `cache_bytes` twice, from 1 to 32.
std::int64_t sample_copies(const core::Graph& graph, core::NodeId v, std::int64_t cache_bytes);

struct MeasuredGraph {
  core::Graph graph;                ///< costs in ns, at least 1
  std::int64_t measured_nodes = 0;  ///< those with an op; the others keep their costs
  std::int64_t distinct_ops = 0;
};

/// Gives every node that has an op the seconds that `measure(v)` reports for it, in ns; it is called once for every
/// signature, in the order of the nodes. What it throws passes through.
MeasuredGraph measure_costs(const core::Graph& graph, const std::function<double(core::NodeId)>& measure);

/// The middle value; the mean of the two middle ones where their number is even. `values` must not be empty.
double median(std::vector<double> values);

}  // namespace cairn::runtime
