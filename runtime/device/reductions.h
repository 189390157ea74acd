#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/core/machine/support/team.h"
#include "cairn/runtime/device/call.h"
#include "cairn/runtime/device/elements.h"

/// Kernels on tensors [rows, cols] share the functions of this file. launch_rows() is for ops that treat each row
/// independently, reduce_columns() for sums over all rows for each column, and map_columns() for elementwise ops with
/// parameters per column.
namespace cairn::runtime::device {

// With the following functions, a team of threads loops over the elements of rows. A loop reads N rows at the same
// time, and can write one row. It accesses a pack (16 bytes) at a time, except for the elements of a row before the
// first and after the last 16-byte boundary. If the rows of the loop do not all begin equally far from such a boundary,
// the loop accesses single elements instead. In two loops over rows that have the same length and begin equally far
// from a boundary, a thread handles the same columns. Rows have less than 2^32 elements.

/// N rows of the same length, which a team reads. If the rows are staged, the first loop over them also copies them to
/// shared memory, from which later loops read faster. The copy of a row begins as far from a 16-byte boundary as the
/// row itself. So later loops give each thread the columns that it has copied itself, and need no call of sync().
template <class T, int N, bool kStaged = false>
struct Rows {
  const T* row[N];
  T* copy[N] = {};  ///< shared memory for the copies, if the rows are staged

  /// Returns the rows that loops after the first one must read.
  CAIRN_HD Rows<T, N> again() const {
    Rows<T, N> rows;
    for (int n = 0; n < N; ++n) rows.row[n] = kStaged ? copy[n] : row[n];
    return rows;
  }
};

/// Returns how many elements `row` begins after the last 16-byte boundary; 0 if it begins at a boundary.
template <class T>
CAIRN_HD int elements_past_boundary(const T* row) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(row) % sizeof(Pack<T>) / sizeof(T));
}

/// A row divided into packs (aligned accesses of 16 bytes) and edges, which are the elements before the first pack and
/// after the last one.
template <class T>
struct RowCut {
  int head = 0;            ///< number of elements before the first pack
  int packs = 0;           ///< number of packs; 0 if rows must be read element by element
  std::int64_t edges = 0;  ///< number of elements outside the packs

  CAIRN_HD RowCut(const T* row, std::int64_t cols, bool by_packs) {
    if (by_packs) {
      const int past = elements_past_boundary(row);
      head = past == 0 ? 0 : Pack<T>::kWidth - past;
      if (head > cols) head = static_cast<int>(cols);
      packs = static_cast<int>((cols - head) / Pack<T>::kWidth);
    }
    edges = cols - std::int64_t{packs} * Pack<T>::kWidth;
  }

  CAIRN_HD std::int64_t pack_column(int pack) const { return head + std::int64_t{pack} * Pack<T>::kWidth; }
  CAIRN_HD std::int64_t edge_column(std::int64_t edge) const {
    return edge < head ? edge : edge + std::int64_t{packs} * Pack<T>::kWidth;
  }
};

/// Position of W successive elements in a row. From column `origin` on, the row is divided into groups of W elements.
/// These elements form group number `index`, which begins at column `column`.
struct RowPlace {
  std::int64_t column;
  int origin;
  std::int64_t index;
};

/// Loops over the elements of N rows. Calls body(place, loaded), where loaded[n] holds the W elements of row n that are
/// at `place`. W is the number of elements in 16 bytes, or 1.
template <int N, class T, class Team, class F>
CAIRN_HD void walk_rows(const Team& team, const T* const (&rows)[N], const RowCut<T>& cut, const F& body) {
  constexpr int kUnroll = N == 1 ? 4 : 2;
  LoadedAll<T, 1, N> edge = {};
  std::int64_t e = team.rank();
  const auto load_edge = [&] {
    if (e < cut.edges) edge = load_all<1>(rows, cut.edge_column(e));
  };
  load_edge();
  const T* from[N];
  CAIRN_UNROLL
  for (int n = 0; n < N; ++n) from[n] = rows[n] + cut.head;
  walk_packs<kUnroll>(team, from, 0, cut.packs, [&](int p, const auto& packs) {
    body(RowPlace{cut.pack_column(p), cut.head, p}, packs);
  });
  while (e < cut.edges) {
    const std::int64_t column = cut.edge_column(e);
    body(RowPlace{column, 0, column}, edge.of);
    e += team.size();
    load_edge();
  }
}

