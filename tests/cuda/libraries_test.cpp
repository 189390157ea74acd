#include "cairn/cuda/internal/libraries.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/support/bf16.h"
#include "cairn/core/support/random.h"
#include "cairn/cuda/internal/runtime.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cuda/no_device.h"
#include "cairn/tests/runtime/window_cases.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/stored_values.h"

namespace cairn::tests::libraries_test {

using namespace core;
using namespace cuda;
using namespace runtime::device;

namespace {

constexpr std::int64_t kWorkspaceLimit = std::int64_t{64} << 20;
constexpr WorkspaceLimits kLimits = {kWorkspaceLimit, std::int64_t{256} << 20};

struct Precision {
  ElementType type;
  bool tf32;
};
constexpr Precision kPrecisions[] = {{ElementType::f32, false}, {ElementType::f32, true}, {ElementType::bf16, false}};

/// A tensor on the device. The libraries may assume that its address is a multiple of 16 bytes. The address is no
/// multiple of 32 bytes, so that the tests notice if a library assumes more. `values` has the elements as they were
/// first stored, i.e. rounded to the tensor's type.
class Tensor {
 public:
  Tensor(ElementType type, std::int64_t count, std::uint64_t seed)
      : type_(type), values_(static_cast<std::size_t>(count)), memory_(device_memory(kOffset + bytes())) {
    core::Random random(seed);
    for (double& value : values_) {
      const auto number = static_cast<float>(2 * random.uniform() - 1);
      value = type == ElementType::bf16 ? static_cast<float>(Bf16(number)) : number;
    }
    restore();
  }

  const std::vector<double>& values() const { return values_; }
  void* data() const { return memory_.get() + kOffset; }

  /// Stores `values` in the tensor again, after a test has overwritten it.
  void restore() {
    std::vector<std::byte> stored(static_cast<std::size_t>(bytes()));
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const auto value = static_cast<float>(values_[i]);
      const Bf16 half(value);
      if (type_ == ElementType::bf16) {
        std::memcpy(stored.data() + 2 * i, &half, 2);
      } else {
        std::memcpy(stored.data() + 4 * i, &value, 4);
      }
    }
    check(cudaMemcpy(data(), stored.data(), stored.size(), cudaMemcpyHostToDevice), "copy to the device");
  }

  /// Sets every element to NaN.
  void poison() { check(cudaMemset(data(), 0xFF, static_cast<std::size_t>(bytes())), "fill on the device"); }

  std::vector<std::byte> read() const {
    std::vector<std::byte> stored(static_cast<std::size_t>(bytes()));
    check(cudaDeviceSynchronize(), "synchronize");
    check(cudaMemcpy(stored.data(), data(), stored.size(), cudaMemcpyDeviceToHost), "copy from the device");
    return stored;
  }

  std::vector<double> read_values() const { return stored_values(read(), type_); }

 private:
  static constexpr std::int64_t kOffset = 16;
  std::int64_t bytes() const { return core::element_bytes(type_) * static_cast<std::int64_t>(values_.size()); }

  ElementType type_;
  std::vector<double> values_;
  DeviceMemory memory_;
};

/// Expected results, computed in double, and two numbers for each result that bound the rounding errors of a library.
/// `magnitudes` has the sum of the absolute values of the terms that a result adds up. `rounded` has the absolute value
/// of an intermediate sum, which the library may round to the stored type.
struct Expected {
  explicit Expected(std::size_t count) : values(count), magnitudes(count), rounded(count) {}
  void add(std::size_t i, double term) {
    values[i] += term;
    magnitudes[i] += std::abs(term);
  }
  std::vector<double> values, magnitudes, rounded;
};

/// Returns the largest ratio of an actual error to the permitted error of the precision, or NaN if a result is NaN.
double worst_error(const std::vector<double>& got, const Expected& expected, Precision precision) {
  // Rounding a factor to TF32 changes it by at most 2^-10 of its value. Each term has two factors, so the term changes
  // by about 2^-9 of its value at most.
  const double factors = precision.tf32 ? 0x1p-9 : 0;
  const double stored = precision.type == ElementType::bf16 ? 0x1p-8 : 0x1p-23, sums = 1e-5;
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double excused = (factors + sums) * expected.magnitudes[i] +
                           stored * (std::abs(expected.values[i]) + expected.rounded[i]) + 1e-30;
    const double error = std::abs(got[i] - expected.values[i]) / excused;
    if (std::isnan(error)) return error;
    worst = std::max(worst, error);
  }
  return worst;
}

