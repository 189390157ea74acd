#pragma once

#include <algorithm>
#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/call.h"
#include "cairn/runtime/device/elements.h"

/// Work on the columns of [rows, cols] tensors: sums over the rows of every column, and maps with parameters of
/// columns. A thread goes down the rows in fixed columns, a pack (or, where rows do not begin at 16 bytes, an element)
/// wide.
namespace cairn::runtime::device {

/// How [rows, cols] is cut into tiles, one for each team: blocks of columns by chunks of rows. Depends on the extents
/// alone.
struct ColumnTiles {
  static constexpr int kThreads = 256;

  std::int64_t pieces = 0;      ///< of a row
  std::int64_t across = 0;      ///< pieces of a tile, at most kThreads
  std::int64_t blocks = 0;      ///< of columns
  std::int64_t chunk_rows = 0;  ///< rows of a tile
  std::int64_t chunks = 0;

  std::int64_t teams() const { return blocks * chunks; }
};

/// Tiles for about `teams` teams, of four or more rows a thread and at most `most`, `across` pieces wide or, where rows
/// are few, so wide that no thread is idle.
inline ColumnTiles column_tiles(std::int64_t rows, std::int64_t pieces, std::int64_t across, std::int64_t teams,
                                std::int64_t most) {
  constexpr std::int64_t kFewest = 4;
  ColumnTiles tiles;
  tiles.pieces = pieces;
  const std::int64_t widest =
      std::max(across, ColumnTiles::kThreads / std::min<std::int64_t>(rows, ColumnTiles::kThreads));
  tiles.blocks = blocks_of(pieces, widest);
  tiles.across = blocks_of(pieces, tiles.blocks);
  const std::int64_t down = ColumnTiles::kThreads / tiles.across;
  const std::int64_t wanted = blocks_of(rows, std::max<std::int64_t>(1, teams / tiles.blocks));
  tiles.chunks = blocks_of(rows, std::clamp(wanted, kFewest * down, most * down));
  tiles.chunk_rows = blocks_of(rows, tiles.chunks);
  tiles.chunks = blocks_of(rows, tiles.chunk_rows);
  return tiles;
}

/// A thread's part of a tile: one piece of every `down`th row from `first` to `last`.
struct TileThread {
  std::int64_t chunk, block;
  std::int64_t first, last;  ///< rows
  int across, down;          ///< threads side by side, and one below the other
  int lane, row;             ///< of the thread among them; row >= down: it has no part

  template <class Team>
  CAIRN_HD TileThread(const Team& team, const ColumnTiles& tiles, std::int64_t rows, std::int64_t index) {
    chunk = static_cast<std::uint32_t>(index) / static_cast<std::uint32_t>(tiles.blocks);
    block = index - chunk * tiles.blocks;
    first = chunk * tiles.chunk_rows;
    last = first + tiles.chunk_rows < rows ? first + tiles.chunk_rows : rows;
    across = tiles.across < team.size() ? static_cast<int>(tiles.across) : team.size();
    down = team.size() / across;
    lane = team.rank() % across;
    row = team.rank() / across;
  }

