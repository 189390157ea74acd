// Tests the device kernels of pooling and resizing, on a simulated device.
#include <cmath>
#include <cstring>
#include <limits>

#include "cairn/runtime/device/kernels/pool.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/device/device_op.h"
#include "cairn/tests/runtime/window_cases.h"

namespace cairn::tests::device_pool_test {
namespace {

// The cases have an odd number of channels, whole chunks of channels (a chunk is what a thread loads at once), or work
// for several teams (blocks of threads). The windows overlap, touch, leave gaps, or end in the padding.
const std::vector<PoolCase> kPoolCases = {
    {2, 7, 6, 3, 3, 2, 1},  {1, 4, 4, 40, 2, 2, 0}, {1, 5, 5, 2, 3, 1, 2}, {2, 9, 8, 8, 3, 2, 1},
    {3, 9, 7, 16, 2, 3, 0}, {1, 1, 1, 8, 1, 1, 0},  {1, 1, 9, 1, 1, 2, 0}, {2, 12, 11, 24, 5, 1, 2},
    {2, 6, 6, 8, 6, 6, 0},  {1, 8, 8, 72, 3, 2, 1},
};

/// Returns a random tensor of whole numbers, in which windows often have several equal maxima.
Tensor rounded(const Shape& shape, std::mt19937& random) {
  Tensor tensor = random_tensor(shape, random);
  for (double& value : tensor.values) value = std::round(value);
  return tensor;
}

}  // namespace

TEST_CASE("device: maxpool and its gradient agree with the host", "[device]") {
  std::mt19937 random(1);
  for (const PoolCase& w : kPoolCases) {
    INFO("kernel " << w.kernel << " stride " << w.stride << " pad " << w.pad << " channels " << w.c);
    const Tensor x = rounded(w.x(), random), dy = random_tensor(w.y(), random);
    check_device_op(make_op(OpKind::maxpool, w.y(), w.attrs()), {x});
    check_device_op(make_op(OpKind::maxpool_grad, w.x(), w.attrs()), {dy, x});
  }
}

TEST_CASE("device: maxpool with indices has the bits of maxpool, its gradient those of maxpool_grad", "[device]") {
  std::mt19937 random(5);
  std::vector<PoolCase> cases = kPoolCases;
  cases.push_back({1, 30, 30, 8, 300, 9, 150});
  for (const PoolCase& w : cases) {
    INFO("kernel " << w.kernel << " stride " << w.stride << " pad " << w.pad << " channels " << w.c);
    const Tensor x = rounded(w.x(), random), dy = random_tensor(w.y(), random);
    const Op pool = make_op(OpKind::maxpool_with_indices, w.y(), w.attrs());
    const Op grad = make_op(OpKind::maxpool_with_indices_grad, w.x(), w.attrs());
    const Tensor indices{w.y(), {}, run_all<float>(pool, {x})[1].integers};
    check_device_op(grad, {dy, indices});
    for (const ElementType storage : {ElementType::f32, ElementType::bf16}) {
      for (const Threads threads : {Threads::one, Threads::forward, Threads::reverse}) {
        FiberMachine machine(threads);
        const auto outputs = run_all_on(machine, pool, {x}, storage);
        CHECK(outputs[0] == run_on(machine, make_op(OpKind::maxpool, w.y(), w.attrs()), {x}, storage));
        CHECK(std::memcmp(outputs[1].data(), indices.integers.data(), outputs[1].size()) == 0);
        CHECK(run_on(machine, grad, {dy, indices}, storage) ==
              run_on(machine, make_op(OpKind::maxpool_grad, w.x(), w.attrs()), {dy, x}, storage));
      }
    }
  }
}

TEST_CASE("device: the places in a window may need two bytes, or more", "[device]") {
  std::mt19937 random(2);
  for (const PoolCase& w : {PoolCase{1, 20, 21, 8, 16, 1, 3}, PoolCase{1, 20, 21, 8, 17, 1, 3},
                            PoolCase{1, 20, 21, 3, 20, 3, 10}, PoolCase{1, 30, 30, 3, 256, 9, 130},
                            PoolCase{1, 30, 30, 8, 300, 9, 150}, PoolCase{1, 30, 30, 1, 300, 9, 150}}) {
    INFO("kernel " << w.kernel);
    const Tensor x = rounded(w.x(), random), dy = random_tensor(w.y(), random);
    check_device_op(make_op(OpKind::maxpool, w.y(), w.attrs()), {x});
    check_device_op(make_op(OpKind::maxpool_grad, w.x(), w.attrs()), {dy, x});
  }
}

TEST_CASE("device: maxpool treats NaN as the host does", "[device]") {
  std::mt19937 random(3);
  const PoolCase w{2, 9, 8, 12, 3, 2, 1};
  Tensor x = rounded(w.x(), random);
  for (double& value : x.values) {
    if (random() % 4 == 0) value = std::numeric_limits<double>::quiet_NaN();
  }
  const Tensor dy = random_tensor(w.y(), random);
  const auto check_bits = [&](const Op& op, const std::vector<Tensor>& args) {
    const std::vector<float> expected = run<float>(op, args);
    for (const Threads threads : {Threads::one, Threads::forward, Threads::reverse}) {
      const Values values = values_on_device(op, args, threads);
      REQUIRE(values.size() == expected.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        REQUIRE(std::isnan(values[i]) == std::isnan(expected[i]));
        if (!std::isnan(values[i])) REQUIRE(values[i] == static_cast<double>(expected[i]));
      }
    }
  };
  check_bits(make_op(OpKind::maxpool, w.y(), w.attrs()), {x});
  check_bits(make_op(OpKind::maxpool_grad, w.x(), w.attrs()), {dy, x});
}

TEST_CASE("device: mean_pool and its gradient agree with the host", "[device]") {
  std::mt19937 random(4);
  // The shapes have one row, one column, fewer or more channels than a block, or so many elements per channel that
  // their mean is computed in parts.
  for (const Shape& shape : {Shape{2, 3, 5, 34}, Shape{3, 4, 2}, Shape{2, 3}, Shape{1, 1}, Shape{1, 7, 1},
                             Shape{2, 8, 8, 8}, Shape{1, 600, 8}, Shape{2, 1031, 3}, Shape{1, 49, 520},
                             Shape{3, 20, 33}, Shape{1, 3000, 1}, Shape{2, 2, 3, 4, 5, 16}}) {
    INFO("channels " << shape.back());
    const Shape pooled{shape.front(), shape.back()};
    check_device_op(make_op(OpKind::mean_pool, pooled), {random_tensor(shape, random)});
    check_device_op(make_op(OpKind::mean_pool_grad, shape), {random_tensor(pooled, random)});
  }
}

TEST_CASE("device: the parts of a mean do not lose precision", "[device]") {
  std::mt19937 random(5);
  Tensor x = random_tensor({1, 40000, 4}, random);
  for (double& value : x.values) value += 100;
  check_device_op(make_op(OpKind::mean_pool, {1, 4}), {x}, 2e-6);
}

TEST_CASE("device: upsample and its gradient agree with the host", "[device]") {
  std::mt19937 random(6);
  for (const Shape& small : {Shape{2, 3, 5, 4}, Shape{1, 1, 1, 1}, Shape{2, 4, 3, 8}, Shape{3, 7, 1, 5},
                             Shape{1, 9, 8, 64}, Shape{2, 16, 17, 3}}) {
    const Shape large{small[0], 2 * small[1], 2 * small[2], small[3]};
    check_device_op(make_op(OpKind::upsample, large), {random_tensor(small, random)});
    check_device_op(make_op(OpKind::upsample_grad, small), {random_tensor(large, random)});
  }
}

}  // namespace cairn::tests::device_pool_test
