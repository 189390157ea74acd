// Compares every op with its definition, which is written as plain loops in double precision.
#include "cairn/runtime/host/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "cairn/core/error.h"
#include "cairn/core/machine/support/thread_pool.h"
#include "cairn/runtime/program.h"
#include "cairn/runtime/support/element.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/tensors.h"
#include "cairn/tests/runtime/window_cases.h"
#include "cairn/tests/support/errors.h"

namespace cairn::tests::kernels_test {
namespace {

std::mt19937 generator(1);

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

template <class F>
Values map(const Values& x, const F& f) {
  Values y;
  for (const double value : x) y.push_back(f(value));
  return y;
}

const std::vector<ConvCase> kConvCases = {
    {2, 5, 4, 3, 4, 3, 3, 1, 1},    {1, 7, 8, 2, 3, 3, 3, 2, 1}, {2, 6, 6, 5, 4, 1, 1, 1, 0},
    {2, 7, 5, 3, 2, 1, 1, 2, 0},    {1, 9, 9, 3, 4, 7, 7, 2, 3}, {1, 4, 4, 2, 2, 2, 2, 2, 0},
    {3, 5, 6, 2, 3, 3, 2, 1, 0},    {1, 3, 3, 2, 2, 2, 2, 1, 3}, {1, 8, 8, 1, 1, 2, 2, 3, 1},
    {2, 40, 40, 64, 8, 3, 3, 1, 1},  // scratch for several tiles, which end inside of an image
};

}  // namespace

TEST_CASE("matmul in every transposition, with batches, bias and alpha") {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      for (const std::int64_t batch : {1, 3}) {
        for (const bool with_bias : {false, true}) {
          const std::int64_t m = 37, n = 66, k = 19;
          const Op op =
              make_op(OpKind::matmul, {batch, m, n},
                      {.batch = batch, .m = m, .n = n, .k = k, .trans_a = trans_a, .trans_b = trans_b, .alpha = 0.5});
          std::vector<Tensor> args = {random_tensor({batch, m * k}, generator),
                                      random_tensor({batch, k * n}, generator)};
          if (with_bias) args.push_back(random_tensor({n}, generator));
          Values expected;
          for (std::int64_t b = 0; b < batch; ++b) {
            for (std::int64_t i = 0; i < m; ++i) {
              for (std::int64_t j = 0; j < n; ++j) {
                double sum = 0;
                for (std::int64_t l = 0; l < k; ++l) {
                  sum += args[0].values[at(b * m * k + (trans_a ? l * m + i : i * k + l))] *
                         args[1].values[at(b * k * n + (trans_b ? j * k + l : l * n + j))];
                }
                expected.push_back(0.5 * sum + (with_bias ? args[2].values[at(j)] : 0));
              }
            }
          }
          check_op_equals(op, args, expected);
        }
      }
    }
  }
}

TEST_CASE("matmul large enough to be cut into blocks of rows and of columns") {
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{300, 130}, {70, 400}}) {
    const std::int64_t k = 150;
    const std::vector<Tensor> args = {random_tensor({m, k}, generator), random_tensor({k, n}, generator)};
    Values expected(at(m * n), 0);
    for (std::int64_t i = 0; i < m * n; ++i) {
      for (std::int64_t l = 0; l < k; ++l)
        expected[at(i)] += args[0].values[at(i / n * k + l)] * args[1].values[at(l * n + i % n)];
    }
    check_op_equals(make_op(OpKind::matmul, {m, n}, {.m = m, .n = n, .k = k}), args, expected);
  }
}

TEST_CASE("reduce_rows") {
  for (const std::int64_t cols : {1, 7, 32, 75}) {
    const std::int64_t rows = 21;
    const Tensor x = random_tensor({rows, cols}, generator);
    Values expected(at(cols), 0);
    for (std::int64_t i = 0; i < rows * cols; ++i) expected[at(i % cols)] += x.values[at(i)];
    check_op_equals(make_op(OpKind::reduce_rows, {cols}, {.rows = rows, .cols = cols}), {x}, expected);
  }
}

