#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/op.h"

namespace cairn::tests {

/// An op whose arguments are not set yet, and the shapes of the arguments that graph_of() gives it.
struct OpCase {
  core::Op op;
  std::vector<core::Shape> args;
  std::int64_t limit = 1;  ///< upper limit of ids and labels
};

/// Makes a graph of one node that executes the op on random residents (tensors that stay in memory). The host fills
/// them, so every machine computes with the same data.
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
    node.op->args.push_back(core::Operand::resident(builder.add_resident(std::move(argument))));
  }
  builder.add(std::move(node));
  return builder.build();
}

}  // namespace cairn::tests
