#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/grid.h"

/// These kernels move elements without arithmetic, W successive elements (a chunk) at a time.
namespace cairn::runtime::device {

/// Concatenates each row of a with the same row of b. place.at[0] is the row, and place.at[1] is the number of a chunk
/// of W elements in the concatenated row.
template <class T, int W>
struct Concat : StoreInOrder<T, W> {
  const T *a, *b;
  std::int64_t a_chunks, b_chunks;
  CAIRN_HD Chunk<T, W> load(const Place<2>& place) const {
    const std::int64_t in_b = place.at[1] - a_chunks;
    return in_b < 0 ? load_chunk<W>(a, place.at[0] * a_chunks + place.at[1])
                    : load_chunk<W>(b, place.at[0] * b_chunks + in_b);
  }
};

/// Copies chunks of W elements: out[place] is the chunk of x at index `first` + the sum of `place.at[axis] *
/// stride[axis]` over all axes. All indices and strides count chunks.
template <class T, int W, int N>
struct Gather : StoreInOrder<T, W> {
  const T* x;
  std::int64_t first;
  std::int64_t stride[N];
  CAIRN_HD Chunk<T, W> load(const Place<N>& place) const {
    std::int64_t from = first;
    CAIRN_UNROLL
    for (int axis = 0; axis < N; ++axis) from += place.at[axis] * stride[axis];
    return load_chunk<W>(x, from);
  }
};

inline constexpr int kMaxAxes = 8;  ///< largest number of axes of permute

/// A permutation of the axes of a tensor x. `axes` lists the output's axes in order, without axes of extent 1. Axes
/// that follow each other directly in x and also in the output are merged into one.
struct Permutation {
  struct Axis {
    std::int64_t extent;
    std::int64_t from;  ///< stride in x
    std::int64_t to;    ///< stride in the output
  };
  Axis axes[kMaxAxes] = {};
  int rank = 0;

  Permutation(Extents in, std::span<const std::int64_t> perm) {
    std::int64_t strides[kMaxAxes] = {};
    std::int64_t stride = 1;
    for (std::size_t axis = in.size(); axis-- > 0; stride *= in[axis]) strides[axis] = stride;
    for (const std::int64_t axis : perm) append(in[static_cast<std::size_t>(axis)], strides[axis]);
    if (rank == 0) axes[rank++] = {1, 1, 1};
    stride = 1;
    for (int axis = rank; axis-- > 0; stride *= axes[axis].extent) axes[axis].to = stride;
  }

  const Axis& last() const { return axes[rank - 1]; }
  /// Returns the element of `axes` that is x's last axis.
  const Axis& last_of_x() const {
    int axis = 0;
    while (axes[axis].from != 1) ++axis;
    return axes[axis];
  }
  /// Returns whether elements can be loaded in aligned pairs along x's last axis, and stored in aligned pairs along the
  /// output's last axis.
  bool in_pairs() const {
    return std::all_of(axes, axes + rank, [&](const Axis& axis) {
      const bool is_last = axis.from == 1 || axis.to == 1;
      return (axis.from % 2 == 0 || axis.from == 1) && (axis.to % 2 == 0 || axis.to == 1) &&
             (!is_last || axis.extent % 2 == 0);
    });
  }

 private:
  void append(std::int64_t extent, std::int64_t from) {
    if (extent == 1) return;
    if (rank > 0 && axes[rank - 1].from == from * extent) {
      axes[rank - 1].extent *= extent;
      axes[rank - 1].from = from;
    } else {
      axes[rank++] = {extent, from, 0};
    }
  }
};

/// Transposes one tile per team in shared memory, so that both x and the output are accessed along their last axes. A
/// tile has 2^log_wide elements along x's last axis and 2^log_high elements along the output's last axis, kTile
/// elements in total. One access reads or writes one value of type Side, which holds kSide neighbouring elements. A
/// thread transposes squares of kSide x kSide elements in its registers.
template <class T, int kSide>
struct Transpose {
  static constexpr int kThreads = 256;
  static constexpr int kTile = 4096;
  using Side = Chunk<T, kSide>;
  static constexpr int kBank = 4;  ///< number of bytes of a bank of shared memory
  /// Padding between two columns of the tile in shared memory, as a number of values of type Side. With this padding,
  /// neighbouring columns begin in different banks.
  static constexpr int kPadding = sizeof(Side) < kBank ? kBank / static_cast<int>(sizeof(Side)) : 1;

