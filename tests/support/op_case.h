#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/op.h"
#include "cairn/core/precision.h"

namespace cairn::tests {

/// An op whose arguments are not set yet, and the shapes of the arguments that graph_of() gives to the op.
struct OpCase {
  core::Op op;
  std::vector<core::Shape> args;
  std::int64_t limit = 1;  ///< upper limit of the ids and labels
};

/// Sets the initial values of argument i of an update. Sums of squares must not be negative. The learning rate, the
/// number of the step, and the sum of squares of all gradients have one element each.
inline void set_update_argument(core::Resident& argument, core::OpKind kind, std::size_t i) {
  constexpr std::array<double, 3> kNumbers{0.1, 7, 30};
  const std::size_t tensors = core::updated_args(kind).size() + 1;
  if (kind == core::OpKind::adamw && i == 3) argument.init = core::Resident::Init::uniform;
  if (i < tensors) return;
  const bool skips_step = kind == core::OpKind::sgd && i > tensors;
  argument.init = core::Resident::Init::constant;
  argument.scale = kNumbers[i - tensors + (skips_step ? 1 : 0)];
}

/// Makes the node, whose op updates a weight, write into the weight. If the weight is bf16, the op updates an fp32
/// copy, which has the same values at first.
inline void set_update_target(core::GraphBuilder& builder, core::Node& node) {
  node.pinned = true;
  node.size = 0;
  node.op->writes = node.op->args[1].index;
  for (const std::size_t i : core::updated_args(node.op->kind))
    builder.resident(node.op->args[i].index).role = core::Resident::Role::optimizer;
  builder.resident(node.op->writes).role = core::Resident::Role::weight;
  core::add_master(builder, *node.op);
}

/// Returns a graph of one node, which executes the op on random residents (tensors that stay in memory). The host fills
/// the residents, so the op gets the same data on every machine.
inline core::Graph graph_of(const OpCase& one, core::ElementType storage) {
  const std::string name(core::to_string(one.op.kind));
  core::GraphBuilder builder(name);
  core::Node node{.name = name, .op = one.op};
  node.op->type = core::output_type(one.op.kind, storage);
  core::set_sizes(node);
  node.keep = true;
  for (core::Output& output : node.outputs) output.keep = true;
  node.scratch = core::op_work(one.op, one.args).scratch;
  for (std::size_t i = 0; i < one.args.size(); ++i) {
    core::Resident argument{.name = fmt::format("argument {}", i),
                            .shape = one.args[i],
                            .role = core::Resident::Role::data,
                            .type = core::arg_type(one.op.kind, i, storage)};
    const bool integers = argument.type == core::ElementType::i32;
    argument.init = integers ? core::Resident::Init::uniform : core::Resident::Init::normal;
    argument.scale = integers ? static_cast<double>(one.limit) : 1.0;
    if (core::is_update(one.op.kind)) set_update_argument(argument, one.op.kind, i);
    node.op->args.push_back(core::Operand::resident(builder.add_resident(std::move(argument))));
  }
  if (core::is_update(one.op.kind)) set_update_target(builder, node);
  builder.add(std::move(node));
  return builder.build();
}

}  // namespace cairn::tests
