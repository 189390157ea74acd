#pragma once

#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/loaded.h"
#include "cairn/runtime/device/pack.h"

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

namespace detail {

template <class T>
struct LoadedWidth;
template <class T, int N, int W>
struct LoadedWidth<const Loaded<T, W> (&)[N]> {
  static constexpr int kWidth = W;
};

}  // namespace detail

/// The W of what walk_rows shows.
template <class Reference>
inline constexpr int kLoadedWidth = detail::LoadedWidth<Reference>::kWidth;

/// body(column, values): values[n][i] is column + i of row n; values is float[N][W], W the width of a pack or 1.
template <int N, class T, class Team, class F>
CAIRN_HD void visit_packs(const Team& team, const Rows<T, N>& rows, std::int64_t cols, const F& body) {
  const RowCut<T> cut(rows.row[0], cols, begin_alike(rows, rows.row[0]));
  walk_rows<N>(team, rows, cut, [&](const RowPlace& place, const auto& loaded) {
    float values[N][kLoadedWidth<decltype(loaded)>];
    to_floats(loaded, values);
    body(place.column, values);
  });
}
template <int N, class T, class Team, class F>
CAIRN_HD void visit_packs(const Team& team, const StagedRows<T, N>& staged, std::int64_t cols, const F& body) {
  const RowCut<T> cut(staged.rows.row[0], cols, begin_alike(staged.rows, staged.rows.row[0]));
  walk_rows<N>(team, staged.rows, cut, [&](const RowPlace& place, const auto& loaded) {
    CAIRN_UNROLL
    for (int n = 0; n < N; ++n) store(staged.copy[n] + place.origin, place.index, loaded[n]);
    float values[N][kLoadedWidth<decltype(loaded)>];
    to_floats(loaded, values);
    body(place.column, values);
  });
}

/// body(column, values): `values` are the N elements of that column as float.
template <int N, class T, class Team, class F>
CAIRN_HD void visit_rows(const Team& team, const Rows<T, N>& rows, std::int64_t cols, const F& body) {
  visit_packs<N>(team, rows, cols, [&](std::int64_t column, const auto& values) {
    constexpr int kWidth = static_cast<int>(sizeof(values[0]) / sizeof(float));
    CAIRN_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      float of_column[N];
      CAIRN_UNROLL
      for (int n = 0; n < N; ++n) of_column[n] = values[n][i];
      body(column + i, of_column);
    }
  });
}

/// formula(column, values, results): results[i] is what column + i of `out` becomes; values as in visit_packs, results
/// is float[W]. `out` may be one of the rows.
template <int N, class T, class Team, class F>
CAIRN_HD void map_packs(const Team& team, const Rows<T, N>& rows, T* out, std::int64_t cols, const F& formula) {
  const RowCut<T> cut(out, cols, begin_alike(rows, out));
  walk_rows<N>(team, rows, cut, [&](const RowPlace& place, const auto& loaded) {
    constexpr int kWidth = kLoadedWidth<decltype(loaded)>;
    float values[N][kWidth], results[kWidth];
    to_floats(loaded, values);
    formula(place.column, values, results);
    store_floats(out + place.origin, place.index, results);
  });
}

/// out[column] = formula(column, values). `out` may be one of the rows.
template <int N, class T, class Team, class F>
CAIRN_HD void map_rows(const Team& team, const Rows<T, N>& rows, T* out, std::int64_t cols, const F& formula) {
  map_packs<N>(team, rows, out, cols, [&](std::int64_t column, const auto& values, auto& results) {
    constexpr int kWidth = static_cast<int>(sizeof(results) / sizeof(float));
    CAIRN_UNROLL
    for (int i = 0; i < kWidth; ++i) {
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

struct Sum {
  template <class T>
  CAIRN_HD T operator()(const T& a, const T& b) const {
    return a + b;
  }
};

struct Max {
  template <class T>
  CAIRN_HD T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};

}  // namespace cairn::runtime::device