TEST_CASE("elementwise ops") {
  const Shape shape = {3, 7001};  // more elements than one block
  const Tensor a = random_tensor(shape, generator), b = random_tensor(shape, generator);
  Values sum, relu_grad;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    sum.push_back(a.values[i] + b.values[i]);
    relu_grad.push_back(b.values[i] > 0 ? a.values[i] : 0);
  }
  check_op_equals(make_op(OpKind::add, shape), {a, b}, sum);
  check_op_equals(make_op(OpKind::scale, shape, {.alpha = -2.5}), {a},
                  map(a.values, [](double x) { return -2.5 * x; }));
  check_op_equals(make_op(OpKind::relu, shape), {a}, map(a.values, [](double x) { return std::max(x, 0.0); }));
  check_op_equals(make_op(OpKind::relu_grad, shape), {a, b}, relu_grad);
  const double root = std::sqrt(2 / std::acos(-1.0));
  check_op_equals(make_op(OpKind::gelu, shape), {a}, map(a.values, [&](double x) {
                    return 0.5 * x * (1 + std::tanh(root * (x + 0.044715 * x * x * x)));
                  }));
}

TEST_CASE("relu lets poison through") { CHECK(std::isnan(runtime::relu(std::numeric_limits<float>::quiet_NaN()))); }

TEST_CASE("dropout keeps about 1-p, scales what it keeps, and depends on seed, stream and element only") {
  const std::int64_t count = 40000;
  const Tensor ones{{count}, Values(at(count), 1.0), {}};
  const auto mask = [&](std::uint64_t seed, std::uint64_t stream, double p) {
    return run<double>(make_op(OpKind::dropout, {count}, {.p = p, .seed = seed, .stream = stream}), {ones});
  };
  for (const double p : {0.1, 0.5, 0.9}) {
    const Values kept = mask(3, 4, p);
    const auto zeros = static_cast<double>(std::count(kept.begin(), kept.end(), 0.0));
    CHECK(zeros / static_cast<double>(count) == Approx(p).margin(0.02));
    CHECK(std::all_of(kept.begin(), kept.end(), [&](double x) { return x == 0 || x == 1 / (1 - p); }));
  }
  CHECK(mask(3, 4, 0.5) == mask(3, 4, 0.5));
  CHECK(mask(3, 4, 0.5) != mask(3, 5, 0.5));
  CHECK(mask(3, 4, 0.5) != mask(4, 4, 0.5));
  CHECK(mask(3, 4, 0) == ones.values);
}

TEST_CASE("conv2d and its gradients") {
  for (const ConvCase& c : kConvCases) {
    const Tensor x = random_tensor(c.x(), generator), w = random_tensor(c.weight(), generator);
    const Tensor bias = random_tensor({c.oc}, generator), dy = random_tensor(c.y(), generator);
    Values y(dy.values.size(), 0), dx(x.values.size(), 0), dw(w.values.size(), 0);
    c.for_products([&](std::int64_t out, std::int64_t in, std::int64_t weight) {
      y[at(out)] += x.values[at(in)] * w.values[at(weight)];
      dx[at(in)] += dy.values[at(out)] * w.values[at(weight)];
      dw[at(weight)] += dy.values[at(out)] * x.values[at(in)];
    });
    INFO("kernel " << c.kh << "x" << c.kw << " stride " << c.stride << " pad " << c.pad);
    check_op_equals(make_op(OpKind::conv2d, c.y(), c.attrs()), {x, w}, y);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias.values[i % at(c.oc)];
    check_op_equals(make_op(OpKind::conv2d, c.y(), c.attrs()), {x, w, bias}, y);
    check_op_equals(make_op(OpKind::conv2d_grad_input, c.x(), c.attrs()), {dy, w}, dx);
    check_op_equals(make_op(OpKind::conv2d_grad_weight, c.weight(), c.attrs()), {dy, x}, dw);
  }
}

