#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/grid.h"
#include "cairn/runtime/device/kernels/bias.h"

/// This file computes convolutions. If a library (cuDNN on a GPU) supports the shape of a convolution, the library
/// computes it. Otherwise, it is computed as matrix products over patches. The patch of an output pixel consists of the
/// kernel_h x kernel_w x in_channels inputs that the pixel depends on. Patches are gathered into scratch, for a few
/// images (a tile) at a time. A 1x1 kernel with stride 1 and no padding needs no patches.
namespace cairn::runtime::device {

/// Largest number of bytes that the patches of a tile (a few images) should take.
inline constexpr std::int64_t kConvTileBytes = std::int64_t{64} << 20;

/// Says how the images are divided into tiles. A tile consists of whole images, so that each element of dx belongs to
/// one tile only.
struct ConvTiles {
  std::int64_t images = 0;  ///< number of images in a tile; the last tile may have fewer
  std::int64_t count = 0;
};

/// Returns tiles of about equal size, whose patches take at most `limit` bytes per tile, with one exception. Products
/// are faster if the part of y of every tile begins at a multiple of 16 bytes. So the number of images per tile is
/// rounded up until it does, even if the patches of a tile then take more than `limit` bytes.
inline ConvTiles conv_tiles(const ConvShape& s, std::int64_t limit) {
  const std::int64_t width = core::element_bytes(s.type);
  const std::int64_t y_bytes = s.out_h * s.out_w * s.out_c * width;
  const std::int64_t patch_bytes = s.out_h * s.out_w * s.kernel_h * s.kernel_w * s.in_c * width;
  std::int64_t step = 1;
  while (y_bytes * step % 16 != 0) step *= 2;
  const std::int64_t fitting = std::max<std::int64_t>(1, limit / patch_bytes);
  const std::int64_t even = blocks_of(s.images, blocks_of(s.images, fitting));
  ConvTiles tiles;
  tiles.images = std::min(s.images, blocks_of(even, step) * step);
  tiles.count = blocks_of(s.images, tiles.images);
  return tiles;
}

/// Copies the patches of x, with zeros outside the image. place.at[0], [1] and [2] are image, row and column of y.
/// place.at[3] is the row of the kernel, and place.at[4] is the number of a chunk of W elements in this row of the
/// patch. A row of a patch is contiguous in x, too, so whole chunks can be copied.
template <class T, int W>
struct GatherPatches : StoreInOrder<T, W> {
  const T* x;
  Slide rows, cols;
  std::int64_t chunks;  ///< number of chunks in the channels of a pixel

  CAIRN_HD Chunk<T, W> load(const Place<5>& place) const {
    const std::int64_t row = rows.origin(place.at[1]) + place.at[3];
    const std::int64_t chunk = cols.origin(place.at[2]) * chunks + place.at[4];
    const std::int64_t line = cols.extent() * chunks;
    if (row < 0 || row >= rows.extent() || chunk < 0 || chunk >= line) return {};
    return load_chunk<W>(x, (place.at[0] * rows.extent() + row) * line + chunk);
  }
};

/// Computes dx from the gradients of the patches. An element of x has a copy in the patch of every window that contains
/// the element. Its gradient in dx is the sum of the gradients of these copies, in ascending order of windows.
/// place.at[0], [1] and [2] are image, row and column of dx, and place.at[3] is the number of a chunk of W channels.
template <class T, int W>
struct AddPatches : StoreInOrder<T, W> {
  const T* patches;
  Slide rows, cols;
  std::int64_t chunks;        ///< number of chunks in the channels of a pixel
  std::int64_t patch_chunks;  ///< number of chunks in a patch