/// Returns whether all rows begin as far from a 16-byte boundary as the address `other`.
template <class T, int N, bool kStaged>
CAIRN_HD bool begin_alike(const Rows<T, N, kStaged>& rows, const T* other) {
  bool alike = true;
  for (int n = 0; n < N; ++n) alike = alike && elements_past_boundary(rows.row[n]) == elements_past_boundary(other);
  return alike;
}

/// Loops over the elements of the rows. Calls body(column, values) with W elements of each row. W is the number of
/// elements in 16 bytes, or 1. values[n][i] is the element of row n in column `column + i`.
template <int N, class T, bool kStaged, class Team, class F>
CAIRN_HD void visit_packs(const Team& team, const Rows<T, N, kStaged>& rows, std::int64_t cols, const F& body) {
  const RowCut<T> cut(rows.row[0], cols, begin_alike(rows, rows.row[0]));
  walk_rows(team, rows.row, cut, [&]<int W>(const RowPlace& place, const Loaded<T, W>(&loaded)[N]) {
    CAIRN_UNROLL
    for (int n = 0; n < N && kStaged; ++n) store(rows.copy[n] + place.origin, place.index, loaded[n]);
    float values[N][W];
    to_floats(loaded, values);
    body(place.column, values);
  });
}

/// Loops over the elements of the rows and writes a row `out`. Calls formula(column, values, results), where `values`
/// is the same as in visit_packs(). The formula must fill `results`, an array float[W]; results[i] is stored in column
/// `column + i` of `out`. `out` may be one of the rows.
template <int N, class T, class Team, class F>
CAIRN_HD void map_packs(const Team& team, const Rows<T, N>& rows, T* out, std::int64_t cols, const F& formula) {
  const RowCut<T> cut(out, cols, begin_alike(rows, out));
  walk_rows(team, rows.row, cut, [&]<int W>(const RowPlace& place, const Loaded<T, W>(&loaded)[N]) {
    float values[N][W], results[W];
    to_floats(loaded, values);
    formula(place.column, values, results);
    store_floats(out + place.origin, place.index, results);
  });
}

/// Sets every element of a row to `value`.
template <class T, class Team>
CAIRN_HD void fill_row(const Team& team, T* out, std::int64_t cols, float value) {
  const RowCut<T> cut(out, cols, true);
  float values[Pack<T>::kWidth];
  CAIRN_UNROLL
  for (int i = 0; i < Pack<T>::kWidth; ++i) values[i] = value;
  for (int p = team.rank(); p < cut.packs; p += team.size()) store_floats(out + cut.head, p, values);
  for (std::int64_t e = team.rank(); e < cut.edges; e += team.size()) out[cut.edge_column(e)] = from_float<T>(value);
}

/// Loads W successive floats from any address.
template <int W>
CAIRN_HD void load_floats_anywhere(const float* from, float (&values)[W]) {
#ifdef CAIRN_DEVICE_PASS
  // This branch is only compiled for the device, because GCC 12 would merge it with the loop below and assume there,
  // too, that `from` is aligned.
  if (W % Pack<float>::kWidth == 0 && elements_past_boundary(from) == 0) {
    load_floats(from, 0, values);
    return;
  }
#endif
  CAIRN_UNROLL
  for (int i = 0; i < W; ++i) values[i] = from[i];
}

// The following types distribute rows to teams. A thread block handles a long row; a warp or a part of a warp handles a
// shorter row. Rows that are read twice are staged (copied to shared memory) if they fit.

/// A Team that is a part of a warp: `size` neighbouring threads, which handle one row. It offers no shared memory. All
/// parts of a warp must make the same sequence of calls of sync() and reduce(), so a part that has no row makes these
/// calls, too. The ranks of the threads of such a part are so high that its loops run zero times.
template <class Warp>
class WarpPart {
 public:
  static constexpr int kSlotBytes = 16;

