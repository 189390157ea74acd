#include <algorithm>
#include <array>
#include <cstdint>

#include "cairn/runtime/host/kernels/call.h"

namespace cairn::runtime::kernels {
namespace {

/// Calls body(image, begin, end) for every image and every block [begin, end) of up to kColumnBlock channels, in
/// parallel.
template <class F>
void for_image_channels(std::int64_t images, std::int64_t channels, const F& body) {
  const std::int64_t blocks = (channels + kColumnBlock - 1) / kColumnBlock;
  for_blocks(images * blocks, 1, [&](std::int64_t job, std::int64_t) {
    const std::int64_t begin = job % blocks * kColumnBlock;
    body(job / blocks, begin, std::min(begin + kColumnBlock, channels));
  });
}

/// The maximum in one window of a max pooling, and its place, for each channel of a block.
template <class T>
struct Maxima {
  std::array<T, kColumnBlock> value;
  std::array<std::int64_t, kColumnBlock> at;  ///< index of the pixel in x, counted through all images
};

struct Window {
  std::int64_t y_begin, y_end, x_begin, x_end;
};

Window window_of(std::int64_t oy, std::int64_t ox, Extents x, const core::OpAttrs& a) {
  const std::int64_t y0 = oy * a.stride - a.pad;
  const std::int64_t x0 = ox * a.stride - a.pad;
  return {std::max<std::int64_t>(y0, 0), std::min(y0 + a.kernel, x[1]), std::max<std::int64_t>(x0, 0),
          std::min(x0 + a.kernel, x[2])};
}

template <class T>
Maxima<T> find_maxima(const T* x, Extents shape, std::int64_t image, const Window& window, std::int64_t begin,
                      std::int64_t end) {
  Maxima<T> best{};
  bool first = true;
  for (std::int64_t y = window.y_begin; y < window.y_end; ++y) {
    for (std::int64_t col = window.x_begin; col < window.x_end; ++col) {
      const std::int64_t pixel = (image * shape[1] + y) * shape[2] + col;
      const T* values = x + pixel * shape[3] + begin;
      for (std::size_t c = 0; c < static_cast<std::size_t>(end - begin); ++c) {
        const bool better = first || values[c] > best.value[c];
        best.value[c] = better ? values[c] : best.value[c];
        best.at[c] = better ? pixel : best.at[c];
      }
      first = false;
    }
  }
  return best;
}

/// Calls body(output pixel, maxima) for each window of one image, in the order of the output pixels. `maxima` has the
/// maximum of each of the channels [begin, end) in the window.
template <class T, class F>
void for_windows(const T* x, Extents in, Extents out, const core::OpAttrs& attrs, std::int64_t image,
                 std::int64_t begin, std::int64_t end, const F& body) {
  for (std::int64_t oy = 0; oy < out[1]; ++oy) {
    for (std::int64_t ox = 0; ox < out[2]; ++ox) {
      body((image * out[1] + oy) * out[2] + ox, find_maxima(x, in, image, window_of(oy, ox, in, attrs), begin, end));
    }
  }
}

}  // namespace

template <class T>
void maxpool(const Call<T>& call) {
  const Extents in = call.shape(0);
  const std::int64_t channels = in[3];
  for_image_channels(in[0], channels, [&](std::int64_t image, std::int64_t begin, std::int64_t end) {
    for_windows(call.arg(0), in, Extents(call.op.shape), call.attrs(), image, begin, end,
                [&](std::int64_t pixel, const Maxima<T>& best) {
                  std::copy_n(best.value.begin(), end - begin, call.out + pixel * channels + begin);
                });
  });
}

template <class T>
void maxpool_grad(const Call<T>& call) {
  const Extents in = call.shape(1);
  const std::int64_t channels = in[3];
  const std::int64_t pixels = in[1] * in[2];
  for_image_channels(in[0], channels, [&](std::int64_t image, std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = image * pixels; p < (image + 1) * pixels; ++p) {
      std::fill(call.out + p * channels + begin, call.out + p * channels + end, T(0));
    }
    for_windows(call.arg(1), in, call.shape(0), call.attrs(), image, begin, end,
                [&](std::int64_t pixel, const Maxima<T>& best) {
                  for (std::int64_t c = begin; c < end; ++c) {
                    const std::int64_t winner = best.at[static_cast<std::size_t>(c - begin)];
                    call.out[winner * channels + c] += call.arg(0)[pixel * channels + c];
                  }
                });
  });
}

template <class T>
void maxpool_with_indices(const Call<T>& call) {
  const Extents in = call.shape(0), out(call.op.shape);
  const core::OpAttrs& a = call.attrs();
  auto* indices = static_cast<std::int32_t*>(call.more[0]);
  for_image_channels(in[0], in[3], [&](std::int64_t image, std::int64_t begin, std::int64_t end) {
    for_windows(call.arg(0), in, out, a, image, begin, end, [&](std::int64_t pixel, const Maxima<T>& best) {
      std::copy_n(best.value.begin(), end - begin, call.out + pixel * in[3] + begin);
      const std::int64_t y0 = pixel / out[2] % out[1] * a.stride - a.pad, x0 = pixel % out[2] * a.stride - a.pad;
      for (std::int64_t c = begin; c < end; ++c) {
        const std::int64_t at = best.at[static_cast<std::size_t>(c - begin)];
        const std::int64_t place = (at / in[2] % in[1] - y0) * a.kernel + (at % in[2] - x0);
        indices[pixel * in[3] + c] = static_cast<std::int32_t>(place);
      }
    });
  });
}