  CAIRN_HD Chunk<T, W> load(const Place<4>& place) const {
    constexpr int kAhead = 4;
    // The next window begins `stride` columns later. Within that window, the same pixel is therefore `stride` columns
    // further left.
    const std::int64_t to_next = patch_chunks - cols.stride() * chunks;
    const Range y = rows.over(place.at[1]), x = cols.over(place.at[2]);
    float sums[W] = {};
    for (std::int32_t row = y.begin; row < y.end; ++row) {
      const std::int64_t window = (place.at[0] * rows.windows() + row) * cols.windows() + x.begin;
      const std::int64_t of_kernel =
          (place.at[1] - rows.origin(row)) * cols.kernel() + place.at[2] - cols.origin(x.begin);
      std::int64_t chunk = window * patch_chunks + of_kernel * chunks + place.at[3];
      for (std::int32_t col = x.begin; col < x.end; col += kAhead) {
        Chunk<T, W> terms[kAhead] = {};
        CAIRN_UNROLL
        for (int k = 0; k < kAhead; ++k) {
          if (col + k < x.end) terms[k] = load_chunk<W>(patches, chunk + k * to_next);
        }
        chunk += kAhead * to_next;
        CAIRN_UNROLL
        for (int k = 0; k < kAhead; ++k) {
          CAIRN_UNROLL
          for (int i = 0; i < W; ++i) sums[i] += to_float(terms[k].value[i]);
        }
      }
    }
    return to_chunk<T>(sums);
  }
};

/// Adds `count` tensors in order. Each tensor begins `stride` chunks (of W elements) after the previous tensor.
/// place.at[0] is the number of a chunk of the sum.
template <class T, int W>
struct SumTensors : StoreInOrder<T, W> {
  const T* first;
  std::int64_t count, stride;
  CAIRN_HD Chunk<T, W> load(const Place<1>& place) const {
    Chunk<float, W> sums = {};
    add_chunks<2>(first, place.at[0], stride, count, sums);
    return to_chunk<T>(sums.value);
  }
};

/// Computes a convolution of shape `s` as matrix products. T is the type in which tensor elements are stored.
template <class T, class Machine>
class LoweredConv {
 public:
  LoweredConv(Launcher<Machine>& launcher, Call& call, const ConvShape& s, std::int64_t tile_bytes)
      : launcher_(launcher),
        call_(call),
        s_(s),
        tiles_(conv_tiles(s, tile_bytes)),
        rows_(s.in_h, s.out_h, s.kernel_h, s.stride, s.pad),
        cols_(s.in_w, s.out_w, s.kernel_w, s.stride, s.pad),
        pixels_(s.out_h * s.out_w),
        patch_(s.kernel_h * s.kernel_w * s.in_c) {
    // A convolution without patches needs no tiles.
    if (pointwise()) tiles_ = {s.images, 1};
    bias_ = s.kind == ConvKind::forward && call.args.size() == 3;
    for_sizes(
        [&](std::int64_t, std::int64_t images) { bias_ = bias_ && call_.library.gemm_adds_bias(product(images)); });
  }

  /// Computes y = patches * w^T, and adds the bias if there is one.
  void forward(const T* x, const T* w, const T* bias, T* y) {
    T* patches = take_patches();
    void* workspace = take_workspace();
    for_tiles([&](std::int64_t first, std::int64_t images) {
      const T* a = gathered(x, first, images, patches);
      call_.gemm(product(images), {.a = a, .b = w, .bias = bias, .c = at(y, first * pixels_ * s_.out_c)}, workspace);
    });
    if (call_.args.size() == 3 && !bias_) add_bias(launcher_, bias, y, s_.images * pixels_, s_.out_c);
  }

  /// Computes the gradients of the patches as the product dy * w, and dx as sums of these gradients. The gradients are
  /// stored as T, and added in fp32.
  void grad_input(const T* dy, const T* w, T* dx) {
    T* patches = take_patches();
    void* workspace = take_workspace();
    for_tiles([&](std::int64_t first, std::int64_t images) {
      T* const dx_tile = at(dx, first * s_.in_h * s_.in_w * s_.in_c);
      T* const c = pointwise() ? dx_tile : patches;
      call_.gemm(product(images), {.a = at(dy, first * pixels_ * s_.out_c), .b = w, .c = c}, workspace);
      if (!pointwise()) add_patches(patches, images, dx_tile);
    });
  }

