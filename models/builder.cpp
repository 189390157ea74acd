#include "cairn/models/builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/precision.h"

namespace cairn::models {

using core::Op;
using core::OpAttrs;
using core::Operand;
using core::OpKind;
using core::Resident;
using core::Shape;

namespace {

Op make_op(OpKind kind, Shape shape, std::vector<Operand> args, OpAttrs attrs = {}) {
  return {kind, std::move(shape), std::move(args), std::move(attrs)};
}

Shape with_channels(Shape shape, std::int64_t channels) {
  shape.back() = channels;
  return shape;
}

void require_rank(const std::string& name, const Tensor& x, std::size_t least) {
  if (x.shape.size() < least) {
    throw core::InputError(fmt::format("{}: its input has {} axes and needs at least {}", name, x.shape.size(), least));
  }
}

/// Returns the number of positions of a sliding window along one axis.
std::int64_t window_extent(const std::string& name, std::int64_t extent, std::int64_t kernel, std::int64_t stride,
                           std::int64_t pad) {
  if (stride < 1) throw core::InputError(fmt::format("{}: stride is {}; it must be at least 1", name, stride));
  if (extent + 2 * pad < kernel) {
    throw core::InputError(fmt::format(
        "{}: {} pixels with padding {} are fewer than the window's {}; use a larger image", name, extent, pad, kernel));
  }
  return (extent + 2 * pad - kernel) / stride + 1;
}

}  // namespace

ModelBuilder::ModelBuilder(std::string name, const BuildOptions& options) : options_(options), graph_(std::move(name)) {
  graph_.set_cost_unit(core::cost_unit_of(options.roofline));
}

Tensor ModelBuilder::weight(const std::string& name, Shape shape, Resident::Init init, double scale) {
  return resident_tensor(
      {.name = name, .shape = std::move(shape), .role = Resident::Role::weight, .init = init, .scale = scale});
}

Tensor ModelBuilder::data(const std::string& name, Shape shape) {
  return resident_tensor(
      {.name = name, .shape = std::move(shape), .role = Resident::Role::data, .init = Resident::Init::normal});
}

Tensor ModelBuilder::indices(const std::string& name, Shape shape, std::int64_t bound) {
  return resident_tensor({.name = name,
                          .shape = std::move(shape),
                          .role = Resident::Role::data,
                          .type = Resident::Type::i32,
                          .init = Resident::Init::uniform,
                          .scale = static_cast<double>(bound)});
}

Tensor ModelBuilder::constant(const std::string& name, Shape shape, Resident::Init init) {
  return resident_tensor({.name = name, .shape = std::move(shape), .role = Resident::Role::constant, .init = init});
}

Tensor ModelBuilder::project(const std::string& name, const Tensor& x, const Tensor& w, const ProjectOptions& options) {
  require_rank(name, x, 1);
  if (w.shape.size() != 2)
    throw core::InputError(fmt::format("{}: its weight has {} axes, not 2", name, w.shape.size()));
  OpAttrs attrs;
  attrs.k = w.shape[options.transposed ? 1 : 0];
  attrs.n = w.shape[options.transposed ? 0 : 1];
  attrs.m = core::element_count(x.shape) / std::max<std::int64_t>(attrs.k, 1);
  attrs.trans_b = options.transposed;
  attrs.alpha = options.alpha;
  std::vector<Operand> args{x.operand, w.operand};
  if (options.bias) args.push_back(options.bias->operand);
  Shape shape = options.shape.empty() ? with_channels(x.shape, attrs.n) : options.shape;
  return append(name, make_op(OpKind::matmul, std::move(shape), std::move(args), attrs));
}

Tensor ModelBuilder::batched_matmul(const std::string& name, const Tensor& a, const Tensor& b,
                                    const BatchedOptions& options) {
  require_rank(name, a, 2);
  if (b.shape.size() != a.shape.size() || !std::equal(a.shape.begin(), a.shape.end() - 2, b.shape.begin())) {
    throw core::InputError(fmt::format("{}: the two factors' batch axes differ", name));
  }
  const auto row = a.shape.size() - 2;
  const auto col = a.shape.size() - 1;
  OpAttrs attrs;
  attrs.m = a.shape[options.trans_a ? col : row];
  attrs.k = a.shape[options.trans_a ? row : col];
  attrs.n = b.shape[options.trans_b ? row : col];
  attrs.batch = core::element_count(Shape(a.shape.begin(), a.shape.end() - 2));
  attrs.trans_a = options.trans_a;
  attrs.trans_b = options.trans_b;
  attrs.alpha = options.alpha;
  Shape shape = a.shape;
  shape[row] = attrs.m;
  shape[col] = attrs.n;
  return append(name, make_op(OpKind::matmul, std::move(shape), {a.operand, b.operand}, attrs));
}

Tensor ModelBuilder::add(const std::string& name, const Tensor& a, const Tensor& b) {
  if (a.shape != b.shape)
    throw core::InputError(fmt::format("node '{}' adds tensors of the shapes [{}] and [{}], which must be equal", name,
                                       fmt::join(a.shape, ", "), fmt::join(b.shape, ", ")));
  return append(name, make_op(OpKind::add, a.shape, {a.operand, b.operand}));
}

Tensor ModelBuilder::scale(const std::string& name, const Tensor& x, double alpha) {
  return append(name, make_op(OpKind::scale, x.shape, {x.operand}, {.alpha = alpha}));
}

Tensor ModelBuilder::relu(const std::string& name, const Tensor& x) {
  return append(name, make_op(OpKind::relu, x.shape, {x.operand}));
}

Tensor ModelBuilder::gelu(const std::string& name, const Tensor& x) {
  return append(name, make_op(OpKind::gelu, x.shape, {x.operand}));
}

Tensor ModelBuilder::conv2d(const std::string& name, const Tensor& x, const Tensor& w,
                            const std::optional<Tensor>& bias, std::int64_t stride, std::int64_t pad) {
  require_rank(name, x, 4);
  require_rank(name, w, 4);
  std::vector<Operand> args{x.operand, w.operand};
  if (bias) args.push_back(bias->operand);
  Shape shape{x.shape[0], window_extent(name, x.shape[1], w.shape[1], stride, pad),
              window_extent(name, x.shape[2], w.shape[2], stride, pad), w.shape[0]};
  return append(name, make_op(OpKind::conv2d, std::move(shape), std::move(args), {.stride = stride, .pad = pad}));
}

Tensor ModelBuilder::batchnorm(const std::string& name, const Tensor& x, const Tensor& params) {
  require_rank(name, x, 2);
  const Tensor stats = append(name + ".stats", make_op(OpKind::batchnorm_stats, {2, x.channels()}, {x.operand}));
  return append(name, make_op(OpKind::batchnorm, x.shape, {x.operand, stats.operand, params.operand}));
}

Tensor ModelBuilder::layernorm(const std::string& name, const Tensor& x, const Tensor& params) {
  require_rank(name, x, 2);
  const std::int64_t rows = core::element_count(x.shape) / std::max<std::int64_t>(x.channels(), 1);
  const Tensor stats = append(name + ".stats", make_op(OpKind::layernorm_stats, {rows, 2}, {x.operand}));
  return append(name, make_op(OpKind::layernorm, x.shape, {x.operand, stats.operand, params.operand}));
}

Tensor ModelBuilder::maxpool(const std::string& name, const Tensor& x, std::int64_t kernel, std::int64_t stride,
                             std::int64_t pad) {
  require_rank(name, x, 4);
  Shape shape{x.shape[0], window_extent(name, x.shape[1], kernel, stride, pad),
              window_extent(name, x.shape[2], kernel, stride, pad), x.channels()};
  return append(
      name, make_op(OpKind::maxpool, std::move(shape), {x.operand}, {.kernel = kernel, .stride = stride, .pad = pad}));
}

Tensor ModelBuilder::mean_pool(const std::string& name, const Tensor& x) {
  require_rank(name, x, 2);
  return append(name, make_op(OpKind::mean_pool, {x.shape[0], x.channels()}, {x.operand}));
}

Tensor ModelBuilder::upsample(const std::string& name, const Tensor& x) {
  require_rank(name, x, 4);
  return append(name, make_op(OpKind::upsample, {x.shape[0], 2 * x.shape[1], 2 * x.shape[2], x.shape[3]}, {x.operand}));
}

Tensor ModelBuilder::concat(const std::string& name, const Tensor& a, const Tensor& b) {
  require_rank(name, a, 1);
  require_rank(name, b, 1);
  return append(name,
                make_op(OpKind::concat, with_channels(a.shape, a.channels() + b.channels()), {a.operand, b.operand}));
}

Tensor ModelBuilder::permute(const std::string& name, const Tensor& x, std::vector<std::int64_t> perm) {
  Shape shape;
  for (const std::int64_t axis : perm) {
    if (axis < 0 || axis >= static_cast<std::int64_t>(x.shape.size())) {
      throw core::InputError(fmt::format("{}: its input has {} axes and no axis {}", name, x.shape.size(), axis));
    }
    shape.push_back(x.shape[axis]);
  }
  return append(name, make_op(OpKind::permute, std::move(shape), {x.operand}, {.perm = std::move(perm)}));
}

Tensor ModelBuilder::softmax(const std::string& name, const Tensor& x, bool causal) {
  return append(name, make_op(OpKind::softmax, x.shape, {x.operand}, {.causal = causal}));
}

Tensor ModelBuilder::embedding(const std::string& name, const Tensor& ids, const Tensor& table,
                               const std::optional<Tensor>& positions) {
  require_rank(name, table, 2);
  Shape shape = ids.shape;
  shape.push_back(table.channels());
  std::vector<Operand> args{ids.operand, table.operand};
  if (positions) args.push_back(positions->operand);
  return append(name, make_op(OpKind::embedding, std::move(shape), std::move(args)));
}

Tensor ModelBuilder::dropout(const std::string& name, const Tensor& x, double p) {
  if (p == 0.0) return x;
  return append(name, make_op(OpKind::dropout, x.shape, {x.operand}, {.p = p, .stream = dropout_streams_++}));
}

Tensor ModelBuilder::cross_entropy(const std::string& name, const Tensor& logits, const Tensor& labels) {
  return append(name, make_op(OpKind::cross_entropy, {1}, {logits.operand, labels.operand}));
}

Tensor ModelBuilder::mse(const std::string& name, const Tensor& y, const Tensor& target) {
  return append(name, make_op(OpKind::mse, {1}, {y.operand, target.operand}));
}

Tensor ModelBuilder::append(std::string name, Op op, core::NodeId forward) {
  core::Node node;
  std::vector<Shape> arg_shapes;
  for (const Operand& arg : op.args) {
    arg_shapes.push_back(shape(arg));
    if (arg.kind == Operand::Kind::node) node.inputs.emplace_back(arg.index, arg.output);
  }
  try {
    core::check_op(op, arg_shapes);
  } catch (const core::InputError& error) {
    throw core::InputError(fmt::format("node '{}': {}", name, error.what()));
  }
  const core::OpWork work = core::op_work(op, arg_shapes);
  node.name = std::move(name);
  node.scratch = work.scratch;
  node.cost = options_.roofline.cost(work);
  node.backward = forward != core::kNoNode;
  node.forward = forward;
  Tensor result{{}, op.shape};
  node.op = std::move(op);
  if (node.op->writes < 0) core::set_sizes(node);
  result.operand = Operand::node(graph_.add(std::move(node)));
  return result;
}

std::int32_t ModelBuilder::add_resident(Resident resident) {
  core::element_count(resident.shape);  // throws if the number of elements is too large
  ++resident_count_;
  return graph_.add_resident(std::move(resident));
}

Shape ModelBuilder::shape(const Operand& operand) {
  return operand.kind == Operand::Kind::node ? core::output_shape(op(operand.index), operand.output)
                                             : resident(operand.index).shape;
}

Tensor ModelBuilder::resident_tensor(Resident resident) {
  Shape shape = resident.shape;
  return {Operand::resident(add_resident(std::move(resident))), std::move(shape)};
}

}  // namespace cairn::models
