#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/call.h"
#include "cairn/runtime/device/elements.h"

/// The kernels of this file compute a tensor in chunks of W successive elements. The position of a chunk is called a
/// place, and has one index per axis. Every chunk is computed independently of all other chunks.
namespace cairn::runtime::device {

/// W successive elements, which are loaded or stored by one access, or by several accesses of 16 bytes. Memory that
/// holds elements of another type than T may be accessed as chunks.
template <class T, int W>
struct [[gnu::may_alias]] alignas(W * sizeof(T) < 16 ? W * sizeof(T) : 16) Chunk {
  T value[W];
};

/// Loads chunk `index` of a tensor that is aligned to the size of a chunk.
template <int W, class T>
CAIRN_HD Chunk<T, W> load_chunk(const T* tensor, std::int64_t index) {
  return reinterpret_cast<const Chunk<T, W>*>(tensor)[index];
}
template <int W, class T>
CAIRN_HD void store_chunk(T* tensor, std::int64_t index, const Chunk<T, W>& chunk) {
  reinterpret_cast<Chunk<T, W>*>(tensor)[index] = chunk;
}

/// Returns a chunk of W values, rounded to type T.
template <class T, int W>
CAIRN_HD Chunk<T, W> to_chunk(const float (&values)[W]) {
  Chunk<T, W> chunk;
  CAIRN_UNROLL
  for (int i = 0; i < W; ++i) chunk.value[i] = from_float<T>(values[i]);
  return chunk;
}

/// Adds the `count` chunks at index, index + stride, ... to `total`, in this order. Each chunk is loaded kAhead
/// additions before it is added, so that kAhead loads are in flight. If the loop issued kAhead loads and then added
/// their results, the device's compiler would move each load down to the addition of its result.
template <int kAhead, int W, class T>
CAIRN_HD void add_chunks(const T* tensor, std::int64_t index, std::int64_t stride, std::int64_t count,
                         Chunk<float, W>& total) {
  Chunk<T, W> ahead[kAhead] = {};
  CAIRN_UNROLL
  for (int k = 0; k < kAhead; ++k) {
    if (k < count) ahead[k] = load_chunk<W>(tensor, index + k * stride);
  }
  for (; count > 0; count -= kAhead) {
    index += kAhead * stride;
    CAIRN_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      CAIRN_UNROLL
      for (int i = 0; i < W; ++i) total.value[i] += to_float(ahead[k].value[i]);
      ahead[k] = {};
      if (k + kAhead < count) ahead[k] = load_chunk<W>(tensor, index + k * stride);
    }
  }
}

/// Divides integers below 2^32 by a constant from 1 to 2^31. Uses a product and a shift instead of a division, which
/// takes about twenty instructions on a GPU.
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(std::int64_t value) {
    const auto d = static_cast<std::uint64_t>(value);
    while ((std::uint64_t{1} << shift_) < d) ++shift_;
    factor_ = static_cast<std::uint32_t>((((std::uint64_t{1} << shift_) - d) << 32) / d + 1);
  }
  CAIRN_HD std::uint32_t quotient(std::uint32_t n) const {
    const std::uint64_t product = static_cast<std::uint64_t>(n) * factor_;
    return static_cast<std::uint32_t>(((product >> 32) + n) >> shift_);
  }

 private:
  std::uint32_t factor_ = 1;
  std::uint32_t shift_ = 0;
};

/// The position of a chunk of W elements in a Grid: one index per axis.
template <int N>
struct Place {
  std::int64_t at[N];
};

/// Largest number of places that a Grid may have if Grid::place() is called. That function divides by extents with a
/// Divisor, which must be at most 2^31.
inline constexpr std::int64_t kMostPlaces = INT32_MAX;

/// All places of a dense tensor with N axes, numbered in row-major order. A place has one index per axis and stands for
/// one chunk of elements. All extents are at least 1.
template <int N>
class Grid {
 public:
  explicit Grid(const std::int64_t (&extents)[N]) {
    for (int axis = 0; axis < N; ++axis) {
      extent_[axis] = extents[axis];
      count_ *= extents[axis];
    }
    for (int axis = 0; axis < N && count_ <= kMostPlaces; ++axis) divisor_[axis] = Divisor(extents[axis]);
  }