  /// Makes the part of the warp to which this thread belongs. `size` must be a power of two that divides the warp's
  /// size. `slots` must have room for kSlotBytes per thread of the warp; it is not needed if the part is the whole
  /// warp.
  CAIRN_HD WarpPart(const Warp& warp, int size, bool has_row, std::byte* slots)
      : warp_(warp), size_(size), rank_(has_row ? warp.rank() & (size - 1) : kNoRow), slots_(slots) {}

  CAIRN_HD int rank() const { return rank_; }
  CAIRN_HD int size() const { return size_; }
  CAIRN_HD void sync() const { warp_.sync(); }
  template <class T, class Op>
  CAIRN_HD T reduce(T value, const Op& op) const {
    static_assert(sizeof(T) <= kSlotBytes);
    if (size_ == warp_.size()) return warp_.reduce(value, op);
    T* slots = reinterpret_cast<T*>(slots_);
    const int own = warp_.rank();
    for (int bit = size_ / 2; bit > 0; bit /= 2) {
      slots[own] = value;
      warp_.sync();
      value = op(slots[own & ~bit], slots[own | bit]);  // the same expression in both threads, so the same bits
      warp_.sync();
    }
    return value;
  }

 private:
  static constexpr int kNoRow = 1 << 30;

  const Warp& warp_;
  int size_;
  int rank_;
  std::byte* slots_;
};

/// Describes how rows are distributed to teams of `threads` threads. Everything except `staged` and `shared_bytes`
/// depends only on the number of threads and on the rows' length and type. Rows that are read twice are staged, i.e.
/// copied to shared memory. The one exception is rows of teams of kLongRows threads: these rows can be too long for a
/// device's shared memory, and are not staged then.
struct RowLayout {
  int part = 0;            ///< number of threads per row
  int of_team = 0;         ///< number of rows per team
  std::int64_t slots = 0;  ///< bytes of shared memory that reductions within parts of a warp need
  std::int64_t packs = 0;  ///< number of packs (16 bytes) that a staged row takes, whatever address it begins at
  bool staged = false;
  std::int64_t shared_bytes = 0;  ///< bytes of shared memory that a team needs

  /// Chooses the layout for rows of `cols` elements. `width` is the number of elements in 16 bytes. `inputs` is the
  /// number of rows that are staged together. If the op reads its rows twice, this is the number of its arguments,
  /// because each argument contributes one row. If the op reads its rows once, `inputs` is 0, and nothing is staged.
  /// `shared_limit` is the number of bytes of shared memory that a team can have.
  RowLayout(int threads, std::int64_t cols, std::int64_t width, std::int64_t inputs, std::int64_t shared_limit)
      : part(threads), packs(cols % width == 0 ? cols / width : blocks_of(cols + width - 1, width)) {
    if (threads == kWarp) {
      // Each thread should access several packs (16 bytes each) per row; with fewer, the fixed work per row would
      // dominate.
      constexpr std::int64_t kPacksOfThread = 4;
      while (part > 1 && part / 2 * kPacksOfThread * width >= cols) part /= 2;
    }
    if (part < threads) slots = threads * 16;
    // Pads rows in shared memory to an odd multiple of `part` packs. Shared memory has eight banks of 16 bytes, and
    // with this padding neighbouring rows begin in different banks.
    while (part < 8 && (packs % part != 0 || packs / part % 2 == 0)) ++packs;
    of_team = threads / part;
    const std::int64_t stage = of_team * inputs * packs * 16;
    staged = inputs > 0 && (threads < kLongRows || stage <= shared_limit);
    shared_bytes = slots + (staged ? stage : 0);
  }

  static constexpr int kWarp = 32;
  static constexpr int kLongRows = 1024;  ///< number of threads of a team for rows that may not fit into shared memory
};

/// Applies an op to rows by calling op(team, row, source, cols, out_row) for every row. `source` is a Rows object with
/// this row of each of the op's N arguments; the rows may be staged (copied to shared memory). `out_row` is the row to
/// be written, which can be the row of an argument, or nullptr if the op writes no row. Op::kReadsTwice says whether
/// the op reads rows twice, so that staging helps.
template <class Op, class T, int N, int Threads>
struct RowTeams {
  static constexpr int kThreads = Threads;

