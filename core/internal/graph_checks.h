#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/support/sum_limit.h"

/// These functions check the description of a graph. Each of them throws InputError if a check fails. The message names
/// the node and says what to fix.
namespace cairn::core {

using NameOfNode = std::function<const std::string&(NodeId)>;  ///< name of a node, for messages

/// Checks sizes, costs and their sums. O(nodes + values).
void check_numbers(const GraphView& graph, const NameOfNode& name_of);
/// Returns the lower limit on the scratch of v that GraphBuilder::build() documents.
std::int64_t least_scratch(const GraphView& graph, NodeId v);
void check_scratch(const GraphView& graph, const NameOfNode& name_of);

/// Checks that no two nodes have the same name, and that no two outputs of a node have the same name.
void check_names(const std::vector<Node>& nodes);
void check_inputs_exist(const std::vector<Node>& nodes);
/// Throws InputError about a cycle. `missing` holds, for each node, the number of its predecessors that Kahn's
/// algorithm could not run. This number must be above 0 for at least one node.
[[noreturn]] void refuse_cycle(const std::vector<Node>& nodes, const std::vector<std::int32_t>& missing);
void check_order(const std::vector<Node>& nodes, const std::vector<NodeId>& order);
/// Checks that each in-place output names an input of its node whose storage it reuses, and that no two outputs reuse
/// the storage of the same input.
void check_inplace(const std::vector<Node>& nodes);
/// Checks each op against the residents and outputs that are its arguments, and against the sizes of its node's
/// outputs.
void check_ops(const std::vector<Node>& nodes, const std::vector<Resident>& residents);

}  // namespace cairn::core