TEST_CASE("batch norm: mean, deviation and normalised values per channel") {
  for (const std::int64_t cols : {1, 5, 40}) {
    const std::int64_t rows = 3 * 2 * 4;
    const Shape shape = {3, 2, 4, cols};
    const Tensor x = random_tensor(shape, generator), params = random_tensor({2, cols}, generator);
    Values stats(at(2 * cols)), expected(x.values.size());
    for (std::int64_t c = 0; c < cols; ++c) {
      double mean = 0, variance = 0;
      for (std::int64_t r = 0; r < rows; ++r) mean += x.values[at(r * cols + c)] / static_cast<double>(rows);
      for (std::int64_t r = 0; r < rows; ++r) {
        variance += std::pow(x.values[at(r * cols + c)] - mean, 2) / static_cast<double>(rows);
      }
      stats[at(c)] = mean;
      stats[at(cols + c)] = 1 / std::sqrt(variance + 1e-3);
      for (std::int64_t r = 0; r < rows; ++r) {
        expected[at(r * cols + c)] = (x.values[at(r * cols + c)] - mean) * stats[at(cols + c)] * params.values[at(c)] +
                                     params.values[at(cols + c)];
      }
    }
    check_op_equals(make_op(OpKind::batchnorm_stats, {2, cols}, {.eps = 1e-3}), {x}, stats);
    check_op_equals(make_op(OpKind::batchnorm, shape), {x, {{2, cols}, stats, {}}, params}, expected);
  }
}

TEST_CASE("layer norm: mean, deviation and normalised values per row") {
  for (const std::int64_t cols : {1, 8, 43}) {
    const std::int64_t rows = 6;
    const Shape shape = {2, 3, cols};
    const Tensor x = random_tensor(shape, generator), params = random_tensor({2, cols}, generator);
    Values stats, expected;
    for (std::int64_t r = 0; r < rows; ++r) {
      double mean = 0, variance = 0;
      for (std::int64_t c = 0; c < cols; ++c) mean += x.values[at(r * cols + c)] / static_cast<double>(cols);
      for (std::int64_t c = 0; c < cols; ++c) {
        variance += std::pow(x.values[at(r * cols + c)] - mean, 2) / static_cast<double>(cols);
      }
      const double rstd = 1 / std::sqrt(variance + 1e-3);
      stats.insert(stats.end(), {mean, rstd});
      for (std::int64_t c = 0; c < cols; ++c) {
        expected.push_back((x.values[at(r * cols + c)] - mean) * rstd * params.values[at(c)] +
                           params.values[at(cols + c)]);
      }
    }
    check_op_equals(make_op(OpKind::layernorm_stats, {2, 3, 2}, {.eps = 1e-3}), {x}, stats);
    check_op_equals(make_op(OpKind::layernorm, shape), {x, {{rows, 2}, stats, {}}, params}, expected);
  }
}

TEST_CASE("maxpool and its gradient, where the first maximum wins") {
  for (const PoolCase& p : {PoolCase{2, 7, 6, 3, 3, 2, 1}, {1, 4, 4, 40, 2, 2, 0}, {1, 5, 5, 2, 3, 1, 2}}) {
    const std::int64_t oh = p.oh(), ow = p.ow();
    Tensor x = random_tensor(p.x(), generator);
    for (double& value : x.values) value = std::round(value);  // so that a window can have several equal maxima
    const Tensor dy = random_tensor(p.y(), generator);
    Values y, dx(x.values.size(), 0);
    for (std::int64_t i = 0; i < p.n * oh * ow * p.c; ++i) {
      const std::int64_t c = i % p.c, ox = i / p.c % ow, oy = i / p.c / ow % oh, n = i / p.c / ow / oh;
      std::int64_t best = -1;
      for (std::int64_t k = 0; k < p.kernel * p.kernel; ++k) {
        const std::int64_t row = oy * p.stride - p.pad + k / p.kernel, col = ox * p.stride - p.pad + k % p.kernel;
        if (row < 0 || row >= p.h || col < 0 || col >= p.w) continue;
        const std::int64_t index = ((n * p.h + row) * p.w + col) * p.c + c;
        if (best < 0 || x.values[at(index)] > x.values[at(best)]) best = index;
      }
      y.push_back(x.values[at(best)]);
      dx[at(best)] += dy.values[at(i)];
    }
    check_op_equals(make_op(OpKind::maxpool, dy.shape, p.attrs()), {x}, y);
    check_op_equals(make_op(OpKind::maxpool_grad, x.shape, p.attrs()), {dy, x}, dx);
  }
}

