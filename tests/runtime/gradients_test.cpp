// Compares every backward op with central finite differences of its forward op, in double precision.
#include <algorithm>

#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/tensors.h"
#include "cairn/tests/runtime/window_cases.h"

namespace cairn::tests::gradients_test {
namespace {

std::mt19937 generator(2);

/// Returns a tensor whose elements differ from 0 and from each other by 0.01 or more. Otherwise, relu would have kinks
/// near 0, and maxpool where elements are almost equal.
Tensor without_kinks(const Shape& shape) {
  Tensor tensor = random_tensor(shape, generator);
  for (std::size_t i = 0; i < tensor.values.size(); ++i)
    tensor.values[i] = (i % 2 == 0 ? 1 : -1) * (0.01 + 0.01 * static_cast<double>(i));
  std::shuffle(tensor.values.begin(), tensor.values.end(), generator);
  return tensor;
}

}  // namespace

TEST_CASE("gradients of matmul, as matmuls") {
  const std::int64_t batch = 2, m = 4, n = 3, k = 5;
  const Tensor a = random_tensor({batch, m, k}, generator), b = random_tensor({batch, k, n}, generator);
  const Tensor bias = random_tensor({n}, generator), dy = random_tensor({batch, m, n}, generator);
  const Op forward = make_op(OpKind::matmul, dy.shape, {.batch = batch, .m = m, .n = n, .k = k});
  const std::vector<Tensor> args = {a, b, bias};
  const Op da = make_op(OpKind::matmul, a.shape, {.batch = batch, .m = m, .n = k, .k = n, .trans_b = true});
  const Op db = make_op(OpKind::matmul, b.shape, {.batch = batch, .m = k, .n = n, .k = m, .trans_a = true});
  const Op dbias = make_op(OpKind::reduce_rows, bias.shape, {.rows = batch * m, .cols = n});
  check_gradient(da, {dy, b}, forward, args, 0, dy.values);
  check_gradient(db, {a, dy}, forward, args, 1, dy.values);
  check_gradient(dbias, {dy}, forward, args, 2, dy.values);
}

TEST_CASE("gradients of relu, gelu, scale and dropout") {
  const Shape shape = {3, 5};
  const Tensor x = without_kinks(shape), dy = random_tensor(shape, generator);
  const Op relu = make_op(OpKind::relu, shape);
  const Tensor y{shape, run<double>(relu, {x}), {}};
  check_gradient(make_op(OpKind::relu_grad, shape), {dy, y}, relu, {x}, 0, dy.values);
  check_gradient(make_op(OpKind::gelu_grad, shape), {dy, x}, make_op(OpKind::gelu, shape), {x}, 0, dy.values);
  for (const Op& linear : {make_op(OpKind::scale, shape, {.alpha = 1.5}),
                           make_op(OpKind::dropout, shape, {.p = 0.4, .seed = 5, .stream = 6})}) {
    check_gradient(linear, {dy}, linear, {x}, 0, dy.values);
  }
}

TEST_CASE("gradients of conv2d over kernels, strides and padding") {
  for (const std::int64_t kernel : {1, 2, 3}) {
    for (const std::int64_t stride : {1, 2}) {
      for (const std::int64_t pad : {0, 1}) {
        const ConvCase c{2, 5, 4, 2, 3, kernel, kernel, stride, pad};
        const Tensor x = random_tensor(c.x(), generator), weight = random_tensor(c.weight(), generator);
        const Tensor bias = random_tensor({3}, generator), dy = random_tensor(c.y(), generator);
        const Op forward = make_op(OpKind::conv2d, c.y(), c.attrs());
        const std::vector<Tensor> args = {x, weight, bias};
        INFO("kernel " << kernel << " stride " << stride << " pad " << pad);
        check_gradient(make_op(OpKind::conv2d_grad_input, c.x(), c.attrs()), {dy, weight}, forward, args, 0, dy.values);
        check_gradient(make_op(OpKind::conv2d_grad_weight, c.weight(), c.attrs()), {dy, x}, forward, args, 1,
                       dy.values);
        const OpAttrs rows{.rows = 2 * c.oh() * c.ow(), .cols = 3};
        check_gradient(make_op(OpKind::reduce_rows, {3}, rows), {dy}, forward, args, 2, dy.values);
      }
    }
  }
}

namespace {

/// The ops that belong to a norm, and the shape of the norm's statistics.
struct Norm {
  OpKind statistics, forward, grad_params, grad_input;
  Shape stats_shape;
};

void check_norm(const Norm& norm, const Shape& shape) {
  const Shape params_shape = {2, shape.back()};
  const Tensor x = random_tensor(shape, generator), params = random_tensor(params_shape, generator);
  const Tensor dy = random_tensor(shape, generator);
  const auto stats_of = [&](const Tensor& in) {
    return Tensor{norm.stats_shape, run<double>(make_op(norm.statistics, norm.stats_shape), {in}), {}};
  };
  const auto forward = [&](const Values& values, const Values& gamma_beta) {
    const Tensor in{shape, values, {}};
    return run<double>(make_op(norm.forward, shape), {in, stats_of(in), {params_shape, gamma_beta, {}}});
  };
  const Tensor stats = stats_of(x);
  const Tensor dparams{params_shape, run<double>(make_op(norm.grad_params, params_shape), {dy, x, stats}), {}};
  std::vector<Tensor> args = {dy, x, stats, params};
  if (norm.grad_input == OpKind::batchnorm_grad_input) args.push_back(dparams);
  check_gradient(
      dparams.values, [&](const Values& p) { return forward(x.values, p); }, params.values, dy.values);
  check_gradient(
      run<double>(make_op(norm.grad_input, shape), args), [&](const Values& v) { return forward(v, params.values); },
      x.values, dy.values);
}

}  // namespace

TEST_CASE("gradients of batch norm, through its statistics") {
  for (const Shape& shape : {Shape{2, 3, 2, 3}, Shape{7, 35}})
    check_norm({OpKind::batchnorm_stats,
                OpKind::batchnorm,
                OpKind::batchnorm_grad_params,
                OpKind::batchnorm_grad_input,
                {2, shape.back()}},
               shape);
}

TEST_CASE("gradients of layer norm, through its statistics") {
  for (const Shape& shape : {Shape{2, 3, 11}, Shape{3, 40}})
    check_norm({OpKind::layernorm_stats,
                OpKind::layernorm,
                OpKind::layernorm_grad_params,
                OpKind::layernorm_grad_input,
                {core::element_count(shape) / shape.back(), 2}},
               shape);
}

TEST_CASE("gradients of pooling and upsampling") {
  for (const PoolCase& p : {PoolCase{2, 6, 5, 3, 2, 2, 0}, {2, 6, 5, 3, 3, 2, 1}, {2, 6, 5, 3, 3, 1, 1}}) {
    const Tensor x = without_kinks(p.x()), dy = random_tensor(p.y(), generator);
    check_gradient(make_op(OpKind::maxpool_grad, p.x(), p.attrs()), {dy, x}, make_op(OpKind::maxpool, p.y(), p.attrs()),
                   {x}, 0, dy.values);
  }
  const Tensor x = random_tensor({2, 3, 2, 3}, generator);
  const Tensor pooled = random_tensor({2, 3}, generator), large = random_tensor({2, 6, 4, 3}, generator);
  check_gradient(make_op(OpKind::mean_pool_grad, x.shape), {pooled}, make_op(OpKind::mean_pool, pooled.shape), {x}, 0,
                 pooled.values);
  check_gradient(make_op(OpKind::upsample_grad, x.shape), {large}, make_op(OpKind::upsample, large.shape), {x}, 0,
                 large.values);
}

TEST_CASE("gradients of concat and permute, as slices and the inverse permutation") {
  const Tensor a = random_tensor({2, 3}, generator), b = random_tensor({2, 4}, generator);
  const Tensor dy = random_tensor({2, 7}, generator);
  const Op concat = make_op(OpKind::concat, dy.shape);
  check_gradient(make_op(OpKind::slice, a.shape, {.offset = 0}), {dy}, concat, {a, b}, 0, dy.values);
  check_gradient(make_op(OpKind::slice, b.shape, {.offset = 3}), {dy}, concat, {a, b}, 1, dy.values);
  const Tensor x = random_tensor({2, 3, 4}, generator), dz = random_tensor({4, 2, 3}, generator);
  check_gradient(make_op(OpKind::permute, x.shape, {.perm = {1, 2, 0}}), {dz},
                 make_op(OpKind::permute, dz.shape, {.perm = {2, 0, 1}}), {x}, 0, dz.values);
}

TEST_CASE("gradients of softmax, plain and causal") {
  for (const bool causal : {false, true}) {
    const Shape shape = {2, 5, 5};
    const Tensor x = random_tensor(shape, generator), dy = random_tensor(shape, generator);
    const Op softmax = make_op(OpKind::softmax, shape, {.causal = causal});
    const Tensor y{shape, run<double>(softmax, {x}), {}};
    check_gradient(make_op(OpKind::softmax_grad, shape), {dy, y}, softmax, {x}, 0, dy.values);
  }
}

TEST_CASE("gradients of the embedding's table and positions") {
  const Tensor ids = random_integers({3, 4}, 5, generator);
  const Tensor table = random_tensor({5, 6}, generator), positions = random_tensor({4, 6}, generator);
  const Tensor dy = random_tensor({3, 4, 6}, generator);
  const Op embedding = make_op(OpKind::embedding, dy.shape);
  check_gradient(make_op(OpKind::embedding_grad, table.shape), {dy, ids}, embedding, {ids, table, positions}, 1,
                 dy.values);
  check_gradient(make_op(OpKind::reduce_rows, positions.shape, {.rows = 3, .cols = 24}), {dy}, embedding,
                 {ids, table, positions}, 2, dy.values);
}

TEST_CASE("gradients of the losses") {
  const Tensor logits = random_tensor({4, 6}, generator), target = random_tensor({4, 6}, generator);
  const Tensor labels = random_integers({4}, 6, generator);
  check_gradient(make_op(OpKind::cross_entropy_grad, logits.shape), {logits, labels},
                 make_op(OpKind::cross_entropy, {1}), {logits, labels}, 0, {1.0});
  check_gradient(make_op(OpKind::mse_grad, logits.shape), {logits, target}, make_op(OpKind::mse, {1}), {logits, target},
                 0, {1.0});
}

}  // namespace cairn::tests::gradients_test
