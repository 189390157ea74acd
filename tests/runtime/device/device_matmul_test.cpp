// Tests the matrix products of a simulated device. One call of a library computes a product. If rows do not begin at
// multiples of 16 bytes, the product is computed in tiles instead.
#include "cairn/runtime/device/kernels/matmul.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/device/device_op.h"

namespace cairn::tests::device_matmul_test {
namespace {

using runtime::device::gemm_tiles;
using runtime::device::GemmShape;

/// Computes a product in tiles that have as few rows as possible, provided that it can be computed in tiles at all.
struct InTiles {
  void operator()(FiberMachine& machine, runtime::device::Call& call) const {
    runtime::device::Launcher<FiberMachine> launcher(machine, call);
    const GemmShape shape = runtime::device::gemm_shape(call);
    const auto tiles = gemm_tiles(shape, 1);
    runtime::device::matmul_in_tiles(launcher, call, shape, tiles);
  }
};

struct Extents {
  std::int64_t m, n, k;
};
constexpr Extents kExtents[] = {{1, 1, 1},   {3, 8, 5},    {8, 3, 8},     {130, 7, 8},  {257, 9, 24},
                                {300, 8, 3}, {129, 16, 7}, {128, 24, 16}, {131, 5, 11}, {260, 40, 13}};

template <class Check>
void for_products(const Check& check) {
  std::mt19937 random(1);
  for (const Extents& e : kExtents) {
    for (const bool trans_a : {false, true}) {
      for (const bool trans_b : {false, true}) {
        const Tensor a = random_tensor(trans_a ? Shape{e.k, e.m} : Shape{e.m, e.k}, random);
        const Tensor b = random_tensor(trans_b ? Shape{e.n, e.k} : Shape{e.k, e.n}, random);
        const Op op = make_op(OpKind::matmul, {e.m, e.n},
                              {.m = e.m, .n = e.n, .k = e.k, .trans_a = trans_a, .trans_b = trans_b, .alpha = 0.25});
        INFO("m " << e.m << ", n " << e.n << ", k " << e.k << (trans_a ? ", A transposed" : "")
                  << (trans_b ? ", B transposed" : ""));
        check(op, {a, b});
        check(op, {a, b, random_tensor({e.n}, random)});
      }
    }
  }
}

}  // namespace

TEST_CASE("device: products by a library agree with the host", "[device]") {
  for_products([](const Op& op, const std::vector<Tensor>& args) { check_device_op(op, args); });
}

TEST_CASE("device: products in tiles agree with the host", "[device]") {
  for_products(
      [](const Op& op, const std::vector<Tensor>& args) { check_device_op(op, args, 2e-5, false, InTiles()); });
}

TEST_CASE("device: products are cut where rows of A or C do not begin at 16 bytes, and those of B do", "[device]") {
  GemmShape shape{.trans_b = true, .type = ElementType::bf16, .m = 16384, .n = 50257, .k = 768};
  constexpr std::int64_t kLimit = std::int64_t{32} << 20;
  const auto logits = gemm_tiles(shape, kLimit);
  REQUIRE(logits);
  CHECK((!logits->a && logits->c));
  CHECK(logits->rows == 256);  // rows of a tile; each is padded from 50,257 to 50,264 elements
  shape.trans_b = false;       // now rows of B have 50,257 elements, too, so tiles cannot be used
  CHECK_FALSE(gemm_tiles(shape, kLimit));
  shape = {.trans_a = true, .type = ElementType::bf16, .m = 50257, .n = 768, .k = 16384};
  const auto weights = gemm_tiles(shape, kLimit);
  REQUIRE(weights);
  CHECK((weights->a && !weights->c));
  CHECK(weights->rows == 1024);
  shape.accumulate = true;
  CHECK_FALSE(gemm_tiles(shape, kLimit));
  CHECK_FALSE(gemm_tiles({.trans_b = true, .type = ElementType::f32, .batch = 2, .m = 3, .n = 3, .k = 4}, kLimit));
  CHECK_FALSE(gemm_tiles({.type = ElementType::f32, .m = 3, .n = 8, .k = 4}, kLimit));
  CHECK(gemm_tiles({.type = ElementType::f32, .m = 3, .n = 8, .k = 5}, kLimit)->rows == 3);
}

}  // namespace cairn::tests::device_matmul_test