TEST_CASE("ops of several outputs have the bits of those that make them one by one") {
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 8}, Shape{2, 3, 5, 43}}) {
    const std::int64_t cols = shape.back(), rows = core::element_count(shape) / cols;
    const Tensor x = random_tensor(shape, generator), params = random_tensor({2, cols}, generator);
    const OpAttrs attrs{.eps = 1e-3};
    const auto check = [&](OpKind both, OpKind stats_kind, OpKind norm_kind, const Shape& stats_shape) {
      const auto results = run_all<double>(make_op(both, shape, attrs), {x, params});
      const Tensor stats{stats_shape, run<double>(make_op(stats_kind, stats_shape, attrs), {x}), {}};
      CHECK(results[1].values == stats.values);
      CHECK(results[0].values == run<double>(make_op(norm_kind, shape, attrs), {x, stats, params}));
    };
    check(OpKind::batchnorm_with_stats, OpKind::batchnorm_stats, OpKind::batchnorm, {2, cols});
    check(OpKind::layernorm_with_stats, OpKind::layernorm_stats, OpKind::layernorm, {rows, 2});
  }
  for (const PoolCase& p : {PoolCase{2, 9, 6, 35, 3, 2, 1}, {2, 9, 6, 35, 2, 2, 0}, {2, 9, 6, 35, 5, 1, 4}}) {
    const OpAttrs attrs = p.attrs();
    Tensor x = random_tensor(p.x(), generator);
    for (double& value : x.values) value = std::round(value);  // so that a window can have several equal maxima
    const Tensor dy = random_tensor(p.y(), generator);
    const auto results = run_all<double>(make_op(OpKind::maxpool_with_indices, dy.shape, attrs), {x});
    CHECK(results[0].values == run<double>(make_op(OpKind::maxpool, dy.shape, attrs), {x}));
    Tensor indices{dy.shape, {}, results[1].integers};
    const Op grad = make_op(OpKind::maxpool_with_indices_grad, x.shape, attrs);
    CHECK(run<double>(grad, {dy, indices}) == run<double>(make_op(OpKind::maxpool_grad, x.shape, attrs), {dy, x}));
    // An index that does not name a place in its window must send no gradient anywhere.
    for (std::size_t i = 0; i < indices.integers.size(); ++i) {
      indices.integers[i] = std::array{-1, -1000000, 1 << 30, static_cast<int>(attrs.kernel * attrs.kernel)}[i % 4];
    }
    CHECK(run<double>(grad, {dy, indices}) == Values(x.values.size(), 0));
  }
}

TEST_CASE("mean_pool and its gradient") {
  for (const Shape& shape : {Shape{2, 3, 5, 34}, Shape{3, 4, 2}, Shape{2, 3}}) {
    const std::int64_t images = shape.front(), channels = shape.back();
    const std::int64_t middle = core::element_count(shape) / images / channels;
    const Tensor x = random_tensor(shape, generator);
    const Tensor dy = random_tensor({images, channels}, generator);
    Values y(dy.values.size(), 0), dx(x.values.size());
    for (std::int64_t i = 0; i < images * middle * channels; ++i) {
      const std::int64_t pooled = i / channels / middle * channels + i % channels;
      y[at(pooled)] += x.values[at(i)] / static_cast<double>(middle);
      dx[at(i)] = dy.values[at(pooled)] / static_cast<double>(middle);
    }
    check_op_equals(make_op(OpKind::mean_pool, dy.shape), {x}, y);
    check_op_equals(make_op(OpKind::mean_pool_grad, shape), {dy}, dx);
  }
}