  Op op;
  const T* in[N];
  T* out;
  std::int64_t rows, cols;
  RowLayout layout;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    if constexpr (kThreads > RowLayout::kWarp) {
      run(team, index, 0, team.template shared<T>());
    } else {
      auto* slots = team.template shared<std::byte>();
      T* stage = reinterpret_cast<T*>(slots + layout.slots);
      const int size = layout.part < team.size() ? layout.part : team.size();
      const std::int64_t first = index * layout.of_team;
      const int here = first + layout.of_team < rows ? layout.of_team : static_cast<int>(rows - first);
      const int own = team.rank() / size;
      for (int begin = 0; begin < here; begin += team.size() / size) {
        const bool has_row = begin + own < here;
        run(WarpPart<Team>(team, size, has_row, slots), has_row ? first + begin + own : first, own, stage);
      }
    }
  }

 private:
  template <class Team>
  CAIRN_HD void run(const Team& team, std::int64_t row, int own, T* stage) const {
    constexpr bool kAlwaysStaged = Op::kReadsTwice && kThreads < RowLayout::kLongRows;
    Rows<T, N> from;
    CAIRN_UNROLL
    for (int n = 0; n < N; ++n) from.row[n] = in[n] + row * cols;
    T* to = out == nullptr ? nullptr : out + row * cols;
    if constexpr (Op::kReadsTwice) {
      if (kAlwaysStaged || layout.staged) {
        const std::int64_t stride = layout.packs * Pack<T>::kWidth;
        Rows<T, N, true> staged;
        CAIRN_UNROLL
        for (int n = 0; n < N; ++n) {
          staged.row[n] = from.row[n];
          staged.copy[n] = stage + (n * layout.of_team + own) * stride + elements_past_boundary(from.row[n]);
        }
        return op(team, row, staged, cols, to);
      }
    }
    if constexpr (!kAlwaysStaged) op(team, row, from, cols, to);
  }
};

template <int Threads, class T, int N, class Machine, class Op>
void launch_row_teams(Launcher<Machine>& launcher, const Op& op, const T* const (&in)[N], T* out, std::int64_t rows,
                      std::int64_t cols) {
  const RowLayout layout(Threads, cols, Pack<T>::kWidth, Op::kReadsTwice ? N : 0, launcher.shared_limit());
  RowTeams<Op, T, N, Threads> teams{op, {}, out, rows, cols, layout};
  std::copy_n(in, N, teams.in);
  launcher.launch(teams, blocks_of(rows, layout.of_team), layout.shared_bytes);
}

template <class T, int N, class Machine, class Op>
void launch_rows(Launcher<Machine>& launcher, const Op& op, const T* const (&in)[N], T* out, std::int64_t rows,
                 std::int64_t cols) {
  // Let s be the bytes of one row, added up over all N arguments. A warp handles a row if s is at most this number.
  // With this limit, the staged rows of several warps fit into a block's shared memory.
  constexpr std::int64_t kWarpBytes = 8192;
  // For larger s, a block handles a row. The block has 256 threads if s is at most this number, or if the row is read
  // only once. With this limit, the staged rows of one block fit into the shared memory of every device, and those of
  // several blocks fit on most devices.
  constexpr std::int64_t kBlockBytes = 65536;
  const std::int64_t bytes = cols * static_cast<std::int64_t>(sizeof(T)) * N;
  if (bytes <= kWarpBytes) return launch_row_teams<RowLayout::kWarp>(launcher, op, in, out, rows, cols);
  if constexpr (Op::kReadsTwice) {
    if (bytes > kBlockBytes) return launch_row_teams<RowLayout::kLongRows>(launcher, op, in, out, rows, cols);
  }
  launch_row_teams<256>(launcher, op, in, out, rows, cols);
}

// With the following functions, a team loops over columns of a tensor. A thread goes down the rows and always handles
// the same columns, which are called a piece. A piece is as wide as a pack (16 bytes), so that a thread accesses a
// piece by one instruction. If rows do not begin at multiples of 16 bytes, a piece is one element wide.

/// Describes how a tensor [rows, cols] is divided into tiles, one per team. A tile is a block of columns times a chunk
/// of rows. The tiles depend only on the extents.
struct ColumnTiles {
  static constexpr int kThreads = 256;

