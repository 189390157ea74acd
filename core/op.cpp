#include "cairn/core/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "cairn/core/error.h"
#include "cairn/core/support/saturating.h"
#include "cairn/core/support/text.h"

namespace cairn::core {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 60;
// Largest extent of a matrix or an image, because BLAS indexes with 32-bit integers.
constexpr std::int64_t kMaxExtent = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMaxRank = 8;  // largest number of axes of permute, whose strides are on the stack

struct KindInfo {
  std::string_view name;
  std::size_t min_args;
  std::size_t max_args;
  std::int32_t outputs = 1;
};

// All kinds, in the order of OpKind.
constexpr std::array<KindInfo, kOpKindCount> kKinds = {{
    {"matmul", 2, 3},
    {"reduce_rows", 1, 1},
    {"add", 2, 2},
    {"scale", 1, 1},
    {"relu", 1, 1},
    {"relu_grad", 2, 2},
    {"gelu", 1, 1},
    {"gelu_grad", 2, 2},
    {"conv2d", 2, 3},
    {"conv2d_grad_input", 2, 2},
    {"conv2d_grad_weight", 2, 2},
    {"batchnorm_stats", 1, 1},
    {"batchnorm", 3, 3},
    {"batchnorm_with_stats", 2, 2, 2},
    {"batchnorm_grad_params", 3, 3},
    {"batchnorm_grad_input", 5, 5},
    {"layernorm_stats", 1, 1},
    {"layernorm", 3, 3},
    {"layernorm_with_stats", 2, 2, 2},
    {"layernorm_grad_params", 3, 3},
    {"layernorm_grad_input", 4, 4},
    {"maxpool", 1, 1},
    {"maxpool_grad", 2, 2},
    {"maxpool_with_indices", 1, 1, 2},
    {"maxpool_with_indices_grad", 2, 2},
    {"mean_pool", 1, 1},
    {"mean_pool_grad", 1, 1},
    {"upsample", 1, 1},
    {"upsample_grad", 1, 1},
    {"concat", 2, 2},
    {"slice", 1, 1},
    {"permute", 1, 1},
    {"softmax", 1, 1},
    {"softmax_grad", 2, 2},
    {"embedding", 2, 3},
    {"embedding_grad", 2, 2},
    {"cross_entropy", 2, 2},
    {"cross_entropy_grad", 2, 2},
    {"mse", 2, 2},
    {"mse_grad", 2, 2},
    {"dropout", 1, 1},
    {"sum_of_squares", 1, 2},
    {"sgd", 4, 5},
    {"adamw", 6, 7},
}};
static_assert(kKinds.back().name == "adamw");

const KindInfo& info(OpKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  if (index >= kKinds.size()) throw InputError(fmt::format("op kind number {} is not known", index));
  return kKinds[index];
}

std::string text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

/// Checks one op. Every method throws InputError without the op's name, because the caller adds the op's and the node's
/// name.
class Checker {
 public:
  Checker(const Op& op, std::span<const Shape> args) : op_(op), args_(args) {}

  void check() const {
    check_arity();
    for (std::size_t i = 0; i < args_.size(); ++i) check_not_empty(args_[i], fmt::format("argument {}", i));
    check_not_empty(op_.shape, "the output");
    check_attrs();
    check_kind();
  }

 private:
  template <class... Parts>
  [[noreturn]] void fail(fmt::format_string<Parts...> format, Parts&&... parts) const {
    throw InputError(fmt::format(format, std::forward<Parts>(parts)...));
  }

  void check_arity() const {
    const KindInfo& kind = info(op_.kind);
    if (args_.size() < kind.min_args || args_.size() > kind.max_args) {
      const std::string expected = kind.min_args == kind.max_args
                                       ? fmt::format("{}", kind.min_args)
                                       : fmt::format("{} to {}", kind.min_args, kind.max_args);
      fail("takes {} arguments, has {}", expected, args_.size());
    }
    if (!op_.args.empty() && op_.args.size() != args_.size()) {
      fail("has {} arguments but {} shapes are given", op_.args.size(), args_.size());
    }
  }