  /// Computes dw as the sum of the products dy^T * patches of all tiles. In fp32, each product is added to dw. In bf16,
  /// the product of each tile is stored separately and rounded once; then the sum of the products is computed in fp32
  /// and rounded once. If the sum were stored in dw after each tile, it would be rounded each time, and the error would
  /// grow with the number of tiles.
  void grad_weight(const T* dy, const T* x, T* dw) {
    T* patches = take_patches();
    void* workspace = take_workspace();
    constexpr std::int64_t kWidth = Pack<T>::kWidth;
    const std::int64_t count = s_.out_c * patch_;
    const std::int64_t stride = blocks_of(count, kWidth) * kWidth;
    constexpr bool kRounds = !std::is_same_v<T, float>;
    const bool apart = kRounds && tiles_.count > 1;
    T* const products = apart ? call_.scratch.template take<T>(tiles_.count * stride) : dw;
    for_tiles([&](std::int64_t first, std::int64_t images) {
      const T* b = gathered(x, first, images, patches);
      T* const c = apart ? at(products, first / tiles_.images * stride) : dw;
      call_.gemm(product(images, !apart && first > 0), {.a = at(dy, first * pixels_ * s_.out_c), .b = b, .c = c},
                 workspace);
    });
    if constexpr (kRounds) {
      if (!apart) return;
      with_width<T>(rows_are_packed<T>(count), [&]<int kChunk>(Width<kChunk>) {
        for_places<1>(launcher_, Grid<1>({count / kChunk}),
                      SumTensors<T, kChunk>{{dw}, products, tiles_.count, stride / kChunk});
      });
    }
  }

 private:
  bool pointwise() const { return s_.kernel_h == 1 && s_.kernel_w == 1 && s_.stride == 1 && s_.pad == 0; }

  /// Returns the address `offset` elements behind `tensor`, or nullptr if `tensor` is nullptr, as it is while scratch
  /// is only counted.
  template <class U>
  static U* at(U* tensor, std::int64_t offset) {
    return tensor == nullptr ? nullptr : tensor + offset;
  }

  template <class F>
  void for_tiles(const F& body) {
    for (std::int64_t first = 0; first < s_.images; first += tiles_.images) {
      body(first, std::min(tiles_.images, s_.images - first));
    }
  }

  /// Calls body(first image, number of images) once for each shape that the products of the tiles can have: for the
  /// first tile, for the second tile, and for the last tile if it is smaller. All remaining tiles have products of the
  /// same shape as the second tile.
  template <class F>
  void for_sizes(const F& body) {
    for_tiles([&](std::int64_t first, std::int64_t images) {
      if (first == 0 || first == tiles_.images || images != tiles_.images) body(first, images);
    });
  }

  GemmShape product(std::int64_t images, bool accumulate = false) const {
    GemmShape shape;
    shape.tf32 = s_.tf32;
    shape.type = s_.type;
    shape.accumulate = accumulate;
    switch (s_.kind) {
      case ConvKind::forward:
        shape.trans_b = true;
        shape.bias = bias_;
        shape.m = images * pixels_;
        shape.n = s_.out_c;
        shape.k = patch_;
        break;
      case ConvKind::grad_input:
        shape.m = images * pixels_;
        shape.n = patch_;
        shape.k = s_.out_c;
        break;
      case ConvKind::grad_weight:
        shape.trans_a = true;
        shape.m = s_.out_c;
        shape.n = patch_;
        shape.k = images * pixels_;
        break;
    }
    return shape;
  }

  T* take_patches() { return pointwise() ? nullptr : call_.scratch.template take<T>(tiles_.images * pixels_ * patch_); }

  /// Takes one workspace that suffices for the products of all tiles. The products can differ in the number of images,
  /// and in whether the result is added to the sum of the previous tiles.
  void* take_workspace() {
    std::int64_t bytes = 0;
    for_sizes([&](std::int64_t first, std::int64_t images) {
      const bool accumulate = s_.kind == ConvKind::grad_weight && s_.type == core::ElementType::f32 && first > 0;
      bytes = std::max(bytes, call_.library.gemm_workspace(product(images, accumulate)));
    });
    return call_.scratch.template take<std::byte>(bytes);
  }