  const T* x;
  T* out;
  int log_wide, log_high;
  std::int64_t wide, high;  ///< wide: extent of x's last axis; high: extent of the output's last axis
  std::int64_t high_from;   ///< stride in x of the output's last axis
  std::int64_t wide_to;     ///< stride in the output of x's last axis
  Permutation::Axis other[kMaxAxes - 2];
  /// A grid with one place per team. Its axes are the axes in `other`, then the tiles along `high`, then the tiles
  /// along `wide`. There are fewer than 2^31 places, because a launch has fewer than 2^31 teams.
  Grid<kMaxAxes> tiles;

  /// Returns the bytes of shared memory for tiles of 2^log_wide columns.
  static std::int64_t shared_bytes(int log_wide) {
    const std::int64_t sides = (kTile >> log_wide) / kSide;
    return ((sides + kPadding) << log_wide) * static_cast<std::int64_t>(sizeof(Side));
  }

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    const Place<kMaxAxes> place = tiles.place(static_cast<std::uint32_t>(index));
    const std::int64_t first_high = place.at[kMaxAxes - 2] << log_high, first_wide = place.at[kMaxAxes - 1] << log_wide;
    std::int64_t from = first_high * high_from + first_wide, to = first_wide * wide_to + first_high;
    CAIRN_UNROLL
    for (int axis = 0; axis < kMaxAxes - 2; ++axis) {
      from += place.at[axis] * other[axis].from;
      to += place.at[axis] * other[axis].to;
    }
    const std::int64_t width = wide - first_wide, height = high - first_high;
    const int tile_wide = 1 << log_wide, tile_high = 1 << log_high;
    if (width >= tile_wide && height >= tile_high) {
      turn<true>(team, x + from, out + to, tile_wide, tile_high);
    } else {
      turn<false>(team, x + from, out + to, static_cast<int>(width < tile_wide ? width : tile_wide),
                  static_cast<int>(height < tile_high ? height : tile_high));
    }
  }

 private:
  static constexpr int kLogSide = kSide == 1 ? 0 : 1;
  static_assert(kSide == 1 << kLogSide);

  /// Row and column of an item of the tile. While the tile is read from x, an item is a square of kSide x kSide
  /// elements. While the tile is written to the output, an item is a value of type Side.
  struct Position {
    int row, column;
  };
  /// Returns row and column of the item with index `thread + k * kThreads` in row-major order, if a row has 2^log
  /// items.
  CAIRN_HD static Position position(int thread, int k, int log) {
    const int mask = (1 << log) - 1, step = k * kThreads;
    return {(thread >> log) + (step >> log), (thread & mask) + (step & mask)};
  }