  void check_not_empty(const Shape& shape, const std::string& what) const {
    if (element_count(shape) == 0) fail("{} has shape {}; every extent must be at least 1", what, text(shape));
  }

  void check_attrs() const {
    const OpAttrs& a = op_.attrs;
    if (!std::isfinite(a.alpha)) fail("alpha is {}; it must be finite", a.alpha);
    if (!std::isfinite(a.eps) || a.eps <= 0) fail("eps is {}; it must be positive", a.eps);
    if (!(a.p >= 0 && a.p < 1)) fail("p is {}; it must be at least 0 and below 1", a.p);
    if (!(a.beta1 >= 0 && a.beta1 < 1)) fail("beta1 is {}; it must be at least 0 and below 1", a.beta1);
    if (!(a.beta2 >= 0 && a.beta2 < 1)) fail("beta2 is {}; it must be at least 0 and below 1", a.beta2);
    if (!std::isfinite(a.decay) || a.decay < 0) fail("decay is {}; it must be at least 0", a.decay);
    if (!std::isfinite(a.limit) || a.limit <= 0) fail("limit is {}; it must be above 0", a.limit);
  }

  void check_kind() const {
    switch (op_.kind) {
      case OpKind::matmul:
        return check_matmul();
      case OpKind::reduce_rows:
        attr_in("rows", op_.attrs.rows, 1, kMaxElements);
        attr_in("cols", op_.attrs.cols, 1, kMaxElements);
        elements(0, saturating_mul(op_.attrs.rows, op_.attrs.cols), "rows x cols");
        return output_elements(op_.attrs.cols, "cols");
      case OpKind::add:
      case OpKind::relu_grad:
      case OpKind::gelu_grad:
      case OpKind::mse_grad:
        elements(1, count(0), "as argument 0");
        return output_elements(count(0), "as its arguments");
      case OpKind::scale:
      case OpKind::relu:
      case OpKind::gelu:
      case OpKind::dropout:
        return output_elements(count(0), "as its argument");
      case OpKind::conv2d:
        check_conv(args_[0], args_[1], op_.shape, "the output");
        if (args_.size() == 3) elements(2, op_.shape.back(), "one bias an output channel");
        return;
      case OpKind::conv2d_grad_input:
        return check_conv(op_.shape, args_[1], args_[0], "dy");
      case OpKind::conv2d_grad_weight:
        return check_conv(args_[1], op_.shape, args_[0], "dy");
      case OpKind::batchnorm_stats:
      case OpKind::batchnorm:
      case OpKind::batchnorm_with_stats:
      case OpKind::layernorm_with_stats:
      case OpKind::batchnorm_grad_params:
      case OpKind::batchnorm_grad_input:
      case OpKind::layernorm_stats:
      case OpKind::layernorm:
      case OpKind::layernorm_grad_params:
      case OpKind::layernorm_grad_input:
        return check_norm();
      case OpKind::maxpool:
      case OpKind::maxpool_grad:
      case OpKind::maxpool_with_indices:
      case OpKind::maxpool_with_indices_grad:
      case OpKind::mean_pool:
      case OpKind::mean_pool_grad:
      case OpKind::upsample:
      case OpKind::upsample_grad:
        return check_resampling();
      case OpKind::concat:
        if (rows(0) != rows(1)) fail("{} and {} differ before the last axis", text(args_[0]), text(args_[1]));
        return same_rows_and_cols({rows(0), saturating_add(cols(0), cols(1))}, op_.shape, "the output");
      case OpKind::slice:
        return check_slice();
      case OpKind::permute:
        return check_permute();
      case OpKind::softmax:
        return check_softmax(args_[0]);
      case OpKind::softmax_grad:
        same_rows_and_cols(args_[0], args_[1], "y");
        return check_softmax(args_[0]);
      case OpKind::embedding:
        return check_embedding();
      case OpKind::embedding_grad:
        rank_is(op_.shape, 2, "the output");
        integers(1);
        return same_rows_and_cols({count(1), op_.shape[1]}, args_[0], "dy");
      case OpKind::cross_entropy:
      case OpKind::cross_entropy_grad:
      case OpKind::mse:
        return check_loss();
      case OpKind::sum_of_squares:
        if (args_.size() > 1) elements(1, 1, "one sum");
        return output_elements(1, "one sum");
      case OpKind::sgd:
        return check_update(3);
      case OpKind::adamw:
        return check_update(4);
    }
  }

