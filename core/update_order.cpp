#include "cairn/core/internal/update_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "cairn/core/error.h"
#include "cairn/core/op.h"

namespace cairn::core {
namespace {

class OrderedUpdates {
 public:
  OrderedUpdates(GraphBuilder& graph, std::size_t residents)
      : graph_(graph),
        readers_(graph.node_count()),
        readers_of_resident_(residents),
        before_(graph.node_count(), false),
        visited_(graph.node_count(), false) {
    for (NodeId v = 0; v < graph.node_count(); ++v) {
      for (const OutputRef input : graph.node(v).inputs) readers_[input.node].push_back(v);
      if (!graph.node(v).op) continue;
      for (const Operand& arg : graph.node(v).op->args) {
        if (arg.kind == Operand::Kind::resident && is_resident(arg.index)) readers_of_resident_[arg.index].push_back(v);
      }
    }
  }

  /// Adds the edges and pins of one update. Must be called for all updates, in ascending order of their ids.
  void add(NodeId update) {
    mark_before(update);
    if (last_ != kNoNode && !before_[last_]) {
      before_.assign(before_.size(), false);
      visited_.assign(visited_.size(), false);
      mark_before(update);
    }
    before_[update] = false;  // so that the next update's walk finds out whether it runs after this one
    last_ = update;
    const std::vector<NodeId> readers = other_readers(update);
    pin_before_later_nodes(update, readers);
    std::vector<NodeId> ends = ends_behind(update, readers);
    // Later nodes come first, because an edge from a later node can make edges from earlier nodes unnecessary.
    std::ranges::sort(ends, std::greater());
    for (const NodeId v : ends) {
      if (before_[v]) continue;
      graph_.add_control_input(update, v);
      readers_[v].push_back(update);
      mark_before(v);
    }
  }

 private:
  bool is_resident(std::int32_t index) const {
    return index >= 0 && static_cast<std::size_t>(index) < readers_of_resident_.size();
  }

  std::set<std::int32_t> overwritten_by(NodeId update) const {
    const Op& op = *graph_.node(update).op;
    std::set<std::int32_t> overwritten{op.writes};
    for (const std::size_t i : updated_args(op.kind)) {
      if (i < op.args.size() && op.args[i].kind == Operand::Kind::resident) overwritten.insert(op.args[i].index);
    }
    return overwritten;
  }

  /// Returns the nodes that read a tensor which the update overwrites. Leaves out nodes that update the tensor, too:
  /// check_ops() refuses such graphs.
  std::vector<NodeId> other_readers(NodeId update) const {
    std::vector<NodeId> readers;
    for (const std::int32_t index : overwritten_by(update)) {
      if (!is_resident(index)) continue;
      for (const NodeId v : readers_of_resident_[index]) {
        if (!is_update(graph_.node(v).op->kind) || !overwritten_by(v).contains(index)) readers.push_back(v);
      }
    }
    return readers;
  }

  /// Marks v and all nodes that run before it.
  void mark_before(NodeId v) {
    std::vector<NodeId> stack{v};
    while (!stack.empty()) {
      const NodeId u = stack.back();
      stack.pop_back();
      if (before_[u]) continue;
      before_[u] = true;
      for (const OutputRef input : graph_.node(u).inputs) stack.push_back(input.node);
    }
  }

  /// Pins the readers that a schedule could run again for the sake of a node that can only run after the update.
  void pin_before_later_nodes(NodeId update, const std::vector<NodeId>& readers) {
    if (readers.empty() || readers_[update].empty()) return;
    std::vector<bool> later(readers_.size(), false), again(readers_.size(), false);
    std::vector<NodeId> stack = readers_[update], late;
    while (!stack.empty()) {
      const NodeId v = stack.back();
      stack.pop_back();
      if (later[v]) continue;
      later[v] = true;
      late.push_back(v);
      stack.insert(stack.end(), readers_[v].begin(), readers_[v].end());
    }
    if (later[update]) return;  // a cycle, which build() refuses
    while (!late.empty()) {
      const NodeId v = late.back();
      late.pop_back();
      for (const OutputRef input : graph_.node(v).inputs) {
        if (input.node == update || graph_.node(input.node).pinned || again[input.node] || later[input.node]) continue;
        again[input.node] = true;
        late.push_back(input.node);
      }
    }
    for (const NodeId reader : readers) {
      if (later[reader]) refuse(update, reader);
      if (again[reader]) graph_.node(reader).pinned = true;
    }
  }

  [[noreturn]] void refuse(NodeId update, NodeId reader) const {
    throw InputError(fmt::format("node '{}' reads a resident that node '{}' updates, but can only run after the update",
                                 graph_.node(reader).name, graph_.node(update).name));
  }

  /// Returns the end nodes to which paths lead from the readers, and pins the kept nodes among them. Does not continue
  /// paths through nodes that an earlier call has visited, because the end nodes behind them run before an earlier
  /// update, which runs before this one.
  std::vector<NodeId> ends_behind(NodeId update, const std::vector<NodeId>& readers) {
    std::vector<NodeId> ends, stack = readers;
    while (!stack.empty()) {
      const NodeId v = stack.back();
      stack.pop_back();
      if (v == update) continue;
      Node& node = graph_.node(v);
      const auto is_kept = [](const Output& output) { return output.keep; };
      node.pinned |= node.outputs.empty() ? node.keep : std::ranges::any_of(node.outputs, is_kept);
      const bool is_end = node.pinned || readers_[v].empty();
      if (is_end) ends.push_back(v);
      if (is_end || visited_[v]) continue;
      visited_[v] = true;
      stack.insert(stack.end(), readers_[v].begin(), readers_[v].end());
    }
    return ends;
  }

  GraphBuilder& graph_;
  std::vector<std::vector<NodeId>> readers_, readers_of_resident_;
  std::vector<bool> before_;   ///< whether the edges so far make a node run before the current update
  std::vector<bool> visited_;  ///< nodes that ends_behind() has visited
  NodeId last_ = kNoNode;
};

bool updates(const Node& node) { return node.op && is_update(node.op->kind); }

}  // namespace

void order_updates(GraphBuilder& graph, std::size_t residents) {
  std::vector<NodeId> found;
  for (NodeId v = 0; v < graph.node_count(); ++v) {
    if (updates(graph.node(v))) found.push_back(v);
  }
  if (found.empty()) return;
  OrderedUpdates ordered(graph, residents);
  for (const NodeId update : found) ordered.add(update);
}

}  // namespace cairn::core
