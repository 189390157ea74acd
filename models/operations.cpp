#include "cairn/models/support/operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/precision.h"
#include "cairn/core/support/text.h"
#include "cairn/models/internal/operation_writer.h"
#include "cairn/models/internal/options.h"

namespace cairn::models {
namespace {

using core::NodeId;
using core::Op;
using core::Operand;
using core::OpKind;
using core::Resident;
using core::Shape;
using Value = OperationValue;

const Shape kScalar = {1};

std::int64_t channels(const Shape& shape) { return shape.empty() ? 1 : shape.back(); }

/// Returns whether a matrix product can take a factor of this shape without a view.
bool is_matrix(const Shape& shape) { return shape.size() == 2; }

/// Replaces the layers of a training step by elementary operations, one layer after another (to_operations()).
class Lowering {
 public:
  Lowering(const core::Graph& layers, const OperationOptions& options)
      : layers_(layers),
        options_(options),
        writer_(layers.name(), options.roofline),
        values_(static_cast<std::size_t>(layers.node_count())),
        ranges_(values_.size()),
        saved_(values_.size()) {}

  core::Graph run() {
    for (const NodeId v : layers_.input_order()) lower(v);
    finish_layer();
    core::GraphBuilder graph = writer_.finish();
    graph.set_cost_unit(core::cost_unit_of(writer_.roofline()));
    add_residents(graph);
    return graph.build();
  }

 private:
  /// Holds those values of a forward layer, except its output, that the operations of the layer's gradient read.
  struct Saved {
    Value shape;  ///< descriptor of the shape of the layer's input
    /// Descriptors of the shapes of the two factors of a matrix product: factor_shape has the shapes as given, and flat
    /// the shapes of the factors as matrices.
    std::array<Value, 2> factor_shape, flat;
    Value product_shape;  ///< shape of a product before its rows are split into several axes
    /// out_shape is the shape of the output; it is set if a bias is added to the output or if the output is reshaped.
    /// bias_shape is the shape of the bias.
    Value out_shape, bias_shape;
    /// Results of natural_gradient() and product_gradient(). These functions store their results here at the first
    /// call.
    Value gradient, product_gradient;
    Value count, centred, deviation, normal;  ///< intermediate values of a norm
    /// Axes over which a norm sums. Set when the gradient of the norm's parameters is computed.
    Value axes;
    Value weight_shape;                     ///< shape of a convolution's weight
    Value squares;                          ///< for upsampling, the shape of pairs_of_pixels()
    Value tanh, one_plus_tanh, half_input;  ///< intermediate values of a GELU
    Value likelihood;                       ///< for cross entropy, the log likelihood of every class
    Value difference;                       ///< for the mean squared error, the difference before it is squared
    Value mask;                             ///< mask of a dropout
  };

  void lower(NodeId v) {
    node_ = v;
    op_ = layers_.op(v);
    if (op_ == nullptr)
      throw core::InputError(fmt::format("node '{}' has no op that can be split into operations", layers_.name(v)));
    if (op_->type != core::ElementType::f32)
      throw core::InputError(fmt::format("node '{}' is stored as {}; operations are of fp32", layers_.name(v),
                                         core::to_string(op_->type)));
    const bool backward = layers_.backward(v);
    const NodeId forward = backward ? layers_.forward(v) : v;
    if (forward != forward_) finish_layer();
    forward_ = forward;
    if (backward) {
      writer_.begin(layers_.name(v), ranges_[forward_]);
    } else {
      writer_.begin(layers_.name(v));
    }
    const NodeId first = writer_.node_count();
    values_[v] = operations();
    ranges_[v] = {first, values_[v].nodes.front()};
    values_[v].shape = op_->shape;
    if (op_->writes >= 0) completed_.push_back(v);
    if (op_->kind != OpKind::reduce_rows) gradients_.push_back(v);
    if (layers_.keep(v) && !backward) keep_loss(values_[v]);
  }

