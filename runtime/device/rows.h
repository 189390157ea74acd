#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/core/machine/team.h"
#include "cairn/runtime/device/call.h"
#include "cairn/runtime/device/elements.h"

/// Ops whose rows are independent of each other. A row has a warp, or a part of one where it is short, or a block where
/// it is long. Rows that are read twice are staged in shared memory where they fit.
///
/// Loops of a team over rows of tensors: by 16 bytes, but for the elements before the first and behind the last
/// 16-byte boundary in the row. N rows are read side by side; where they (and the row that is written) do not all begin
/// equally far from such a boundary, they are read element by element. A thread sees the same columns in every loop
/// over as many columns of rows that begin equally far from a boundary. Rows have less than 2^32 elements.
namespace cairn::runtime::device {

/// N rows of the same length.
template <class T, int N>
struct Rows {
  const T* row[N];
};

/// N rows that the first loop over them also copies, to where a later loop reads them faster. Every copy begins as far
/// from a 16-byte boundary as its row. A thread may read what it copied itself without a sync.
template <class T, int N>
struct StagedRows {
  Rows<T, N> rows;
  T* copy[N];
};

/// What the loops behind the first one read.
template <class T, int N>
CAIRN_HD Rows<T, N> again(const Rows<T, N>& rows) {
  return rows;
}
template <class T, int N>
CAIRN_HD Rows<T, N> again(const StagedRows<T, N>& staged) {
  Rows<T, N> rows;
  for (int n = 0; n < N; ++n) rows.row[n] = staged.copy[n];
  return rows;
}

/// Elements between the last 16-byte boundary at or before `row` and `row`.
template <class T>
CAIRN_HD int elements_past_boundary(const T* row) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(row) % sizeof(Pack<T>) / sizeof(T));
}

/// A row cut into its packs and its edges: the elements before and behind them.
template <class T>
struct RowCut {
  int head = 0;            ///< elements before the first pack
  int packs = 0;           ///< 0 where rows are to be read element by element
  std::int64_t edges = 0;  ///< elements outside the packs

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

/// Where in a row W elements are: at `index` of such, counted from column `origin`.
struct RowPlace {
  std::int64_t column;
  int origin;
  std::int64_t index;
};

/// body(place, loaded): N times the W elements there, W the width of a pack or 1.
template <int N, class T, class Team, class F>
CAIRN_HD void walk_rows(const Team& team, const Rows<T, N>& rows, const RowCut<T>& cut, const F& body) {
  constexpr int kUnroll = N == 1 ? 4 : 2;
  Loaded<T, 1> edge[N] = {};
  std::int64_t e = team.rank();
  const auto load_edge = [&] {
    if (e >= cut.edges) return;
    const std::int64_t column = cut.edge_column(e);
    CAIRN_UNROLL
    for (int n = 0; n < N; ++n) edge[n] = load<1>(rows.row[n], column);
  };
  load_edge();
  const T* from[N];
  CAIRN_UNROLL
  for (int n = 0; n < N; ++n) from[n] = rows.row[n] + cut.head;
  walk_packs<kUnroll>(team, from, 0, cut.packs, [&](int p, const auto& packs) {
    body(RowPlace{cut.pack_column(p), cut.head, p}, packs);
  });
  while (e < cut.edges) {
    const std::int64_t column = cut.edge_column(e);
    body(RowPlace{column, 0, column}, edge);
    e += team.size();
    load_edge();
  }
}

/// Whether rows begin as far from a 16-byte boundary as `other` does.
template <class T, int N>
CAIRN_HD bool begin_alike(const Rows<T, N>& rows, const T* other) {
  bool alike = true;
  for (int n = 0; n < N; ++n) alike = alike && elements_past_boundary(rows.row[n]) == elements_past_boundary(other);
  return alike;
}

/// body(column, values): values[n][i] is column + i of row n; values is float[N][W], W the width of a pack or 1.
template <int N, class T, class Team, class F>
CAIRN_HD void visit_packs(const Team& team, const Rows<T, N>& rows, std::int64_t cols, const F& body) {
  const RowCut<T> cut(rows.row[0], cols, begin_alike(rows, rows.row[0]));
  walk_rows<N>(team, rows, cut, [&]<int W>(const RowPlace& place, const Loaded<T, W>(&loaded)[N]) {
    float values[N][W];
    to_floats(loaded, values);
    body(place.column, values);
  });
}
template <int N, class T, class Team, class F>
CAIRN_HD void visit_packs(const Team& team, const StagedRows<T, N>& staged, std::int64_t cols, const F& body) {
  const RowCut<T> cut(staged.rows.row[0], cols, begin_alike(staged.rows, staged.rows.row[0]));
  walk_rows<N>(team, staged.rows, cut, [&]<int W>(const RowPlace& place, const Loaded<T, W>(&loaded)[N]) {
    CAIRN_UNROLL
    for (int n = 0; n < N; ++n) store(staged.copy[n] + place.origin, place.index, loaded[n]);
    float values[N][W];
    to_floats(loaded, values);
    body(place.column, values);
  });
}

/// formula(column, values, results): results[i] is what column + i of `out` becomes; values as in visit_packs, results
/// is float[W]. `out` may be one of the rows.
template <int N, class T, class Team, class F>
CAIRN_HD void map_packs(const Team& team, const Rows<T, N>& rows, T* out, std::int64_t cols, const F& formula) {
  const RowCut<T> cut(out, cols, begin_alike(rows, out));
  walk_rows<N>(team, rows, cut, [&]<int W>(const RowPlace& place, const Loaded<T, W>(&loaded)[N]) {
    float values[N][W], results[W];
    to_floats(loaded, values);
    formula(place.column, values, results);
    store_floats(out + place.origin, place.index, results);
  });
}

/// out[column] = formula(column, values). `out` may be one of the rows.
template <int N, class T, class Team, class F>
CAIRN_HD void map_rows(const Team& team, const Rows<T, N>& rows, T* out, std::int64_t cols, const F& formula) {
  map_packs<N>(team, rows, out, cols, [&]<int W>(std::int64_t column, const float(&values)[N][W], float(&results)[W]) {
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) {
      float of_column[N];
      CAIRN_UNROLL
      for (int n = 0; n < N; ++n) of_column[n] = values[n][i];
      results[i] = formula(column + i, of_column);
    }
  });
}