  void check_loss() const {
    if (op_.kind == OpKind::mse) {
      elements(1, count(0), "as argument 0");
    } else {
      check_labels();
    }
    if (op_.kind == OpKind::cross_entropy_grad) return same_rows_and_cols(args_[0], op_.shape, "the output");
    output_elements(1, "one loss");
  }

  /// Checks an update of a weight. Each of its first `tensors` arguments has the weight's shape; each later argument
  /// has one element.
  void check_update(std::size_t tensors) const {
    for (std::size_t i = 0; i < args_.size(); ++i) {
      if (i < tensors) {
        arg_is(i, op_.shape);
      } else {
        elements(i, 1, "one number");
      }
    }
    for (const std::size_t i : updated_args(op_.kind)) {
      if (i < op_.args.size() && op_.args[i].kind != Operand::Kind::resident)
        fail("argument {} must be a resident tensor, because the op overwrites it", i);
    }
  }

  void check_norm() const {
    switch (op_.kind) {
      case OpKind::batchnorm_stats:
        return output_is({2, cols(0)});
      case OpKind::batchnorm:
        arg_is(1, {2, cols(0)});
        arg_is(2, {2, cols(0)});
        return same_rows_and_cols(args_[0], op_.shape, "the output");
      case OpKind::batchnorm_with_stats:
      case OpKind::layernorm_with_stats:
        arg_is(1, {2, cols(0)});
        return same_rows_and_cols(args_[0], op_.shape, "the output");
      case OpKind::batchnorm_grad_params:
        same_rows_and_cols(args_[0], args_[1], "x");
        arg_is(2, {2, cols(0)});
        return output_is({2, cols(0)});
      case OpKind::batchnorm_grad_input:
        same_rows_and_cols(args_[0], args_[1], "x");
        for (std::size_t i = 2; i < 5; ++i) arg_is(i, {2, cols(0)});
        return same_rows_and_cols(args_[0], op_.shape, "the output");
      case OpKind::layernorm_stats:
        return same_rows_and_cols({rows(0), 2}, op_.shape, "the output");
      case OpKind::layernorm:
        same_rows_and_cols({rows(0), 2}, args_[1], "stats");
        arg_is(2, {2, cols(0)});
        return same_rows_and_cols(args_[0], op_.shape, "the output");
      case OpKind::layernorm_grad_params:
        same_rows_and_cols(args_[0], args_[1], "x");
        same_rows_and_cols({rows(0), 2}, args_[2], "stats");
        return output_is({2, cols(0)});
      case OpKind::layernorm_grad_input:
        same_rows_and_cols(args_[0], args_[1], "x");
        same_rows_and_cols({rows(0), 2}, args_[2], "stats");
        arg_is(3, {2, cols(0)});
        return same_rows_and_cols(args_[0], op_.shape, "the output");
      default:
        throw std::logic_error("an op of another kind");
    }
  }