TEST_CASE("upsample and its gradient") {
  const std::int64_t n = 2, h = 3, w = 5, c = 4;
  const Tensor x = random_tensor({n, h, w, c}, generator);
  const Tensor dy = random_tensor({n, 2 * h, 2 * w, c}, generator);
  Values y(dy.values.size()), dx(x.values.size(), 0);
  for (std::int64_t i = 0; i < n * 4 * h * w * c; ++i) {
    const std::int64_t col = i / c % (2 * w), row = i / c / (2 * w) % (2 * h), image = i / c / (2 * w) / (2 * h);
    const std::int64_t from = ((image * h + row / 2) * w + col / 2) * c + i % c;
    y[at(i)] = x.values[at(from)];
    dx[at(from)] += dy.values[at(i)];
  }
  check_op_equals(make_op(OpKind::upsample, dy.shape), {x}, y);
  check_op_equals(make_op(OpKind::upsample_grad, x.shape), {dy}, dx);
}

TEST_CASE("concat and slice undo each other") {
  const Tensor a = random_tensor({2, 3, 4}, generator), b = random_tensor({2, 3, 5}, generator);
  Values joined;
  for (std::int64_t r = 0; r < 6; ++r) {
    joined.insert(joined.end(), a.values.begin() + r * 4, a.values.begin() + (r + 1) * 4);
    joined.insert(joined.end(), b.values.begin() + r * 5, b.values.begin() + (r + 1) * 5);
  }
  check_op_equals(make_op(OpKind::concat, {2, 3, 9}), {a, b}, joined);
  const Tensor both{{2, 3, 9}, joined, {}};
  check_op_equals(make_op(OpKind::slice, a.shape, {.offset = 0}), {both}, a.values);
  check_op_equals(make_op(OpKind::slice, b.shape, {.offset = 4}), {both}, b.values);
}

TEST_CASE("permute in every order of four axes") {
  const Shape in = {2, 3, 4, 5};
  const Tensor x = random_tensor(in, generator);
  std::vector<std::int64_t> perm = {0, 1, 2, 3};
  do {
    Shape out;
    for (const std::int64_t axis : perm) out.push_back(in[at(axis)]);
    Values expected(x.values.size());
    for (std::int64_t i = 0; i < core::element_count(in); ++i) {
      const std::int64_t index[] = {i / 60, i / 20 % 3, i / 5 % 4, i % 5};
      std::int64_t to = 0;
      for (std::size_t axis = 0; axis < 4; ++axis) to = to * out[axis] + index[perm[axis]];
      expected[at(to)] = x.values[at(i)];
    }
    check_op_equals(make_op(OpKind::permute, out, {.perm = perm}), {x}, expected);
  } while (std::next_permutation(perm.begin(), perm.end()));
  const Tensor scalar = random_tensor({}, generator);
  check_op_equals(make_op(OpKind::permute, {}), {scalar}, scalar.values);
}

TEST_CASE("softmax, plain and causal") {
  for (const bool causal : {false, true}) {
    const Shape shape = {2, 7, 7};
    Tensor x = random_tensor(shape, generator);
    for (double& value : x.values)
      // The values are so large that exp would overflow if the maximum were not subtracted.
      value = 50 * value;
    Values expected;
    for (std::int64_t r = 0; r < 14; ++r) {
      const std::int64_t visible = causal ? r % 7 + 1 : 7;
      const double* row = x.values.data() + r * 7;
      const double largest = *std::max_element(row, row + visible);
      double sum = 0;
      for (std::int64_t c = 0; c < visible; ++c) sum += std::exp(row[c] - largest);
      for (std::int64_t c = 0; c < 7; ++c) expected.push_back(c < visible ? std::exp(row[c] - largest) / sum : 0);
    }
    check_op_equals(make_op(OpKind::softmax, shape, {.causal = causal}), {x}, expected);
  }
}

TEST_CASE("embedding with and without positions, and its gradient") {
  const std::int64_t vocabulary = 11, channels = 37, batch = 3, sequence = 5;
  const Tensor ids = random_integers({batch, sequence}, vocabulary, generator);
  const Tensor table = random_tensor({vocabulary, channels}, generator);
  const Tensor positions = random_tensor({sequence, channels}, generator);
  const Tensor dy = random_tensor({batch, sequence, channels}, generator);
  Values plain, with_positions, dtable(table.values.size(), 0);
  for (std::int64_t i = 0; i < batch * sequence * channels; ++i) {
    const std::int64_t place = i / channels, c = i % channels;
    const std::size_t entry = at(ids.integers[at(place)] * channels + c);
    plain.push_back(table.values[entry]);
    with_positions.push_back(table.values[entry] + positions.values[at(place % sequence * channels + c)]);
    dtable[entry] += dy.values[at(i)];
  }
  check_op_equals(make_op(OpKind::embedding, dy.shape), {ids, table}, plain);
  check_op_equals(make_op(OpKind::embedding, dy.shape), {ids, table, positions}, with_positions);
  check_op_equals(make_op(OpKind::embedding_grad, table.shape), {dy, ids}, dtable);
}