  /// Updates the weights whose gradients the current layer has completed. The gradient of one factor of a product reads
  /// the other factor. So if one factor is a weight, the weight's update must run after the gradients of both factors.
  void finish_layer() {
    for (const NodeId v : completed_) {
      const std::int32_t weight = layers_.residents()[layers_.op(v)->writes].gradient_of;
      writer_.begin(layers_.residents()[weight].name, ranges_[forward_]);
      Value after;
      const bool product = layers_.op(v)->kind == OpKind::matmul || layers_.op(v)->kind == OpKind::conv2d_grad_weight;
      if (product && gradients_.size() == 2)
        after = writer_.descriptor("group", {values_[gradients_[0]], values_[gradients_[1]]});
      update(values_[v], weight, after);
    }
    completed_.clear();
    gradients_.clear();
  }

  Saved& saved() { return saved_[forward_]; }
  /// Returns the Saved of the layer that computed argument `arg` of the current op. This argument must be the
  /// statistics of a norm.
  Saved& saved_by(std::size_t arg) { return saved_[op_->args[arg].index]; }

  Value value(const Operand& x) {
    return x.kind == Operand::Kind::node ? values_[x.index] : writer_.read(layers_.residents()[x.index].shape);
  }
  Value arg(std::size_t i) { return value(op_->args[i]); }
  std::int64_t flops() const { return core::op_work(*op_, core::arg_shapes(layers_, node_)).flops; }

  Value map(std::string_view what, OperationWriter::Values inputs) { return writer_.elementwise(what, inputs); }
  Value shape_of(const Value& x) { return writer_.descriptor("shape", {x}); }
  Value expand(const Value& x, const Shape& to, const Value& shape) { return writer_.view("expand", x, to, shape); }
  Value sum(const Value& x, Shape shape, const Value& axes = {}) {
    return writer_.compute("sum", std::move(shape), {x, axes});
  }

  Value add_bias(const Value& y, const Value& bias) {
    saved().out_shape = shape_of(y);
    saved().bias_shape = shape_of(bias);
    return map("add", {y, expand(bias, y.shape, saved().out_shape)});
  }

  Value operations_of_images() {
    switch (op_->kind) {
      case OpKind::conv2d:
        return conv2d();
      case OpKind::conv2d_grad_input:
        return writer_.compute("conv2d_grad_input", op_->shape, {product_gradient(arg(0)), arg(1), saved().shape},
                               flops());
      case OpKind::conv2d_grad_weight:
        return writer_.compute("conv2d_grad_weight", op_->shape,
                               {product_gradient(arg(0)), arg(1), saved().weight_shape}, flops());
      case OpKind::maxpool:
        return writer_.compute("maxpool", op_->shape, {arg(0)}, flops());
      case OpKind::maxpool_grad:
        return writer_.compute("maxpool_grad", op_->shape, {arg(0), arg(1), values_[forward_]}, flops());
      case OpKind::mean_pool:
        return mean_pool();
      case OpKind::mean_pool_grad:
        return mean_pool_gradient();
      case OpKind::upsample:
        return upsample();
      case OpKind::upsample_grad:
        return sum(writer_.view("reshape", arg(0), pairs_of_pixels(op_->shape), saved().squares), op_->shape);
      default:
        throw std::logic_error("an op of another kind");
    }
  }

