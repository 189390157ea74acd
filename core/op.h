#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::core {

/// Extents of a tensor, outermost first. Images are N,H,W,C (channels last). A tensor with an empty shape has one
/// element.
using Shape = std::vector<std::int64_t>;

/// Returns the product of the extents. Throws InputError on a negative extent or if the product exceeds 2^60.
std::int64_t element_count(const Shape& shape);

/// Type in which a tensor's elements are stored. Arithmetic on bf16 elements is done in fp32.
enum class ElementType : std::uint8_t { f32, i32, bf16 };

constexpr std::int64_t element_bytes(ElementType type) { return type == ElementType::bf16 ? 2 : 4; }
std::string_view to_string(ElementType type);

/// The operation of a node. Tensors are dense and row-major. A graph stores all its tensors as fp32, or all as bf16.
/// There are two kinds of exceptions: the tensors for which output_type and arg_type below give another type, and ids
/// and labels, which are resident int32 tensors. An op has one output unless the comment of its kind names more. The
/// comments below use these words:
/// - "args" are the op's arguments in order, and "attrs" the attributes (OpAttrs) that the kind reads.
/// - "shape" is Op::shape, the shape of the first output. If a comment does not mention the shape, it follows from the
///   arguments and attributes.
/// - x is an argument of a forward op, y its output, and dy the gradient of the loss with respect to y.
/// - "rows x cols" means that cols is the last extent and rows the product of all others.
enum class OpKind : std::uint8_t {
  // Computes alpha * op(A) op(B) (+ bias[n]) for each of `batch` pairs of matrices, which are stored one after the
  // other. op(A) is m x k: A is stored as m x k, or as k x m with trans_a. op(B) is k x n: B is stored as k x n, or as
  // n x k with trans_b. The output has batch*m*n elements.
  matmul,       // args A, B [, bias]; attrs batch, m, n, k, trans_a, trans_b, alpha
  reduce_rows,  // args x; attrs rows, cols (rows*cols elements); out[c] = sum over r of x[r][c]
  add,          // args a, b of equal element count
  scale,        // args x; attrs alpha; out = alpha * x
  relu,         // args x
  relu_grad,    // args dy, y (the output of relu): dy where y > 0, else 0
  gelu,         // args x; tanh approximation, as in GPT-2
  gelu_grad,    // args dy, x

  // Convolutions. The weight w has the shape [out_channels, kernel_h, kernel_w, in_channels].
  conv2d,              // args x [N,H,W,C], w, [bias [out_channels]]; attrs stride, pad
  conv2d_grad_input,   // args dy, w; shape gives x's extents; attrs stride, pad
  conv2d_grad_weight,  // args dy, x; shape gives w's extents; attrs stride, pad

  // Batch norm in training mode. It normalises each channel over all rows. The channels are the last axis, of extent C.
  // The shape of params is [2, C]: gamma, then beta.
  batchnorm_stats,        // args x -> [2, C]: mean, then 1/sqrt(var + eps) (biased variance); attrs eps
  batchnorm,              // args x, stats, params
  batchnorm_with_stats,   // args x, params; attrs eps; computes the stats, then y as batchnorm does; outputs y, stats
  batchnorm_grad_params,  // args dy, x, stats -> [2, C]: dgamma, dbeta
  batchnorm_grad_input,   // args dy, x, stats, params, dparams

  // Layer norm. It normalises each row over its channels, which are the last axis, of extent C. The shape of params is
  // [2, C]: gamma, then beta.
  layernorm_stats,        // args x -> [rows, 2]: mean, 1/sqrt(var + eps) of each row; attrs eps
  layernorm,              // args x, stats, params
  layernorm_with_stats,   // args x, params; attrs eps; computes the stats, then y as layernorm does; outputs y, stats
  layernorm_grad_params,  // args dy, x, stats -> [2, C]
  layernorm_grad_input,   // args dy, x, stats, params

  maxpool,       // args x [N,H,W,C]; attrs kernel, stride, pad (padding is -inf)
  maxpool_grad,  // args dy, x; attrs as maxpool, kernel at most 46340; shape as x; of equal maxima of a window, the
                 // first one gets the gradient
  // The outputs are y and, as int32, the index of every maximum. An index counts positions of the window in row-major
  // order, padding included. The kernel's extent is at most 46340, so that every index fits into int32.
  maxpool_with_indices,       // args x; attrs as maxpool
  maxpool_with_indices_grad,  // args dy, indices; attrs as maxpool; shape gives x's extents
  mean_pool,                  // args x [N, ..., C] -> [N, C]: mean over all middle axes
  mean_pool_grad,             // args dy [N, C]; shape gives x's extents
  upsample,                   // args x [N,H,W,C] -> [N,2H,2W,C], nearest
  upsample_grad,              // args dy; sums of 2 x 2 blocks