std::string describe(const GemmShape& shape) {
  return "m " + std::to_string(shape.m) + " n " + std::to_string(shape.n) + " k " + std::to_string(shape.k) +
         " batch " + std::to_string(shape.batch) + (shape.trans_a ? " At" : "") + (shape.trans_b ? " Bt" : "") +
         (shape.bias ? " bias" : "") + (shape.accumulate ? " accumulate" : "") + (shape.tf32 ? " tf32 " : " ") +
         std::string(to_string(shape.type));
}

/// A matrix product with its operands on the device.
struct ProductCase {
  explicit ProductCase(const GemmShape& product)
      : shape(product),
        a(shape.type, shape.batch * shape.m * shape.k, 1),
        b(shape.type, shape.batch * shape.k * shape.n, 2),
        bias(shape.type, shape.n, 3),
        c(shape.type, shape.batch * shape.m * shape.n, 4) {}

  std::vector<std::byte> run(Gemms& gemms, float alpha) {
    const DeviceMemory workspace = device_memory(gemms.workspace(shape));
    if (shape.accumulate) {
      c.restore();
    } else {
      c.poison();
    }
    check(cudaDeviceSynchronize(), "synchronize");
    gemms.run(shape, {alpha, a.data(), b.data(), shape.bias ? bias.data() : nullptr, c.data()}, workspace.get(),
              stream.get());
    return c.read();
  }

  Expected expected(float alpha) const {
    const std::size_t m = static_cast<std::size_t>(shape.m), n = static_cast<std::size_t>(shape.n),
                      k = static_cast<std::size_t>(shape.k);
    Expected result(c.values().size());
    for (std::size_t batch = 0; batch < static_cast<std::size_t>(shape.batch); ++batch) {
      for (std::size_t row = 0; row < m; ++row) {
        for (std::size_t column = 0; column < n; ++column) {
          const std::size_t out = (batch * m + row) * n + column;
          for (std::size_t i = 0; i < k; ++i) {
            const std::size_t in_a = batch * m * k + (shape.trans_a ? i * m + row : row * k + i);
            const std::size_t in_b = batch * k * n + (shape.trans_b ? column * k + i : i * n + column);
            result.add(out, double{alpha} * a.values()[in_a] * b.values()[in_b]);
          }
          // Some kernels of cuBLASLt round the product to bf16 before they add the bias or the old contents of the
          // output.
          result.rounded[out] = std::abs(result.values[out]);
          if (shape.bias) result.add(out, bias.values()[column]);
          if (shape.accumulate) result.add(out, c.values()[out]);
        }
      }
    }
    return result;
  }

  GemmShape shape;
  Tensor a, b, bias, c;
  Stream stream = make_stream();
};

void check_product(Gemms& gemms, const GemmShape& shape, float alpha) {
  INFO(describe(shape));
  ProductCase product(shape);
  product.run(gemms, alpha);
  CHECK(worst_error(product.c.read_values(), product.expected(alpha), {shape.type, shape.tf32}) <= 1);
}

std::string describe(const ConvShape& shape) {
  constexpr const char* kKinds[] = {"forward", "grad_input", "grad_weight"};
  return std::string(kKinds[static_cast<std::size_t>(shape.kind)]) + " x " + std::to_string(shape.images) + "x" +
         std::to_string(shape.in_h) + "x" + std::to_string(shape.in_w) + "x" + std::to_string(shape.in_c) + " kernel " +
         std::to_string(shape.kernel_h) + "x" + std::to_string(shape.kernel_w) + " to " + std::to_string(shape.out_c) +
         " stride " + std::to_string(shape.stride) + " pad " + std::to_string(shape.pad) +
         (shape.tf32 ? " tf32 " : " ") + std::string(to_string(shape.type));
}

