#pragma once

#include <string>
#include <string_view>

#include "cairn/core/graph.h"
#include "cairn/core/limit.h"
#include "cairn/solvers/decomposition/tree_decomposition.h"

/// Reads and writes tree decompositions as files of the PACE challenge (`.td`). A file has the line `s td BAGS WIDTH+1
/// VERTICES`, a line `b BAG VERTEX...` for each bag, and a line with two bags for each edge of the tree. Bags and
/// vertices are counted from 1, so node i is vertex i + 1.
namespace cairn::solvers {

/// Parses a decomposition and checks that it is valid for the graph. Throws InputError if the text is malformed or the
/// decomposition is invalid. The message names the file, `origin`, and what is wrong (a line, nodes or an edge). A
/// decomposition with several trees is an error, as in the validator of the PACE challenge. Throws InterruptedError if
/// the limit ends the check; work is counted in bytes of text.
TreeDecomposition parse_td(std::string_view text, const std::string& origin, const core::Graph& graph,
                           const core::Limit& limit = {});

/// Returns the decomposition of a graph of `node_count` nodes as the text of a `.td` file.
std::string td_text(const TreeDecomposition& decomposition, core::NodeId node_count);

}  // namespace cairn::solvers