  void check_resampling() const {
    switch (op_.kind) {
      case OpKind::maxpool:
        return check_maxpool(args_[0], op_.shape, "the output");
      case OpKind::maxpool_grad:
        check_index_range();
        output_is(args_[1]);
        return check_maxpool(args_[1], args_[0], "dy");
      case OpKind::maxpool_with_indices:
        check_index_range();
        return check_maxpool(args_[0], op_.shape, "the output");
      case OpKind::maxpool_with_indices_grad:
        check_index_range();
        arg_is(1, args_[0]);
        return check_maxpool(op_.shape, args_[0], "dy");
      case OpKind::mean_pool:
        return check_mean_pool(args_[0], op_.shape, "the output");
      case OpKind::mean_pool_grad:
        return check_mean_pool(op_.shape, args_[0], "dy");
      case OpKind::upsample:
        return check_upsample(args_[0], op_.shape, "the output");
      case OpKind::upsample_grad:
        return check_upsample(op_.shape, args_[0], "dy");
      default:
        throw std::logic_error("an op of another kind");
    }
  }

  std::int64_t count(std::size_t arg) const { return element_count(args_[arg]); }
  static std::int64_t last(const Shape& shape) { return shape.empty() ? 1 : shape.back(); }
  std::int64_t cols(std::size_t arg) const { return last(args_[arg]); }
  std::int64_t rows(std::size_t arg) const { return count(arg) / cols(arg); }

  void attr_in(std::string_view name, std::int64_t value, std::int64_t low, std::int64_t high) const {
    if (value < low || value > high) fail("{} is {}; it must be from {} to {}", name, value, low, high);
  }
  void elements(std::size_t arg, std::int64_t expected, std::string_view why) const {
    if (count(arg) != expected) {
      fail("argument {} has shape {}; it needs {} elements ({})", arg, text(args_[arg]), expected, why);
    }
  }
  void output_elements(std::int64_t expected, std::string_view why) const {
    if (element_count(op_.shape) != expected) {
      fail("the output has shape {}; it needs {} elements ({})", text(op_.shape), expected, why);
    }
  }
  void shape_is(const Shape& shape, const Shape& expected, std::string_view what) const {
    if (shape != expected) fail("{} has shape {}; it must be {}", what, text(shape), text(expected));
  }
  void arg_is(std::size_t arg, const Shape& expected) const {
    shape_is(args_[arg], expected, fmt::format("argument {}", arg));
  }
  void output_is(const Shape& expected) const { shape_is(op_.shape, expected, "the output"); }
  void rank_is(const Shape& shape, std::size_t rank, std::string_view what) const {
    if (shape.size() != rank) fail("{} has shape {}; it needs {} axes", what, text(shape), rank);
  }
  void same_rows_and_cols(const Shape& expected, const Shape& shape, std::string_view what) const {
    if (element_count(shape) != element_count(expected) || last(shape) != last(expected)) {
      fail("{} has shape {}; it must have the rows and columns of {}", what, text(shape), text(expected));
    }
  }
  void integers(std::size_t arg) const {
    if (arg < op_.args.size() && op_.args[arg].kind != Operand::Kind::resident) {
      fail("argument {} must be a resident int32 tensor, not the output of a node", arg);
    }
  }

  void check_matmul() const {
    const OpAttrs& a = op_.attrs;
    attr_in("batch", a.batch, 1, kMaxElements);
    attr_in("m", a.m, 1, kMaxExtent);
    attr_in("n", a.n, 1, kMaxExtent);
    attr_in("k", a.k, 1, kMaxExtent);
    elements(0, saturating_mul(a.batch, a.m * a.k), "batch x m x k");
    elements(1, saturating_mul(a.batch, a.k * a.n), "batch x k x n");
    if (args_.size() == 3) elements(2, a.n, "one bias a column");
    output_elements(saturating_mul(a.batch, a.m * a.n), "batch x m x n");
  }

  // Returns the number of positions that a window of `kernel` elements has along an axis of `extent` elements.
  std::int64_t windows(std::int64_t extent, std::int64_t kernel) const {
    const std::int64_t padded = extent + 2 * op_.attrs.pad;
    if (kernel > padded) fail("the kernel ({}) is larger than the padded input ({})", kernel, padded);
    return (padded - kernel) / op_.attrs.stride + 1;
  }

  void check_window_attrs() const {
    attr_in("stride", op_.attrs.stride, 1, kMaxExtent);
    attr_in("pad", op_.attrs.pad, 0, kMaxExtent);
  }

