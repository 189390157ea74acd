// Tests the device kernels of layer norm, on a simulated device.
#include <cmath>
#include <limits>

#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/device/device_op.h"

namespace cairn::tests::device_layernorm_test {
namespace {

Tensor stats_of(const Tensor& x) {
  Shape shape = x.shape;
  shape.back() = 2;
  return {shape, run<double>(make_op(OpKind::layernorm_stats, shape), {x}), {}};
}

// The shapes have one row, one column, fewer columns than a pack (a 16-byte access), or an odd number of columns.
// Others need several rows per warp, several blocks of columns, or several chunks of rows.
const std::vector<Shape> kShapes = {{1, 1},   {70, 1},   {40, 3},  {33, 8},   {5, 7, 16}, {37, 21},
                                    {90, 40}, {150, 64}, {3, 197}, {2, 1000}, {3, 999}};
// In these shapes, each row takes a whole warp or block. Some of the rows fit into shared memory, and some do not.
const std::vector<Shape> kLongRows = {{2, 2048}, {2, 2055}, {1, 4100}, {2, 8191}, {1, 16384}, {2, 24571}, {2, 33000}};

}  // namespace

TEST_CASE("device: layer norm agrees with the host", "[device]") {
  std::mt19937 random(1);
  for (const Shape& shape : kShapes) {
    const Tensor x = random_tensor(shape, random), dy = random_tensor(shape, random);
    const Tensor params = random_tensor({2, shape.back()}, random), stats = stats_of(x);
    check_device_op(make_op(OpKind::layernorm_stats, stats.shape, {.eps = 1e-3}), {x});
    check_device_op(make_op(OpKind::layernorm, shape), {x, stats, params});
    check_device_op(make_op(OpKind::layernorm_grad_params, {2, shape.back()}), {dy, x, stats});
    check_device_op(make_op(OpKind::layernorm_grad_input, shape), {dy, x, stats, params});
  }
}

TEST_CASE("device: a norm that returns its statistics has the bits of the two ops that make it", "[device]") {
  std::mt19937 random(5);
  std::vector<Shape> shapes = kShapes;
  shapes.insert(shapes.end(), kLongRows.begin(), kLongRows.end());
  for (const Shape& shape : shapes) {
    const std::int64_t cols = shape.back();
    const Tensor x = random_tensor(shape, random), params = random_tensor({2, cols}, random);
    const OpAttrs attrs{.eps = 1e-3};
    const auto check = [&](OpKind both, OpKind stats_kind, OpKind norm_kind, const Shape& stats_shape) {
      for (const ElementType storage : {ElementType::f32, ElementType::bf16}) {
        for (const Threads threads : {Threads::one, Threads::forward, Threads::reverse}) {
          FiberMachine machine(threads);
          const auto outputs = run_all_on(machine, make_op(both, shape, attrs), {x, params}, storage);
          CHECK(outputs[1] == run_on(machine, make_op(stats_kind, stats_shape, attrs), {x}, storage));
          const Tensor stats{stats_shape, stored_values(outputs[1], ElementType::f32), {}};
          CHECK(outputs[0] == run_on(machine, make_op(norm_kind, shape, attrs), {x, stats, params}, storage));
        }
      }
    };
    check(OpKind::layernorm_with_stats, OpKind::layernorm_stats, OpKind::layernorm, stats_of(x).shape);
    check(OpKind::batchnorm_with_stats, OpKind::batchnorm_stats, OpKind::batchnorm, {2, cols});
  }
}

TEST_CASE("device: layer norm of long rows agrees with the host", "[device]") {
  std::mt19937 random(4);
  for (const Shape& shape : kLongRows) {
    const Tensor x = random_tensor(shape, random), dy = random_tensor(shape, random);
    const Tensor params = random_tensor({2, shape.back()}, random), stats = stats_of(x);
    check_device_op(make_op(OpKind::layernorm_stats, stats.shape, {.eps = 1e-3}), {x});
    check_device_op(make_op(OpKind::layernorm_grad_input, shape), {dy, x, stats, params});
  }
}

TEST_CASE("device: statistics of long rows far from zero", "[device]") {
  std::mt19937 random(2);
  const Shape shape = {2, 100001};
  Tensor x = random_tensor(shape, random);
  for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] += i < 100001 ? 100 : -3000;
  x.values[0] = 1e4;  // an outlier in the first column, which must not cost precision
  check_device_op(make_op(OpKind::layernorm_stats, {2, 2}), {x});
}

TEST_CASE("device: equal elements have deviation 0", "[device]") {
  for (const std::int64_t cols : {1, 7, 64, 1000, 5000}) {
    const Tensor x{{3, cols}, Values(static_cast<std::size_t>(3 * cols), 1234.5), {}};
    check_device_op(make_op(OpKind::layernorm_stats, {3, 2}), {x}, 1e-6);
  }
}

TEST_CASE("device: NaN in a row reaches its statistics", "[device]") {
  for (const std::int64_t cols : {5, 64, 300, 9000}) {
    Tensor x{{3, cols}, Values(static_cast<std::size_t>(3 * cols), 1.0), {}};
    x.values[static_cast<std::size_t>(cols + cols / 2)] = std::numeric_limits<double>::quiet_NaN();
    const Values stats = values_on_device(make_op(OpKind::layernorm_stats, {3, 2}), {x});
    CHECK((std::isnan(stats[2]) && std::isnan(stats[3])));
    CHECK((stats[0] == 1 && stats[4] == 1));
  }
}

TEST_CASE("device: layer norm may take the storage of x or dy", "[device]") {
  std::mt19937 random(3);
  for (const std::int64_t cols : {6, 64, 300, 3001, 30000}) {
    const Shape shape = {7, cols};
    const Tensor x = random_tensor(shape, random), dy = random_tensor(shape, random);
    const Tensor params = random_tensor({2, cols}, random), stats = stats_of(x);
    check_in_place(make_op(OpKind::layernorm, shape), {x, stats, params}, 1);
    check_in_place(make_op(OpKind::layernorm_with_stats, shape), {x, params}, 1);
    check_in_place(make_op(OpKind::layernorm_grad_input, shape), {dy, x, stats, params}, 2);
  }
}

}  // namespace cairn::tests::device_layernorm_test
