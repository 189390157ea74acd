#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/plan.h"
#include "cairn/core/schedule.h"
#include "cairn/runtime/executor.h"
#include "cairn/runtime/program.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/runtime/tensors.h"
#include "cairn/tests/support/outputs.h"
#include "cairn/tests/support/random_graph.h"

/// This file has small graphs with real ops, and helper functions for their programs.
namespace cairn::tests {

/// Adds a node that executes `op`. The function derives the node's size, scratch and inputs from the op.
inline core::NodeId add_op(core::GraphBuilder& builder, const std::string& name, Op op) {
  core::Node node{.name = name, .keep = op.writes >= 0};
  std::vector<Shape> shapes;
  for (const Operand& arg : op.args) {
    if (arg.kind == Operand::Kind::resident) {
      shapes.push_back(builder.resident(arg.index).shape);
    } else {
      shapes.push_back(core::output_shape(*builder.node(arg.index).op, arg.output));
      node.inputs.emplace_back(arg.index, arg.output);
    }
  }
  node.scratch = core::op_work(op, shapes).scratch;
  node.op = std::move(op);
  if (node.op->writes < 0) core::set_sizes(node);
  return builder.add(std::move(node));
}

struct Perceptron {
  core::Graph graph;
  core::NodeId hidden, active, loss, dw1, dw2, dhidden;
  std::int32_t x, w1, w2, target;
};

/// Returns a training step of y = relu(x w1) w2. It computes the mean squared error and the gradients of both weights.
/// The gradient of relu is computed in place.
inline Perceptron perceptron(std::int64_t batch = 5, std::int64_t in = 7, std::int64_t width = 9,
                             std::int64_t out = 3) {
  core::GraphBuilder builder("perceptron");
  const auto resident = [&](const char* name, Shape shape, Resident::Role role, Resident::Init init) {
    return builder.add_resident({.name = name, .shape = std::move(shape), .role = role, .init = init});
  };
  Perceptron p{.x = resident("x", {batch, in}, Resident::Role::data, Resident::Init::normal)};
  p.target = resident("target", {batch, out}, Resident::Role::data, Resident::Init::normal);
  p.w1 = resident("w1", {in, width}, Resident::Role::weight, Resident::Init::normal);
  p.w2 = resident("w2", {width, out}, Resident::Role::weight, Resident::Init::normal);
  const auto g1 = resident("w1.grad", {in, width}, Resident::Role::weight_grad, Resident::Init::zeros);
  const auto g2 = resident("w2.grad", {width, out}, Resident::Role::weight_grad, Resident::Init::zeros);

  const auto R = &Operand::resident;
  const auto N = [](core::NodeId v) { return Operand::node(v); };
  p.hidden = add_op(builder, "hidden",
                    op_on(OpKind::matmul, {batch, width}, {R(p.x), R(p.w1)}, {.m = batch, .n = width, .k = in}));
  p.active = add_op(builder, "active", op_on(OpKind::relu, {batch, width}, {N(p.hidden)}));
  const auto y = add_op(
      builder, "y", op_on(OpKind::matmul, {batch, out}, {N(p.active), R(p.w2)}, {.m = batch, .n = out, .k = width}));
  p.loss = add_op(builder, "loss", op_on(OpKind::mse, {1}, {N(y), R(p.target)}));
  builder.node(p.loss).keep = true;
  const auto dy = add_op(builder, "dy", op_on(OpKind::mse_grad, {batch, out}, {N(y), R(p.target)}));
  Op dw2 =
      op_on(OpKind::matmul, {width, out}, {N(p.active), N(dy)}, {.m = width, .n = out, .k = batch, .trans_a = true});
  dw2.writes = g2;
  p.dw2 = add_op(builder, "dw2", dw2);
  const auto dactive = add_op(
      builder, "dactive",
      op_on(OpKind::matmul, {batch, width}, {N(dy), R(p.w2)}, {.m = batch, .n = width, .k = out, .trans_b = true}));
  p.dhidden = add_op(builder, "dhidden", op_on(OpKind::relu_grad, {batch, width}, {N(dactive), N(p.active)}));
  builder.node(p.dhidden).inplace = dactive;
  builder.node(p.dhidden).scratch = -builder.node(p.dhidden).size;
  Op dw1 =
      op_on(OpKind::matmul, {in, width}, {R(p.x), N(p.dhidden)}, {.m = in, .n = width, .k = batch, .trans_a = true});
  dw1.writes = g1;
  p.dw1 = add_op(builder, "dw1", dw1);
  p.graph = builder.build();
  return p;
}

/// Returns the baseline schedule with two more steps right before dw2, which compute `hidden` and `active` again.
inline core::Schedule with_recomputation(const Perceptron& p) {
  core::Schedule schedule = core::baseline_schedule(p.graph);
  schedule.steps.insert(schedule.steps.begin() + p.dw2, {p.hidden, p.active});
  return schedule;
}

inline runtime::Program compiled(const core::Graph& graph, const core::Schedule& schedule, std::int64_t alignment = 256,
                                 std::int64_t guard_bytes = 0) {
  const core::Plan plan = solvers::plan_memory(graph, schedule, {.alignment = alignment, .guard_bytes = guard_bytes});
  return runtime::compile(graph, schedule, plan, {.guard_bytes = guard_bytes});
}
/// Compiles the baseline schedule of the graph.
inline runtime::Program compiled(const core::Graph& graph, std::int64_t alignment = 256, std::int64_t guard_bytes = 0) {
  return compiled(graph, core::baseline_schedule(graph), alignment, guard_bytes);
}

/// Returns a training step with a max-pool, a batch norm and a layer norm, and a forward branch with norms in place. If
/// `bundled` is true, the ops also return indices or statistics as further outputs. If not, separate ops compute them
/// with the same bits. The loss, both gradients and the last output of the branch are kept.
inline core::Graph pooled_norms(bool bundled) {
  const Shape image{2, 9, 8, 4}, pooled{2, 5, 4, 4}, params_shape{2, 4}, rows_shape{40, 2};
  const OpAttrs window{.kernel = 3, .stride = 2, .pad = 1};
  core::GraphBuilder builder("pooled norms");
  const auto resident = [&](const char* name, Shape shape, Resident::Init init) {
    const auto index = builder.add_resident({.name = name, .shape = std::move(shape), .init = init});
    return Operand::resident(index);
  };
  const Operand x = resident("x", image, Resident::Init::normal);
  const Operand params = resident("params", params_shape, Resident::Init::norm_params);
  const Operand target = resident("target", pooled, Resident::Init::normal);
  const auto add = [&](const char* name, OpKind kind, Shape shape, std::vector<Operand> args, OpAttrs attrs = {}) {
    return Operand::node(add_op(builder, name, op_on(kind, std::move(shape), std::move(args), std::move(attrs))));
  };
  struct Norm {
    Operand y, stats;
  };
  const auto norm = [&](const std::string& name, const Operand& from, bool layer) -> Norm {
    if (bundled) {
      const OpKind kind = layer ? OpKind::layernorm_with_stats : OpKind::batchnorm_with_stats;
      const Operand y = add(name.c_str(), kind, pooled, {from, params});
      return {y, Operand::node(y.index, 1)};
    }
    const Operand stats = add((name + ".stats").c_str(), layer ? OpKind::layernorm_stats : OpKind::batchnorm_stats,
                              layer ? rows_shape : params_shape, {from});
    return {add(name.c_str(), layer ? OpKind::layernorm : OpKind::batchnorm, pooled, {from, stats, params}), stats};
  };
  const auto in_place = [&](const Operand& y, const Operand& taken) {
    core::Node& node = builder.node(y.index);
    (node.outputs.empty() ? node.inplace : node.outputs[0].inplace) = core::OutputRef(taken.index);
  };
  const auto keep = [&](const Operand& y) {
    core::Node& node = builder.node(y.index);
    (node.outputs.empty() ? node.keep : node.outputs[0].keep) = true;
  };

  const Operand scaled = add("scaled", OpKind::scale, image, {x}, {.alpha = 3});
  const Operand pool = add("pool", bundled ? OpKind::maxpool_with_indices : OpKind::maxpool, pooled, {scaled}, window);
  const Norm batch = norm("batch", pool, false);
  const Norm layer = norm("layer", batch.y, true);
  const Operand branch = add("branch", OpKind::scale, pooled, {layer.y}, {.alpha = 2});
  const Norm second = norm("second", branch, true);
  const Norm third = norm("third", second.y, false);
  in_place(second.y, branch);
  in_place(third.y, second.y);
  keep(third.y);

  keep(add("loss", OpKind::mse, {1}, {layer.y, target}));
  const Operand dy = add("dy", OpKind::mse_grad, pooled, {layer.y, target});
  const Operand dbatch = add("dbatch", OpKind::layernorm_grad_input, pooled, {dy, batch.y, layer.stats, params});
  const Operand dparams = add("dparams", OpKind::batchnorm_grad_params, params_shape, {dbatch, pool, batch.stats});
  const Operand dpool =
      add("dpool", OpKind::batchnorm_grad_input, pooled, {dbatch, pool, batch.stats, params, dparams});
  const Operand dx =
      bundled ? add("dx", OpKind::maxpool_with_indices_grad, image, {dpool, Operand::node(pool.index, 1)}, window)
              : add("dx", OpKind::maxpool_grad, image, {dpool, scaled}, window);
  keep(dparams);
  keep(dx);
  return builder.build();
}

/// Returns a graph with a single node, which looks up ids in a table. Some of the ids are out of range.
inline core::Graph lookup_out_of_range() {
  core::GraphBuilder builder;
  const auto ids = builder.add_resident({.name = "ids",
                                         .shape = {50},
                                         .role = Resident::Role::data,
                                         .type = Resident::Type::i32,
                                         .init = Resident::Init::uniform,
                                         .scale = 1000});
  const auto table = builder.add_resident({.name = "table", .shape = {3, 2}});
  add_op(builder, "lookup", op_on(OpKind::embedding, {50, 2}, {Operand::resident(ids), Operand::resident(table)}));
  return builder.build();
}

/// Returns the location of the first output of the instruction at `step`.
inline runtime::OutputLocation& output_of(runtime::Program& program, std::size_t step) {
  return program.outputs[program.instructions[step].output_begin];
}

/// Makes the instruction at `step` free the output of the step `made_by`, and nothing else.
inline void free_early(runtime::Program& program, std::size_t step, std::size_t made_by) {
  runtime::Instruction& instruction = program.instructions[step];
  instruction.free_begin = static_cast<std::uint32_t>(program.frees.size());
  instruction.free_count = 1;
  program.frees.push_back(output_of(program, made_by));
}

/// All results of an executor: the kept outputs, and digests (hashes) of the sinks, i.e. of the outputs that are
/// neither read nor kept.
struct Results {
  Outputs outputs;
  std::vector<runtime::SinkDigest> sinks;
  bool operator==(const Results&) const = default;
};

inline Results results_of(runtime::Executor& executor) { return {outputs_of(executor), executor.sink_digests()}; }

/// Executes one step on the host and returns its results.
inline Results results_of(runtime::Program program, const runtime::ExecuteOptions& options = {}) {
  const auto executor = runtime::host_executor(std::move(program), options);
  executor->run();
  return results_of(*executor);
}

inline Outputs execute(runtime::Program program, const runtime::ExecuteOptions& options = {}) {
  return results_of(std::move(program), options).outputs;
}

inline std::vector<float> as_floats(const Bytes& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace cairn::tests