  CAIRN_HD std::int64_t count() const { return count_; }
  std::int64_t extent(int axis) const { return extent_[axis]; }
  /// Returns the place with the given index, which must be below count(). The grid must have at most kMostPlaces.
  CAIRN_HD Place<N> place(std::uint32_t index) const {
    Place<N> place;
    CAIRN_UNROLL
    for (int axis = N - 1; axis > 0; --axis) {
      const std::uint32_t quotient = divisor_[axis].quotient(index);
      place.at[axis] = index - quotient * static_cast<std::uint32_t>(extent_[axis]);
      index = quotient;
    }
    place.at[0] = index;
    return place;
  }

 private:
  std::int64_t extent_[N];
  Divisor divisor_[N];
  std::int64_t count_ = 1;
};

/// A part of a larger grid. Its places have consecutive indices in the larger grid, from `first_index` on; `first` is
/// the place with this index.
template <int N>
struct GridPart {
  Grid<N> grid;
  std::int64_t first[N];
  std::int64_t first_index;
  bool is_all;  ///< whether the part is the whole grid

  CAIRN_HD Place<N> place(std::uint32_t index) const {
    Place<N> place = grid.place(index);
    CAIRN_UNROLL
    for (int axis = 0; axis < N; ++axis) place.at[axis] += first[axis];
    return place;
  }
};

/// Divides a grid into parts of at most `most` places each.
template <int N>
std::vector<GridPart<N>> parts_of(const Grid<N>& grid, std::int64_t most) {
  if (grid.count() <= most) return {{grid, {}, 0, true}};
  // A slice along an axis is the set of places with fixed indices on this axis and on all axes before it. The grid is
  // divided along `axis`, the first axis whose slices have at most `most` places. Each combination of indices on the
  // axes before `axis` is divided separately.
  int axis = 0;
  std::int64_t outer = 1, slice = grid.count() / grid.extent(0);
  while (slice > most && axis + 1 < N) {
    outer *= grid.extent(axis++);
    slice /= grid.extent(axis);
  }
  const std::int64_t extent = grid.extent(axis), step = std::min(extent, most / slice);
  std::vector<GridPart<N>> parts;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t begin = 0; begin < extent; begin += step) {
      std::int64_t extents[N];
      std::int64_t first[N] = {};
      std::int64_t rest = o;
      for (int other = N; other-- > 0;) {
        extents[other] = other < axis ? 1 : grid.extent(other);
        if (other >= axis) continue;
        first[other] = rest % grid.extent(other);
        rest /= grid.extent(other);
      }
      extents[axis] = std::min(step, extent - begin);
      first[axis] = begin;
      parts.push_back({Grid<N>(extents), {}, (o * extent + begin) * slice, false});
      std::copy_n(first, N, parts.back().first);
    }
  }
  return parts;
}

/// Kernel that calls body.store(place, index, body.load(place)) for every place of a part of a grid. Each thread
/// handles kUnroll places at once: it starts the loads of all of them before it uses a result (load_ahead()).
template <int kUnroll, int N, class Body>
struct ForPlaces {
  static constexpr int kThreads = 256;
  static constexpr std::int64_t kPlaces = kThreads * kUnroll;  ///< number of places that one team handles

  Body body;
  GridPart<N> part;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    const std::int64_t begin = index * kPlaces, end = begin + kPlaces, count = part.grid.count();
    if (kUnroll > 1 && part.is_all && end <= count) {
      run<true>(team, begin, end);
    } else {
      run<false>(team, begin, end < count ? end : count);
    }
  }

 private:
  struct Result {
    Place<N> place;
    decltype(std::declval<const Body&>().load(Place<N>())) value;
  };
  /// Loads and stores the places with indices [begin, end) in the part. If kWhole is set, the part must be the whole
  /// grid, and every thread must get exactly kUnroll places.
  template <bool kWhole, class Team>
  CAIRN_HD void run(const Team& team, std::int64_t begin, std::int64_t end) const {
    const auto load = [&](std::int64_t index) {
      const auto narrow = static_cast<std::uint32_t>(index);
      const Place<N> place = kWhole ? part.grid.place(narrow) : part.place(narrow);
      return Result{place, body.load(place)};
    };
    const auto store = [&](std::int64_t index, const Result& r) {
      body.store(r.place, kWhole ? index : part.first_index + index, r.value);
    };
    if constexpr (kUnroll > 1) {
      load_ahead<kUnroll, kWhole>(begin + team.rank(), team.size(), end, load, store);
    } else {
      // On a GPU, the compiler knows that kThreads / team.size() is 1, so it emits no loop.
      for (int round = 0; round < kThreads / team.size(); ++round) {
        const std::int64_t index = begin + team.rank() + round * team.size();
        if (index < end) store(index, load(index));
      }
    }
  }
};

