#include "cairn/models/internal/updates.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace cairn::models {

using core::NodeId;
using core::Op;
using core::Operand;
using core::OpKind;
using core::Resident;

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
  for (std::size_t i = 1; i < updates_.size(); ++i) model_.add_control_input(updates_[i], updates_[i - 1]);
}

}  // namespace cairn::models
