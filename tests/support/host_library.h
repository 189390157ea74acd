#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/support/bf16.h"
#include "cairn/runtime/device/elements.h"
#include "cairn/runtime/device/library.h"

namespace cairn::tests {

/// Computes matrix products and convolutions on the host by their definitions. It takes the place of the GPU vendor's
/// library.
class HostLibrary final : public runtime::device::Library {
 public:
  /// Makes a library. If `convolves` is false, it offers no convolutions, so that the caller turns them into matrix
  /// products.
  explicit HostLibrary(bool convolves = false) : convolves_(convolves) {}

  std::int64_t gemm_workspace(const runtime::device::GemmShape& shape) override { return 64 + shape.n % 7; }
  void gemm(const runtime::device::GemmShape& shape, const runtime::device::GemmOperands& operands,
            void* workspace) override {
    std::memset(workspace, 0xFF, static_cast<std::size_t>(gemm_workspace(shape)));
    if (shape.bias && !gemm_adds_bias(shape)) throw core::DefectError("the library does not add this bias");
    if (shape.type == core::ElementType::bf16) {
      multiply<core::Bf16>(shape, operands);
    } else {
      multiply<float>(shape, operands);
    }
  }

  /// The next two functions return true for some shapes and false for others, so that tests cover both cases.
  bool gemm_adds_bias(const runtime::device::GemmShape& shape) override { return shape.m % 3 != 0; }
  bool gemm_in_tiles(const runtime::device::GemmShape& shape) override { return (shape.k + shape.n) % 2 == 1; }

  std::optional<std::int64_t> conv_workspace(const runtime::device::ConvShape& shape,
                                             std::optional<std::int64_t> scratch) override {
    if (!convolves_) return std::nullopt;
    const bool large = scratch && *scratch >= large_workspace(shape);
    return large ? large_workspace(shape) : small_workspace(shape);
  }
  void conv(const runtime::device::ConvShape& shape, const runtime::device::ConvOperands& operands, void* workspace,
            std::int64_t workspace_bytes) override {
    std::memset(workspace, 0xFF, static_cast<std::size_t>(workspace_bytes));
    if (shape.type == core::ElementType::bf16) {
      convolve<core::Bf16>(shape, operands);
    } else {
      convolve<float>(shape, operands);
    }
  }
  /// Returns two variants of each convolution. The one with more workspace claims to take a third of the time.
  std::vector<runtime::ScratchVariant> conv_variants(const runtime::device::ConvShape& shape) override {
    if (!convolves_) return {};
    return {{.scratch = small_workspace(shape), .ms = 3, .usual = true}, {.scratch = large_workspace(shape), .ms = 1}};
  }

 private:
  static std::int64_t small_workspace(const runtime::device::ConvShape& shape) { return 128 + shape.out_c % 5; }
  static std::int64_t large_workspace(const runtime::device::ConvShape& shape) { return 4096 + shape.out_c % 5; }

  template <class T>
  static void multiply(const runtime::device::GemmShape& s, const runtime::device::GemmOperands& o) {
    const T* a = static_cast<const T*>(o.a);
    const T* b = static_cast<const T*>(o.b);
    const T* bias = static_cast<const T*>(o.bias);
    T* c = static_cast<T*>(o.c);
    std::vector<double> row(static_cast<std::size_t>(s.n));
    const std::int64_t lda = s.stride_of_a(), ldb = s.stride_of_b(), ldc = s.stride_of_c();
    const std::int64_t a_rows = s.trans_a ? s.k : s.m, b_rows = s.trans_b ? s.n : s.k;
    for (std::int64_t batch = 0; batch < s.batch; ++batch, a += a_rows * lda, b += b_rows * ldb, c += s.m * ldc) {
      for (std::int64_t i = 0; i < s.m; ++i) {
        std::fill(row.begin(), row.end(), 0.0);
        for (std::int64_t l = 0; l < s.k; ++l) {
          const double factor = runtime::device::to_float(s.trans_a ? a[l * lda + i] : a[i * lda + l]);
          for (std::int64_t j = 0; j < s.n; ++j) {
            row[static_cast<std::size_t>(j)] +=
                factor * static_cast<double>(runtime::device::to_float(s.trans_b ? b[j * ldb + l] : b[l * ldb + j]));
          }
        }
        for (std::int64_t j = 0; j < s.n; ++j) {
          double value = static_cast<double>(o.alpha) * row[static_cast<std::size_t>(j)];
          if (s.bias) value += static_cast<double>(runtime::device::to_float(bias[j]));
          if (s.accumulate) value += static_cast<double>(runtime::device::to_float(c[i * ldc + j]));
          c[i * ldc + j] = runtime::device::from_float<T>(static_cast<float>(value));
        }
      }
    }
  }

