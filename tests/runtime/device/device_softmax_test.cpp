// Tests the device kernels of softmax and of its gradient, and the loops over rows that these kernels use, on a
// simulated device.
#include <cmath>
#include <limits>

#include "cairn/runtime/device/kernels/softmax.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/device/device_op.h"

namespace cairn::tests::device_softmax_test {
namespace {

/// A machine that runs only some teams (groups of threads) of a launch: those whose indices are in `indices`.
struct SomeTeams {
  std::vector<std::int64_t> indices;

  template <class F>
  void launch(const F& functor, std::int64_t, std::int64_t shared_bytes) {
    std::vector<std::max_align_t> shared(static_cast<std::size_t>(shared_bytes) / sizeof(std::max_align_t) + 1);
    FiberTeams fibers;
    for (const std::int64_t index : indices) {
      fibers.run(F::kThreads, reinterpret_cast<std::byte*>(shared.data()), false,
                 [&](const FiberTeams::Team& team) { functor(team, index); });
    }
  }
  std::int64_t shared_limit() const { return 96 * 1024; }
};

void check_softmax(const Shape& shape, bool causal, std::mt19937& random) {
  INFO("rows of " << shape.back() << (causal ? ", causal" : ""));
  Tensor x = random_tensor(shape, random);
  for (double& value : x.values) value *= 5;
  check_device_op(make_op(OpKind::softmax, shape, {.causal = causal}), {x}, 1e-5);
}

void check_softmax_grad(const Shape& shape, std::mt19937& random) {
  INFO("rows of " << shape.back());
  const Tensor dy = random_tensor(shape, random);
  const Tensor y{shape, run<double>(make_op(OpKind::softmax, shape), {random_tensor(shape, random)}), {}};
  check_device_op(make_op(OpKind::softmax_grad, shape), {dy, y}, 1e-5);
}

// A row of these shapes takes one thread, a few threads, a warp, or a block of one of two sizes. Some rows that take a
// warp do not begin at multiples of 16 bytes.
const std::vector<Shape> kShapes = {{1, 1},    {70, 1},   {40, 3},   {33, 8},    {5, 7, 16}, {37, 21},   {20, 40},
                                    {9, 64},   {19, 100}, {3, 197},  {2, 512},   {2, 1000},  {3, 999},   {2, 2048},
                                    {2, 2055}, {1, 4100}, {2, 8191}, {1, 16384}, {2, 50},    {1, 24000}, {2, 24571}};

}  // namespace

TEST_CASE("device: softmax agrees with the host", "[device]") {
  std::mt19937 random(1);
  for (const Shape& shape : kShapes) check_softmax(shape, false, random);
}

TEST_CASE("device: softmax of rows too long for shared memory", "[device]") {
  std::mt19937 random(2);
  check_softmax({2, 50257}, false, random);
  check_softmax_grad({2, 25000}, random);
}

TEST_CASE("device: causal softmax agrees with the host", "[device]") {
  std::mt19937 random(3);
  for (const std::int64_t size : {1, 2, 5, 8, 31, 64, 67, 128, 200}) check_softmax({2, size, size}, true, random);
}

TEST_CASE("device: causal softmax of long rows", "[device]") {
  std::mt19937 random(7);
  for (const std::int64_t size : {2052, 2503}) {
    const Tensor x = random_tensor({size, size}, random);
    const std::vector<float> in(x.values.begin(), x.values.end());
    std::vector<float> out(in.size(), -1);
    SomeTeams machine{{0, 1, 700, 2040, size - 1}};
    const Op op = make_op(OpKind::softmax, {size, size}, {.causal = true});
    HostLibrary library;
    const runtime::device::Call call{op, {}, out.data(), library, false, {nullptr, 0}};
    runtime::device::Launcher<SomeTeams> launcher(machine, call);
    runtime::device::launch_rows(launcher, runtime::device::SoftmaxRow<float>{true}, {in.data()}, out.data(), size,
                                 size);
    const Values expected = run<double>(op, {x});
    for (const std::int64_t row : machine.indices) {
      const auto at = row * size;
      check_close(Values(out.begin() + at, out.begin() + at + size),
                  Values(expected.begin() + at, expected.begin() + at + size), 1e-5);
    }
  }
}

TEST_CASE("device: causal softmax looks at no masked element", "[device]") {
  std::mt19937 random(4);
  for (const std::int64_t size : {7, 40, 136}) {
    Tensor x = random_tensor({size, size}, random);
    const Op op = make_op(OpKind::softmax, {size, size}, {.causal = true});
    const Values expected = run<double>(op, stored(op, {x}, ElementType::f32));
    for (std::int64_t i = 0; i < size * size; ++i) {
      if (i % size > i / size) x.values[static_cast<std::size_t>(i)] = std::numeric_limits<double>::quiet_NaN();
    }
    for (const Threads threads : {Threads::one, Threads::forward})
      check_close(values_on_device(op, {x}, threads), expected, 1e-6);
  }
}

TEST_CASE("device: gradient of softmax agrees with the host", "[device]") {
  std::mt19937 random(5);
  for (const Shape& shape : kShapes) check_softmax_grad(shape, random);
}

TEST_CASE("device: softmax of large, infinite and undefined numbers", "[device]") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const std::int64_t cols : {5, 64, 300, 9000}) {
    INFO("rows of " << cols);
    const auto at = [&](std::int64_t row, std::int64_t column) {
      return static_cast<std::size_t>(row * cols + column);
    };
    Tensor x{{5, cols}, Values(static_cast<std::size_t>(5 * cols), 0.0), {}};
    for (std::int64_t c = 0; c < cols; ++c) {
      x.values[at(0, c)] = -kInfinity;  // except for one element, which is set below
      x.values[at(1, c)] = 3e38;
      x.values[at(2, c)] = c < cols / 2 ? -3e38 : 3e38;
    }
    x.values[at(0, cols - 2)] = -7;
    x.values[at(3, cols / 2)] = kNan;
    x.values[at(4, 0)] = kNan;
    for (const Threads threads : {Threads::one, Threads::forward}) {
      const Values y = values_on_device(make_op(OpKind::softmax, {5, cols}), {x}, threads);
      const auto n = static_cast<double>(cols), upper = static_cast<double>(cols - cols / 2);
      bool right = true;
      for (std::int64_t c = 0; c < cols; ++c) {
        right = right && y[at(0, c)] == (c == cols - 2 ? 1 : 0);
        right = right && std::abs(y[at(1, c)] - 1 / n) < 1e-6;
        right = right && std::abs(y[at(2, c)] - (c < cols / 2 ? 0 : 1 / upper)) < 1e-6;
        right = right && std::isnan(y[at(3, c)]) && std::isnan(y[at(4, c)]);
      }
      CHECK(right);
    }
  }
}

TEST_CASE("device: softmax and its gradient may take the storage of an argument", "[device]") {
  std::mt19937 random(6);
  for (const std::int64_t cols : {6, 64, 300, 3001, 30000}) {
    for (const bool gradient : {false, true}) {
      const Shape shape = {7, cols};
      const Op op = make_op(gradient ? OpKind::softmax_grad : OpKind::softmax, shape);
      const std::vector<Tensor> args(gradient ? 2 : 1, random_tensor(shape, random));
      check_in_place(op, args, args.size());
    }
  }
}

}  // namespace cairn::tests::device_softmax_test
