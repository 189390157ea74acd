#pragma once

#include <algorithm>
#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/grid.h"

/// These kernels pool and resize images, which are stored as [images, height, width, channels]. A thread handles W
/// successive channels of one pixel (a chunk).
namespace cairn::runtime::device {

/// The windows of a maxpool over x. A window is given by a place: place.at[0], [1] and [2] are image, row and column of
/// the output pixel, and place.at[3] is the number of a chunk of W channels.
template <class T, int W>
struct MaxWindows {
  const T* x;
  Slide rows, cols;
  std::int64_t chunks;  ///< number of chunks in the channels of a pixel

  struct Maxima {
    Chunk<T, W> value;
    std::int32_t at[W];  ///< index of each maximum among the window's positions, in row-major order
  };

  /// Finds the maximum of each channel in a window, and its index; of several equal maxima, the first. As on the host,
  /// a maximum is NaN only if the window's first element is NaN. The indices must fit into int32.
  CAIRN_HD Maxima find(const Place<4>& place) const {
    const Range y = rows.inside(place.at[1]), x_range = cols.inside(place.at[2]);
    const std::int64_t y0 = rows.origin(place.at[1]), x0 = cols.origin(place.at[2]);
    const std::int64_t first_row = place.at[0] * rows.extent();
    Maxima best;
    best.value = load_chunk<W>(x, ((first_row + y.begin) * cols.extent() + x_range.begin) * chunks + place.at[3]);
    for (int i = 0; i < W; ++i)
      best.at[i] = static_cast<std::int32_t>((y.begin - y0) * cols.kernel() + (x_range.begin - x0));
    for (std::int32_t row = y.begin; row < y.end; ++row) {
      std::int64_t chunk = ((first_row + row) * cols.extent() + x_range.begin) * chunks + place.at[3];
      auto at = static_cast<std::uint32_t>((row - y0) * cols.kernel() + x_range.begin - x0);
      for (std::int32_t col = x_range.begin; col < x_range.end; col += kAhead) {
        Chunk<T, W> ahead[kAhead] = {};
        CAIRN_UNROLL
        for (int k = 0; k < kAhead; ++k) {
          if (col + k < x_range.end) ahead[k] = load_chunk<W>(x, chunk + k * chunks);
        }
        CAIRN_UNROLL
        for (int k = 0; k < kAhead; ++k) {
          if (col + k < x_range.end) keep_larger(ahead[k], static_cast<std::int32_t>(at + k), best);
        }
        chunk += kAhead * chunks;
        at += kAhead;
      }
    }
    return best;
  }

 private:
  static constexpr int kAhead = 4;

  CAIRN_HD static void keep_larger(const Chunk<T, W>& values, std::int32_t at, Maxima& best) {
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) {
      const bool better = to_float(values.value[i]) > to_float(best.value.value[i]);
      best.value.value[i] = better ? values.value[i] : best.value.value[i];
      best.at[i] = better ? at : best.at[i];
    }
  }
};

template <class T, int W>
struct MaxPool : StoreInOrder<T, W> {
  MaxWindows<T, W> windows;
  CAIRN_HD Chunk<T, W> load(const Place<4>& place) const { return windows.find(place).value; }
};

/// Writes, for each window, the index of the maximum among the window's positions, as one byte. All indices must be
/// below 256.
template <class T, int W>
struct Winners : StoreInOrder<std::uint8_t, W> {
  MaxWindows<T, W> windows;
  CAIRN_HD Chunk<std::uint8_t, W> load(const Place<4>& place) const {
    const auto best = windows.find(place);
    Chunk<std::uint8_t, W> result;
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) result.value[i] = static_cast<std::uint8_t>(best.at[i]);
    return result;
  }
};

/// Writes, for each window, the index of the maximum among the window's positions and, unless `out` is nullptr, the
/// maximum itself.
template <class T, int W>
struct MaxPoolWithIndices {
  using Maxima = typename MaxWindows<T, W>::Maxima;
  T* out;
  std::int32_t* indices;
  MaxWindows<T, W> windows;
  CAIRN_HD Maxima load(const Place<4>& place) const { return windows.find(place); }
  CAIRN_HD void store(const Place<4>&, std::int64_t index, const Maxima& best) const {
    if (out != nullptr) store_chunk(out, index, best.value);
    Chunk<std::int32_t, W> at;
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) at.value[i] = best.at[i];
    store_chunk(indices, index, at);
  }
};