  /// Calls body(y pixel, x pixel, kernel position) for each pair of an output pixel y and an input pixel x that a
  /// position of the kernel connects. All three arguments are flat indices.
  template <class F>
  static void for_pairs(const runtime::device::ConvShape& s, const F& body) {
    for (std::int64_t n = 0; n < s.images; ++n) {
      for (std::int64_t oy = 0; oy < s.out_h; ++oy) {
        for (std::int64_t ox = 0; ox < s.out_w; ++ox) {
          for (std::int64_t ky = 0; ky < s.kernel_h; ++ky) {
            for (std::int64_t kx = 0; kx < s.kernel_w; ++kx) {
              const std::int64_t y = oy * s.stride - s.pad + ky, x = ox * s.stride - s.pad + kx;
              if (y < 0 || y >= s.in_h || x < 0 || x >= s.in_w) continue;
              body((n * s.out_h + oy) * s.out_w + ox, (n * s.in_h + y) * s.in_w + x, ky * s.kernel_w + kx);
            }
          }
        }
      }
    }
  }

  struct Places {
    std::int64_t out, first, second;
  };
  template <class T>
  static void convolve(const runtime::device::ConvShape& s, const runtime::device::ConvOperands& o) {
    using runtime::device::ConvKind;
    using runtime::device::to_float;
    const std::int64_t places = s.kernel_h * s.kernel_w;
    const std::int64_t x_count = s.images * s.in_h * s.in_w * s.in_c;
    const std::int64_t y_count = s.images * s.out_h * s.out_w * s.out_c;
    const std::int64_t w_count = s.out_c * places * s.in_c;
    const std::int64_t count = s.kind == ConvKind::forward      ? y_count
                               : s.kind == ConvKind::grad_input ? x_count
                                                                : w_count;
    std::vector<double> out(static_cast<std::size_t>(count), 0.0);
    const T* first = static_cast<const T*>(o.first);
    const T* second = static_cast<const T*>(o.second);
    for_pairs(s, [&](std::int64_t y, std::int64_t x, std::int64_t place) {
      for (std::int64_t oc = 0; oc < s.out_c; ++oc) {
        for (std::int64_t ic = 0; ic < s.in_c; ++ic) {
          const std::int64_t at_x = x * s.in_c + ic, at_y = y * s.out_c + oc,
                             at_w = (oc * places + place) * s.in_c + ic;
          const Places at = s.kind == ConvKind::forward      ? Places{at_y, at_x, at_w}
                            : s.kind == ConvKind::grad_input ? Places{at_x, at_y, at_w}
                                                             : Places{at_w, at_y, at_x};
          out[static_cast<std::size_t>(at.out)] +=
              double(to_float(first[at.first])) * double(to_float(second[at.second]));
        }
      }
    });
    T* to = static_cast<T*>(o.out);
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = runtime::device::from_float<T>(static_cast<float>(out[static_cast<std::size_t>(i)]));
    }
  }

  bool convolves_;
};

}  // namespace cairn::tests
