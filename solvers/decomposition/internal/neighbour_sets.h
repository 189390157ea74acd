#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cairn/solvers/decomposition/elimination.h"

namespace cairn::solvers {

/// Stores the neighbours of every node of a graph to which edges are added and from which nodes are removed. Each node
/// has a row, the list of its neighbours. A removed node stays in the rows of its neighbours until neighbours() is
/// called for them, so that remove() need not search these rows. Long rows also have a hash table.
class NeighbourSets {
 public:
  explicit NeighbourSets(const UndirectedGraph& graph) : rows_(graph.node_count()) {
    for (core::NodeId v = 0; v < graph.node_count(); ++v) {
      Row& row = rows_[v];
      row.nodes.assign(graph.neighbours(v).begin(), graph.neighbours(v).end());
      row.degree = static_cast<std::int32_t>(row.nodes.size());
      if (row.nodes.size() > kSearched) row.rebuild_table();
    }
  }

  core::NodeId node_count() const { return static_cast<core::NodeId>(rows_.size()); }
  bool removed(core::NodeId v) const { return rows_[v].degree < 0; }
  std::int32_t degree(core::NodeId v) const { return rows_[v].degree; }

  /// Returns the neighbours of v in no particular order. The result is valid until an edge is added to v. Takes time
  /// linear in the degree, plus the number of neighbours removed since the last call.
  std::span<const core::NodeId> neighbours(core::NodeId v) {
    Row& row = rows_[v];
    if (row.nodes.size() != static_cast<std::size_t>(row.degree)) {
      std::erase_if(row.nodes, [&](core::NodeId u) { return removed(u); });
    }
    return row.nodes;
  }

  /// Returns whether an edge joins the nodes. Neither node may have been removed.
  bool adjacent(core::NodeId a, core::NodeId b) const {
    if (rows_[a].nodes.size() > rows_[b].nodes.size()) std::swap(a, b);
    const Row& row = rows_[a];
    if (row.table.empty()) return std::find(row.nodes.begin(), row.nodes.end(), b) != row.nodes.end();
    return row.table[row.slot(b)] == b;
  }

  /// Adds an edge between two nodes, which must not be adjacent yet.
  void connect(core::NodeId a, core::NodeId b) {
    append(a, b);
    append(b, a);
  }

  void remove(core::NodeId v) {
    for (const core::NodeId u : neighbours(v)) --rows_[u].degree;
    rows_[v] = {.nodes = {}, .table = {}, .in_table = 0, .degree = -1};
  }

 private:
  static constexpr std::size_t kSearched = 48;  ///< length up to which a row is searched linearly

  struct Row {
    std::vector<core::NodeId> nodes;
    /// Hash table of the nodes in the row, with open addressing; at most half full. Empty for short rows. The table can
    /// contain removed nodes.
    std::vector<core::NodeId> table;
    std::size_t in_table = 0;
    std::int32_t degree = 0;  ///< number of neighbours; -1: the node is removed

    std::size_t slot(core::NodeId u) const {
      const std::size_t mask = table.size() - 1;
      std::size_t at = (static_cast<std::uint64_t>(u) * 0x9e3779b97f4a7c15ULL) >> 32 & mask;
      while (table[at] != core::kNoNode && table[at] != u) at = (at + 1) & mask;
      return at;
    }

    void rebuild_table() {
      table.assign(std::bit_ceil(3 * nodes.size()), core::kNoNode);
      for (const core::NodeId u : nodes) table[slot(u)] = u;
      in_table = nodes.size();
    }
  };

  void append(core::NodeId v, core::NodeId neighbour) {
    Row& row = rows_[v];
    if (row.nodes.size() >= kSearched && 2 * (row.in_table + 1) > row.table.size()) neighbours(v);
    row.nodes.push_back(neighbour);
    ++row.degree;
    if (row.nodes.size() <= kSearched) {
      row.table.clear();
      return;
    }
    if (2 * (row.in_table + 1) > row.table.size()) {
      row.rebuild_table();
    } else {
      row.table[row.slot(neighbour)] = neighbour;
      ++row.in_table;
    }
  }

  std::vector<Row> rows_;
};

}  // namespace cairn::solvers