/// Computes dx of a max pooling. Every element of dx is the sum of dy over all windows whose maximum is at this
/// element, in ascending order of windows. `winners` holds, for each window, the index of the maximum among the
/// window's positions.
template <class T, int W, class At>
struct MaxPoolGrad : StoreInOrder<T, W> {
  const T* dy;
  const At* winners;
  Slide rows, cols;
  std::int64_t chunks;  ///< number of chunks in the channels of a pixel

  CAIRN_HD Chunk<T, W> load(const Place<4>& place) const {
    const Range y = rows.over(place.at[1]), x = cols.over(place.at[2]);
    float sums[W] = {};
    for (std::int32_t row = y.begin; row < y.end; ++row) {
      const std::int64_t first = (place.at[0] * rows.windows() + row) * cols.windows() + x.begin;
      std::int64_t chunk = first * chunks + place.at[3];
      At here = static_cast<At>((place.at[1] - rows.origin(row)) * cols.kernel() + place.at[2] - cols.origin(x.begin));
      for (std::int32_t col = x.begin; col < x.end; col += kAhead) {
        Chunk<At, W> won[kAhead] = {};
        Chunk<T, W> gradient[kAhead] = {};
        CAIRN_UNROLL
        for (int k = 0; k < kAhead; ++k) {
          if (col + k < x.end) {
            won[k] = load_chunk<W>(winners, chunk + k * chunks);
            gradient[k] = load_chunk<W>(dy, chunk + k * chunks);
          }
        }
        chunk += kAhead * chunks;
        CAIRN_UNROLL
        for (int k = 0; k < kAhead; ++k) {
          CAIRN_UNROLL
          for (int i = 0; i < W; ++i) sums[i] += won[k].value[i] == here ? to_float(gradient[k].value[i]) : 0.0F;
          here = static_cast<At>(here - cols.stride());
        }
      }
    }
    return to_chunk<T>(sums);
  }

 private:
  static constexpr int kAhead =
      2;  // with stride 2 and a kernel of at most 3, no position is in more than two windows along an axis
};

/// Computes the sum over all pixels of an image, for each channel. The tensor x is regarded as [images, middle,
/// channels], where the middle axis counts the pixels (rows) of an image. It is divided into parts, whose sums are
/// computed separately. If there is only one part, the kernel computes the means right away. A team handles one part,
/// for a block of channels of one image. The team's threads are arranged in two dimensions: across the channels of the
/// block (W channels per thread), and along the rows of the part.
template <class T, int W>
struct MiddleSums {
  static constexpr int kThreads = 256;
  static constexpr int kMaxAcross = 32;
  static constexpr std::int64_t kSharedBytes = std::int64_t{kThreads} * W * sizeof(float);

  const T* x;
  T* means;                     ///< means [images, channels], if there is one part
  float* partials;              ///< sums [images, parts, channels], if there are several parts
  std::int64_t middle, chunks;  ///< number of rows of an image, and number of chunks in the channels of a row
  /// - parts: number of parts of the middle axis.
  /// - length: number of rows of a part; the last part can have fewer.
  std::int64_t parts, length;
  std::int32_t across;  ///< number of chunks in a block
  /// A grid with one place per team. Its axes are the image, the part of the middle axis, and the block of channels
  /// that the team sums up. There are fewer than 2^31 places, because a launch has fewer than 2^31 teams.
  Grid<3> teams;

