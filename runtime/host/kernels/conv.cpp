#include <algorithm>
#include <cstdint>

#include "cairn/runtime/host/kernels/call.h"
#include "cairn/runtime/host/products/gemm.h"

/// These kernels compute convolutions as matrix products over tiles, i.e. ranges of output pixels. The patch of an
/// output pixel consists of the kernel_h x kernel_w x in_channels inputs that the pixel depends on. The output and the
/// gradient of the weights are computed from patches of x, which are gathered into scratch for one tile at a time. For
/// the gradient of x, a product computes patches of dx in scratch, which are then added to dx. If the kernel is 1x1,
/// the stride is 1 and the padding is 0, a patch is just one pixel of x, so nothing is gathered.
namespace cairn::runtime::kernels {
namespace {

struct Conv {
  std::int64_t images, in_h, in_w, in_c;
  std::int64_t kernel_h, kernel_w;
  std::int64_t out_h, out_w, out_c;
  std::int64_t stride, pad;

  Conv(Extents x, Extents w, Extents y, const core::OpAttrs& attrs)
      : images(x[0]),
        in_h(x[1]),
        in_w(x[2]),
        in_c(x[3]),
        kernel_h(w[1]),
        kernel_w(w[2]),
        out_h(y[1]),
        out_w(y[2]),
        out_c(w[0]),
        stride(attrs.stride),
        pad(attrs.pad) {}