ConvShape conv_shape(const ConvCase& c, ConvKind kind, Precision precision) {
  return {.kind = kind,
          .tf32 = precision.tf32,
          .type = precision.type,
          .images = c.n,
          .in_h = c.h,
          .in_w = c.w,
          .in_c = c.c,
          .kernel_h = c.kh,
          .kernel_w = c.kw,
          .out_h = c.oh(),
          .out_w = c.ow(),
          .out_c = c.oc,
          .stride = c.stride,
          .pad = c.pad};
}

/// A convolution with its input x, weight w and output y on the device. `kind` says which of the three tensors is
/// computed; the old values of that tensor are overwritten.
struct Convolution {
  Convolution(const ConvCase& c, ConvKind kind, Precision precision)
      : extents(c),
        shape(conv_shape(c, kind, precision)),
        x(shape.type, element_count(c.x()), 1),
        w(shape.type, element_count(c.weight()), 2),
        y(shape.type, element_count(c.y()), 3) {}

  Tensor& out() { return shape.kind == ConvKind::forward ? y : shape.kind == ConvKind::grad_input ? x : w; }

  ConvOperands operands() {
    switch (shape.kind) {
      case ConvKind::grad_input:
        return {y.data(), w.data(), x.data()};
      case ConvKind::grad_weight:
        return {y.data(), x.data(), w.data()};
      case ConvKind::forward:
        break;
    }
    return {x.data(), w.data(), y.data()};
  }

  std::vector<std::byte> run(Convolutions& convolutions, std::int64_t workspace_bytes) {
    const DeviceMemory workspace = device_memory(workspace_bytes);
    out().poison();
    check(cudaDeviceSynchronize(), "synchronize");
    convolutions.run(shape, operands(), workspace.get(), workspace_bytes, stream.get());
    return out().read();
  }

  Expected expected() {
    Expected result(out().values().size());
    extents.for_products([&](std::int64_t out, std::int64_t in, std::int64_t weight) {
      const auto at_y = static_cast<std::size_t>(out), at_x = static_cast<std::size_t>(in),
                 at_w = static_cast<std::size_t>(weight);
      switch (shape.kind) {
        case ConvKind::forward:
          result.add(at_y, x.values()[at_x] * w.values()[at_w]);
          break;
        case ConvKind::grad_input:
          result.add(at_x, y.values()[at_y] * w.values()[at_w]);
          break;
        case ConvKind::grad_weight:
          result.add(at_w, y.values()[at_y] * x.values()[at_x]);
          break;
      }
    });
    // Fast algorithms such as Winograd's combine neighbouring elements. So the error of any result can be in proportion
    // to the largest magnitude of all results.
    const double greatest = *std::max_element(result.magnitudes.begin(), result.magnitudes.end());
    std::fill(result.magnitudes.begin(), result.magnitudes.end(), greatest);
    return result;
  }

  ConvCase extents;
  ConvShape shape;
  Tensor x, w, y;
  Stream stream = make_stream();
};

constexpr ConvKind kKinds[] = {ConvKind::forward, ConvKind::grad_input, ConvKind::grad_weight};
const ConvCase kGeometries[] = {
    {1, 5, 5, 1, 1, 1, 1, 1, 0},   {2, 7, 9, 5, 7, 3, 3, 1, 1},     {3, 9, 7, 4, 6, 3, 3, 2, 0},
    {2, 8, 10, 8, 16, 3, 3, 2, 1}, {2, 13, 11, 3, 5, 7, 7, 2, 3},   {2, 8, 8, 3, 3, 7, 7, 1, 3},
    {4, 9, 11, 7, 9, 1, 1, 2, 0},  {2, 9, 9, 8, 8, 3, 3, 1, 3},     {2, 6, 5, 2, 3, 1, 1, 1, 1},
    {1, 9, 8, 3, 2, 7, 7, 1, 0},   {2, 14, 14, 32, 64, 3, 3, 1, 1}, {2, 11, 6, 3, 4, 3, 1, 1, 1},
};