  Value operations() {
    switch (op_->kind) {
      case OpKind::matmul:
        return layers_.backward(node_) ? matmul_gradient() : matmul();
      case OpKind::reduce_rows:
        return bias_gradient();
      case OpKind::add:
        return map("add", {arg(0), arg(1)});
      case OpKind::sum_of_squares:
      case OpKind::sgd:
      case OpKind::adamw:
        throw core::InputError("updates of weights have no elementary operations here; build the model without them");
      case OpKind::scale:
        return map("multiply", {arg(0)});
      case OpKind::relu:
        return map("maximum", {arg(0)});
      case OpKind::relu_grad:
        return map("select", {arg(0), writer_.compute("greater", op_->shape, {arg(1)}, -1, 1)});
      case OpKind::gelu:
        return gelu();
      case OpKind::gelu_grad:
        return gelu_gradient();
      case OpKind::batchnorm_stats:
        return statistics({channels(op_->shape)}, true);
      case OpKind::layernorm_stats:
        return statistics({op_->shape.front(), 1}, false);
      case OpKind::batchnorm:
      case OpKind::layernorm:
        return normalise();
      case OpKind::batchnorm_grad_params:
      case OpKind::layernorm_grad_params:
        return norm_params_gradient();
      case OpKind::batchnorm_grad_input:
      case OpKind::layernorm_grad_input:
        return norm_gradient();
      case OpKind::conv2d:
      case OpKind::conv2d_grad_input:
      case OpKind::conv2d_grad_weight:
      case OpKind::maxpool:
      case OpKind::maxpool_grad:
      case OpKind::mean_pool:
      case OpKind::mean_pool_grad:
      case OpKind::upsample:
      case OpKind::upsample_grad:
        return operations_of_images();
      case OpKind::concat:
        return writer_.compute("concat", op_->shape, {arg(0), arg(1)}, 0);
      case OpKind::slice:
        return writer_.compute("slice", op_->shape, {arg(0)}, 0);
      case OpKind::permute:
        return writer_.compute("contiguous", op_->shape, {permuted(arg(0), op_->shape)}, 0);
      case OpKind::softmax:
        return softmax();
      case OpKind::softmax_grad:
        return softmax_gradient();
      case OpKind::embedding:
        return embedding();
      case OpKind::embedding_grad:
        return writer_.compute("scatter_add", op_->shape,
                               {writer_.compute("zeros", op_->shape, {}, 0), arg(0), arg(1)});
      case OpKind::cross_entropy:
        return cross_entropy();
      case OpKind::cross_entropy_grad:
        return cross_entropy_gradient();
      case OpKind::mse:
        return mean_squared_error();
      case OpKind::mse_grad:
        return mean_squared_error_gradient();
      case OpKind::dropout:
        return layers_.backward(node_) ? map("multiply", {map("multiply", {arg(0), saved().mask})}) : dropout();
      case OpKind::batchnorm_with_stats:
      case OpKind::layernorm_with_stats:
      case OpKind::maxpool_with_indices:
      case OpKind::maxpool_with_indices_grad:
        break;
    }
    throw core::InputError(fmt::format("node '{}': it is not known which operations a {} consists of",
                                       layers_.name(node_), core::to_string(op_->kind)));
  }

  Value permuted(const Value& x, const Shape& shape) {
    return writer_.view("transpose", x, shape, writer_.descriptor("permutation", {}));
  }

  /// Adds views that turn x into the matrix, or the batch of matrices, that a product takes. x is a factor of the
  /// product, and `i` is the index of this factor among the forward op's arguments.
  Value flatten(const Value& x, std::size_t i) {
    const core::OpAttrs& a = layers_.op(forward_)->attrs;
    Shape shape = i == 0 ? Shape{a.m, a.k} : Shape{a.k, a.n};
    if (i == 0 ? a.trans_a : a.trans_b) std::swap(shape[0], shape[1]);
    if (a.batch > 1) shape.insert(shape.begin(), a.batch);
    return writer_.view("reshape", permuted(x, x.shape), std::move(shape), saved().flat[i]);
  }

  /// Returns factor i of the forward layer's product as a matrix. Saves the shapes that the operations of the factor's
  /// gradient need.
  Value factor(std::size_t i) {
    Value x = arg(i);
    if (is_matrix(x.shape) && (i == 0 || saved().flat[0].nodes.empty())) return x;
    const Value shape = saved().factor_shape[i] = shape_of(x);
    if (x.resident) {
      saved().flat[i] = shape;
    } else {
      const Value rows = writer_.descriptor("product", {writer_.descriptor("slice", {shape})});
      const Value columns = writer_.descriptor("product", {writer_.descriptor("slice", {shape})});
      saved().flat[i] = writer_.descriptor("pack", {rows, columns});
    }
    return flatten(x, i);
  }

