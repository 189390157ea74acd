// Tests the convolutions of a simulated device. A library computes them, or they become matrix products in tiles of
// several sizes.
#include "cairn/runtime/device/kernels/conv.h"
#include "cairn/runtime/device/kernels/matmul.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/device/device_op.h"
#include "cairn/tests/runtime/window_cases.h"

namespace cairn::tests::device_conv_test {
namespace {

const std::vector<ConvCase> kConvCases = {
    {2, 5, 4, 3, 4, 3, 3, 1, 1},  {1, 7, 8, 2, 3, 3, 3, 2, 1},  {2, 6, 6, 5, 4, 1, 1, 1, 0},
    {2, 7, 5, 3, 2, 1, 1, 2, 0},  {1, 9, 9, 3, 4, 7, 7, 2, 3},  {1, 4, 4, 2, 2, 2, 2, 2, 0},
    {3, 5, 6, 2, 3, 3, 2, 1, 0},  {1, 3, 3, 2, 2, 2, 2, 1, 3},  {1, 8, 8, 1, 1, 2, 2, 3, 1},
    {5, 6, 5, 8, 16, 3, 3, 1, 1}, {3, 9, 7, 16, 8, 3, 3, 2, 1}, {11, 4, 3, 3, 5, 3, 3, 1, 1},
    {5, 6, 6, 24, 8, 1, 1, 2, 0}, {3, 4, 4, 8, 7, 1, 1, 1, 0},  {2, 5, 5, 8, 8, 1, 1, 1, 2},
    {1, 1, 1, 8, 8, 3, 3, 1, 1},
};

/// Runs a convolution in tiles whose patches (im2col) take at most `bytes` bytes.
struct InTiles {
  std::int64_t bytes;
  void operator()(FiberMachine& machine, runtime::device::Call& call) const {
    runtime::device::Launcher<FiberMachine> launcher(machine, call);
    runtime::device::conv_in_tiles(launcher, call, bytes);
  }
};

template <class Check>
void check_all_kinds(const Check& check, std::int64_t least_images = 1) {
  std::mt19937 random(1);
  for (const ConvCase& c : kConvCases) {
    if (c.n < least_images) continue;
    INFO(c.n << " images of " << c.h << "x" << c.w << "x" << c.c << ", kernel " << c.kh << "x" << c.kw << ", stride "
             << c.stride << ", pad " << c.pad);
    const Tensor x = random_tensor(c.x(), random), w = random_tensor(c.weight(), random);
    const Tensor bias = random_tensor({c.oc}, random);
    Tensor dy = random_tensor(c.y(), random);
    // The tolerance is relative to 1. So dy is made small, such that the errors of bf16 in patches and in products of
    // tiles are small compared with 1.
    for (double& value : dy.values) value /= 16;
    check(make_op(OpKind::conv2d, c.y(), c.attrs()), {x, w});
    check(make_op(OpKind::conv2d, c.y(), c.attrs()), {x, w, bias});
    check(make_op(OpKind::conv2d_grad_input, c.x(), c.attrs()), {dy, w});
    check(make_op(OpKind::conv2d_grad_weight, c.weight(), c.attrs()), {dy, x});
  }
}

}  // namespace

TEST_CASE("device: convolutions by a library agree with the host", "[device]") {
  check_all_kinds([](const Op& op, const std::vector<Tensor>& args) { check_device_op(op, args, 2e-5, true); });
}

TEST_CASE("device: lowered convolutions agree with the host", "[device]") {
  check_all_kinds([](const Op& op, const std::vector<Tensor>& args) { check_device_op(op, args); });
}

TEST_CASE("device: convolutions lowered in many tiles agree with the host", "[device]") {
  for (const std::int64_t bytes : {1, 20'000}) {
    check_all_kinds(
        [&](const Op& op, const std::vector<Tensor>& args) { check_device_op(op, args, 2e-5, false, InTiles{bytes}); },
        2);
  }
}

TEST_CASE("device: tiles of convolutions are whole images, about equal, and begin at 16 bytes", "[device]") {
  using runtime::device::conv_tiles;
  runtime::device::ConvShape s;
  s.in_h = s.in_w = s.out_h = s.out_w = 10;
  s.in_c = 4;
  s.kernel_h = s.kernel_w = 3;
  for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
    s.type = type;
    for (const std::int64_t channels : {1, 2, 3, 8, 64}) {
      s.out_c = channels;
      const std::int64_t y_bytes = 100 * channels * core::element_bytes(type);
      const std::int64_t patch_bytes = 100 * 9 * 4 * core::element_bytes(type);
      for (const std::int64_t images : {1, 2, 7, 8, 9, 64, 1000}) {
        s.images = images;
        for (const std::int64_t fitting : {0, 1, 3, 8, 50, 5000}) {
          const auto tiles = conv_tiles(s, fitting * patch_bytes + 1);
          CHECK((tiles.count - 1) * tiles.images < images);
          CHECK(tiles.count * tiles.images >= images);
          if (tiles.count > 1) {
            CHECK(tiles.images * y_bytes % 16 == 0);
            CHECK(tiles.images <= std::max<std::int64_t>(fitting, 1) + 7);
          }
          if (fitting >= images) CHECK(tiles.count == 1);
        }
      }
    }
  }
}

TEST_CASE("device: a weight's gradient of bf16 is as precise over many tiles as over one", "[device]") {
  std::mt19937 random(2);
  const ConvCase c{64, 4, 4, 8, 8, 3, 3, 1, 1};
  Tensor x = random_tensor(c.x(), random), dy = random_tensor(c.y(), random);
  // All values have the same sign, so a running sum grows from tile to tile. If it were rounded to bf16 after each
  // tile, the errors of all roundings would add up.
  for (double& value : x.values) value = std::abs(value);
  for (double& value : dy.values) value = std::abs(value);
  const Op op = make_op(OpKind::conv2d_grad_weight, c.weight(), c.attrs());
  const Values expected = run<double>(op, stored(op, {dy, x}, ElementType::bf16));
  FiberMachine machine(Threads::one);
  const Values actual =
      stored_values(run_on(machine, op, {dy, x}, ElementType::bf16, false, InTiles{1}), ElementType::bf16);
  check_close(actual, expected, 1.0 / 200);
}

TEST_CASE("device: a lowered convolution takes its scratch once, and none for patches of 1x1 kernels", "[device]") {
  const auto scratch_of = [](OpKind kind, Shape out, Shape first, Shape second, OpAttrs attrs,
                             std::int64_t tile_bytes) {
    FiberMachine machine(Threads::one);
    HostLibrary library;
    Op op = make_op(kind, std::move(out), std::move(attrs));
    const runtime::device::Tensor args[] = {{nullptr, ElementType::f32, first}, {nullptr, ElementType::f32, second}};
    runtime::device::Call counting{op, args, nullptr, library, false, {}};
    InTiles{tile_bytes}(machine, counting);
    return counting.scratch.used();
  };
  constexpr std::int64_t kWorkspace = 256 + 64 + 7;
  CHECK(scratch_of(OpKind::conv2d, {64, 8, 8, 4}, {64, 8, 8, 8}, {4, 1, 1, 8}, {}, 1) <= kWorkspace);
  const std::int64_t patch_bytes = 8 * 8 * 9 * 8 * 4;
  for (const std::int64_t images : {1, 3, 16}) {
    const std::int64_t bytes = images * patch_bytes;
    CHECK(scratch_of(OpKind::conv2d, {64, 8, 8, 4}, {64, 8, 8, 8}, {4, 3, 3, 8}, {.pad = 1}, bytes) <=
          bytes + kWorkspace);
    CHECK(scratch_of(OpKind::conv2d_grad_weight, {4, 3, 3, 8}, {64, 8, 8, 4}, {64, 8, 8, 8}, {.pad = 1}, bytes) <=
          bytes + kWorkspace);
  }
}

}  // namespace cairn::tests::device_conv_test
