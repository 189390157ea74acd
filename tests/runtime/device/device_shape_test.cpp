// Tests the device kernels of ops that move elements without computing anything, on a simulated device.
#include <algorithm>

#include "cairn/runtime/device/kernels/shape.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/device/device_op.h"

namespace cairn::tests::device_shape_test {
namespace {

void check_permute(const Shape& in, const std::vector<std::int64_t>& perm, std::mt19937& random) {
  Shape out;
  std::string text;
  for (const std::int64_t axis : perm) {
    out.push_back(in[static_cast<std::size_t>(axis)]);
    text += std::to_string(axis) + ":" + std::to_string(out.back()) + " ";
  }
  INFO("permute to " << text);
  check_device_op(make_op(OpKind::permute, out, {.perm = perm}), {random_tensor(in, random)});
}

}  // namespace

TEST_CASE("device: concat and slice agree with the host", "[device]") {
  std::mt19937 random(1);
  for (const std::int64_t rows : {1, 3, 1000}) {
    for (const auto& [a, b] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{4, 5}, {8, 16}, {1, 1}, {64, 8}, {4, 4}}) {
      INFO(rows << " rows of " << a << " and " << b);
      const Shape in_a{rows, a}, in_b{rows, b}, both{rows, a + b};
      check_device_op(make_op(OpKind::concat, both), {random_tensor(in_a, random), random_tensor(in_b, random)});
      const Tensor x = random_tensor(both, random);
      check_device_op(make_op(OpKind::slice, in_a, {.offset = 0}), {x});
      check_device_op(make_op(OpKind::slice, in_b, {.offset = a}), {x});
      if (b > 1) check_device_op(make_op(OpKind::slice, {rows, b - 1}, {.offset = a + 1}), {x});
    }
  }
}

TEST_CASE("device: permute in every order of four axes", "[device]") {
  std::mt19937 random(2);
  std::vector<std::int64_t> perm = {0, 1, 2, 3};
  do {
    check_permute({2, 3, 4, 5}, perm, random);
    check_permute({3, 2, 1, 8}, perm, random);
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST_CASE("device: permute copies runs where the last axis stays", "[device]") {
  std::mt19937 random(3);
  check_permute({2, 33, 4, 8}, {0, 2, 1, 3}, random);
  check_permute({2, 33, 4, 16}, {0, 2, 1, 3}, random);
  check_permute({3, 5, 7}, {1, 0, 2}, random);
  check_permute({6, 50}, {0, 1}, random);
  check_permute({300}, {0}, random);
  check_permute({2, 3, 2, 3, 2, 3, 2, 8}, {6, 5, 4, 3, 2, 1, 0, 7}, random);
  check_permute({2, 3, 2, 3, 2, 3, 2, 3}, {6, 5, 4, 3, 2, 1, 0, 7}, random);
  check_permute({}, {}, random);
  check_permute({1, 1, 1}, {2, 0, 1}, random);
}

TEST_CASE("device: permute turns tiles where the last axis moves", "[device]") {
  std::mt19937 random(4);
  // For each of the shapes that tiles can have, some of these extents are close to the extents of the tiles. Some are
  // even and some odd, because the kernel moves pairs of bf16 elements together where it can.
  const std::vector<std::pair<std::int64_t, std::int64_t>> extents = {
      {64, 64},  {65, 63},  {130, 66}, {3, 500}, {500, 3}, {4, 1024}, {1030, 2}, {16, 256},
      {250, 15}, {32, 128}, {127, 31}, {1, 77},  {77, 1},  {20, 20},  {200, 200}};
  for (const auto& [rows, cols] : extents) {
    check_permute({rows, cols}, {1, 0}, random);
    check_permute({2, rows, cols}, {0, 2, 1}, random);
    check_permute({rows, 2, cols}, {2, 1, 0}, random);
    check_permute({rows, 3, cols}, {2, 0, 1}, random);
  }
  check_permute({2, 3, 40, 2, 36}, {4, 1, 3, 0, 2}, random);
  check_permute({2, 2, 3, 2, 2, 30, 3, 20}, {1, 7, 3, 0, 6, 2, 5, 4}, random);
  check_permute({2, 3, 2, 3, 2, 3, 2, 5}, {7, 6, 5, 4, 3, 2, 1, 0}, random);
}

TEST_CASE("device: every tile of permute is of the shape that wastes least", "[device]") {
  using runtime::device::best_tiles;
  const auto shape = [](std::int64_t wide, std::int64_t high) {
    const auto fit = best_tiles(wide, high);
    return std::pair(fit.log_wide, fit.log_high);
  };
  CHECK(shape(64, 64) == std::pair(6, 6));
  CHECK(shape(4096, 4096) == std::pair(6, 6));
  CHECK(shape(50176, 3) == std::pair(10, 2));
  CHECK(shape(3, 50176) == std::pair(2, 10));
  CHECK(shape(16, 4096) == std::pair(4, 8));
  CHECK(best_tiles(4, 4).used < 0.125);
  for (std::int64_t wide = 1; wide < 300; wide += 7) {
    for (std::int64_t high = 1; high < 300; high += 5) {
      const auto fit = best_tiles(wide, high);
      REQUIRE(fit.log_wide + fit.log_high == 12);
      REQUIRE(fit.used > 0);
      REQUIRE(fit.used <= 1);
    }
  }
}

}  // namespace cairn::tests::device_shape_test