/// Returns whether cuDNN is missing. In that case it prints a line from which ctest recognizes that the test was
/// skipped.
bool no_cudnn(const Convolutions& convolutions) {
  if (convolutions.available()) return false;
  std::printf("skipped: %s\n", convolutions.why_not().c_str());
  return true;
}

bool one_line(const std::string& text) { return !text.empty() && text.find('\n') == std::string::npos; }

}  // namespace

TEST_CASE("cuDNN is there, or one line says why not") {
  Convolutions convolutions(kLimits);
  INFO(convolutions.why_not());
  CHECK(convolutions.available() == convolutions.why_not().empty());
  if (convolutions.available()) return;
  CHECK(one_line(convolutions.why_not()));
  const ConvShape shape = conv_shape(kGeometries[0], ConvKind::forward, kPrecisions[0]);
  CHECK_FALSE(convolutions.workspace(shape).has_value());
  CHECK_THROWS_AS(convolutions.run(shape, {}, nullptr, 0, nullptr), DeviceError);
}

TEST_CASE("no bytes are no memory") {
  CHECK(device_memory(0) == nullptr);
  CHECK(pinned_memory(0) == nullptr);
}

TEST_CASE("a CUDA failure is one line that begins with what failed") {
  CHECK_NOTHROW(check(cudaSuccess, "copy"));
  const std::string text = error_of<DeviceError>([] { check(cudaErrorMemoryAllocation, "7 bytes of device memory"); });
  CHECK(text.rfind("7 bytes of device memory: ", 0) == 0);
  CHECK(one_line(text));
}

// ctest runs this test with CUDA_VISIBLE_DEVICES=-1. So no device is visible, even on a machine with a GPU.
TEST_CASE("without a device, handles and libraries say so in one line", "[.][no_device]") {
  const auto throws_one_line = [](auto&& make) {
    const std::string text = error_of<DeviceError>(make);
    INFO(text);
    CHECK((text.empty() || one_line(text)));
    return !text.empty();
  };
  CHECK(throws_one_line([] { Gemms gemms(kWorkspaceLimit); }));
  CHECK(throws_one_line([] { make_stream(); }));
  CHECK(throws_one_line([] { make_event(); }));
  CHECK(throws_one_line([] { device_memory(1); }));
  CHECK(throws_one_line([] { pinned_memory(1); }));
  CHECK_FALSE(Convolutions(kLimits).available());
}

TEST_CASE("matrix products by cuBLAS are those of a loop in double") {
  if (no_device()) return;
  Gemms gemms(kWorkspaceLimit);
  struct Extents {
    std::int64_t m, n, k;
  };
  constexpr Extents kExtents[] = {{1, 1, 1},    {1, 7, 3},     {5, 1, 9},      {3, 5, 1},
                                  {17, 33, 65}, {64, 48, 128}, {127, 129, 31}, {30, 2, 511}};
  for (const Extents& extents : kExtents) {
    for (const Precision precision : kPrecisions) {
      for (const bool trans_a : {false, true}) {
        for (const bool trans_b : {false, true}) {
          for (const std::int64_t batch : {1, 3}) {
            GemmShape shape{.trans_a = trans_a,
                            .trans_b = trans_b,
                            .tf32 = precision.tf32,
                            .type = precision.type,
                            .batch = batch,
                            .m = extents.m,
                            .n = extents.n,
                            .k = extents.k};
            check_product(gemms, shape, 1);
            shape.bias = true;
            check_product(gemms, shape, 0.375f);
            shape.bias = false;
            shape.accumulate = true;
            check_product(gemms, shape, -1.5f);
          }
        }
      }
    }
  }
}

