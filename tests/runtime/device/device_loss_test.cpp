// Tests the device kernels of losses, on a simulated device.
#include <cmath>
#include <limits>

#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/device/device_op.h"

namespace cairn::tests::device_loss_test {
namespace {

void check_cross_entropy(const Shape& shape, double scale, std::mt19937& random) {
  Tensor logits = random_tensor(shape, random);
  for (double& value : logits.values) value *= scale;
  const std::int64_t cols = shape.back(), rows = core::element_count(shape) / cols;
  const Tensor labels = random_integers({rows}, static_cast<std::int32_t>(cols), random);
  check_device_op(make_op(OpKind::cross_entropy, {1}), {logits, labels}, 2e-6);
  check_device_op(make_op(OpKind::cross_entropy_grad, shape), {logits, labels}, 2e-6);
}

}  // namespace

TEST_CASE("device: cross entropy agrees with the host", "[device]") {
  std::mt19937 random(1);
  const std::vector<Shape> shapes = {{1, 1},   {70, 1},   {4, 9, 9, 2}, {130, 9},   {33, 8},
                                     {37, 21}, {20, 40},  {9, 64},      {19, 100},  {2, 1000},
                                     {3, 999}, {2, 2055}, {1, 4100},    {2, 16385}, {5000, 3}};
  for (const Shape& shape : shapes) check_cross_entropy(shape, 3, random);
}

TEST_CASE("device: cross entropy over a large odd vocabulary", "[device]") {
  std::mt19937 random(2);
  check_cross_entropy({3, 50257}, 1, random);
  check_cross_entropy({2, 12345}, 100, random);
}

TEST_CASE("device: gradient of cross entropy may take the storage of the logits", "[device]") {
  std::mt19937 random(3);
  for (const std::int64_t cols : {6, 64, 300, 3001, 30000}) {
    const Shape shape = {7, cols};
    const Op op = make_op(OpKind::cross_entropy_grad, shape);
    const Tensor logits = random_tensor(shape, random);
    check_in_place(op, {logits, random_integers({7}, static_cast<std::int32_t>(cols), random)}, 1);
  }
}

TEST_CASE("device: NaN among the logits reaches the loss and its row's gradient", "[device]") {
  for (const std::int64_t cols : {5, 64, 300, 9000}) {
    for (const std::int64_t column : {std::int64_t{0}, cols / 2, cols - 1}) {
      Tensor logits{{3, cols}, Values(static_cast<std::size_t>(3 * cols), 1.0), {}};
      logits.values[static_cast<std::size_t>(cols + column)] = std::numeric_limits<double>::quiet_NaN();
      const Tensor labels{{3}, {}, {0, 1, 2}};
      CHECK(std::isnan(values_on_device(make_op(OpKind::cross_entropy, {1}), {logits, labels})[0]));
      const Values gradient = values_on_device(make_op(OpKind::cross_entropy_grad, {3, cols}), {logits, labels});
      bool right = true;
      for (std::int64_t i = 0; i < 3 * cols; ++i) {
        right = right && std::isnan(gradient[static_cast<std::size_t>(i)]) == (i / cols == 1);
      }
      CHECK(right);
    }
  }
}

TEST_CASE("device: mean squared error agrees with the host", "[device]") {
  std::mt19937 random(4);
  for (const std::int64_t count : {1, 3, 8, 37, 1024, 4099, 30001, 100003}) {
    Tensor y = random_tensor({count}, random), target = random_tensor({count}, random);
    for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] += 100, target.values[i] += 99;
    check_device_op(make_op(OpKind::mse, {1}), {y, target}, 1e-5);
    y.values.back() = std::numeric_limits<double>::quiet_NaN();
    CHECK(std::isnan(values_on_device(make_op(OpKind::mse, {1}), {y, target})[0]));
  }
}

}  // namespace cairn::tests::device_loss_test