  concat,   // args a, b: joined on the last axis
  slice,    // args x; last-axis channels [offset, offset + shape.back()); attrs offset
  permute,  // args x; attrs perm: out axis i is x's axis perm[i]

  softmax,  // args x: over the last axis; attrs causal: if set, the last two axes are s x s, and column j > row i is 0
  softmax_grad,  // args dy, y

  embedding,       // args ids (int32, resident), table [V, C] [, positions [S, C]]: out[b,s] = table[id] + positions[s]
  embedding_grad,  // args dy, ids; shape [V, C]: row v sums the dy of all positions with id v, by ascending position

  cross_entropy,       // args logits, labels (int32, resident, one per row) -> [1]: mean of -log(softmax(row)[label])
  cross_entropy_grad,  // args logits, labels -> d mean loss / d logits
  mse,                 // args y, target (of equal element count) -> [1]: mean of (y - target)^2
  mse_grad,            // args y, target

  // Keeps each element with probability 1-p and multiplies it by 1/(1-p). A counter-based hash of (seed, stream,
  // element) chooses the elements that are kept. The gradient is the same op with the same seed and stream, applied to
  // dy. A recomputation draws the same mask again.
  dropout,  // args x; attrs p, seed, stream

  // Updates of weights. The args w, m and v are resident fp32 tensors, which the op overwrites with their next values
  // (updated_args). The op writes the new w to a resident (Op::writes), which is w itself or a bf16 copy of w for other
  // ops to read. rate and step are resident tensors of one element: the learning rate, and the number of the step,
  // which counts from 1. `step` counts training steps, not steps of a schedule. With `norm`, which is the sum of
  // squares of all gradients, the gradient dw is multiplied by min(1, limit / (sqrt(norm) + 1e-6)). Below, g is the
  // gradient after this multiplication.
  sum_of_squares,  // args x [, sum [1]] -> [1]: the sum of squares of x, plus `sum`
  sgd,             // args dw, w, m, rate [, norm]; attrs beta1, decay, limit; m = beta1 m + g + decay w; w -= rate m
  // Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2): w -= rate decay w; m = beta1 m + (1 -
  // beta1) g; v = beta2 v + (1 - beta2) g^2; w -= rate m' / (sqrt(v') + eps), where m' = m / (1 - beta1^step) and v' =
  // v / (1 - beta2^step).
  adamw,  // args dw, w, m, v, rate, step [, norm]; attrs beta1, beta2, eps, decay, limit
};

inline constexpr int kOpKindCount = static_cast<int>(OpKind::adamw) + 1;

std::string_view to_string(OpKind kind);
/// Returns the kind named `name`. Throws InputError if there is none; the message suggests the nearest name.
OpKind op_kind_from_string(std::string_view name);

/// Attributes of an op. An op reads the attributes that the comment of its OpKind names; all other attributes keep
/// their defaults.
struct OpAttrs {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
  std::int64_t rows = 0, cols = 0;
  std::int64_t kernel = 0, stride = 1, pad = 0;
  std::int64_t offset = 0;
  bool causal = false;
  double alpha = 1.0, eps = 1e-5, p = 0.0;
  std::uint64_t seed = 0, stream = 0;
  double beta1 = 0.9, beta2 = 0.999, decay = 0.0, limit = 1.0;
  std::vector<std::int64_t> perm = {};

  bool operator==(const OpAttrs&) const = default;
};

/// One argument of an op: an output of a node, or a resident tensor.
struct Operand {
  enum class Kind : std::uint8_t { node, resident };
  Kind kind = Kind::node;
  std::int32_t index = 0;
  std::int32_t output = 0;  ///< index among the node's outputs

  static Operand node(std::int32_t id, std::int32_t output = 0) { return {Kind::node, id, output}; }
  static Operand resident(std::int32_t id) { return {Kind::resident, id, 0}; }
  bool operator==(const Operand&) const = default;
};

/// The operation of one node. Every op is a pure function of its arguments and attributes, except that updates of
/// weights (is_update) also overwrite some of their arguments. A node with an update is pinned, because it must run
/// exactly once.
struct Op {
  OpKind kind = OpKind::add;
  Shape shape;                ///< shape of the first output; output_shape() returns the shape of any output
  std::vector<Operand> args;  ///< arguments in the order of the kind's comment; two arguments may be the same output
  OpAttrs attrs;
  /// Element type of the first output. It must be the type that output_type() returns for the graph's storage type.
  ElementType type = ElementType::f32;
  /// Index of the resident tensor into which the node writes its output, or -1. An output in a resident tensor takes 0
  /// bytes of its own. If the index is -1, the output is in the arena, the block of memory that holds all scheduled
  /// tensors.
  std::int32_t writes = -1;