  Value transposed(const Value& x, bool yes) {
    if (!yes) return x;
    Shape shape = x.shape;
    std::swap(shape[shape.size() - 2], shape.back());
    return writer_.view("transpose", x, std::move(shape));
  }

  /// Returns the shape of a product x * w, where x is m x k and w is k x n, before it is reshaped to the op's output
  /// shape. This is x's shape with one axis of extent n instead of the last axes, whose extents multiply to k.
  Shape natural_shape(const Shape& x) const {
    const core::OpAttrs& a = op_->attrs;
    if (a.batch > 1) return op_->shape;
    Shape shape = x;
    for (std::int64_t spanned = 1; spanned < a.k && shape.size() > 1; shape.pop_back()) spanned *= shape.back();
    shape.push_back(a.n);
    return core::element_count(shape) == core::element_count(op_->shape) ? shape : op_->shape;
  }

  Value matmul() {
    const core::OpAttrs& a = op_->attrs;
    const Value x = factor(0);
    const Value w = factor(1);
    Shape shape{a.m, a.n};
    if (a.batch > 1) shape.insert(shape.begin(), a.batch);
    Value y = writer_.compute("matmul", shape, {transposed(x, a.trans_a), transposed(w, a.trans_b)}, flops());
    const Shape natural = natural_shape(arg_shape(0));
    if (natural != shape) {
      saved().product_shape = shape_of(y);
      y = writer_.view("reshape", y, natural, writer_.descriptor("concat", {saved().factor_shape[0]}));
    }
    if (a.alpha != 1.0) y = map("multiply", {y});
    if (op_->args.size() > 2) y = add_bias(y, arg(2));
    if (natural == op_->shape) return y;
    if (saved().out_shape.nodes.empty()) saved().out_shape = shape_of(y);
    return writer_.view("reshape", y, op_->shape, writer_.descriptor("concat", {saved().out_shape}));
  }

  Shape arg_shape(std::size_t i) const { return core::arg_shapes(layers_, node_)[i]; }

  /// Returns the gradient of a layer's output, in the shape that the output has before its last axis is split into
  /// several axes.
  Value natural_gradient(const Value& dy) {
    Value& d = saved().gradient;
    if (!d.nodes.empty()) return d;
    d = dy;
    const Op& forward = *layers_.op(forward_);
    if (forward.kind != OpKind::matmul || forward.attrs.batch > 1 || saved().out_shape.nodes.empty()) return d;
    Shape natural = dy.shape;
    while (natural.size() > 1 && natural.back() != forward.attrs.n) {
      const std::int64_t last = natural.back();
      natural.pop_back();
      natural.back() *= last;
    }
    if (natural != dy.shape) d = writer_.view("reshape", dy, std::move(natural), saved().out_shape);
    return d;
  }

  /// Returns the gradient with respect to the bare result of a product or convolution, i.e. the result before it is
  /// multiplied by alpha and before a bias is added.
  Value product_gradient(const Value& dy) {
    Value& d = saved().product_gradient;
    if (!d.nodes.empty()) return d;
    d = natural_gradient(dy);
    if (!saved().bias_shape.nodes.empty()) d = writer_.view("reshape", d, d.shape, saved().out_shape);
    if (layers_.op(forward_)->attrs.alpha != 1.0) d = map("multiply", {d});
    return d;
  }