  /// Transposes one tile. If kWhole is set, the tile must be full; then positions are not compared with `width` and
  /// `height`.
  template <bool kWhole, class Team>
  CAIRN_HD void turn(const Team& team, const T* in, T* to, int width, int height) const {
    constexpr int kSquares = kTile / (kSide * kSide) / kThreads, kColumns = kTile / kSide / kThreads;
    Side* tile = team.template shared<Side>();
    const int pitch = (1 << (log_high - kLogSide)) + kPadding;  // number of Sides from one column to the next
    for (int thread = team.rank(); thread < kThreads; thread += team.size()) {
      Side held[kSquares][kSide];
      CAIRN_UNROLL
      for (int k = 0; k < kSquares; ++k) {
        const Position at = position(thread, k, log_wide - kLogSide);
        const int row = at.row * kSide, column = at.column * kSide;
        CAIRN_UNROLL
        for (int i = 0; i < kSide; ++i) {
          if (kWhole || (column < width && row < height)) {
            held[k][i] = load_chunk<kSide>(in + (row + i) * high_from + column, 0);
          }
        }
      }
      CAIRN_UNROLL
      for (int k = 0; k < kSquares; ++k) {
        const Position at = position(thread, k, log_wide - kLogSide);
        const int column = at.column * kSide;
        CAIRN_UNROLL
        for (int i = 0; i < kSide; ++i) {
          Side turned;
          CAIRN_UNROLL
          for (int j = 0; j < kSide; ++j) turned.value[j] = held[k][j].value[i];
          if (kWhole || (column < width && at.row * kSide < height)) tile[(column + i) * pitch + at.row] = turned;
        }
      }
    }
    team.sync();
    for (int thread = team.rank(); thread < kThreads; thread += team.size()) {
      CAIRN_UNROLL
      for (int k = 0; k < kColumns; ++k) {
        const Position at = position(thread, k, log_high - kLogSide);
        if (kWhole || (at.row < width && at.column * kSide < height)) {
          store_chunk(to + at.row * wide_to, at.column, tile[at.row * pitch + at.column]);
        }
      }
    }
  }
};

/// A shape of tiles, and the fraction of the tiles' elements that is used if an area [wide, high] is divided into such
/// tiles.
struct TileFit {
  int log_wide = 0, log_high = 0;
  double used = 0;
};
inline TileFit best_tiles(std::int64_t wide, std::int64_t high) {
  TileFit best;
  constexpr int kLogs[][2] = {{6, 6}, {7, 5}, {5, 7}, {8, 4}, {4, 8}, {10, 2}, {2, 10}};
  for (const auto& [log_wide, log_high] : kLogs) {
    const auto covered = [](std::int64_t extent, int log) {
      return static_cast<double>(extent) / static_cast<double>(blocks_of(extent, std::int64_t{1} << log) << log);
    };
    const double used = covered(wide, log_wide) * covered(high, log_high);
    if (used > best.used) best = {log_wide, log_high, used};
  }
  return best;
}

template <class T, int kSide, class Machine>
void transpose(Launcher<Machine>& launcher, const T* x, T* out, const Permutation& p, const TileFit& fit) {
  using Functor = Transpose<T, kSide>;
  const Permutation::Axis &wide = p.last_of_x(), &high = p.last();
  Permutation::Axis other[kMaxAxes - 2] = {};
  std::int64_t extents[kMaxAxes];
  std::fill(extents, extents + kMaxAxes, 1);
  int others = 0;
  for (int axis = 0; axis < p.rank; ++axis) {
    if (&p.axes[axis] == &wide || &p.axes[axis] == &high) continue;
    other[others] = p.axes[axis];
    extents[others++] = p.axes[axis].extent;
  }
  extents[kMaxAxes - 2] = blocks_of(high.extent, std::int64_t{1} << fit.log_high);
  extents[kMaxAxes - 1] = blocks_of(wide.extent, std::int64_t{1} << fit.log_wide);
  Functor functor{x,           out,       fit.log_wide, fit.log_high, wide.extent,
                  high.extent, high.from, wide.to,      {},           Grid<kMaxAxes>(extents)};
  std::copy_n(other, kMaxAxes - 2, functor.other);
  launcher.launch(functor, functor.tiles.count(), Functor::shared_bytes(fit.log_wide));
}