/// Base class of bodies for ForPlaces: store() writes the chunk of a place to index `index` of `out`.
template <class T, int W>
struct StoreInOrder {
  T* out;
  template <int N>
  CAIRN_HD void store(const Place<N>&, std::int64_t index, const Chunk<T, W>& chunk) const {
    store_chunk(out, index, chunk);
  }
};

/// Computes a tensor with a Body, as ForPlaces describes. Every thread should have about four accesses in flight to
/// keep memory busy. So if load() makes one access per place, kUnroll should be about four.
template <int kUnroll, class Machine, int N, class Body>
void for_places(Launcher<Machine>& launcher, const Grid<N>& grid, const Body& body) {
  using Functor = ForPlaces<kUnroll, N, Body>;
  for (const GridPart<N>& part : parts_of(grid, kMostPlaces)) {
    launcher.launch(Functor{body, part}, blocks_of(part.grid.count(), Functor::kPlaces));
  }
}

/// The unit in which an op copies elements without computing with them. A unit consists of W words of type T, which
/// hold `elements` elements. T is an integer type, so that element types of the same size share a kernel.
template <class T, int W>
struct Move {
  int elements;
};

inline int elements_of_pack(core::ElementType type) { return 16 / static_cast<int>(core::element_bytes(type)); }

/// Calls body(move) with the Move for elements of `type`: 16 bytes if `packed` is true, else one element.
template <class F>
void with_move(core::ElementType type, bool packed, const F& body) {
  if (packed) {
    body(Move<std::uint32_t, 4>{elements_of_pack(type)});
  } else if (type == core::ElementType::bf16) {
    body(Move<std::uint16_t, 1>{1});
  } else {
    body(Move<std::uint32_t, 1>{1});
  }
}

/// Number of chunks that a thread copies at once. With chunks of one element, a thread needs more accesses in flight to
/// keep memory busy than with larger chunks.
template <int W>
inline constexpr int kCopyUnroll = W == 1 ? 8 : 4;

/// A range [begin, end) of positions or of windows along an axis.
struct Range {
  std::int32_t begin, end;
};

/// The positions of the windows of a pooling or convolution along one axis of an image. All extents are below 2^31.
class Slide {
 public:
  Slide(std::int64_t extent, std::int64_t windows, std::int64_t kernel, std::int64_t stride, std::int64_t pad)
      : extent_(extent), windows_(windows), kernel_(kernel), stride_(stride), pad_(pad), by_stride_(stride) {}

  CAIRN_HD std::int64_t extent() const { return extent_; }
  CAIRN_HD std::int64_t windows() const { return windows_; }
  CAIRN_HD std::int64_t kernel() const { return kernel_; }
  CAIRN_HD std::int64_t stride() const { return stride_; }
  /// Returns the first position of a window. The position is negative if it is in the padding.
  CAIRN_HD std::int64_t origin(std::int64_t window) const { return window * stride_ - pad_; }
  /// Returns the positions of a window that are inside the image.
  CAIRN_HD Range inside(std::int64_t window) const {
    const std::int64_t begin = origin(window), end = begin + kernel_;
    return {static_cast<std::int32_t>(begin > 0 ? begin : 0), static_cast<std::int32_t>(end < extent_ ? end : extent_)};
  }
  /// Returns the range of those windows that contain the given position of the image.
  CAIRN_HD Range over(std::int64_t position) const {
    const std::int64_t padded = position + pad_;
    const std::int64_t last = by_stride_.quotient(static_cast<std::uint32_t>(padded));
    // `first` is the first window that ends behind the position, i.e. with window * stride + kernel > padded.
    const std::int64_t before = padded - kernel_;
    const std::int64_t first = before < 0 ? 0 : by_stride_.quotient(static_cast<std::uint32_t>(before)) + 1;
    return {static_cast<std::int32_t>(first < windows_ ? first : windows_),
            static_cast<std::int32_t>(last < windows_ ? last + 1 : windows_)};
  }

 private:
  std::int64_t extent_, windows_, kernel_, stride_, pad_;
  Divisor by_stride_;
};
}  // namespace cairn::runtime::device