  static std::int32_t across_of(std::int64_t chunks) {
    return static_cast<std::int32_t>(std::min<std::int64_t>(chunks, kMaxAcross));
  }
  /// Returns the number of parts into which the middle axis is divided. There are enough parts to keep a large GPU
  /// busy, but so few that every thread has several rows.
  static std::int64_t parts_of(std::int64_t images, std::int64_t middle, std::int64_t chunks) {
    constexpr std::int64_t kTeams = 2048, kRowsOfThread = 8;
    const std::int64_t across = across_of(chunks);
    const std::int64_t teams = images * blocks_of(chunks, across);
    return std::max<std::int64_t>(
        1, std::min(blocks_of(kTeams, teams), blocks_of(middle, kThreads / across * kRowsOfThread)));
  }

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    const Place<3> place = teams.place(static_cast<std::uint32_t>(index));
    const std::int64_t image = place.at[0], part = place.at[1], first_chunk = place.at[2] * across;
    const std::int64_t begin = part * length;
    const std::int64_t end = begin + length < middle ? begin + length : middle;
    const int down = kThreads / across;
    auto* sums = team.template shared<Chunk<float, W>>();
    for (int thread = team.rank(); thread < down * across; thread += team.size()) {
      const std::int64_t chunk = first_chunk + thread % across;
      if (chunk >= chunks) continue;
      const std::int64_t row = begin + thread / across;
      const std::int64_t rows = row < end ? (end - 1 - row) / down + 1 : 0;
      Chunk<float, W> total = {};
      add_chunks<4>(x, (image * middle + row) * chunks + chunk, down * chunks, rows, total);
      sums[thread] = total;
    }
    team.sync();
    for (int column = team.rank(); column < across; column += team.size()) {
      const std::int64_t chunk = first_chunk + column;
      if (chunk >= chunks) continue;
      Chunk<float, W> total = sums[column];
      for (int row = 1; row < down; ++row) {
        CAIRN_UNROLL
        for (int i = 0; i < W; ++i) total.value[i] += sums[row * across + column].value[i];
      }
      if (parts > 1) {
        store_chunk(partials, (image * parts + part) * chunks + chunk, total);
      } else {
        store_chunk(means, image * chunks + chunk, mean(total));
      }
    }
  }

  CAIRN_HD Chunk<T, W> mean(const Chunk<float, W>& total) const {
    Chunk<T, W> result;
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) result.value[i] = from_float<T>(total.value[i] / static_cast<float>(middle));
    return result;
  }
};

/// Adds the sums of the parts (MiddleSums::partials) in order, and divides the total by the number of pixels, which
/// gives the means. place.at[0] is an image, and place.at[1] is the number of a chunk of W channels.
template <class T, int W>
struct MeansOfParts : StoreInOrder<T, W> {
  MiddleSums<T, W> sums;
  CAIRN_HD Chunk<T, W> load(const Place<2>& place) const {
    Chunk<float, W> total = {};
    const std::int64_t first = place.at[0] * sums.parts * sums.chunks + place.at[1];
    add_chunks<4>(static_cast<const float*>(sums.partials), first, sums.chunks, sums.parts, total);
    return sums.mean(total);
  }
};

/// Computes dx of a mean over the pixels (rows) of an image: every row of dx is dy times `factor`, which is 1 / number
/// of rows. place.at[0] is an image, place.at[1] is a row, and place.at[2] is the number of a chunk of W channels.
template <class T, int W>
struct MeanPoolGrad : StoreInOrder<T, W> {
  const T* dy;
  std::int64_t chunks;
  float factor;
  CAIRN_HD Chunk<T, W> load(const Place<3>& place) const {
    Chunk<T, W> result = load_chunk<W>(dy, place.at[0] * chunks + place.at[2]);
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) result.value[i] = from_float<T>(to_float(result.value[i]) * factor);
    return result;
  }
};

/// Finds the four pixels of an image that correspond to one pixel of the image of half the height and width.
/// place.at[0] and [1] are row and column of the smaller image's pixel, and place.at[2] is the number of a chunk of W
/// channels. Rows are counted through all images, which are stored one after another. So row r of the smaller images
/// corresponds to rows 2 r and 2 r + 1 of the larger images.
struct FourPixels {
  std::int64_t width;  ///< width of the smaller image
  std::int64_t chunks;
  CAIRN_HD std::int64_t at(const Place<3>& place, int y, int x) const {
    return ((2 * place.at[0] + y) * 2 * width + 2 * place.at[1] + x) * chunks + place.at[2];
  }
};

template <class T, int W>
struct Upsample {
  const T* x;
  T* out;
  FourPixels pixels;
  CAIRN_HD Chunk<T, W> load(const Place<3>& place) const {
    return load_chunk<W>(x, (place.at[0] * pixels.width + place.at[1]) * pixels.chunks + place.at[2]);
  }
  CAIRN_HD void store(const Place<3>& place, std::int64_t, const Chunk<T, W>& chunk) const {
    CAIRN_UNROLL
    for (int i = 0; i < 4; ++i) store_chunk(out, pixels.at(place, i / 2, i % 2), chunk);
  }
};