  Value matmul_gradient() {
    const Op& forward = *layers_.op(forward_);
    const core::OpAttrs& a = op_->attrs;
    std::size_t of = 0;  // index of the factor whose gradient is computed
    std::array<Value, 2> factors;
    for (std::size_t i = 0; i < 2; ++i) {
      const Operand& x = op_->args[i];
      Value& factor = factors[i];
      if (x == forward.args[0] || x == forward.args[1]) {
        const std::size_t which = x == forward.args[0] ? 0 : 1;
        of = 1 - which;
        factor = value(x);
        if (!saved().flat[which].nodes.empty()) factor = flatten(factor, which);
      } else {
        factor = product_gradient(value(x));
        if (!saved().product_shape.nodes.empty()) {
          Shape shape{forward.attrs.m, forward.attrs.n};
          if (a.batch > 1) shape.insert(shape.begin(), a.batch);
          factor = writer_.view("reshape", factor, std::move(shape), saved().product_shape);
        }
      }
    }
    Shape shape{a.m, a.n};
    if (a.batch > 1) shape.insert(shape.begin(), a.batch);
    Value product = writer_.compute("matmul", shape,
                                    {transposed(factors[0], a.trans_a), transposed(factors[1], a.trans_b)}, flops());
    if (saved().flat[of].nodes.empty()) return product;
    const Value split = writer_.view("reshape", product, op_->shape, saved().factor_shape[of]);
    return permuted(split, op_->shape);
  }

  Value bias_gradient() {
    const Value dy = natural_gradient(arg(0));
    const Value axes = writer_.descriptor("broadcast_axes", {saved().out_shape, saved().bias_shape});
    return writer_.view("reshape", sum(dy, op_->shape, axes), op_->shape, saved().bias_shape);
  }

  Value conv2d() {
    const Value x = arg(0);
    const Value w = arg(1);
    saved().shape = shape_of(x);
    saved().weight_shape = shape_of(w);
    const Value y = writer_.compute("conv2d", op_->shape, {x, w}, flops());
    return op_->args.size() > 2 ? add_bias(y, arg(2)) : y;
  }

  // --- Norms: (x - mean) / sqrt(variance + eps) * gamma + beta.

  Value mean(const Value& x, const Shape& shape, const Value& count) { return map("divide", {sum(x, shape), count}); }

  Value statistics(const Shape& shape, bool running_averages) {
    const Value x = arg(0);
    Saved& left = saved();
    left.shape = shape_of(x);
    left.count = writer_.descriptor("product", {left.shape});
    const Value average = mean(x, shape, left.count);
    left.centred = map("subtract", {x, expand(average, x.shape, left.shape)});
    const Value variance = mean(map("multiply", {left.centred}), shape, left.count);
    left.deviation = map("rsqrt", {map("add", {variance})});
    if (running_averages) {
      for (const Value& statistic : {average, variance}) {
        const Value old = writer_.read(shape);
        writer_.assign(map("subtract", {old, map("multiply", {map("subtract", {old, statistic})})}));
      }
      norms_.push_back(node_);
    }
    return left.deviation;
  }

  Value parameter(const Value& params, const Shape& shape, const Value& to) {
    return expand(writer_.view("slice", params, {channels(shape)}), shape, to);
  }

  Value normalise() {
    const Saved& left = saved_by(1);
    const Value params = arg(2);
    const Shape& shape = left.centred.shape;
    const Value normal = map("multiply", {left.centred, expand(left.deviation, shape, left.shape)});
    saved_by(1).normal = normal;
    const Value scaled = map("multiply", {normal, parameter(params, shape, left.shape)});
    return map("add", {scaled, parameter(params, shape, left.shape)});
  }

  Value norm_params_gradient() {
    Saved& left = saved_by(2);
    const Value dy = arg(0);
    const Shape shape{channels(dy.shape)};
    left.axes = writer_.descriptor("broadcast_axes", {left.shape});
    const Value beta = sum(dy, shape, left.axes);
    const Value gamma = sum(map("multiply", {dy, left.normal}), shape, left.axes);
    return writer_.compute("concat", op_->shape, {gamma, beta}, 0);
  }

