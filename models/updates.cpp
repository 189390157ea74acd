#include "cairn/models/internal/updates.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace cairn::models {

using core::NodeId;
using core::Op;
using core::Operand;
using core::OpKind;
using core::Resident;

namespace {

/// Adds the control edges that make every update run after its end nodes, which the comment of class Updates describes.
class UpdateOrder {
 public:
  UpdateOrder(ModelBuilder& model, NodeId loss)
      : model_(model),
        readers_(model.node_count()),
        readers_of_resident_(model.resident_count()),
        ends_(model.node_count()),
        before_(model.node_count(), false),
        visited_(model.node_count(), false) {
    for (NodeId v = 0; v < model.node_count(); ++v) {
      for (const Operand& arg : model.op(v).args) {
        (arg.kind == Operand::Kind::node ? readers_ : readers_of_resident_)[arg.index].push_back(v);
      }
    }
    for (NodeId v = 0; v < model.node_count(); ++v) ends_[v] = v >= loss || readers_[v].empty();
  }

  /// Adds the control edges of one update. Must be called for all updates, in ascending order of their ids.
  void add(NodeId update) {
    if (last_ != core::kNoNode) {
      model_.add_control_input(update, last_);
      mark_before(last_);
    }
    last_ = update;
    for (const Operand& arg : model_.op(update).args) {
      if (arg.kind == Operand::Kind::node) mark_before(arg.index);
    }
    std::vector<NodeId> needed = needed_before(update);
    // Later nodes come first, because an edge from a later node can make edges from earlier nodes unnecessary.
    std::ranges::sort(needed, std::greater());
    for (const NodeId v : needed) {
      if (before_[v]) continue;
      model_.add_control_input(update, v);
      mark_before(v);
    }
  }

 private:
  /// Marks v and all nodes that run before it.
  void mark_before(NodeId v) {
    std::vector<NodeId> stack{v};
    while (!stack.empty()) {
      const NodeId u = stack.back();
      stack.pop_back();
      if (before_[u]) continue;
      before_[u] = true;
      for (const Operand& arg : model_.op(u).args) {
        if (arg.kind == Operand::Kind::node) stack.push_back(arg.index);
      }
    }
  }

  /// Returns the end nodes (ends_) to which a path leads from a reader of the updated weight. Does not continue paths
  /// through nodes that an earlier call has visited, because the end nodes behind them already run before an earlier
  /// update.
  std::vector<NodeId> needed_before(NodeId update) {
    std::vector<NodeId> needed, stack;
    for (const NodeId reader : readers_of_resident_[model_.op(update).writes]) {
      if (reader != update) stack.push_back(reader);
    }
    while (!stack.empty()) {
      const NodeId v = stack.back();
      stack.pop_back();
      if (ends_[v]) needed.push_back(v);
      if (ends_[v] || visited_[v]) continue;
      visited_[v] = true;
      stack.insert(stack.end(), readers_[v].begin(), readers_[v].end());
    }
    return needed;
  }

  ModelBuilder& model_;
  std::vector<std::vector<NodeId>> readers_, readers_of_resident_;
  std::vector<bool> ends_;     ///< backward nodes, the loss, and nodes that nothing reads
  std::vector<bool> before_;   ///< whether the edges so far make a node run before the current update
  std::vector<bool> visited_;  ///< nodes that needed_before() has visited
  NodeId last_ = core::kNoNode;
};

}  // namespace

bool has_updates(const BuildOptions& options) {
  return options.granularity == Granularity::layer && (options.optimizer == "sgd" || options.optimizer == "adamw");
}

Updates::Updates(ModelBuilder& model, NodeId loss) : model_(model), loss_(loss) {
  const auto number = [&](const char* name, double value) {
    return Operand::resident(model.add_resident(
        {.name = name, .shape = {1}, .role = Resident::Role::data, .init = Resident::Init::constant, .scale = value}));
  };
  rate_ = number("learning_rate", model.options().update.rate);
  if (model.options().optimizer == "adamw") step_ = number("step", 1);
}

void Updates::add(std::int32_t weight, const Operand& gradient, NodeId forward) {
  const Pending pending{weight, gradient, forward};
  if (model_.options().update.clip <= 0) return append_update(pending);
  Op op{OpKind::sum_of_squares, {1}, {gradient}, {}};
  if (squares_) op.args.push_back(*squares_);
  squares_ = model_.append(model_.resident(weight).name + "/grad_squares", std::move(op), forward).operand;
  pending_.push_back(pending);
}

Operand Updates::add_state(std::int32_t weight, const char* name) {
  const Resident& of = model_.resident(weight);
  return Operand::resident(model_.add_resident(
      {.name = fmt::format("{}.{}", of.name, name), .shape = of.shape, .role = Resident::Role::optimizer}));
}

void Updates::append_update(const Pending& pending) {
  const UpdateOptions& options = model_.options().update;
  const auto& [weight, gradient, forward] = pending;
  const bool adamw = model_.options().optimizer == "adamw";
  Op op;
  op.kind = adamw ? OpKind::adamw : OpKind::sgd;
  op.shape = model_.resident(weight).shape;
  op.writes = weight;
  op.attrs.beta1 = options.beta1;
  op.attrs.decay = options.decay;
  op.args = {gradient, Operand::resident(weight)};
  if (adamw) {
    op.attrs.beta2 = options.beta2;
    op.attrs.eps = options.eps;
    op.args.insert(op.args.end(), {add_state(weight, "exp_avg"), add_state(weight, "exp_avg_sq"), rate_, step_});
  } else {
    op.args.insert(op.args.end(), {add_state(weight, "momentum"), rate_});
  }
  if (squares_) {
    op.attrs.limit = options.clip;
    op.args.push_back(*squares_);
  }
  const Tensor updated = model_.append(model_.resident(weight).name + "/update", std::move(op), forward);
  model_.keep(updated.operand.index);
  updates_.push_back(updated.operand.index);
}

void Updates::finish() {
  for (const Pending& pending : pending_) append_update(pending);
  for (NodeId v = 0; v < model_.node_count(); ++v) {
    if (v >= loss_ || model_.kept(v)) model_.pin(v);
  }
  UpdateOrder order(model_, loss_);
  for (const NodeId update : updates_) order.add(update);
}

}  // namespace cairn::models