  std::int64_t pixels() const { return images * out_h * out_w; }
  std::int64_t patch() const { return kernel_h * kernel_w * in_c; }
  bool pointwise() const { return kernel_h == 1 && kernel_w == 1 && stride == 1 && pad == 0; }
  std::int64_t tile_rows() const { return core::conv_tile_rows(pixels(), patch()); }
};

/// The part [begin, end) of a window that is inside the image, which spans [0, extent). `begin` and `end` are relative
/// to `origin`, where the window begins.
struct Range {
  std::int64_t begin, end;
  Range(std::int64_t origin, std::int64_t kernel, std::int64_t extent)
      : begin(std::clamp<std::int64_t>(-origin, 0, kernel)), end(std::clamp(extent - origin, begin, kernel)) {}
};

/// Copies the patches of the output pixels [first, last) to `columns`, one after another. Positions outside the image
/// become zeros.
template <class T>
void gather_patches(const Conv& conv, const T* x, std::int64_t first, std::int64_t last, T* columns) {
  const std::int64_t patch = conv.patch();
  const std::int64_t row = conv.kernel_w * conv.in_c;
  for_rows(last - first, patch, [=](std::int64_t r) {
    const std::int64_t pixel = first + r;
    const std::int64_t image = pixel / (conv.out_h * conv.out_w);
    const std::int64_t y0 = pixel / conv.out_w % conv.out_h * conv.stride - conv.pad;
    const std::int64_t x0 = pixel % conv.out_w * conv.stride - conv.pad;
    const Range inside(x0, conv.kernel_w, conv.in_w);
    T* to = columns + r * patch;
    for (std::int64_t ky = 0; ky < conv.kernel_h; ++ky, to += row) {
      const std::int64_t y = y0 + ky;
      if (y < 0 || y >= conv.in_h) {
        std::fill_n(to, row, T(0));
        continue;
      }
      const std::int64_t length = (inside.end - inside.begin) * conv.in_c;
      T* const start = to + inside.begin * conv.in_c;
      std::fill(to, start, T(0));
      if (length > 0) {
        const std::int64_t from = ((image * conv.in_h + y) * conv.in_w + x0 + inside.begin) * conv.in_c;
        std::copy_n(x + from, length, start);
      }
      std::fill(start + length, to + row, T(0));
    }
  });
}

/// Adds the gradients of the patches of pixels [first, last) to dx. Each element of a patch of x is a copy of an
/// element of x; its gradient is added to the gradient of that element. Each row of dx is summed by one thread, in the
/// order of kernel row, then pixel, so the bits do not depend on the number of threads.
template <class T>
void scatter_patches(const Conv& conv, const T* columns, std::int64_t first, std::int64_t last, T* dx) {
  const std::int64_t patch = conv.patch();
  const std::int64_t pixels_per_image = conv.out_h * conv.out_w;
  const std::int64_t first_row = first / pixels_per_image * conv.in_h;
  const std::int64_t end_row = ((last - 1) / pixels_per_image + 1) * conv.in_h;
  for_rows(end_row - first_row, conv.in_w * conv.in_c, [=](std::int64_t r) {
    const std::int64_t image = (first_row + r) / conv.in_h;
    const std::int64_t y = (first_row + r) % conv.in_h;
    for (std::int64_t ky = 0; ky < conv.kernel_h; ++ky) {
      const std::int64_t shifted = y + conv.pad - ky;
      if (shifted < 0 || shifted % conv.stride != 0 || shifted / conv.stride >= conv.out_h) continue;
      const std::int64_t line = (image * conv.out_h + shifted / conv.stride) * conv.out_w;
      for (std::int64_t pixel = std::max(line, first); pixel < std::min(line + conv.out_w, last); ++pixel) {
        const std::int64_t x0 = (pixel - line) * conv.stride - conv.pad;
        const Range inside(x0, conv.kernel_w, conv.in_w);
        const T* from = columns + (pixel - first) * patch + (ky * conv.kernel_w + inside.begin) * conv.in_c;
        T* to = dx + ((image * conv.in_h + y) * conv.in_w + x0 + inside.begin) * conv.in_c;
        const std::int64_t length = (inside.end - inside.begin) * conv.in_c;
        for (std::int64_t i = 0; i < length; ++i) to[i] += from[i];
      }
    }
  });
}

/// Calls body(first, last, patches) for every tile of output pixels [first, last), in order. `patches` are the patches
/// of these pixels, gathered from x into `scratch`.
template <class T, class F>
void for_gathered_tiles(const Conv& conv, const T* x, T* scratch, const F& body) {
  if (conv.pointwise()) return body(std::int64_t{0}, conv.pixels(), x);
  for (std::int64_t first = 0; first < conv.pixels(); first += conv.tile_rows()) {
    const std::int64_t last = std::min(first + conv.tile_rows(), conv.pixels());
    gather_patches(conv, x, first, last, scratch);
    body(first, last, static_cast<const T*>(scratch));
  }
}

}  // namespace

template <class T>
void conv2d(const Call<T>& call) {
  const Conv conv(call.shape(0), call.shape(1), call.op.shape, call.attrs());
  const bool has_bias = call.args.size() == 3;
  if (has_bias) {
    const T* bias = call.arg(2);
    for_rows(conv.pixels(), conv.out_c,
             [&](std::int64_t p) { std::copy_n(bias, conv.out_c, call.out + p * conv.out_c); });
  }
  const T* weight = call.arg(1);
  for_gathered_tiles(conv, call.arg(0), call.scratch, [&](std::int64_t first, std::int64_t last, const T* patches) {
    parallel_gemm(Gemm<T>{.trans_b = true,
                          .m = last - first,
                          .n = conv.out_c,
                          .k = conv.patch(),
                          .a = patches,
                          .lda = conv.patch(),
                          .b = weight,
                          .ldb = conv.patch(),
                          .beta = has_bias ? T(1) : T(0),
                          .c = call.out + first * conv.out_c,
                          .ldc = conv.out_c});
  });
}

template <class T>
void conv2d_grad_input(const Call<T>& call) {
  const Conv conv(call.op.shape, call.shape(1), call.shape(0), call.attrs());
  const T* weight = call.arg(1);
  const auto patch_gradients = [&](std::int64_t first, std::int64_t last, T* patches) {
    parallel_gemm(Gemm<T>{.m = last - first,
                          .n = conv.patch(),
                          .k = conv.out_c,
                          .a = call.arg(0) + first * conv.out_c,
                          .lda = conv.out_c,
                          .b = weight,
                          .ldb = conv.patch(),
                          .c = patches,
                          .ldc = conv.patch()});
  };
  if (conv.pointwise()) return patch_gradients(0, conv.pixels(), call.out);
  for_elements(elements(call.op.shape), [&](std::int64_t i) { call.out[i] = T(0); });
  for (std::int64_t first = 0; first < conv.pixels(); first += conv.tile_rows()) {
    const std::int64_t last = std::min(first + conv.tile_rows(), conv.pixels());
    patch_gradients(first, last, call.scratch);
    scatter_patches(conv, call.scratch, first, last, call.out);
  }
}

template <class T>
void conv2d_grad_weight(const Call<T>& call) {
  const Conv conv(call.shape(1), call.op.shape, call.shape(0), call.attrs());
  const T* dy = call.arg(0);
  for_gathered_tiles(conv, call.arg(1), call.scratch, [&](std::int64_t first, std::int64_t last, const T* patches) {
    parallel_gemm(Gemm<T>{.trans_a = true,
                          .m = conv.out_c,
                          .n = conv.patch(),
                          .k = last - first,
                          .a = dy + first * conv.out_c,
                          .lda = conv.out_c,
                          .b = patches,
                          .ldb = conv.patch(),
                          .beta = first == 0 ? T(0) : T(1),
                          .c = call.out,
                          .ldc = conv.patch()});
  });
}

CAIRN_INSTANTIATE_KERNEL(conv2d);
CAIRN_INSTANTIATE_KERNEL(conv2d_grad_input);
CAIRN_INSTANTIATE_KERNEL(conv2d_grad_weight);

}  // namespace cairn::runtime::kernels