TEST_CASE("rows of a product may lie apart") {
  if (no_device()) return;
  Gemms gemms(kWorkspaceLimit);
  // kApart is the number of elements from the start of a row to the start of the next row.
  constexpr std::int64_t kM = 200, kN = 45, kK = 33, kApart = 48;
  const Stream stream = make_stream();
  for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
    const GemmShape shape{
        .trans_b = true, .type = type, .m = kM, .n = kN, .k = kK, .lda = kApart, .ldb = kApart, .ldc = kApart};
    Tensor a(type, kM * kApart, 1), b(type, kN * kApart, 2), c(type, kM * kApart, 3);
    const DeviceMemory workspace = device_memory(gemms.workspace(shape));
    c.poison();
    check(cudaDeviceSynchronize(), "synchronize");
    gemms.run(shape, {.a = a.data(), .b = b.data(), .c = c.data()}, workspace.get(), stream.get());
    const std::vector<double> got = c.read_values();
    for (std::int64_t i = 0; i < kM; ++i) {
      for (std::int64_t j = 0; j < kApart; ++j) {
        const double value = got[static_cast<std::size_t>(i * kApart + j)];
        if (j >= kN) {
          REQUIRE(std::isnan(value));  // the elements between two rows are not written
          continue;
        }
        double expected = 0, magnitude = 0;
        for (std::int64_t l = 0; l < kK; ++l) {
          const double term = a.values()[static_cast<std::size_t>(i * kApart + l)] *
                              b.values()[static_cast<std::size_t>(j * kApart + l)];
          expected += term;
          magnitude += std::abs(term);
        }
        REQUIRE(std::abs(value - expected) <=
                1e-5 * magnitude + (type == ElementType::bf16 ? 0x1p-8 * std::abs(expected) : 0));
      }
    }
  }
}

TEST_CASE("TF32 is used only where it is allowed") {
  if (no_device()) return;
  Gemms gemms(kWorkspaceLimit);
  // A sum of only k = 8 terms has few rounding errors of other kinds. So the error would show if factors were rounded
  // to TF32.
  const GemmShape shape{.m = 256, .n = 256, .k = 8};
  ProductCase product(shape);
  product.run(gemms, 1);
  const Expected expected = product.expected(1);
  const std::vector<double> got = product.c.read_values();
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    worst = std::max(worst, std::abs(got[i] - expected.values[i]) / expected.magnitudes[i]);
  CHECK(worst < 1e-6);
}

TEST_CASE("a product has the same bits whenever it is computed") {
  if (no_device()) return;
  for (const Precision precision : kPrecisions) {
    // In the first case, the result is small but its sums are long, so the library computes parts of a sum in parallel.
    // In the second case, the result is large.
    for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{48, 64, 32768}, {768, 512, 640}}) {
      const GemmShape shape{.tf32 = precision.tf32, .type = precision.type, .m = m, .n = n, .k = k};
      INFO(describe(shape));
      ProductCase product(shape);
      Gemms gemms(kWorkspaceLimit);
      const std::vector<std::byte> first = product.run(gemms, 1);
      for (int i = 0; i < 5; ++i) CHECK(product.run(gemms, 1) == first);
      Gemms others(kWorkspaceLimit);
      CHECK(product.run(others, 1) == first);
    }
  }
}

TEST_CASE("products do without a workspace where they must") {
  if (no_device()) return;
  Gemms gemms(0);
  const GemmShape shape{.m = 48, .n = 64, .k = 4096};
  CHECK(gemms.workspace(shape) == 0);
  check_product(gemms, shape, 1);
}

TEST_CASE("a product that is none is refused with its shape") {
  if (no_device()) return;
  Gemms gemms(kWorkspaceLimit);
  CHECK_THROWS_AS(gemms.workspace({.m = 4, .n = 0, .k = 4}), core::InputError);
  CHECK_THROWS_AS(gemms.workspace({.bias = true, .accumulate = true, .m = 4, .n = 4, .k = 4}), core::InputError);
  CHECK_THROWS_AS(gemms.workspace({.type = ElementType::i32, .m = 4, .n = 4, .k = 4}), core::InputError);
}