  Value norm_gradient() {
    const Saved& left = saved_by(2);
    const Shape& shape = left.centred.shape;
    const Shape& statistic = left.deviation.shape;
    const Value dnormal = map("multiply", {arg(0), parameter(arg(3), shape, left.shape)});
    const Value ddeviation = sum(map("multiply", {dnormal, left.centred}), statistic, left.axes);
    Value d = map("multiply", {dnormal, expand(left.deviation, shape, left.shape)});
    // The derivative of rsqrt(v) is -1/2 rsqrt(v)^3.
    const Value cube = map("multiply", {left.deviation, map("multiply", {left.deviation})});
    const Value dvariance = map("multiply", {map("multiply", {ddeviation, cube})});
    const Value dsquare = expand(map("divide", {dvariance, left.count}), shape, left.shape);
    d = map("add", {d, map("multiply", {map("multiply", {left.centred, dsquare})})});
    const Value dmean = map("divide", {map("negate", {sum(d, statistic, left.axes)}), left.count});
    return map("add", {d, expand(dmean, shape, left.shape)});
  }

  Value gelu() {
    const Value x = arg(0);
    const Value cube = map("multiply", {x, map("multiply", {x})});
    const Value inner = map("multiply", {map("add", {x, map("multiply", {cube})})});
    saved().tanh = map("tanh", {inner});
    saved().one_plus_tanh = map("add", {saved().tanh});
    saved().half_input = map("multiply", {x});
    return map("multiply", {saved().half_input, saved().one_plus_tanh});
  }

  Value gelu_gradient() {
    const Value dy = arg(0);
    const Value x = arg(1);
    const Value half = map("multiply", {map("multiply", {dy, saved().one_plus_tanh})});
    const Value dtanh = map("multiply", {dy, saved().half_input});
    const Value slope = map("subtract", {map("multiply", {saved().tanh})});
    const Value dinner = map("multiply", {map("multiply", {dtanh, slope})});
    const Value dcube = map("multiply", {dinner});
    const Value cubic = map("multiply", {dcube, map("multiply", {map("multiply", {x})})});
    return map("add", {map("add", {half, dinner}), cubic});
  }

  Value mean_pool() {
    const Value x = arg(0);
    saved().shape = shape_of(x);
    saved().count = writer_.descriptor("product", {writer_.descriptor("slice", {saved().shape})});
    return mean(x, op_->shape, saved().count);
  }

  Value mean_pool_gradient() {
    const Value share = map("divide", {arg(0), saved().count});
    const Value spread = expand(writer_.view("reshape", share, share.shape), op_->shape, saved().shape);
    return writer_.compute("contiguous", op_->shape, {spread}, 0);
  }

  /// Returns the shape [N, H, 2, W, 2, C] of an upsampled image, in which each pixel of the small image [N, H, W, C] is
  /// repeated as a square of 2 x 2 pixels.
  static Shape pairs_of_pixels(const Shape& small) { return {small[0], small[1], 2, small[2], 2, small[3]}; }

  Value upsample() {
    const Value x = arg(0);
    saved().shape = shape_of(x);
    saved().squares = writer_.descriptor("pack", {saved().shape});
    return writer_.compute("contiguous", op_->shape, {expand(x, pairs_of_pixels(x.shape), saved().squares)}, 0);
  }

  Value mask(const Value& x) {
    const std::int64_t side = channels(x.shape);
    return map("select", {x, writer_.compute("triangle", {side, side}, {}, -1, 1)});
  }

  Value softmax() {
    Value x = arg(0);
    const Shape rows{core::element_count(x.shape) / channels(x.shape)};
    if (op_->attrs.causal) x = mask(x);
    saved().shape = shape_of(x);
    const Value top = writer_.compute("max", rows, {x});
    const Value exponential = map("exp", {map("subtract", {x, expand(top, x.shape, saved().shape)})});
    return map("divide", {exponential, expand(sum(exponential, rows), x.shape, saved().shape)});
  }

  Value softmax_gradient() {
    const Value dy = arg(0);
    const Value y = arg(1);
    const Shape rows{core::element_count(y.shape) / channels(y.shape)};
    const Value common = sum(map("multiply", {dy, y}), rows);
    const Value d = map("multiply", {map("subtract", {dy, expand(common, y.shape, saved().shape)}), y});
    return op_->attrs.causal ? mask(d) : d;
  }

