// Tests the device kernels of batch norm and of sums over rows. They run on a simulated device.
#include <cmath>
#include <limits>

#include "cairn/runtime/device/reductions.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/device/device_op.h"

namespace cairn::tests::device_batchnorm_test {
namespace {

Tensor stats_of(const Tensor& x) {
  const Shape shape = {2, x.shape.back()};
  return {shape, run<double>(make_op(OpKind::batchnorm_stats, shape), {x}), {}};
}

// The shapes have one row, one column, fewer columns than a pack (a 16-byte access), an odd number of columns, several
// blocks of columns, or so many rows that these are divided into chunks, the last of which is shorter.
const std::vector<Shape> kShapes = {{1, 1},   {1, 3000}, {700, 1}, {3, 2, 4, 5},   {301, 3},  {97, 8},
                                    {90, 40}, {2, 1032}, {97, 75}, {2, 9, 5, 264}, {300, 64}, {1500, 16}};

}  // namespace

TEST_CASE("device: sums over rows agree with the host", "[device]") {
  std::mt19937 random(1);
  for (const Shape& shape : kShapes) {
    const Tensor x = random_tensor(shape, random);
    const std::int64_t cols = shape.back(), rows = core::element_count(shape) / cols;
    check_device_op(make_op(OpKind::reduce_rows, {cols}, {.rows = rows, .cols = cols}), {x});
  }
}

TEST_CASE("device: batch norm agrees with the host", "[device]") {
  std::mt19937 random(2);
  for (const Shape& shape : kShapes) {
    const std::int64_t cols = shape.back();
    const Shape of_columns = {2, cols};
    const Tensor x = random_tensor(shape, random), dy = random_tensor(shape, random);
    const Tensor params = random_tensor(of_columns, random), stats = stats_of(x);
    const Tensor dparams = random_tensor(of_columns, random);
    check_device_op(make_op(OpKind::batchnorm_stats, of_columns, {.eps = 1e-3}), {x});
    check_device_op(make_op(OpKind::batchnorm, shape), {x, stats, params});
    check_device_op(make_op(OpKind::batchnorm_grad_params, of_columns), {dy, x, stats});
    check_device_op(make_op(OpKind::batchnorm_grad_input, shape), {dy, x, stats, params, dparams});
  }
}

TEST_CASE("device: statistics of long columns far from zero", "[device]") {
  std::mt19937 random(3);
  for (const std::int64_t cols : {1, 8}) {
    constexpr std::int64_t kRows = 100001;
    Tensor x = random_tensor({kRows, cols}, random);
    for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] += i % 2 == 0 || cols == 1 ? 100 : -3000;
    x.values[0] = 1e4;  // an outlier in the first row, which must not cost precision
    check_device_op(make_op(OpKind::batchnorm_stats, {2, cols}), {x});
    Tensor dy = random_tensor({kRows, cols}, random);
    const Tensor stats = stats_of(x);
    // The sums have 100,001 terms of both signs. So their error is in proportion to the size of the terms, not of the
    // result. The terms are made small, so that the error stays within the tolerance.
    for (double& value : dy.values) value /= 300;
    check_device_op(make_op(OpKind::batchnorm_grad_params, {2, cols}), {dy, x, stats});
  }
}

TEST_CASE("device: equal rows have deviation 0", "[device]") {
  for (const std::int64_t cols : {3, 64}) {
    const Tensor x{{2000, cols}, Values(static_cast<std::size_t>(2000 * cols), 1234.5), {}};
    check_device_op(make_op(OpKind::batchnorm_stats, {2, cols}), {x}, 1e-6);
  }
}

TEST_CASE("device: NaN in a column reaches its statistics", "[device]") {
  for (const std::int64_t row : {0, 1, 777, 1999}) {
    Tensor x{{2000, 8}, Values(16000, 1.0), {}};
    x.values[static_cast<std::size_t>(row * 8 + 5)] = std::numeric_limits<double>::quiet_NaN();
    const Values stats = values_on_device(make_op(OpKind::batchnorm_stats, {2, 8}), {x});
    for (std::size_t c = 0; c < 8; ++c) {
      CHECK(std::isnan(stats[c]) == (c == 5));
      CHECK(std::isnan(stats[8 + c]) == (c == 5));
    }
  }
}

TEST_CASE("device: batch norm may take the storage of x or dy", "[device]") {
  std::mt19937 random(4);
  for (const std::int64_t cols : {6, 64}) {
    const Shape shape = {701, cols};
    const Tensor x = random_tensor(shape, random), dy = random_tensor(shape, random);
    const Tensor params = random_tensor({2, cols}, random), stats = stats_of(x);
    check_in_place(make_op(OpKind::batchnorm, shape), {x, stats, params}, 1);
    check_in_place(make_op(OpKind::batchnorm_grad_input, shape), {dy, x, stats, params, params}, 2);
  }
}

TEST_CASE("device: sums over rows are cut for a device of many teams", "[device]") {
  using runtime::device::column_tiles;
  struct Case {
    std::int64_t rows, pieces;
  };
  for (const Case& c : {Case{1 << 21, 16}, Case{64, 1 << 18}, Case{1, 1}, Case{1, 1 << 20}, Case{1 << 30, 1},
                        Case{8192, 192}, Case{100, 33}, Case{std::int64_t{1} << 33, 3}}) {
    INFO(c.rows << " rows of " << c.pieces);
    const auto tiles = column_tiles(c.rows, c.pieces, runtime::device::kPiecesAcross, 2048, runtime::device::kAnyRows);
    CHECK(tiles.across >= 1);
    CHECK(tiles.across <= tiles.kThreads);
    CHECK((tiles.blocks - 1) * tiles.across < c.pieces);
    CHECK(tiles.blocks * tiles.across >= c.pieces);
    CHECK((tiles.chunks - 1) * tiles.chunk_rows < c.rows);
    CHECK(tiles.chunks * tiles.chunk_rows >= c.rows);
    // There must be at least 1000 teams (groups of threads, one for each tile), unless each thread already has at most
    // 4 rows. There may be at most 2048 chunks of rows, because a second launch adds up the results of all chunks.
    const std::int64_t down = tiles.kThreads / tiles.across;
    CHECK((tiles.teams() >= 1000 || tiles.chunk_rows <= 4 * down));
    CHECK(tiles.chunks <= 2048);
  }
}

}  // namespace cairn::tests::device_batchnorm_test