template <int N, class Word, int W, class Machine>
void gather(Launcher<Machine>& launcher, Call& call, const Permutation& p, const Move<Word, W>& move) {
  std::int64_t extents[N];
  Gather<Word, W, N> body{{call.output<Word>()}, call.arg<Word>(0), 0, {}};
  for (int axis = 0; axis < N; ++axis) {
    const int of_p = axis - (N - p.rank);
    extents[axis] = of_p < 0 ? 1 : p.axes[of_p].extent;
    body.stride[axis] = of_p < 0 ? 0 : p.axes[of_p].from / move.elements;
  }
  if (W > 1) {
    extents[N - 1] /= move.elements;
    body.stride[N - 1] = 1;
  }
  for_places<kCopyUnroll<W>>(launcher, Grid<N>(extents), body);
}

template <class Machine>
void permute(Launcher<Machine>& launcher, Call& call) {
  const Permutation p(call.shape(0), call.attrs().perm);
  const core::ElementType type = call.op.type;
  const bool runs = p.last().from == 1;
  const TileFit fit = best_tiles(p.last_of_x().extent, p.last().extent);
  // If the last axes of the input and of the output are so short that tiles would be nearly empty, a direct copy is as
  // fast as tiles: a few cache lines then hold all elements along both axes.
  constexpr double kWorthTiles = 1.0 / 8;
  if (!runs && fit.used >= kWorthTiles) {
    return with_storage(type, [&]<class T>(TypeTag<T>) {
      const T* x = call.arg<T>(0);
      T* out = call.output<T>();
      if constexpr (sizeof(T) == 2) {
        if (p.in_pairs()) return transpose<T, 2>(launcher, x, out, p, fit);
      }
      return transpose<T, 1>(launcher, x, out, p, fit);
    });
  }
  with_move(type, runs && p.last().extent % elements_of_pack(type) == 0, [&](auto move) {
    if (p.rank <= 4) {
      gather<4>(launcher, call, p, move);
    } else {
      gather<kMaxAxes>(launcher, call, p, move);
    }
  });
}

template <class Machine>
void concat(Launcher<Machine>& launcher, Call& call) {
  const std::int64_t a_cols = last_extent(call.shape(0)), b_cols = last_extent(call.shape(1));
  const int of_pack = elements_of_pack(call.op.type);
  const bool packed = a_cols % of_pack == 0 && b_cols % of_pack == 0;
  with_move(call.op.type, packed, [&]<class Word, int kWidth>(Move<Word, kWidth> move) {
    const std::int64_t a_chunks = a_cols / move.elements, b_chunks = b_cols / move.elements;
    for_places<kCopyUnroll<kWidth>>(
        launcher, Grid<2>({row_count(call.shape(0)), a_chunks + b_chunks}),
        Concat<Word, kWidth>{{call.output<Word>()}, call.arg<Word>(0), call.arg<Word>(1), a_chunks, b_chunks});
  });
}

template <class Machine>
void slice(Launcher<Machine>& launcher, Call& call) {
  const std::int64_t from_cols = last_extent(call.shape(0)), cols = last_extent(call.out_shape());
  const std::int64_t offset = call.attrs().offset;
  const int of_pack = elements_of_pack(call.op.type);
  const bool packed = from_cols % of_pack == 0 && cols % of_pack == 0 && offset % of_pack == 0;
  with_move(call.op.type, packed, [&]<class Word, int kWidth>(Move<Word, kWidth> move) {
    for_places<kCopyUnroll<kWidth>>(
        launcher, Grid<2>({row_count(call.out_shape()), cols / move.elements}),
        Gather<Word, kWidth, 2>{
            {call.output<Word>()}, call.arg<Word>(0), offset / move.elements, {from_cols / move.elements, 1}});
  });
}

template <class Machine>
void shape(Launcher<Machine>& launcher, Call& call) {
  switch (call.op.kind) {
    case core::OpKind::concat:
      return concat(launcher, call);
    case core::OpKind::slice:
      return slice(launcher, call);
    case core::OpKind::permute:
      return permute(launcher, call);
    default:
      return;
  }
}

}  // namespace cairn::runtime::device