  Value embedding() {
    const Value ids = arg(0);
    const Value table = writer_.read(arg_shape(1), core::element_count(op_->shape));
    const Value rows = writer_.compute("gather", op_->shape, {ids, table}, 0);
    return op_->args.size() > 2 ? add_bias(rows, arg(2)) : rows;
  }

  Value cross_entropy() {
    const Value logits = arg(0);
    const Shape rows{core::element_count(logits.shape) / channels(logits.shape)};
    saved().shape = shape_of(logits);
    const Value top = expand(writer_.compute("max", rows, {logits}), logits.shape, saved().shape);
    const Value shifted = map("subtract", {logits, top});
    const Value total = map("log", {sum(map("exp", {shifted}), rows)});
    saved().likelihood = map("subtract", {shifted, expand(total, logits.shape, saved().shape)});
    saved().count = writer_.descriptor("slice", {saved().shape});
    const Value labels = arg(1);
    const Value likelihood = writer_.compute("gather", rows, {saved().likelihood, labels}, 0);
    return map("negate", {mean(likelihood, kScalar, saved().count)});
  }

  Value cross_entropy_gradient() {
    const Value labels = arg(1);
    const Value likely = map("exp", {saved().likelihood});
    const Value wrong = writer_.compute("scatter_subtract", likely.shape, {likely, labels}, 0);
    return map("divide", {wrong, saved().count});
  }

  Value mean_squared_error() {
    saved().difference = map("subtract", {arg(0), arg(1)});
    saved().shape = shape_of(saved().difference);
    saved().count = writer_.descriptor("product", {saved().shape});
    return mean(map("multiply", {saved().difference}), kScalar, saved().count);
  }

  Value mean_squared_error_gradient() {
    const Value share = writer_.compute("divide", kScalar, {saved().count});
    return map("multiply", {saved().difference, expand(share, saved().difference.shape, saved().shape)});
  }

  /// Adds the operations of a dropout. The random bits depend only on the layer and the position of an element, as in
  /// the dropout kernel. So a recomputation gives the same bits.
  Value dropout() {
    const Value x = arg(0);
    const Value bits = writer_.compute("random_bits", x.shape, {shape_of(x)});
    const Value chosen = writer_.compute("greater", x.shape, {map("uniform", {bits})}, -1, 1);
    saved().mask = writer_.compute("cast", x.shape, {chosen});
    return map("multiply", {map("multiply", {x}), saved().mask});
  }

  static bool decays(const Resident& weight) {
    return weight.role == Resident::Role::weight && weight.shape.size() > 1 &&
           weight.init != Resident::Init::norm_params;
  }

  /// Keeps the loss. If weights decay, first adds half the sum of their squared norms to the loss.
  void keep_loss(const Value& loss) {
    Value norms{{}, kScalar};
    if (options_.weight_decay) {
      for (const Resident& weight : layers_.residents()) {
        if (!decays(weight)) continue;
        norms.nodes.push_back(sum(map("multiply", {writer_.read(weight.shape)}), kScalar).nodes.front());
      }
    }
    if (norms.nodes.empty()) return writer_.keep(loss);
    writer_.keep(map("add", {loss, map("multiply", {map("add", {norms})})}));
  }

  void update(Value gradient, std::int32_t index, const Value& after) {
    const Resident& weight = layers_.residents()[index];
    if (options_.weight_decay && decays(weight))
      gradient = map("add", {gradient, map("multiply", {writer_.read(weight.shape)})});
    if (options_.keep_gradients) writer_.keep(gradient);
    const Value step = options_.optimizer == "adam"       ? adam_step(gradient)
                       : options_.optimizer == "momentum" ? scaled_by_rate(momentum(gradient))
                                                          : scaled_by_rate(gradient);
    const bool is_negative = options_.optimizer == "adam";
    writer_.assign(map(is_negative ? "add" : "subtract", {writer_.read(weight.shape), step}), after);
  }