  void check_extents(const Shape& shape, std::string_view what) const {
    rank_is(shape, 4, what);
    for (const std::int64_t extent : shape) {
      if (extent > kMaxExtent) fail("{} has shape {}; extents above {} are too large", what, text(shape), kMaxExtent);
    }
  }

  void check_conv(const Shape& x, const Shape& w, const Shape& y, std::string_view what) const {
    check_extents(x, "x");
    check_extents(w, "the weight");
    check_extents(y, what);
    check_window_attrs();
    if (w[3] != x[3]) fail("the weight {} has other input channels than x {}", text(w), text(x));
    if (saturating_mul(w[1] * w[2], w[3]) > kMaxExtent) fail("the weight {} has too large a window", text(w));
    shape_is(y, {x[0], windows(x[1], w[1]), windows(x[2], w[2]), w[0]}, what);
  }

  void check_maxpool(const Shape& x, const Shape& y, std::string_view what) const {
    check_extents(x, "x");
    check_window_attrs();
    attr_in("kernel", op_.attrs.kernel, 1, kMaxExtent);
    attr_in("pad", op_.attrs.pad, 0, op_.attrs.kernel - 1);
    shape_is(y, {x[0], windows(x[1], op_.attrs.kernel), windows(x[2], op_.attrs.kernel), x[3]}, what);
  }

  /// Checks that the indices of positions in a window fit into int32. The square of 46340 is just below 2^31.
  void check_index_range() const { attr_in("kernel", op_.attrs.kernel, 1, 46340); }

  void check_mean_pool(const Shape& x, const Shape& y, std::string_view what) const {
    if (x.size() < 2) fail("x has shape {}; it needs at least 2 axes", text(x));
    shape_is(y, {x.front(), x.back()}, what);
  }

  void check_upsample(const Shape& small, const Shape& large, std::string_view what) const {
    check_extents(small, "the smaller image");
    check_extents(large, "the larger image");
    shape_is(large, {small[0], 2 * small[1], 2 * small[2], small[3]}, what);
  }

  void check_slice() const {
    const std::int64_t width = last(op_.shape);
    attr_in("offset", op_.attrs.offset, 0, cols(0));
    if (width > cols(0) - op_.attrs.offset) {
      fail("channels {} to {} are not all in {}", op_.attrs.offset, op_.attrs.offset + width - 1, text(args_[0]));
    }
    same_rows_and_cols({rows(0), width}, op_.shape, "the output");
  }

  void check_permute() const {
    const std::vector<std::int64_t>& perm = op_.attrs.perm;
    const Shape& x = args_[0];
    if (x.size() > kMaxRank) fail("x has shape {}; at most {} axes are supported", text(x), kMaxRank);
    std::vector<std::int64_t> sorted = perm;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      if (sorted[i] != static_cast<std::int64_t>(i)) fail("perm [{}] is not a permutation", fmt::join(perm, ", "));
    }
    if (perm.size() != x.size()) fail("perm [{}] does not fit x {}", fmt::join(perm, ", "), text(x));
    Shape expected;
    for (const std::int64_t axis : perm) expected.push_back(x[static_cast<std::size_t>(axis)]);
    output_is(expected);
  }

  void check_softmax(const Shape& x) const {
    same_rows_and_cols(x, op_.shape, "the output");
    if (op_.attrs.causal && (x.size() < 2 || x[x.size() - 2] != x.back())) {
      fail("causal needs the last two axes of {} to be equal", text(x));
    }
  }

  void check_embedding() const {
    integers(0);
    rank_is(args_[1], 2, "the table");
    const std::int64_t channels = args_[1][1];
    if (args_.size() == 3) arg_is(2, {last(args_[0]), channels});
    same_rows_and_cols({count(0), channels}, op_.shape, "the output");
  }

  void check_labels() const {
    integers(1);
    elements(1, rows(0), "one label a row");
  }

