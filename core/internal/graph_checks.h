#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cairn/core/graph.h"

/// Checks of a graph's description. Each throws InputError, which names the node and says what to mend.
namespace cairn::core {

/// Sums stay below this, so that adding two of them, or rounding one up, cannot overflow.
inline constexpr std::int64_t kSumLimit = std::int64_t{1} << 62;

using NameOfNode = std::function<const std::string&(NodeId)>;  ///< name of a node, for messages

/// Checks sizes, costs and their sums. O(n + values).
void check_numbers(const GraphView& graph, const NameOfNode& name_of);
/// The least legal scratch of a node.
std::int64_t least_scratch(const GraphView& graph, NodeId v);
/// Checks that no scratch is below the least legal one. O(n + m).
void check_scratch(const GraphView& graph, const NameOfNode& name_of);

/// Checks that nodes, and the outputs of each, have different names.
void check_names(const std::vector<Node>& nodes);
void check_inputs_exist(const std::vector<Node>& nodes);
/// Throws the error about a cycle. `missing`: the number of inputs of each node that cannot run before it; at least one
/// node has some.
[[noreturn]] void refuse_cycle(const std::vector<Node>& nodes, const std::vector<std::int32_t>& missing);
/// Checks that `order` is a topological order of all nodes.
void check_order(const std::vector<Node>& nodes, const std::vector<NodeId>& order);
/// Checks that outputs in place take over inputs of their node, each input once.
void check_inplace(const std::vector<Node>& nodes);
/// Checks ops and residents against each other and against the sizes of the outputs.
void check_ops(const std::vector<Node>& nodes, const std::vector<Resident>& residents);

}  // namespace cairn::core