TEST_CASE("cross entropy and mean squared error") {
  const std::int64_t rows = 130, cols = 9;
  const Tensor logits = random_tensor({rows, cols}, generator);
  const Tensor labels = random_integers({rows}, cols, generator);
  const Tensor target = random_tensor({rows, cols}, generator);
  double loss = 0, squares = 0;
  Values grad, square_grad;
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (std::int64_t c = 0; c < cols; ++c) sum += std::exp(logits.values[at(r * cols + c)]);
    for (std::int64_t c = 0; c < cols; ++c) {
      const double probability = std::exp(logits.values[at(r * cols + c)]) / sum;
      const bool chosen = labels.integers[at(r)] == c;
      if (chosen) loss -= std::log(probability) / static_cast<double>(rows);
      grad.push_back((probability - (chosen ? 1 : 0)) / static_cast<double>(rows));
      const double d = logits.values[at(r * cols + c)] - target.values[at(r * cols + c)];
      squares += d * d / static_cast<double>(rows * cols);
      square_grad.push_back(2 * d / static_cast<double>(rows * cols));
    }
  }
  check_op_equals(make_op(OpKind::cross_entropy, {1}), {logits, labels}, {loss});
  check_op_equals(make_op(OpKind::cross_entropy_grad, logits.shape), {logits, labels}, grad);
  check_op_equals(make_op(OpKind::mse, {1}), {logits, target}, {squares});
  check_op_equals(make_op(OpKind::mse_grad, logits.shape), {logits, target}, square_grad);
}

TEST_CASE("ids and labels out of range are named") {
  const Tensor table = random_tensor({4, 2}, generator);
  for (const std::int32_t bad : {4, -1}) {
    Tensor ids{{3}, {}, {0, 1, bad}};
    const auto says_value = [&](const Op& op, const std::vector<Tensor>& args) {
      CHECK(contains(error_of<core::Error>([&] { run<float>(op, args); }), std::to_string(bad) + " at position 2"));
    };
    says_value(make_op(OpKind::embedding, {3, 2}), {ids, table});
    says_value(make_op(OpKind::embedding_grad, {4, 2}), {random_tensor({3, 2}, generator), ids});
    says_value(make_op(OpKind::cross_entropy, {1}), {random_tensor({3, 4}, generator), ids});
    says_value(make_op(OpKind::cross_entropy_grad, {3, 4}), {random_tensor({3, 4}, generator), ids});
  }
}