  const Op& op_;
  std::span<const Shape> args_;
};

}  // namespace

std::int64_t element_count(const Shape& shape) {
  std::int64_t product = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) throw InputError(fmt::format("shape {} has a negative extent", text(shape)));
    if (extent == 0) {
      empty = true;
    } else if (product > kMaxElements / extent) {
      throw InputError(fmt::format("shape {} has more than 2^60 elements", text(shape)));
    } else {
      product *= extent;
    }
  }
  return empty ? 0 : product;
}

std::string_view to_string(ElementType type) {
  constexpr std::array<std::string_view, 3> kNames{"f32", "i32", "bf16"};
  return kNames[static_cast<std::size_t>(type)];
}

std::span<const std::size_t> updated_args(OpKind kind) {
  static constexpr std::array<std::size_t, 3> kUpdated{1, 2, 3};
  switch (kind) {
    case OpKind::sgd:
      return std::span(kUpdated).first(2);
    case OpKind::adamw:
      return kUpdated;
    default:
      return {};
  }
}

std::int32_t output_count(OpKind kind) { return info(kind).outputs; }

ElementType output_type(OpKind kind, ElementType storage, std::int32_t output) {
  if (output > 0) return kind == OpKind::maxpool_with_indices ? ElementType::i32 : ElementType::f32;
  switch (kind) {
    case OpKind::batchnorm_stats:
    case OpKind::batchnorm_grad_params:
    case OpKind::layernorm_stats:
    case OpKind::layernorm_grad_params:
    case OpKind::cross_entropy:
    case OpKind::mse:
    case OpKind::sum_of_squares:
      return ElementType::f32;
    default:
      return storage;
  }
}

ElementType arg_type(OpKind kind, std::size_t arg, ElementType storage) {
  switch (kind) {
    case OpKind::embedding:
      return arg == 0 ? ElementType::i32 : storage;
    case OpKind::maxpool_with_indices_grad:
    case OpKind::embedding_grad:
    case OpKind::cross_entropy:
    case OpKind::cross_entropy_grad:
      return arg == 1 ? ElementType::i32 : storage;
    case OpKind::batchnorm:
    case OpKind::layernorm:
    case OpKind::batchnorm_with_stats:
    case OpKind::layernorm_with_stats:
    case OpKind::sum_of_squares:
    case OpKind::sgd:
    case OpKind::adamw:
      return arg >= 1 ? ElementType::f32 : storage;
    case OpKind::batchnorm_grad_params:
    case OpKind::layernorm_grad_params:
    case OpKind::batchnorm_grad_input:
    case OpKind::layernorm_grad_input:
      return arg >= 2 ? ElementType::f32 : storage;
    default:
      return storage;
  }
}

Shape output_shape(const Op& op, std::int32_t output) {
  const std::int64_t cols = op.shape.empty() ? 1 : op.shape.back();
  if (output > 0 && op.kind == OpKind::batchnorm_with_stats) return {2, cols};
  if (output > 0 && op.kind == OpKind::layernorm_with_stats) {
    return {cols == 0 ? 0 : element_count(op.shape) / cols, 2};  // a shape that check_op has not checked can be empty
  }
  return op.shape;
}

ElementType output_type(const Op& op, std::int32_t output) {
  return output == 0 ? op.type : output_type(op.kind, op.type, output);
}

std::int64_t output_bytes(const Op& op, std::int32_t output) {
  return element_bytes(output_type(op, output)) * element_count(output_shape(op, output));
}

std::string_view to_string(OpKind kind) { return info(kind).name; }

OpKind op_kind_from_string(std::string_view name) {
  std::array<std::string_view, kOpKindCount> names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = kKinds[i].name;
    if (names[i] == name) return static_cast<OpKind>(i);
  }
  throw InputError(fmt::format("unknown op kind '{}'{}", name, did_you_mean(name, names)));
}

void check_op(const Op& op, std::span<const Shape> arg_shapes) { Checker(op, arg_shapes).check(); }

}  // namespace cairn::core