/// out[column] = value.
template <class T, class Team>
CAIRN_HD void fill_row(const Team& team, T* out, std::int64_t cols, float value) {
  const RowCut<T> cut(out, cols, true);
  float values[Pack<T>::kWidth];
  CAIRN_UNROLL
  for (int i = 0; i < Pack<T>::kWidth; ++i) values[i] = value;
  for (int p = team.rank(); p < cut.packs; p += team.size()) store_floats(out + cut.head, p, values);
  for (std::int64_t e = team.rank(); e < cut.edges; e += team.size()) out[cut.edge_column(e)] = from_float<T>(value);
}

/// W neighbouring floats that begin anywhere: parameters of columns, for rows that begin anywhere.
template <int W>
CAIRN_HD void load_floats_anywhere(const float* from, float (&values)[W]) {
#ifdef CAIRN_DEVICE_PASS
  // Not on the host: GCC 12 joins both branches and keeps the alignment of the first.
  if (W % Pack<float>::kWidth == 0 && elements_past_boundary(from) == 0) {
    load_floats(from, 0, values);
    return;
  }
#endif
  CAIRN_UNROLL
  for (int i = 0; i < W; ++i) values[i] = from[i];
}

/// The sum of a few values, in pairs.
template <int W>
CAIRN_HD float sum_values(const float (&values)[W]) {
  float sum[W];
  CAIRN_UNROLL
  for (int i = 0; i < W; ++i) sum[i] = values[i];
  CAIRN_UNROLL
  for (int half = W / 2; half > 0; half /= 2) {
    CAIRN_UNROLL
    for (int i = 0; i < half; ++i) sum[i] += sum[i + half];
  }
  return sum[0];
}

/// Neighbouring threads of a warp that have a row to themselves: a Team without shared memory. All parts of a warp come
/// to the same syncs and reductions; a part without a row has a rank at which no loop begins.
template <class Warp>
class WarpPart {
 public:
  static constexpr int kSlotBytes = 16;

  /// `size` is a power of two that divides the warp's. `slots` are kSlotBytes for every thread of the warp; not needed
  /// where the part is the whole warp.
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
      value = op(slots[own & ~bit], slots[own | bit]);  // the same expression, so the same bits, in both threads
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

/// How rows are shared out to teams of `threads`; depends on their length alone, but for `staged`. A warp's rows are
/// short and always staged.
struct RowLayout {
  int part = 0;            ///< threads of a row
  int of_team = 0;         ///< rows of a team
  std::int64_t slots = 0;  ///< bytes for the reductions of parts
  std::int64_t packs = 0;  ///< of a staged row, wherever it begins
  bool staged = false;
  std::int64_t shared_bytes = 0;