  std::int64_t pieces = 0;      ///< number of pieces (elements of one access) in a row
  std::int64_t across = 0;      ///< number of pieces in one row of a tile, at most kThreads
  std::int64_t blocks = 0;      ///< number of blocks of columns
  std::int64_t chunk_rows = 0;  ///< number of rows of a tile
  std::int64_t chunks = 0;

  std::int64_t teams() const { return blocks * chunks; }
};

/// Returns tiles for about `teams` teams. If there are enough rows, a thread gets at least 4 and at most `most` rows. A
/// tile is at most `across` pieces (groups of columns) wide; if there are few rows, it can be wider, so that no thread
/// is idle.
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

/// The part of a tile that one thread handles: one piece (the columns of one access) of every `down`th row.
struct TileThread {
  std::int64_t chunk, block;
  std::int64_t first, last;  ///< range of rows, [first, last)
  /// across: number of threads that share a row of the tile; down: number of rows that the threads handle at once.
  int across, down;
  int lane, row;  ///< column and row of the thread in this arrangement; a thread with row >= down handles nothing

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

  /// Calls body(piece, has) for the pieces (columns of one access) of the tile that fall to this thread. There are
  /// several calls if the team has fewer threads than a row of the tile has pieces. All threads make every call,
  /// because `body` may synchronise the team. `has` is false in a call in which no piece falls to the thread.
  template <class F>
  CAIRN_HD void for_pieces(const ColumnTiles& tiles, const F& body) const {
    const std::int64_t begin = block * tiles.across;
    const std::int64_t end = begin + tiles.across < tiles.pieces ? begin + tiles.across : tiles.pieces;
    for (std::int64_t p = begin; p < end; p += across) body(p + lane, p + lane < end && row < down);
  }
};

/// Base class of formulas on columns, with default members. A formula defines two types. Column holds the parameters
/// that the formula has for a column; begin() loads them for W neighbouring columns, once for many rows. Row holds the
/// parameters that the formula has for a row; row() loads them.
struct PlainFormula {
  struct Column {};
  struct Row {};
  template <int W>
  CAIRN_HD void begin(std::int64_t, Column (&)[W]) const {}
  CAIRN_HD Row row(std::int64_t) const { return {}; }
  template <class AnyRow>
  CAIRN_HD float weight(const AnyRow&) const {
    return 1;
  }
};

/// Calls body(r, row, values) for the rows r of a thread's part of a tile, where `row` is formula.row(r). values[i]
/// holds the elements of the N tensors in column i of `piece`, which has W columns. `stride` is the number of pieces
/// from one row to the next.
template <int W, int N, class T, class Formula, class F>
CAIRN_HD void walk_tile(const TileThread& thread, std::int64_t stride, std::int64_t piece, const Formula& formula,
                        const T* const (&in)[N], const F& body) {
  struct Piece {
    typename Formula::Row row;
    LoadedAll<T, W, N> loaded;
  };
  const auto load = [&](std::int64_t r) { return Piece{formula.row(r), load_all<W>(in, r * stride + piece)}; };
  load_ahead<W == 1 ? 8 : 4>(thread.first + thread.row, thread.down, thread.last, load,
                             [&](std::int64_t r, const Piece& p) {
                               float values[W][N];
                               to_columns(p.loaded.of, values);
                               body(r, p.row, values);
                             });
}

/// Sets out[r][c] = formula(row, column, values) for every element. `row` and `column` are the formula's parameters for
/// row r and column c (Formula::Row and Column), and `values` the elements [r][c] of the N tensors. `out` may be any of
/// the tensors.
template <class Formula, class T, int N, int W>
struct MapColumns {
  static constexpr int kThreads = ColumnTiles::kThreads;

  Formula formula;
  const T* in[N];
  T* out;
  std::int64_t rows;
  ColumnTiles tiles;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    const TileThread thread(team, tiles, rows, index);
    thread.for_pieces(tiles, [&](std::int64_t piece, bool has) {
      if (!has) return;
      typename Formula::Column columns[W];
      formula.begin(piece, columns);
      walk_tile<W>(thread, tiles.pieces, piece, formula, in, [&](std::int64_t r, const auto& row, const auto& values) {
        float results[W];
        CAIRN_UNROLL
        for (int i = 0; i < W; ++i) results[i] = formula(row, columns[i], values[i]);
        store_floats(out, r * tiles.pieces + piece, results);
      });
    });
  }
};