  /// body(piece, whether the thread has it): all pieces of the tile, one after the other where the team has fewer
  /// threads than a tile is wide. All threads come to every call.
  template <class F>
  CAIRN_HD void for_pieces(const ColumnTiles& tiles, const F& body) const {
    const std::int64_t begin = block * tiles.across;
    const std::int64_t end = begin + tiles.across < tiles.pieces ? begin + tiles.across : tiles.pieces;
    for (std::int64_t p = begin; p < end; p += across) body(p + lane, p + lane < end && row < down);
  }
};

/// What formulas have in common that need no more.
struct PlainFormula {
  struct Column {};
  struct Row {};
  template <int W>
  CAIRN_HD void begin(std::int64_t, Column (&)[W]) const {}
  CAIRN_HD Row row(std::int64_t) const { return {}; }
};

/// body(r, row's, values) for the rows of a thread's part of a tile, `stride` pieces apart: values[i] are the N
/// tensors' elements in column i of the piece. All loads of several rows come before the first of them is worked on:
/// the compiler cannot move them there, as the body may write to a tensor.
template <int W, int N, class T, class Formula, class F>
CAIRN_HD void walk_tile(const TileThread& thread, std::int64_t stride, std::int64_t piece, const Formula& formula,
                        const T* const (&in)[N], const F& body) {
  constexpr int kUnroll = W == 1 ? 8 : 4;
  for (std::int64_t r = thread.first + thread.row; r < thread.last; r += kUnroll * thread.down) {
    Loaded<T, W> loaded[kUnroll][N] = {};
    typename Formula::Row row[kUnroll] = {};
    CAIRN_UNROLL
    for (int u = 0; u < kUnroll; ++u) {
      const std::int64_t q = r + u * thread.down;
      if (q >= thread.last) continue;
      row[u] = formula.row(q);
      CAIRN_UNROLL
      for (int n = 0; n < N; ++n) loaded[u][n] = load<W>(in[n], q * stride + piece);
    }
    CAIRN_UNROLL
    for (int u = 0; u < kUnroll; ++u) {
      const std::int64_t q = r + u * thread.down;
      if (q >= thread.last) continue;
      float values[W][N];
      to_columns(loaded[u], values);
      body(q, row[u], values);
    }
  }
}

/// out[row][column] = formula(row's, column's, values of N tensors). `out` may be any of the tensors. Formula has
///   kInputs
///   Column, begin(piece, Column[W]): what it needs of columns W piece and on, loaded once for many rows
///   Row, row(r): what it needs of a row
template <class T, class Formula, int W>
struct MapColumns {
  static constexpr int kThreads = ColumnTiles::kThreads;
  static constexpr int kInputs = Formula::kInputs;

  Formula formula;
  const T* in[kInputs];
  T* out;
  std::int64_t rows, cols;
  ColumnTiles tiles;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    const TileThread thread(team, tiles, rows, index);
    thread.for_pieces(tiles, [&](std::int64_t p, bool has) {
      if (has) run(thread, p);
    });
  }

 private:
  CAIRN_HD void run(const TileThread& thread, std::int64_t piece) const {
    typename Formula::Column columns[W];
    formula.begin(piece, columns);
    walk_tile<W>(thread, tiles.pieces, piece, formula, in, [&](std::int64_t r, const auto& row, const auto& values) {
      float results[W];
      CAIRN_UNROLL
      for (int i = 0; i < W; ++i) results[i] = formula(row, columns[i], values[i]);
      store_floats(out, r * tiles.pieces + piece, results);
    });
  }
};

/// What a formula of ReduceColumns is that adds its terms up.
struct SumFormula : PlainFormula {
  template <int S>
  CAIRN_HD void join(float (&sums)[S], float, const float (&other)[S], float) const {
    CAIRN_UNROLL
    for (int s = 0; s < S; ++s) sums[s] += other[s];
  }
  template <int S>
  CAIRN_HD void finish(std::int64_t, float, float (&)[S]) const {}
};