template <class T, int W>
struct UpsampleGrad : StoreInOrder<T, W> {
  const T* dy;
  FourPixels pixels;
  CAIRN_HD Chunk<T, W> load(const Place<3>& place) const {
    Chunk<T, W> four[4];
    CAIRN_UNROLL
    for (int i = 0; i < 4; ++i) four[i] = load_chunk<W>(dy, pixels.at(place, i / 2, i % 2));
    Chunk<T, W> result;
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) {
      const float top = to_float(four[0].value[i]) + to_float(four[1].value[i]);
      const float bottom = to_float(four[2].value[i]) + to_float(four[3].value[i]);
      result.value[i] = from_float<T>(top + bottom);
    }
    return result;
  }
};

/// Calls body(TypeTag<T>, Width<W>). T is the type in which the call's tensors are stored. W is the number of elements
/// per access: as many as fit into 16 bytes if the number of channels is a multiple of this, else 1.
template <class F>
void with_channels(const Call& call, std::int64_t channels, const F& body) {
  with_storage(call.op.type, [&]<class T>(TypeTag<T> tag) {
    with_width<T>(rows_are_packed<T>(channels), [&](auto width) { body(tag, width); });
  });
}

template <class T, int W>
MaxWindows<T, W> max_windows(const T* x, Extents in, Extents out, const core::OpAttrs& a) {
  return {x, Slide(in[1], out[1], a.kernel, a.stride, a.pad), Slide(in[2], out[2], a.kernel, a.stride, a.pad),
          in[3] / W};
}

template <class Machine>
void maxpool(Launcher<Machine>& launcher, Call& call) {
  const Extents in = call.shape(0), out = call.out_shape();
  with_channels(call, in[3], [&]<class T, int kWidth>(TypeTag<T>, Width<kWidth>) {
    const auto windows = max_windows<T, kWidth>(call.arg<T>(0), in, out, call.attrs());
    for_places<1>(launcher, Grid<4>({out[0], out[1], out[2], windows.chunks}),
                  MaxPool<T, kWidth>{{call.output<T>()}, windows});
  });
}

/// Writes the index of the maximum of each window over x to `indices`. Also writes the maxima themselves, unless
/// `maxima` is nullptr.
template <class Machine>
void write_maxima(Launcher<Machine>& launcher, Call& call, const void* x, Extents in, Extents out, void* maxima,
                  std::int32_t* indices) {
  with_channels(call, in[3], [&]<class T, int kWidth>(TypeTag<T>, Width<kWidth>) {
    const auto windows = max_windows<T, kWidth>(static_cast<const T*>(x), in, out, call.attrs());
    for_places<1>(launcher, Grid<4>({out[0], out[1], out[2], windows.chunks}),
                  MaxPoolWithIndices<T, kWidth>{static_cast<T*>(maxima), indices, windows});
  });
}

/// Computes dx from dy and `winners`, the indices of the maxima within their windows.
template <class At, class Machine>
void add_gradients(Launcher<Machine>& launcher, Call& call, Extents in, Extents out, const At* winners) {
  with_channels(call, in[3], [&]<class T, int kWidth>(TypeTag<T>, Width<kWidth>) {
    const auto windows = max_windows<T, kWidth>(nullptr, in, out, call.attrs());
    for_places<1>(launcher, Grid<4>({in[0], in[1], in[2], windows.chunks}),
                  MaxPoolGrad<T, kWidth, At>{
                      {call.output<T>()}, call.arg<T>(0), winners, windows.rows, windows.cols, windows.chunks});
  });
}

template <class Machine>
void maxpool_with_indices(Launcher<Machine>& launcher, Call& call) {
  write_maxima(launcher, call, call.args[0].data, call.shape(0), call.out_shape(), call.out,
               call.output<std::int32_t>(1));
}

template <class Machine>
void maxpool_with_indices_grad(Launcher<Machine>& launcher, Call& call) {
  add_gradients(launcher, call, call.out_shape(), call.shape(0), call.arg<std::int32_t>(1));
}

/// Computes dx of a max pooling. First stores in scratch where the maximum of each window is. This takes one byte per
/// window if a window has at most 256 positions, else four bytes.
template <class Machine>
void maxpool_grad(Launcher<Machine>& launcher, Call& call) {
  constexpr std::int64_t kOneByte = 16;  // a window of 16 x 16 has 256 positions
  const Extents in = call.shape(1), out = call.shape(0);
  if (call.attrs().kernel > kOneByte) {
    auto* winners = call.scratch.take<std::int32_t>(elements(out));
    write_maxima(launcher, call, call.args[1].data, in, out, nullptr, winners);
    return add_gradients(launcher, call, in, out, winners);
  }
  auto* winners = call.scratch.take<std::uint8_t>(elements(out));
  with_channels(call, in[3], [&]<class T, int kWidth>(TypeTag<T>, Width<kWidth>) {
    const auto windows = max_windows<T, kWidth>(call.arg<T>(1), in, out, call.attrs());
    for_places<1>(launcher, Grid<4>({out[0], out[1], out[2], windows.chunks}), Winners<T, kWidth>{{winners}, windows});
  });
  add_gradients(launcher, call, in, out, winners);
}