/// Default members for formulas of reduce_columns() whose results are plain sums.
struct SumFormula : PlainFormula {
  template <int S>
  CAIRN_HD void join(float (&sums)[S], float, const float (&other)[S], float) const {
    CAIRN_UNROLL
    for (int s = 0; s < S; ++s) sums[s] += other[s];
  }
  template <int S>
  CAIRN_HD void finish(std::int64_t, float (&)[S]) const {}
};

/// Joins the sums of W columns of all threads that handle these columns. The threads with thread.row = 0 get the
/// result. Only threads with thread.row < `filled` have sums to join. `count` is the number of elements per column that
/// this thread has summed. The order of the joins depends only on the arrangement of the threads. All threads of the
/// team must call this function, at most once in a launch. Uses join_bytes() bytes of shared memory.
template <class Team, class Formula, int W, int S>
CAIRN_HD void join_down(const Team& team, const TileThread& thread, std::int64_t filled, const Formula& formula,
                        float count, float (&sums)[W][S]) {
  constexpr int kSlots = ColumnTiles::kThreads;
  float* slots = team.template shared<float>() + thread.row * thread.across + thread.lane;
  int half = 1;
  while (half < thread.down) half *= 2;
  for (half /= 2; half > 0; half /= 2) {
    // Each thread writes its sums to shared memory only once, so no sync() is needed before the write.
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

/// Computes, for every column, the sums over the rows of a tile, and writes them to out[chunk][sum][column]. If kLast
/// is set, a tile must have all rows, and the kernel writes the results that Formula::finish() computes from the sums
/// instead of the sums. In addition to the members of PlainFormula, Formula has these members:
/// - kSums: the number S of sums per column.
/// - add(row, column, values, count, sums): adds the values of one row to `sums`, a float[S] that begins with zeros.
///   `count` is the number of elements that were added before.
/// - weight(row): the number of elements that a row stands for; above 1 if the values of the row are sums already.
/// - join(sums, count, other, other_count): adds `other`, the sums of another thread or team, to `sums`. The counts are
///   the numbers of elements in the two sums, and can be 0.
/// - finish(column, sums): turns the sums into results.
template <class Formula, class T, int N, class Out, int W, bool kLast>
struct ReduceColumns {
  static constexpr int kThreads = ColumnTiles::kThreads, kSums = Formula::kSums;

  Formula formula;
  const T* in[N];
  Out* out;
  std::int64_t rows;
  std::int64_t stride;  ///< number of pieces from one row to the next
  ColumnTiles tiles;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    const TileThread thread(team, tiles, rows, index);
    thread.for_pieces(tiles, [&](std::int64_t piece, bool has) {
      float sums[W][kSums] = {};
      float count = 0;
      if (has) add_rows(thread, piece, count, sums);
      const std::int64_t filled = has ? thread.last - thread.first : 0;
      join_down(team, thread, filled < thread.down ? filled : thread.down, formula, count, sums);
      if (has && thread.row == 0) store_sums(thread.chunk, piece, sums);
    });
  }

 private:
  CAIRN_HD void add_rows(const TileThread& thread, std::int64_t piece, float& count, float (&sums)[W][kSums]) const {
    typename Formula::Column columns[W];
    formula.begin(piece, columns);
    walk_tile<W>(thread, stride, piece, formula, in, [&](std::int64_t, const auto& row, const auto& values) {
      CAIRN_UNROLL
      for (int i = 0; i < W; ++i) formula.add(row, columns[i], values[i], count, sums[i]);
      count += formula.weight(row);
    });
  }
  CAIRN_HD void store_sums(std::int64_t chunk, std::int64_t piece, float (&sums)[W][kSums]) const {
    if constexpr (kLast) {
      CAIRN_UNROLL
      for (int i = 0; i < W; ++i) formula.finish(piece * W + i, sums[i]);
    }
    CAIRN_UNROLL
    for (int s = 0; s < kSums; ++s) {
      float of_sum[W];
      CAIRN_UNROLL
      for (int i = 0; i < W; ++i) of_sum[i] = sums[i][s];
      store_packs(out + (chunk * kSums + s) * tiles.pieces * W, piece, of_sum);
    }
  }
};

/// A formula for ReduceColumns that joins sums over chunks of rows, which an earlier launch has written, to sums over
/// all rows. Each row that this formula sees holds the sums of one chunk.
template <class Formula>
struct JoinChunks : Formula {
  struct Column {};
  using Row = float;  ///< number of rows in the chunk
  std::int64_t rows, chunk_rows;

  template <int W>
  CAIRN_HD void begin(std::int64_t, Column (&)[W]) const {}
  CAIRN_HD float row(std::int64_t chunk) const {
    const std::int64_t first = chunk * chunk_rows;
    return static_cast<float>(first + chunk_rows < rows ? chunk_rows : rows - first);
  }
  CAIRN_HD float weight(float of_chunk) const { return of_chunk; }
  template <int S>
  CAIRN_HD void add(float of_chunk, Column, const float (&chunk)[S], float count, float (&sums)[S]) const {
    this->join(sums, count, chunk, of_chunk);
  }
};

/// Width of a tile in pieces (accesses of up to 16 bytes). With 32 pieces, a warp reads up to 512 consecutive bytes.
inline constexpr std::int64_t kPiecesAcross = 32;
inline constexpr std::int64_t kAnyRows = std::int64_t{1} << 50;

template <class T, int N, class Machine, class Formula>
void map_columns(Launcher<Machine>& launcher, const Formula& formula, const T* const (&in)[N], T* out,
                 std::int64_t rows, std::int64_t cols) {
  with_width<T>(rows_are_packed<T>(cols), [&]<int kWidth>(Width<kWidth>) {
    const ColumnTiles tiles = column_tiles(rows, cols / kWidth, kPiecesAcross, 4096, 32);
    MapColumns<Formula, T, N, kWidth> map{formula, {}, out, rows, tiles};
    std::copy_n(in, N, map.in);
    launcher.launch(map, tiles.teams());
  });
}

/// Computes the formula's sums over all rows for every column, and writes them to out[sum][column]. The first launch
/// sums up chunks of rows, and the second joins the sums of the chunks. The order of additions depends only on the
/// tensor's extents and on the number of threads per team.
template <class T, int N, class Out, class Machine, class Formula>
void reduce_columns(Launcher<Machine>& launcher, Scratch& scratch, const Formula& formula, const T* const (&in)[N],
                    Out* out, std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t kTeams = 2048;
  constexpr int kSums = Formula::kSums;
  ColumnTiles cut;
  float* partials = nullptr;
  with_width<T>(rows_are_packed<T>(cols), [&]<int kWidth>(Width<kWidth>) {
    cut = column_tiles(rows, cols / kWidth, kPiecesAcross, kTeams, kAnyRows);
    partials = scratch.take<float>(cut.chunks * kSums * cols);
    ReduceColumns<Formula, T, N, float, kWidth, false> reduce{formula, {}, partials, rows, cut.pieces, cut};
    std::copy_n(in, N, reduce.in);
    launcher.launch(reduce, cut.teams(), join_bytes(kWidth, kSums));
  });
  with_width<float>(rows_are_packed<float>(cols), [&]<int kWidth>(Width<kWidth>) {
    constexpr std::int64_t kSector = 8 / kWidth;  // number of pieces in 32 bytes, the smallest unit of memory access
    const ColumnTiles tiles = column_tiles(cut.chunks, cols / kWidth, kSector, 1, kAnyRows);
    ReduceColumns<JoinChunks<Formula>, float, kSums, Out, kWidth, true> join{
        {formula, rows, cut.chunk_rows}, {}, out, cut.chunks, kSums * tiles.pieces, tiles};
    for (int s = 0; s < kSums; ++s) join.in[s] = partials + s * cols;
    launcher.launch(join, tiles.teams(), join_bytes(kWidth, kSums));
  });
}

}  // namespace cairn::runtime::device