TEST_CASE("ops that may overwrite an argument compute the same in place") {
  const Shape shape = {2, 4, 4};
  const Tensor a = random_tensor(shape, generator), b = random_tensor(shape, generator);
  const Tensor rows = random_tensor({8, 2}, generator), channels = random_tensor({2, 4}, generator);
  const Tensor labels = random_integers({8}, 4, generator);
  const std::vector<std::pair<Op, std::vector<Tensor>>> cases = {
      {make_op(OpKind::add, shape), {a, b}},
      {make_op(OpKind::scale, shape, {.alpha = 3}), {a}},
      {make_op(OpKind::relu, shape), {a}},
      {make_op(OpKind::relu_grad, shape), {a, b}},
      {make_op(OpKind::gelu, shape), {a}},
      {make_op(OpKind::gelu_grad, shape), {a, b}},
      {make_op(OpKind::dropout, shape, {.p = 0.5}), {a}},
      {make_op(OpKind::softmax, shape, {.causal = true}), {a}},
      {make_op(OpKind::softmax_grad, shape), {a, b}},
      {make_op(OpKind::mse_grad, shape), {a, b}},
      {make_op(OpKind::batchnorm, shape), {a, channels, channels}},
      {make_op(OpKind::batchnorm_grad_input, shape), {a, b, channels, channels, channels}},
      {make_op(OpKind::layernorm, shape), {a, rows, channels}},
      {make_op(OpKind::batchnorm_with_stats, shape), {a, channels}},
      {make_op(OpKind::layernorm_with_stats, shape), {a, channels}},
      {make_op(OpKind::layernorm_grad_input, shape), {a, b, rows, channels}},
      {make_op(OpKind::cross_entropy_grad, shape), {a, labels}},
  };
  int overwritten = 0;
  for (const auto& [op, args] : cases) {
    const Values expected = run<double>(op, args);
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (!runtime::can_overwrite(op.kind, i)) continue;
      ++overwritten;
      std::vector<Values> data;
      for (const Tensor& arg : args) data.push_back(arg.values);
      std::vector<runtime::TensorRef<double>> refs;
      for (std::size_t j = 0; j < args.size(); ++j) {
        refs.push_back({args[j].integers.empty() ? static_cast<const void*>(data[j].data()) : args[j].integers.data(),
                        args[j].shape});
      }
      Values statistics(static_cast<std::size_t>(core::element_count(core::output_shape(op, 1))));
      void* const more[] = {statistics.data()};
      runtime::run_op<double>(op, refs, data[i].data(), nullptr, more);
      INFO(core::to_string(op.kind) << " over argument " << i);
      CHECK(data[i] == expected);
    }
  }
  CHECK(overwritten == 24);
  CHECK_FALSE(runtime::can_overwrite(OpKind::matmul, 0));
  CHECK_FALSE(runtime::can_overwrite(OpKind::permute, 0));
}

TEST_CASE("the same bits with any number of threads") {
  struct Job {
    Op op;
    std::vector<Tensor> args;
  };
  const ConvCase c{4, 20, 20, 40, 70, 3, 3, 1, 1};
  const std::int64_t rows = 4 * 20 * 20;
  const Tensor x = random_tensor(c.x(), generator), w = random_tensor(c.weight(), generator);
  const Tensor dy = random_tensor(c.y(), generator), stats = random_tensor({2, c.c}, generator);
  const Tensor ids = random_integers({rows}, 50, generator);
  const std::vector<Job> jobs = {
      {make_op(OpKind::conv2d, c.y(), c.attrs()), {x, w}},
      {make_op(OpKind::conv2d_grad_input, c.x(), c.attrs()), {dy, w}},
      {make_op(OpKind::conv2d_grad_weight, c.weight(), c.attrs()), {dy, x}},
      {make_op(OpKind::batchnorm_stats, {2, c.c}), {x}},
      {make_op(OpKind::batchnorm_grad_params, {2, c.c}), {x, x, stats}},
      {make_op(OpKind::reduce_rows, {c.c}, {.rows = rows, .cols = c.c}), {x}},
      {make_op(OpKind::embedding_grad, {50, c.c}), {x, ids}},
      {make_op(OpKind::mse, {1}), {x, x}},
      {make_op(OpKind::sum_of_squares, {1}), {x}},
      {make_op(OpKind::cross_entropy, {1}), {random_tensor({rows, 50}, generator), ids}},
      {make_op(OpKind::matmul, {300, 200}, {.m = 300, .n = 200, .k = 170}),
       {random_tensor({300, 170}, generator), random_tensor({170, 200}, generator)}},
  };
  const int threads_before = core::thread_count();
  for (const Job& job : jobs) {
    core::set_thread_count(1);
    const std::vector<float> one = run<float>(job.op, job.args);
    for (const int threads : {2, 3, 5}) {
      core::set_thread_count(threads);
      const std::vector<float> many = run<float>(job.op, job.args);
      INFO(core::to_string(job.op.kind) << " with " << threads << " threads");
      CHECK(std::memcmp(one.data(), many.data(), one.size() * sizeof(float)) == 0);
    }
  }
  core::set_thread_count(threads_before);
}

}  // namespace cairn::tests::kernels_test
