#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/grid.h"
#include "cairn/runtime/device/kernels/bias.h"

/// This file computes matrix products C = op(A) op(B). A library computes them, but libraries are slow if rows do not
/// begin at multiples of 16 bytes, for example if a vocabulary has an odd size. A product with such rows is computed in
/// tiles: a tile is a range of rows of op(A) and C, which are copied to scratch with padding behind each row.
namespace cairn::runtime::device {

/// Largest number of bytes that the padded rows of a tile should take.
inline constexpr std::int64_t kGemmTileBytes = std::int64_t{32} << 20;
/// The number of rows of a tile is a multiple of this number. 128 rows are also the size in which libraries divide a
/// product internally. With a multiple of 128 rows, every tile begins at an aligned address.
inline constexpr std::int64_t kGemmTileRows = 128;

/// Says how a product is divided into tiles, and which matrices are padded.
struct GemmTiles {
  bool a = false, c = false;  ///< a: whether the rows of A are padded; c: whether the rows of C are padded
  std::int64_t rows = 0;      ///< number of rows of op(A) and C in a tile; the last tile may have fewer
};

/// Returns the number of elements to which a row is padded, so that it begins and ends at a multiple of 16 bytes.
inline std::int64_t padded_row(const GemmShape& s, std::int64_t elements) {
  const std::int64_t step = 16 / core::element_bytes(s.type);
  return blocks_of(elements, step) * step;
}

/// Divides a product into tiles whose padded rows take at most `limit` bytes (but at least kGemmTileRows rows). Returns
/// nullopt in these cases:
/// - tiles do not help, because all rows already begin at multiples of 16 bytes, or because some rows of B, which are
///   never padded, do not begin at multiples of 16 bytes;
/// - tiles are not supported, because there are several batches, or because the product is added to C.
inline std::optional<GemmTiles> gemm_tiles(const GemmShape& s, std::int64_t limit) {
  const auto aligned = [&](std::int64_t row) { return padded_row(s, row) == row; };
  GemmTiles tiles{!aligned(s.row_of_a()), !aligned(s.n), 0};
  if (s.batch != 1 || s.accumulate || !aligned(s.row_of_b()) || (!tiles.a && !tiles.c)) return std::nullopt;
  const std::int64_t elements = (tiles.a ? padded_row(s, s.k) : 0) + (tiles.c ? padded_row(s, s.n) : 0);
  const std::int64_t fitting = limit / (elements * core::element_bytes(s.type)) / kGemmTileRows * kGemmTileRows;
  tiles.rows = std::min(s.m, std::max(kGemmTileRows, fitting));
  return tiles;
}

/// Copies the rows of x, which begin `stride` elements apart, and pads each row with zeros to a multiple of W elements.
/// place.at[0] is a row, and place.at[1] is the number of a chunk of W elements in this row.
template <class T, int W>
struct PadRows : StoreInOrder<T, W> {
  const T* x;
  /// stride: number of elements from the beginning of a row of x to the beginning of the next row; elements: number of
  /// elements in a row.
  std::int64_t stride, elements;
  CAIRN_HD Chunk<T, W> load(const Place<2>& place) const {
    const T* const from = x + place.at[0] * stride + place.at[1] * W;
    const std::int64_t left = elements - place.at[1] * W;
    Chunk<T, W> chunk = {};
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) {
      if (i < left) chunk.value[i] = from[i];
    }
    return chunk;
  }
};

/// Copies the padded rows to `out`, without the padding; the rows of `out` are contiguous. place.at[0] is a row, and
/// place.at[1] is the number of a chunk of W elements in this row.
template <class T, int W>
struct UnpadRows {
  T* out;
  const T* padded;
  /// chunks: number of chunks of a padded row; elements: number of elements of a row of `out`.
  std::int64_t chunks, elements;
  CAIRN_HD Chunk<T, W> load(const Place<2>& place) const {
    return load_chunk<W>(padded, place.at[0] * chunks + place.at[1]);
  }
  CAIRN_HD void store(const Place<2>& place, std::int64_t, const Chunk<T, W>& chunk) const {
    T* const to = out + place.at[0] * elements + place.at[1] * W;
    const std::int64_t left = elements - place.at[1] * W;
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) {
      if (i < left) to[i] = chunk.value[i];
    }
  }
};

/// Computes a product in tiles. T is the type in which elements of the matrices are stored.
template <class T, class Machine>
class TiledGemm {
 public:
  TiledGemm(Launcher<Machine>& launcher, Call& call, const GemmShape& shape, const GemmTiles& tiles)
      : launcher_(launcher), call_(call), s_(shape), tiles_(tiles) {
    const std::int64_t rest = s_.m % tiles_.rows;
    s_.bias = s_.bias && call.library.gemm_adds_bias(tile(tiles_.rows)) &&
              (rest == 0 || call.library.gemm_adds_bias(tile(rest)));
  }

  bool adds_bias() const { return s_.bias; }