TEST_CASE("convolutions by cuDNN are those of a loop in double") {
  if (no_device()) return;
  Convolutions convolutions(kLimits);
  if (no_cudnn(convolutions)) return;
  int planned = 0;
  for (const ConvCase& geometry : kGeometries) {
    for (const ConvKind kind : kKinds) {
      for (const Precision precision : kPrecisions) {
        const ConvShape shape = conv_shape(geometry, kind, precision);
        INFO(describe(shape));
        const ConvVariants& variants = convolutions.variants(shape);
        if (variants.all.empty()) continue;  // without a variant, the caller uses im2col
        Convolution convolution(geometry, kind, precision);
        const Expected expected = convolution.expected();
        for (const ConvVariant& variant : variants.all) {
          const std::optional<std::int64_t> workspace = convolutions.workspace(shape, variant.scratch);
          CHECK(workspace.has_value() == variant.engine.has_value());
          if (!workspace) continue;
          ++planned;
          CHECK(*workspace == variant.scratch);
          CHECK(*workspace <= kLimits.large_bytes);
          const std::vector<std::byte> first = convolution.run(convolutions, *workspace);
          CHECK(worst_error(convolution.out().read_values(), expected, precision) <= 1);
          CHECK(convolution.run(convolutions, *workspace) == first);
        }
      }
    }
  }
  CHECK(planned > 0);
}

TEST_CASE("a convolution has the same bits whenever it is computed") {
  if (no_device()) return;
  Convolutions convolutions(kLimits);
  if (no_cudnn(convolutions)) return;
  for (const ConvCase& geometry : {ConvCase{8, 28, 28, 64, 64, 3, 3, 1, 1}, ConvCase{8, 56, 56, 3, 64, 7, 7, 2, 3}}) {
    for (const ConvKind kind : kKinds) {
      for (const Precision precision : kPrecisions) {
        const ConvShape shape = conv_shape(geometry, kind, precision);
        INFO(describe(shape));
        const std::optional<std::int64_t> workspace = convolutions.workspace(shape);
        if (!workspace) continue;
        Convolution convolution(geometry, kind, precision);
        const std::vector<std::byte> first = convolution.run(convolutions, *workspace);
        for (int i = 0; i < 5; ++i) CHECK(convolution.run(convolutions, *workspace) == first);
      }
    }
  }
}

TEST_CASE("library calls can be captured into a graph") {
  if (no_device()) return;
  Gemms gemms(kWorkspaceLimit);
  Convolutions convolutions(kLimits);
  ProductCase product(GemmShape{.bias = true, .m = 64, .n = 96, .k = 33});
  const std::vector<std::byte> product_bits = product.run(gemms, 1);
  const DeviceMemory product_workspace = device_memory(gemms.workspace(product.shape));

  Convolution convolution(kGeometries[1], ConvKind::forward, kPrecisions[0]);
  const std::optional<std::int64_t> workspace = convolutions.workspace(convolution.shape);
  const DeviceMemory conv_workspace = device_memory(workspace.value_or(0));
  std::vector<std::byte> conv_bits;
  if (workspace) conv_bits = convolution.run(convolutions, *workspace);

  product.c.poison();
  convolution.y.poison();
  const Stream stream = make_stream();
  check(cudaDeviceSynchronize(), "synchronize");
  check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "capture");
  gemms.run(product.shape, {1, product.a.data(), product.b.data(), product.bias.data(), product.c.data()},
            product_workspace.get(), stream.get());
  if (workspace)
    convolutions.run(convolution.shape, convolution.operands(), conv_workspace.get(), *workspace, stream.get());
  cudaGraph_t captured = nullptr;
  check(cudaStreamEndCapture(stream.get(), &captured), "end of capture");
  const CapturedGraph graph(captured);
  cudaGraphExec_t instance = nullptr;
  check(cudaGraphInstantiate(&instance, graph.get(), 0), "instantiate");
  const GraphExec exec(instance);
  check(cudaGraphLaunch(exec.get(), stream.get()), "launch");
  CHECK(product.c.read() == product_bits);
  if (workspace) CHECK(convolution.y.read() == conv_bits);
}

}  // namespace cairn::tests::libraries_test