  bool operator==(const Op&) const = default;
};

/// A tensor that stays in memory for the whole training step, such as a weight. Schedules neither compute nor free it.
struct Resident {
  enum class Role : std::uint8_t { weight, weight_grad, optimizer, data, constant };
  using Type = ElementType;
  enum class Init : std::uint8_t {
    zeros,
    ones,
    normal,       ///< mean 0, standard deviation `scale`
    uniform,      ///< i32: integers in [0, scale); f32: numbers in [0, scale)
    norm_params,  ///< gamma = 1 and beta = 0, for a tensor [2, C]
    sinusoid,     ///< the transformer's position encoding, for a tensor [S, C]
    constant,     ///< f32: the number `scale`
  };
  std::string name;
  Shape shape;
  Role role = Role::weight;
  Type type = Type::f32;
  Init init = Init::zeros;
  double scale = 1.0;
  /// For the role weight_grad, index of the resident weight whose gradient the tensor is; else -1.
  std::int32_t gradient_of = -1;
  /// If the tensor is the fp32 copy that an update keeps of a bf16 weight, index of that weight; else -1. Copy and
  /// weight have the same initial values, up to rounding.
  std::int32_t master_of = -1;

  std::int64_t bytes() const { return element_bytes(type) * element_count(shape); }
  bool operator==(const Resident&) const = default;
};

/// Returns the positions of the arguments that an op of this kind overwrites. All of them are resident tensors.
std::span<const std::size_t> updated_args(OpKind kind);
/// Returns whether an op of this kind updates a weight.
inline bool is_update(OpKind kind) { return !updated_args(kind).empty(); }
/// Returns whether an op of this kind computes a loss. Its first argument is the predictions, its second the targets.
constexpr bool is_loss(OpKind kind) { return kind == OpKind::cross_entropy || kind == OpKind::mse; }

/// Returns the number of outputs of a node whose op is of this kind.
std::int32_t output_count(OpKind kind);

/// Returns the element type of an output in a graph whose tensors are stored as `storage` (f32 or bf16). Statistics of
/// norms, gradients of the norms' parameters, and losses are always f32; indices are i32.
ElementType output_type(OpKind kind, ElementType storage, std::int32_t output = 0);
/// Returns the element type of argument `arg`. Statistics and parameters of norms are f32; ids, labels and indices are
/// i32.
ElementType arg_type(OpKind kind, std::size_t arg, ElementType storage);

/// Returns the shape of one output. `output` must be below output_count(op.kind).
Shape output_shape(const Op& op, std::int32_t output);
/// Returns the element type of one output. `output` must be below output_count(op.kind).
ElementType output_type(const Op& op, std::int32_t output);
/// Returns the bytes that one output takes if it is in the arena.
std::int64_t output_bytes(const Op& op, std::int32_t output);

/// Checks the number of arguments, shapes and attributes, so that kernels need no checks. Throws InputError. Takes time
/// in proportion to the number of axes of the tensors.
void check_op(const Op& op, std::span<const Shape> arg_shapes);

/// The work of executing an op once with fp32 tensors.
struct OpWork {
  std::int64_t flops = 0;
  /// Bytes read and written; each tensor counts once.
  std::int64_t bytes = 0;
  /// Bytes that the kernels of host and device need in addition to inputs and outputs.
  std::int64_t scratch = 0;
};
OpWork op_work(const Op& op, std::span<const Shape> arg_shapes);

/// Returns the number of rows of the tile that a convolution gathers into scratch (im2col). Each row belongs to one
/// of the `pixels` output pixels (those of all images) and has `patch` floats, where `patch` = kernel_h * kernel_w *
/// in_channels. The tile takes at most 2 MiB, unless a single row is larger.
std::int64_t conv_tile_rows(std::int64_t pixels, std::int64_t patch);

/// Estimates the time of one op by the roofline model: `max(flops / flops_per_ns, bytes / bytes_per_ns) + launch_ns`.
/// The defaults are from an H200's data sheet (67 TFLOP/s of fp32, 4.8 TB/s), with 2 us to launch a kernel.
struct Roofline {
  double flops_per_ns = 67000.0;
  double bytes_per_ns = 4800.0;
  double launch_ns = 2000.0;

  /// Returns the cost in ns, rounded to the nearest integer, at least 1.
  std::int64_t cost(const OpWork& work) const;
};

}  // namespace cairn::core
