#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "cairn/core/op.h"
#include "cairn/runtime/host/kernels.h"
#include "cairn/tests/catch.h"

/// This file has small tensors, and helper functions for tests of the kernels.
namespace cairn::tests {

using core::ElementType;
using core::Op;
using core::OpAttrs;
using core::Operand;
using core::OpKind;
using core::Resident;
using core::Shape;

using Values = std::vector<double>;

struct Tensor {
  Shape shape;
  Values values;                       ///< elements of a floating-point tensor
  std::vector<std::int32_t> integers;  ///< elements of a tensor of ids or labels, else empty
};

inline Tensor random_tensor(const Shape& shape, std::mt19937& random) {
  std::normal_distribution<double> normal;
  Tensor tensor{shape, Values(static_cast<std::size_t>(core::element_count(shape))), {}};
  for (double& value : tensor.values) value = normal(random);
  return tensor;
}

inline Tensor random_integers(const Shape& shape, std::int32_t limit, std::mt19937& random) {
  Tensor tensor{shape, {}, std::vector<std::int32_t>(static_cast<std::size_t>(core::element_count(shape)))};
  for (std::int32_t& value : tensor.integers)
    value = static_cast<std::int32_t>(random() % static_cast<unsigned>(limit));
  return tensor;
}

inline Op make_op(OpKind kind, Shape shape, OpAttrs attrs = {}) {
  return {.kind = kind, .shape = std::move(shape), .args = {}, .attrs = std::move(attrs), .writes = -1};
}

/// Returns an op with the arguments `args`.
inline Op op_on(OpKind kind, Shape shape, std::vector<Operand> args, OpAttrs attrs = {}) {
  Op op = make_op(kind, std::move(shape), std::move(attrs));
  op.args = std::move(args);
  return op;
}

inline std::vector<Shape> shapes_of(const std::vector<Tensor>& args) {
  std::vector<Shape> shapes;
  for (const Tensor& arg : args) shapes.push_back(arg.shape);
  return shapes;
}

/// The elements of one output of an op.
template <class T>
struct Result {
  std::vector<T> values;
  std::vector<std::int32_t> integers;  ///< elements of an output of indices, else empty
  bool operator==(const Result&) const = default;
};

/// Checks an op and runs it in the type T. Outputs and scratch are filled with NaN first, so that no result can depend
/// on their old contents.
template <class T>
std::vector<Result<T>> run_all(const Op& op, const std::vector<Tensor>& args) {
  const std::vector<Shape> shapes = shapes_of(args);
  core::check_op(op, shapes);
  std::vector<std::vector<T>> data;
  for (const Tensor& arg : args) data.emplace_back(arg.values.begin(), arg.values.end());
  std::vector<runtime::TensorRef<T>> refs;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const void* pointer = args[i].integers.empty() ? static_cast<const void*>(data[i].data()) : args[i].integers.data();
    refs.push_back({pointer, args[i].shape});
  }
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  std::vector<Result<T>> results(static_cast<std::size_t>(core::output_count(op.kind)));
  std::vector<void*> more;
  for (std::size_t k = 0; k < results.size(); ++k) {
    const auto output = static_cast<std::int32_t>(k);
    const auto count = static_cast<std::size_t>(core::element_count(core::output_shape(op, output)));
    if (core::output_type(op, output) == ElementType::i32) {
      results[k].integers.assign(count, -7);
      more.push_back(results[k].integers.data());
    } else {
      results[k].values.assign(count, kNan);
      if (k > 0) more.push_back(results[k].values.data());
    }
  }
  std::vector<T> scratch(static_cast<std::size_t>(core::op_work(op, shapes).scratch / 4), kNan);
  runtime::run_op<T>(op, refs, results[0].values.data(), scratch.data(), more);
  return results;
}

/// Returns the values of the op's first output, computed in the type T.
template <class T>
std::vector<T> run(const Op& op, const std::vector<Tensor>& args) {
  return run_all<T>(op, args).front().values;
}

inline void check_close(const Values& actual, const Values& expected, double tolerance) {
  REQUIRE(actual.size() == expected.size());
  double worst = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double error = std::abs(actual[i] - expected[i]) / (1 + std::abs(expected[i]));
    if (!(error <= worst)) worst = error, at = i;
  }
  INFO("element " << at << ": " << (actual.empty() ? 0 : actual[at]) << " for "
                  << (expected.empty() ? 0 : expected[at]));
  CHECK(worst <= tolerance);
}

/// Checks that the op computes `expected`: in double almost exactly, and in float within its precision.
inline void check_op_equals(const Op& op, const std::vector<Tensor>& args, const Values& expected) {
  INFO("op " << core::to_string(op.kind));
  check_close(run<double>(op, args), expected, 1e-12);
  const std::vector<float> single = run<float>(op, args);
  check_close(Values(single.begin(), single.end()), expected, 2e-4);
}

using Function = std::function<Values(const Values&)>;

/// Returns the gradient of the sum of dy * f(x) with respect to x, computed by central differences.
inline Values numeric_gradient(const Function& f, Values x, const Values& dy, double step = 1e-5) {
  const auto dot = [&](const Values& y) {
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
    return sum;
  };
  Values gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + step;
    const double above = dot(f(x));
    x[i] = at - step;
    const double below = dot(f(x));
    x[i] = at;
    gradient[i] = (above - below) / (2 * step);
  }
  return gradient;
}

/// Returns the op as a function of the values of its argument number `which`. All other arguments are fixed.
inline Function as_function(const Op& op, std::vector<Tensor> args, std::size_t which) {
  return [op, args, which](const Values& x) mutable {
    args[which].values = x;
    return run<double>(op, args);
  };
}

inline void check_gradient(const Values& analytic, const Function& f, const Values& x, const Values& dy) {
  check_close(analytic, numeric_gradient(f, x, dy), 1e-6);
}
/// Checks that the op `gradient`, with the arguments `gradient_args`, computes a gradient: that of the sum of dy *
/// forward(args) with respect to argument number `which` of `forward`.
inline void check_gradient(const Op& gradient, const std::vector<Tensor>& gradient_args, const Op& forward,
                           const std::vector<Tensor>& args, std::size_t which, const Values& dy) {
  check_gradient(run<double>(gradient, gradient_args), as_function(forward, args, which), args[which].values, dy);
}

}  // namespace cairn::tests
