#pragma once

#include <cstdint>

#include "cairn/core/op.h"

namespace cairn::tests {

/// The extents of a convolution: images, height, width and channels of x, channels of y, and then the extents, stride
/// and padding of the kernel.
struct ConvCase {
  std::int64_t n, h, w, c, oc, kh, kw, stride, pad;
  std::int64_t oh() const { return (h + 2 * pad - kh) / stride + 1; }
  std::int64_t ow() const { return (w + 2 * pad - kw) / stride + 1; }
  core::Shape x() const { return {n, h, w, c}; }
  core::Shape weight() const { return {oc, kh, kw, c}; }
  core::Shape y() const { return {n, oh(), ow(), oc}; }
  core::OpAttrs attrs() const { return {.stride = stride, .pad = pad}; }

  /// Calls body(index of y, index of x, index of w) for every product of two elements that the convolution adds up.
  template <class F>
  void for_products(const F& body) const {
    for (std::int64_t i = 0; i < n * oh() * ow() * oc; ++i) {
      const std::int64_t o = i % oc, ox = i / oc % ow(), oy = i / oc / ow() % oh(), image = i / oc / ow() / oh();
      for (std::int64_t j = 0; j < kh * kw * c; ++j) {
        const std::int64_t in = j % c, kx = j / c % kw, ky = j / c / kw;
        const std::int64_t y = oy * stride + ky - pad, x = ox * stride + kx - pad;
        if (y < 0 || y >= h || x < 0 || x >= w) continue;
        body(i, ((image * h + y) * w + x) * c + in, o * kh * kw * c + j);
      }
    }
  }
};

/// The extents of a pooling: images, height, width and channels of x, and then extent, stride and padding of the
/// windows.
struct PoolCase {
  std::int64_t n, h, w, c, kernel, stride, pad;
  std::int64_t oh() const { return (h + 2 * pad - kernel) / stride + 1; }
  std::int64_t ow() const { return (w + 2 * pad - kernel) / stride + 1; }
  core::Shape x() const { return {n, h, w, c}; }
  core::Shape y() const { return {n, oh(), ow(), c}; }
  core::OpAttrs attrs() const { return {.kernel = kernel, .stride = stride, .pad = pad}; }
};

}  // namespace cairn::tests
