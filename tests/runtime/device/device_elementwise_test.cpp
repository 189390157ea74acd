// Tests the device kernels of elementwise ops and products, on a simulated device.

#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/device/device_op.h"

namespace cairn::tests::device_elementwise_test {
namespace {

// The numbers of elements are less than a pack (a 16-byte access), odd, a multiple of a pack, a multiple of what one
// team (a block of threads) computes, or enough for several teams, of which the last one has fewer elements.
const std::vector<std::int64_t> kCounts = {1, 3, 8, 37, 4096, 8192, 20011};

}  // namespace

TEST_CASE("device: elementwise ops agree with the host", "[device]") {
  std::mt19937 random(1);
  for (const std::int64_t count : kCounts) {
    const Tensor a = random_tensor({count}, random), b = random_tensor({count}, random);
    for (const OpKind kind : {OpKind::add, OpKind::relu_grad, OpKind::gelu_grad, OpKind::mse_grad}) {
      check_device_op(make_op(kind, {count}), {a, b});
    }
    for (const OpKind kind : {OpKind::relu, OpKind::gelu}) check_device_op(make_op(kind, {count}), {a});
    check_device_op(make_op(OpKind::scale, {count}, {.alpha = -2.5}), {a});
    check_device_op(make_op(OpKind::dropout, {count}, {.p = 0.3, .seed = 7, .stream = 5}), {a});
  }
}

TEST_CASE("device: an elementwise op may take the storage of its argument", "[device]") {
  std::mt19937 random(2);
  const std::int64_t count = 10001;
  const Tensor a = random_tensor({count}, random), b = random_tensor({count}, random);
  const Op op = make_op(OpKind::add, {count});
  check_in_place(op, {a, b}, 2);
  const std::vector<float> sum = run<float>(op, {a, b});
  CHECK(values_on_device(op, {a, b}) == Values(sum.begin(), sum.end()));
}

TEST_CASE("device: products agree with the host", "[device]") {
  std::mt19937 random(3);
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      for (const std::int64_t batch : {1, 3}) {
        const OpAttrs attrs{
            .batch = batch, .m = 5, .n = 9, .k = 7, .trans_a = trans_a, .trans_b = trans_b, .alpha = 0.5};
        const Tensor a = random_tensor({batch, 35}, random), b = random_tensor({batch, 63}, random);
        check_device_op(make_op(OpKind::matmul, {batch, 5, 9}, attrs), {a, b});
        check_device_op(make_op(OpKind::matmul, {batch, 5, 9}, attrs), {a, b, random_tensor({9}, random)});
      }
    }
  }
}

}  // namespace cairn::tests::device_elementwise_test