  Value scaled_by_rate(const Value& x) { return map("multiply", {x, writer_.read(kScalar)}); }

  /// Stores x as a part of the optimizer's state for the next training step, and returns x.
  Value stored(const Value& x) {
    writer_.assign(x);
    return x;
  }

  Value momentum(const Value& gradient) {
    return stored(map("add", {map("multiply", {writer_.read(gradient.shape)}), gradient}));
  }

  /// Returns 1 - decay^step. Adam divides a moving average by this number to correct the average's bias towards 0.
  Value correction(const Value& step) { return map("subtract", {map("power", {step})}); }

  /// Returns -rate * (m / c1) / (sqrt(v / c2) + eps), the negative step of Adam (Kingma & Ba 2015, Algorithm 1). m and
  /// v are the moving averages of the gradient and of its square after this step. c1 and c2 are the results of
  /// correction() for m and v.
  Value adam_step(const Value& gradient) {
    const Value step = stored(map("add", {writer_.read(kScalar)}));
    const Value old = writer_.read(gradient.shape);
    const Value first = stored(map("add", {old, map("multiply", {map("subtract", {gradient, old})})}));
    const Value second = stored(
        map("add", {map("multiply", {writer_.read(gradient.shape)}), map("multiply", {map("multiply", {gradient})})}));
    const Value rate = map("negate", {map("divide", {writer_.read(kScalar), correction(step)})});
    const Value scale = map("multiply", {map("sqrt", {correction(step)}), rate});
    const Value deviation = map("add", {map("divide", {map("sqrt", {second}), scale}), map("divide", {rate})});
    return map("divide", {first, deviation});
  }

  /// Adds all residents of the layers except gradients. Also adds a second resident for each weight and each optimizer
  /// state, because updates write the values of the next training step to separate storage.
  void add_residents(core::GraphBuilder& graph) const {
    std::vector<Resident> residents;
    std::int64_t listed = 0;
    for (const Resident& resident : layers_.residents()) {
      listed += resident.bytes();
      if (resident.role != Resident::Role::weight_grad) residents.push_back(resident);
    }
    for (const NodeId v : norms_) {
      residents.push_back(
          {.name = layers_.name(v) + ".running", .shape = layers_.op(v)->shape, .role = Resident::Role::optimizer});
    }
    const std::size_t count = residents.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (residents[i].role != Resident::Role::weight && residents[i].role != Resident::Role::optimizer) continue;
      Resident next{
          .name = residents[i].name + ".next", .shape = residents[i].shape, .role = Resident::Role::optimizer};
      residents.push_back(std::move(next));
    }
    for (Resident& resident : residents) graph.add_resident(std::move(resident));
    graph.add_resident_bytes(layers_.resident_bytes() - listed);
  }

  const core::Graph& layers_;
  const OperationOptions& options_;
  OperationWriter writer_;
  std::vector<Value> values_;                   ///< output of each layer
  std::vector<OperationWriter::Range> ranges_;  ///< operations of each layer
  std::vector<Saved> saved_;                    ///< values that each forward layer saves for its gradient
  std::vector<NodeId> norms_;                   ///< layers with running averages
  NodeId node_ = 0, forward_ = 0;
  const Op* op_ = nullptr;
  std::vector<NodeId> completed_;  ///< nodes that complete a gradient of the current layer's weights
  /// All gradients that operations of the current layer have computed, except those of biases.
  std::vector<NodeId> gradients_;
};

}  // namespace

core::Graph to_operations(const core::Graph& layers, const OperationOptions& options) {
  check_optimizer(options.optimizer);
  if (options.optimizer == "sgd" || options.optimizer == "adamw")
    throw core::InputError(fmt::format("{} updates weights in layers only; drop {} or use {}",
                                       core::option("optimizer", options.optimizer), core::option("granularity", "op"),
                                       core::option("optimizer", "adam")));
  return Lowering(layers, options).run();
}

}  // namespace cairn::models