  /// Gathers the patches of images [first, first + images) into `patches` and returns them. If patches are not needed,
  /// returns the images in x.
  const T* gathered(const T* x, std::int64_t first, std::int64_t images, T* patches) {
    const T* const tile = at(x, first * s_.in_h * s_.in_w * s_.in_c);
    if (pointwise()) return tile;
    with_move(s_.type, rows_are_packed<T>(s_.in_c), [&]<class Word, int kWidth>(Move<Word, kWidth> move) {
      const std::int64_t chunks = s_.in_c / move.elements;
      for_places<kCopyUnroll<kWidth>>(
          launcher_, Grid<5>({images, s_.out_h, s_.out_w, s_.kernel_h, s_.kernel_w * chunks}),
          GatherPatches<Word, kWidth>{
              {reinterpret_cast<Word*>(patches)}, reinterpret_cast<const Word*>(tile), rows_, cols_, chunks});
    });
    return patches;
  }

  void add_patches(const T* patches, std::int64_t images, T* dx) {
    with_width<T>(rows_are_packed<T>(s_.in_c), [&]<int kWidth>(Width<kWidth>) {
      const std::int64_t chunks = s_.in_c / kWidth;
      for_places<1>(launcher_, Grid<4>({images, s_.in_h, s_.in_w, chunks}),
                    AddPatches<T, kWidth>{{dx}, patches, rows_, cols_, chunks, patch_ / kWidth});
    });
  }

  Launcher<Machine>& launcher_;
  Call& call_;
  ConvShape s_;
  ConvTiles tiles_;
  Slide rows_, cols_;
  std::int64_t pixels_;  ///< number of pixels of y in one image
  std::int64_t patch_;   ///< number of elements in a patch
  bool bias_ = false;    ///< whether the library adds the bias within the products
};

template <class T, class Machine>
void lower_conv(Launcher<Machine>& launcher, Call& call, const ConvShape& s, std::int64_t tile_bytes) {
  LoweredConv<T, Machine> lowered(launcher, call, s, tile_bytes);
  const T *first = call.arg<T>(0), *second = call.arg<T>(1);
  switch (s.kind) {
    case ConvKind::forward:
      return lowered.forward(first, second, call.args.size() == 3 ? call.arg<T>(2) : nullptr, call.output<T>());
    case ConvKind::grad_input:
      return lowered.grad_input(first, second, call.output<T>());
    case ConvKind::grad_weight:
      return lowered.grad_weight(first, second, call.output<T>());
  }
}

/// Computes the convolution of a call. If the convolution is divided into tiles, the patches of a tile take at most
/// `tile_bytes` bytes.
template <class Machine>
void conv_in_tiles(Launcher<Machine>& launcher, Call& call, std::int64_t tile_bytes) {
  const ConvShape s = conv_shape(call);
  // Without a bias, the size of the op's scratch selects one of several algorithms. With a bias, the library selects
  // the algorithm, because the algorithms were measured only without a bias.
  const bool has_variants = call.args.size() < 3;
  const auto workspace_bytes = call.library.conv_workspace(s, has_variants ? call.scratch.given() : std::nullopt);
  with_storage(s.type, [&]<class T>(TypeTag<T>) {
    if (!workspace_bytes) return lower_conv<T>(launcher, call, s, tile_bytes);
    auto* workspace = call.scratch.take<std::byte>(*workspace_bytes);
    if (!call.scratch.counts())
      call.library.conv(s, {call.args[0].data, call.args[1].data, call.out}, workspace, *workspace_bytes);
    if (call.args.size() < 3) return;
    add_bias(launcher, call.arg<T>(2), call.output<T>(), s.images * s.out_h * s.out_w, s.out_c);
  });
}

template <class Machine>
void conv(Launcher<Machine>& launcher, Call& call) {
  conv_in_tiles(launcher, call, kConvTileBytes);
}

}  // namespace cairn::runtime::device