  /// `width`: elements of a pack. `inputs`: rows that are read side by side, 0 where none is read twice.
  RowLayout(int threads, std::int64_t cols, std::int64_t width, std::int64_t inputs, std::int64_t shared_limit)
      : part(threads), packs(cols % width == 0 ? cols / width : blocks_of(cols + width - 1, width)) {
    if (threads == kWarp) {
      // Some packs for every thread, so that what it does once for a row does not outweigh what it does for packs.
      constexpr std::int64_t kPacksOfThread = 4;
      while (part > 1 && part / 2 * kPacksOfThread * width >= cols) part /= 2;
    }
    if (part < threads) slots = threads * 16;
    // Neighbouring rows then begin at different banks of the shared memory, which has eight of 16 bytes.
    while (part < 8 && (packs % part != 0 || packs / part % 2 == 0)) ++packs;
    of_team = threads / part;
    const std::int64_t stage = of_team * inputs * packs * 16;
    staged = inputs > 0 && (threads == kWarp || stage <= shared_limit);
    shared_bytes = slots + (staged ? stage : 0);
  }

  static constexpr int kWarp = 32;
};

/// An op on rows: op(team, row, source, cols, out row) for every row. `source` is Rows or StagedRows of its N
/// arguments; `out row` may be that of an argument; nullptr where the op writes none. Op has
///   Storage, kInputs (N), kReadsTwice (whether staging is of use)
template <class Op, int Threads>
struct RowTeams {
  static constexpr int kThreads = Threads;
  static constexpr int kInputs = Op::kInputs;
  using T = typename Op::Storage;

  Op op;
  const T* in[kInputs];
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
    Rows<T, kInputs> from;
    CAIRN_UNROLL
    for (int n = 0; n < kInputs; ++n) from.row[n] = in[n] + row * cols;
    T* to = out == nullptr ? nullptr : out + row * cols;
    if constexpr (Op::kReadsTwice) {
      constexpr bool kAlwaysStaged = kThreads == RowLayout::kWarp;
      if (kAlwaysStaged || layout.staged) {
        const std::int64_t stride = layout.packs * Pack<T>::kWidth;
        StagedRows<T, kInputs> both{from, {}};
        CAIRN_UNROLL
        for (int n = 0; n < kInputs; ++n) {
          both.copy[n] = stage + (n * layout.of_team + own) * stride + elements_past_boundary(from.row[n]);
        }
        op(team, row, both, cols, to);
      } else {
        op(team, row, from, cols, to);
      }
    } else {
      op(team, row, from, cols, to);
    }
  }
};

template <int Threads, class Machine, class Op>
void launch_row_teams(Machine& machine, const Op& op, const typename Op::Storage* const (&in)[Op::kInputs],
                      typename Op::Storage* out, std::int64_t rows, std::int64_t cols) {
  const RowLayout layout(Threads, cols, Pack<typename Op::Storage>::kWidth, Op::kReadsTwice ? Op::kInputs : 0,
                         machine.shared_limit());
  RowTeams<Op, Threads> teams{op, {}, out, rows, cols, layout};
  for (int n = 0; n < Op::kInputs; ++n) teams.in[n] = in[n];
  machine.launch(teams, blocks_of(rows, layout.of_team), layout.shared_bytes);
}

/// Applies an op to all rows.
template <class Machine, class Op>
void launch_rows(Machine& machine, const Op& op, const typename Op::Storage* const (&in)[Op::kInputs],
                 typename Op::Storage* out, std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t kWarpBytes = 8192;    // so that several warps' staged rows fit a block's shared memory
  constexpr std::int64_t kBlockBytes = 65536;  // so that several blocks' rows fit; of larger rows one must do
  const std::int64_t bytes = cols * static_cast<std::int64_t>(sizeof(typename Op::Storage)) * Op::kInputs;
  if (bytes <= kWarpBytes) return launch_row_teams<RowLayout::kWarp>(machine, op, in, out, rows, cols);
  if constexpr (Op::kReadsTwice) {
    if (bytes > kBlockBytes) return launch_row_teams<1024>(machine, op, in, out, rows, cols);
  }
  launch_row_teams<256>(machine, op, in, out, rows, cols);
}
}  // namespace cairn::runtime::device