/// Computes dx, with the additions in the same order as in the GPU's kernel. Every element of dx is the sum of dy over
/// the windows whose maximum is at this element, in the order of the windows. An index that is outside its window is
/// ignored.
template <class T>
void maxpool_with_indices_grad(const Call<T>& call) {
  const Extents in(call.op.shape), out = call.shape(0);
  const core::OpAttrs& a = call.attrs();
  const std::int32_t* indices = call.args[1].integers();
  for_image_channels(in[0], in[3], [&](std::int64_t image, std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = image * in[1] * in[2]; p < (image + 1) * in[1] * in[2]; ++p) {
      std::fill(call.out + p * in[3] + begin, call.out + p * in[3] + end, T(0));
    }
    for (std::int64_t w = image * out[1] * out[2]; w < (image + 1) * out[1] * out[2]; ++w) {
      const std::int64_t y0 = w / out[2] % out[1] * a.stride - a.pad, x0 = w % out[2] * a.stride - a.pad;
      for (std::int64_t c = begin; c < end; ++c) {
        const std::int64_t place = indices[w * in[3] + c];
        const std::int64_t y = y0 + place / a.kernel, x = x0 + place % a.kernel;
        if (place < 0 || place >= a.kernel * a.kernel || y < 0 || y >= in[1] || x < 0 || x >= in[2]) continue;
        call.out[((image * in[1] + y) * in[2] + x) * in[3] + c] += call.arg(0)[w * in[3] + c];
      }
    }
  });
}

template <class T>
void mean_pool(const Call<T>& call) {
  const std::int64_t images = call.shape(0).front();
  const std::int64_t channels = last_extent(call.shape(0));
  const std::int64_t middle = row_count(call.shape(0)) / images;
  for_image_channels(images, channels, [&](std::int64_t image, std::int64_t begin, std::int64_t end) {
    std::array<double, kColumnBlock> sums{};
    for (std::int64_t p = image * middle; p < (image + 1) * middle; ++p) {
      const T* x = call.arg(0) + p * channels + begin;
      for (std::int64_t c = 0; c < end - begin; ++c) sums[static_cast<std::size_t>(c)] += static_cast<double>(x[c]);
    }
    for (std::int64_t c = begin; c < end; ++c) {
      const double mean = sums[static_cast<std::size_t>(c - begin)] / static_cast<double>(middle);
      call.out[image * channels + c] = static_cast<T>(mean);
    }
  });
}

template <class T>
void mean_pool_grad(const Call<T>& call) {
  const Extents shape(call.op.shape);
  const std::int64_t channels = last_extent(shape);
  const std::int64_t middle = row_count(shape) / shape.front();
  const T factor = T(1) / static_cast<T>(middle);
  for_rows(row_count(shape), channels, [&](std::int64_t r) {
    const T* dy = call.arg(0) + r / middle * channels;
    T* out = call.out + r * channels;
    for (std::int64_t c = 0; c < channels; ++c) out[c] = dy[c] * factor;
  });
}

template <class T>
void upsample(const Call<T>& call) {
  const Extents out(call.op.shape);
  const std::int64_t width = out[2];
  const std::int64_t channels = out[3];
  // The images are stored one after another, and the heights of the output images are even. So output row r, counted
  // through all images, is a copy of input row r / 2, also counted through all images.
  for_rows(out[0] * out[1], width * channels, [&](std::int64_t row) {
    const T* from = call.arg(0) + row / 2 * (width / 2) * channels;
    T* to = call.out + row * width * channels;
    for (std::int64_t x = 0; x < width; ++x) std::copy_n(from + x / 2 * channels, channels, to + x * channels);
  });
}

template <class T>
void upsample_grad(const Call<T>& call) {
  const Extents small(call.op.shape);
  const std::int64_t width = small[2];
  const std::int64_t channels = small[3];
  for_rows(small[0] * small[1], 4 * width * channels, [&](std::int64_t row) {
    for (std::int64_t x = 0; x < width; ++x) {
      const T* top = call.arg(0) + (2 * row * 2 * width + 2 * x) * channels;
      const T* bottom = top + 2 * width * channels;
      T* out = call.out + (row * width + x) * channels;
      for (std::int64_t c = 0; c < channels; ++c) {
        out[c] = (top[c] + top[channels + c]) + (bottom[c] + bottom[channels + c]);
      }
    }
  });
}

CAIRN_INSTANTIATE_KERNEL(maxpool);
CAIRN_INSTANTIATE_KERNEL(maxpool_grad);
CAIRN_INSTANTIATE_KERNEL(maxpool_with_indices);
CAIRN_INSTANTIATE_KERNEL(maxpool_with_indices_grad);
CAIRN_INSTANTIATE_KERNEL(mean_pool);
CAIRN_INSTANTIATE_KERNEL(mean_pool_grad);
CAIRN_INSTANTIATE_KERNEL(upsample);
CAIRN_INSTANTIATE_KERNEL(upsample_grad);

}  // namespace cairn::runtime::kernels