template <class Machine>
void mean_pool(Launcher<Machine>& launcher, Call& call) {
  const Extents in = call.shape(0);
  const std::int64_t images = in.front(), channels = last_extent(in), middle = row_count(in) / images;
  with_channels(call, channels, [&]<class T, int kWidth>(TypeTag<T>, Width<kWidth>) {
    using Sums = MiddleSums<T, kWidth>;
    const std::int64_t chunks = channels / kWidth;
    const std::int64_t parts = Sums::parts_of(images, middle, chunks);
    float* partials = call.scratch.take<float>(parts > 1 ? images * parts * channels : 0);
    const std::int32_t across = Sums::across_of(chunks);
    const Sums sums{call.arg<T>(0),
                    call.output<T>(),
                    partials,
                    middle,
                    chunks,
                    parts,
                    blocks_of(middle, parts),
                    across,
                    Grid<3>({images, parts, blocks_of(chunks, across)})};
    launcher.launch(sums, sums.teams.count(), Sums::kSharedBytes);
    if (parts > 1) {
      for_places<1>(launcher, Grid<2>({images, chunks}), MeansOfParts<T, kWidth>{{call.output<T>()}, sums});
    }
  });
}

template <class Machine>
void mean_pool_grad(Launcher<Machine>& launcher, Call& call) {
  const Extents shape = call.out_shape();
  const std::int64_t images = shape.front(), channels = last_extent(shape), middle = row_count(shape) / images;
  with_channels(call, channels, [&]<class T, int kWidth>(TypeTag<T>, Width<kWidth>) {
    const std::int64_t chunks = channels / kWidth;
    for_places<kCopyUnroll<kWidth>>(
        launcher, Grid<3>({images, middle, chunks}),
        MeanPoolGrad<T, kWidth>{{call.output<T>()}, call.arg<T>(0), chunks, 1.0F / static_cast<float>(middle)});
  });
}

template <class Machine>
void upsample(Launcher<Machine>& launcher, Call& call) {
  const Extents small = call.shape(0);
  const bool packed = small[3] % elements_of_pack(call.op.type) == 0;
  with_move(call.op.type, packed, [&]<class Word, int kWidth>(Move<Word, kWidth> move) {
    const std::int64_t chunks = small[3] / move.elements;
    for_places<kCopyUnroll<kWidth>>(launcher, Grid<3>({small[0] * small[1], small[2], chunks}),
                                    Upsample<Word, kWidth>{call.arg<Word>(0), call.output<Word>(), {small[2], chunks}});
  });
}

template <class Machine>
void upsample_grad(Launcher<Machine>& launcher, Call& call) {
  const Extents small = call.out_shape();
  with_channels(call, small[3], [&]<class T, int kWidth>(TypeTag<T>, Width<kWidth>) {
    const std::int64_t chunks = small[3] / kWidth;
    for_places<1>(launcher, Grid<3>({small[0] * small[1], small[2], chunks}),
                  UpsampleGrad<T, kWidth>{{call.output<T>()}, call.arg<T>(0), {small[2], chunks}});
  });
}

template <class Machine>
void pool(Launcher<Machine>& launcher, Call& call) {
  using core::OpKind;
  switch (call.op.kind) {
    case OpKind::maxpool:
      return maxpool(launcher, call);
    case OpKind::maxpool_grad:
      return maxpool_grad(launcher, call);
    case OpKind::maxpool_with_indices:
      return maxpool_with_indices(launcher, call);
    case OpKind::maxpool_with_indices_grad:
      return maxpool_with_indices_grad(launcher, call);
    case OpKind::mean_pool:
      return mean_pool(launcher, call);
    case OpKind::mean_pool_grad:
      return mean_pool_grad(launcher, call);
    case OpKind::upsample:
      return upsample(launcher, call);
    case OpKind::upsample_grad:
      return upsample_grad(launcher, call);
    default:
      return;
  }
}

}  // namespace cairn::runtime::device