/// Joins the sums of W columns that threads one below the other have, each over `count` rows, in an order fixed by the
/// threads' number; the first row of threads has the result. All threads of the team come here; those of rows from
/// `filled` on have nothing. Takes join_bytes of shared memory, once in a launch.
template <class Team, class Formula, int W, int S>
CAIRN_HD void join_down(const Team& team, const TileThread& thread, std::int64_t filled, const Formula& formula,
                        float count, float (&sums)[W][S]) {
  constexpr int kSlots = ColumnTiles::kThreads;
  float* slots = team.template shared<float>() + thread.row * thread.across + thread.lane;
  int half = 1;
  while (half < thread.down) half *= 2;
  for (half /= 2; half > 0; half /= 2) {
    // Every thread's sums go to the shared memory once, so no sync is needed before they are written.
    if (thread.row >= half && thread.row < 2 * half && thread.row < filled) {
      CAIRN_UNROLL
      for (int i = 0; i < W; ++i) {
        CAIRN_UNROLL
        for (int s = 0; s < S; ++s) slots[(i * S + s) * kSlots] = sums[i][s];
      }
      slots[W * S * kSlots] = count;
    }
    team.sync();
    if (thread.row < half && thread.row + half < filled) {
      const float* other = slots + half * thread.across;
      const float other_count = other[W * S * kSlots];
      CAIRN_UNROLL
      for (int i = 0; i < W; ++i) {
        float values[S];
        CAIRN_UNROLL
        for (int s = 0; s < S; ++s) values[s] = other[(i * S + s) * kSlots];
        formula.join(sums[i], count, values, other_count);
      }
      count += other_count;
    }
  }
}
constexpr std::int64_t join_bytes(std::int64_t width, std::int64_t sums) {
  return (width * sums + 1) * ColumnTiles::kThreads * static_cast<std::int64_t>(sizeof(float));
}

/// Sums of W columns over the rows of every piece of a tile: count = add(thread, piece, sums) sums up a thread's rows,
/// zeros at first, and says how many elements these are; store(thread, piece, sums) gets those of the whole tile.
template <int W, class Team, class Formula, class Add, class Store>
CAIRN_HD void reduce_tile(const Team& team, const ColumnTiles& tiles, std::int64_t rows, std::int64_t index,
                          const Formula& formula, const Add& add, const Store& store) {
  const TileThread thread(team, tiles, rows, index);
  thread.for_pieces(tiles, [&](std::int64_t p, bool has) {
    float sums[W][Formula::kSums] = {};
    float count = 0;
    if (has) count = add(thread, p, sums);
    const std::int64_t filled = has ? thread.last - thread.first : 0;
    join_down(team, thread, filled < thread.down ? filled : thread.down, formula, count, sums);
    if (has && thread.row == 0) store(thread, p, sums);
  });
}

/// The sums over the rows of a tile of every column, to partials[chunk][sum][column]. Formula has, beside what
/// MapColumns says,
///   kSums (S)
///   add(row's, column's, values, count, sums): adds the count-th element to float[S], zeros at first
///   join(sums, count, other sums, other count): adds what another thread or team has; count may be 0
///   finish(column, rows, sums): makes the results of them
template <class T, class Formula, int W>
struct ReduceColumns {
  static constexpr int kThreads = ColumnTiles::kThreads;
  static constexpr int kInputs = Formula::kInputs;
  static constexpr int kSums = Formula::kSums;

  Formula formula;
  const T* in[kInputs];
  float* partials;
  std::int64_t rows, cols;
  ColumnTiles tiles;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    const auto add = [&](const TileThread& thread, std::int64_t piece, float(&sums)[W][kSums]) {
      typename Formula::Column columns[W];
      formula.begin(piece, columns);
      float count = 0;
      walk_tile<W>(thread, tiles.pieces, piece, formula, in, [&](std::int64_t, const auto& row, const auto& values) {
        count += 1;
        CAIRN_UNROLL
        for (int i = 0; i < W; ++i) formula.add(row, columns[i], values[i], count, sums[i]);
      });
      return count;
    };
    reduce_tile<W>(team, tiles, rows, index, formula, add,
                   [&](const TileThread& thread, std::int64_t piece, const float(&sums)[W][kSums]) {
                     CAIRN_UNROLL
                     for (int s = 0; s < kSums; ++s) {
                       float of_sum[W];
                       CAIRN_UNROLL
                       for (int i = 0; i < W; ++i) of_sum[i] = sums[i][s];
                       store_packs(partials + (thread.chunk * kSums + s) * cols, piece, of_sum);
                     }
                   });
  }
};

/// The partial sums of all chunks joined, to out[sum][column].
template <class Out, class Formula, int W>
struct JoinChunks {
  static constexpr int kThreads = ColumnTiles::kThreads;
  static constexpr int kSums = Formula::kSums;