  void run(const GemmOperands& operands) {
    T* const a_tile = tiles_.a ? call_.scratch.template take<T>(a_rows(tiles_.rows) * a_stride(tiles_.rows)) : nullptr;
    T* const c_tile = tiles_.c ? call_.scratch.template take<T>(tiles_.rows * padded_row(s_, s_.n)) : nullptr;
    const std::int64_t rest = s_.m % tiles_.rows;
    std::int64_t bytes = call_.library.gemm_workspace(tile(tiles_.rows));
    if (rest > 0) bytes = std::max(bytes, call_.library.gemm_workspace(tile(rest)));
    void* const workspace = call_.scratch.template take<std::byte>(bytes);
    if (call_.scratch.counts()) return;  // scratch is only counted, so there are no tensors
    const T* const a = static_cast<const T*>(operands.a);
    T* const c = static_cast<T*>(operands.c);
    for (std::int64_t first = 0; first < s_.m; first += tiles_.rows) {
      const std::int64_t rows = std::min(tiles_.rows, s_.m - first);
      GemmOperands of_tile = operands;
      of_tile.a = a + first * (s_.trans_a ? 1 : s_.k);
      of_tile.c = c + first * s_.n;
      if (tiles_.a) {
        pad(static_cast<const T*>(of_tile.a), rows, a_tile);
        of_tile.a = a_tile;
      }
      if (tiles_.c) of_tile.c = c_tile;
      call_.gemm(tile(rows), of_tile, workspace);
      if (tiles_.c) unpad(c_tile, rows, c + first * s_.n);
    }
  }

 private:
  static constexpr int kWidth = Pack<T>::kWidth;

  /// Returns the number of rows of A as it is stored (i.e. before op) in a tile of `rows` rows of op(A).
  std::int64_t a_rows(std::int64_t rows) const { return s_.trans_a ? s_.k : rows; }
  /// Returns the number of elements that a row of A, as it is stored, has in a tile of `rows` rows of op(A).
  std::int64_t a_elements(std::int64_t rows) const { return s_.trans_a ? rows : s_.k; }
  std::int64_t a_stride(std::int64_t rows) const { return padded_row(s_, a_elements(rows)); }

  GemmShape tile(std::int64_t rows) const {
    GemmShape shape = s_;
    shape.m = rows;
    shape.lda = tiles_.a ? a_stride(rows) : s_.row_of_a();
    if (tiles_.c) shape.ldc = padded_row(s_, s_.n);
    return shape;
  }

  void pad(const T* a, std::int64_t rows, T* to) {
    const std::int64_t chunks = a_stride(rows) / kWidth;
    for_places<kCopyUnroll<kWidth>>(launcher_, Grid<2>({a_rows(rows), chunks}),
                                    PadRows<T, kWidth>{{to}, a, s_.row_of_a(), a_elements(rows)});
  }
  void unpad(const T* padded, std::int64_t rows, T* to) {
    const std::int64_t chunks = padded_row(s_, s_.n) / kWidth;
    for_places<kCopyUnroll<kWidth>>(launcher_, Grid<2>({rows, chunks}), UnpadRows<T, kWidth>{to, padded, chunks, s_.n});
  }

  Launcher<Machine>& launcher_;
  Call& call_;
  GemmShape s_;
  GemmTiles tiles_;
};

inline GemmShape gemm_shape(const Call& call) {
  const core::OpAttrs& a = call.attrs();
  GemmShape shape;
  shape.trans_a = a.trans_a;
  shape.trans_b = a.trans_b;
  shape.bias = call.args.size() == 3;
  shape.tf32 = call.tf32;
  shape.type = call.op.type;
  shape.batch = a.batch;
  shape.m = a.m;
  shape.n = a.n;
  shape.k = a.k;
  return shape;
}

inline GemmOperands gemm_operands(const Call& call) {
  GemmOperands operands;
  operands.alpha = static_cast<float>(call.attrs().alpha);
  operands.a = call.args[0].data;
  operands.b = call.args[1].data;
  operands.bias = call.args.size() == 3 ? call.args[2].data : nullptr;
  operands.c = call.out;
  return operands;
}

/// Does the same as matmul(), with the given tiles, or by one call of the library if `tiles` is nullopt.
template <class Machine>
void matmul_in_tiles(Launcher<Machine>& launcher, Call& call, GemmShape shape, const std::optional<GemmTiles>& tiles) {
  with_storage(shape.type, [&]<class T>(TypeTag<T>) {
    const bool bias = shape.bias;
    if (tiles) {
      TiledGemm<T, Machine> gemm(launcher, call, shape, *tiles);
      shape.bias = gemm.adds_bias();
      gemm.run(gemm_operands(call));
    } else {
      shape.bias = bias && call.library.gemm_adds_bias(shape);
      call.gemm(shape, gemm_operands(call), call.scratch.take<std::byte>(call.library.gemm_workspace(shape)));
    }
    if (bias && !shape.bias) add_bias(launcher, call.arg<T>(2), call.output<T>(), shape.batch * shape.m, shape.n);
  });
}

template <class Machine>
void matmul(Launcher<Machine>& launcher, Call& call) {
  const GemmShape shape = gemm_shape(call);
  std::optional<GemmTiles> tiles = gemm_tiles(shape, kGemmTileBytes);
  if (tiles && !call.library.gemm_in_tiles(shape)) tiles.reset();
  matmul_in_tiles(launcher, call, shape, tiles);
}

}  // namespace cairn::runtime::device