  Formula formula;
  const float* partials;
  Out* out;
  std::int64_t rows, cols;
  ColumnTiles cut;    ///< of the rows
  ColumnTiles tiles;  ///< of the chunks

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    const auto add = [&](const TileThread& thread, std::int64_t piece, float(&sums)[W][kSums]) {
      const float* in[kSums];
      CAIRN_UNROLL
      for (int s = 0; s < kSums; ++s) in[s] = partials + s * cols;
      float count = 0;
      walk_tile<W>(thread, kSums * tiles.pieces, piece, PlainFormula(), in,
                   [&](std::int64_t chunk, const auto&, const auto& values) {
                     const std::int64_t begin = chunk * cut.chunk_rows;
                     const auto of_chunk =
                         static_cast<float>(begin + cut.chunk_rows < rows ? cut.chunk_rows : rows - begin);
                     CAIRN_UNROLL
                     for (int i = 0; i < W; ++i) formula.join(sums[i], count, values[i], of_chunk);
                     count += of_chunk;
                   });
      return count;
    };
    reduce_tile<W>(team, tiles, cut.chunks, index, formula, add,
                   [&](const TileThread&, std::int64_t piece, float(&sums)[W][kSums]) {
                     CAIRN_UNROLL
                     for (int i = 0; i < W; ++i) {
                       const std::int64_t column = piece * W + i;
                       formula.finish(column, static_cast<float>(rows), sums[i]);
                       CAIRN_UNROLL
                       for (int s = 0; s < kSums; ++s) out[s * cols + column] = from_float<Out>(sums[i][s]);
                     }
                   });
  }
};

inline constexpr std::int64_t kPiecesAcross = 32;  ///< of a tile: a warp reads 512 bytes side by side
inline constexpr std::int64_t kAnyRows = std::int64_t{1} << 50;

template <class T, class Machine, class Formula>
void map_columns(Machine& machine, const Formula& formula, const T* const (&in)[Formula::kInputs], T* out,
                 std::int64_t rows, std::int64_t cols) {
  with_width<T>(rows_are_packed<T>(cols), [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    const ColumnTiles tiles = column_tiles(rows, cols / kWidth, kPiecesAcross, 4096, 32);
    MapColumns<T, Formula, kWidth> map{formula, {}, out, rows, cols, tiles};
    for (int n = 0; n < Formula::kInputs; ++n) map.in[n] = in[n];
    machine.launch(map, tiles.teams());
  });
}

/// out[sum][column], in two launches; the order of every sum depends on the extents and the teams' size alone.
template <class T, class Out, class Machine, class Formula>
void reduce_columns(Machine& machine, Scratch& scratch, const Formula& formula, const T* const (&in)[Formula::kInputs],
                    Out* out, std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t kTeams = 2048;
  constexpr int kSums = Formula::kSums;
  ColumnTiles cut;
  float* partials = nullptr;
  with_width<T>(rows_are_packed<T>(cols), [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    cut = column_tiles(rows, cols / kWidth, kPiecesAcross, kTeams, kAnyRows);
    partials = scratch.take<float>(cut.chunks * kSums * cols);
    ReduceColumns<T, Formula, kWidth> reduce{formula, {}, partials, rows, cols, cut};
    for (int n = 0; n < Formula::kInputs; ++n) reduce.in[n] = in[n];
    machine.launch(reduce, cut.teams(), join_bytes(kWidth, kSums));
  });
  with_width<float>(rows_are_packed<float>(cols), [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    constexpr std::int64_t kSector = 8 / kWidth;  // pieces of the 32 bytes that memory hands out at least
    const ColumnTiles tiles = column_tiles(cut.chunks, cols / kWidth, kSector, 1, kAnyRows);
    machine.launch(JoinChunks<Out, Formula, kWidth>{formula, partials, out, rows, cols, cut, tiles}, tiles.teams(),
                   join_bytes(kWidth, kSums));
  });
}

}  // namespace cairn::runtime::device
