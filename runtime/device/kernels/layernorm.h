#pragma once

#include <cmath>
#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/reductions.h"
#include "cairn/runtime/support/element.h"

/// These kernels compute layer norm. x is a tensor [rows, C]. stats [rows, 2] (mean, rstd = 1 / standard deviation) and
/// params [2, C] (gamma, beta) are fp32.
namespace cairn::runtime::device {

struct alignas(8) RowStats {
  float mean, rstd;
};

struct TwoSums {
  float first = 0, second = 0;
  CAIRN_HD TwoSums operator+(const TwoSums& other) const { return {first + other.first, second + other.second}; }
};

/// Computes the mean and rstd of a row. First computes the mean, then the sum of the differences from the mean, and the
/// sum of their squares. Without rounding errors, the first sum would be 0, so it is used to correct the mean and the
/// variance.
template <class T>
struct LayernormStatsRow {
  static constexpr bool kReadsTwice = true;

  RowStats* stats;
  float eps;

  template <class Team, class Source>
  CAIRN_HD void operator()(const Team& team, std::int64_t row, const Source& x, std::int64_t cols, T*) const {
    const RowStats found = find(team, x, cols);
    if (team.rank() == 0) stats[row] = found;
  }

  template <class Team, class Source>
  CAIRN_HD RowStats find(const Team& team, const Source& x, std::int64_t cols) const {
    const auto count = static_cast<float>(cols);
    float sum = 0;
    visit_packs<1>(team, x, cols, [&](std::int64_t, const auto& values) { sum += sum_values(values[0]); });
    const float near_mean = team.reduce(sum, core::Sum()) / count;
    TwoSums own;
    visit_packs<1>(team, x.again(), cols, [&]<int W>(std::int64_t, const float(&values)[1][W]) {
      float d[W], squares[W];
      CAIRN_UNROLL
      for (int i = 0; i < W; ++i) {
        d[i] = values[0][i] - near_mean;
        squares[i] = d[i] * d[i];
      }
      own.first += sum_values(d);
      own.second += sum_values(squares);
    });
    const TwoSums all = team.reduce(own, core::Sum());
    const float correction = all.first / count;
    const float squares = all.second - all.first * correction;
    return {near_mean + correction, 1 / std::sqrt((squares < 0 ? 0.0F : squares) / count + eps)};
  }
};

/// Computes the statistics of a row, then the normalised row. If the row is staged, i.e. copied to shared memory (Rows
/// in reductions.h), x is read from global memory only once.
template <class T>
struct LayernormRow {
  static constexpr bool kReadsTwice = true;

  LayernormStatsRow<T> statistics;
  const float* params;

  template <class Team, class Source>
  CAIRN_HD void operator()(const Team& team, std::int64_t r, const Source& x, std::int64_t cols, T* out) const {
    const RowStats row = statistics.find(team, x, cols);
    if (team.rank() == 0) statistics.stats[r] = row;
    map_packs<1>(team, x.again(), out, cols,
                 [&]<int W>(std::int64_t column, const float(&values)[1][W], float(&results)[W]) {
                   float gamma[W], beta[W];
                   load_floats_anywhere(params + column, gamma);
                   load_floats_anywhere(params + cols + column, beta);
                   CAIRN_UNROLL
                   for (int i = 0; i < W; ++i) {
                     results[i] = normalize(values[0][i], row.mean, row.rstd, gamma[i], beta[i]);
                   }
                 });
  }
};

struct LayernormMap : PlainFormula {
  struct Column {
    float gamma, beta;
  };
  using Row = RowStats;
  const RowStats* stats;
  const float* params;
  std::int64_t cols;

  template <int W>
  CAIRN_HD void begin(std::int64_t piece, Column (&columns)[W]) const {
    float gamma[W], beta[W];
    load_floats(params, piece, gamma);
    load_floats(params + cols, piece, beta);
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) columns[i] = {gamma[i], beta[i]};
  }
  CAIRN_HD Row row(std::int64_t r) const { return stats[r]; }
  CAIRN_HD float operator()(const Row& row, const Column& column, const float (&x)[1]) const {
    return normalize(x[0], row.mean, row.rstd, column.gamma, column.beta);
  }
};

/// Computes dgamma and dbeta, which are sums over the rows.
struct LayernormGradSums : SumFormula {
  static constexpr int kSums = 2;
  using Row = RowStats;
  const RowStats* stats;

  CAIRN_HD Row row(std::int64_t r) const { return stats[r]; }
  CAIRN_HD void add(const Row& row, Column, const float (&dy_x)[2], float, float (&sums)[2]) const {
    sums[0] += dy_x[0] * ((dy_x[1] - row.mean) * row.rstd);
    sums[1] += dy_x[0];
  }
};

/// Computes dx of a row by normalize_grad(). For this, computes the means of g = dy * gamma and of g * xhat over the
/// row, where xhat = (x - mean) * rstd.
template <class T>
struct LayernormGradRow {
  static constexpr bool kReadsTwice = true;

  const RowStats* stats;
  const float* gamma;

  template <class Team, class Source>
  CAIRN_HD void operator()(const Team& team, std::int64_t r, const Source& dy_x, std::int64_t cols, T* out) const {
    const RowStats row = stats[r];
    TwoSums own;
    visit_packs<2>(team, dy_x, cols, [&]<int W>(std::int64_t column, const float(&values)[2][W]) {
      float g[W], g_xhat[W];
      load_floats_anywhere(gamma + column, g);
      CAIRN_UNROLL
      for (int i = 0; i < W; ++i) {
        g[i] *= values[0][i];
        g_xhat[i] = g[i] * ((values[1][i] - row.mean) * row.rstd);
      }
      own.first += sum_values(g);
      own.second += sum_values(g_xhat);
    });
    const TwoSums all = team.reduce(own, core::Sum());
    const auto count = static_cast<float>(cols);
    const float mean_g = all.first / count;
    const float mean_g_xhat = all.second / count;
    map_packs<2>(team, dy_x.again(), out, cols,
                 [&]<int W>(std::int64_t column, const float(&values)[2][W], float(&results)[W]) {
                   float g[W];
                   load_floats_anywhere(gamma + column, g);
                   CAIRN_UNROLL
                   for (int i = 0; i < W; ++i) {
                     results[i] = normalize_grad(values[0][i] * g[i], (values[1][i] - row.mean) * row.rstd, row.rstd,
                                                 mean_g, mean_g_xhat);
                   }
                 });
  }
};

template <class Machine>
void layernorm(Launcher<Machine>& launcher, Call& call) {
  using core::OpKind;
  const std::int64_t rows = row_count(call.shape(0)), cols = last_extent(call.shape(0));
  with_storage(call.args[0].type, [&]<class T>(TypeTag<T>) {
    const T* first = call.arg<T>(0);
    const auto eps = static_cast<float>(call.attrs().eps);
    switch (call.op.kind) {
      case OpKind::layernorm_stats:
        return launch_rows(launcher, LayernormStatsRow<T>{call.output<RowStats>(), eps}, {first},
                           static_cast<T*>(nullptr), rows, cols);
      case OpKind::layernorm:
        return map_columns<T>(launcher, LayernormMap{{}, call.arg<RowStats>(1), call.arg<float>(2), cols}, {first},
                              call.output<T>(), rows, cols);
      case OpKind::layernorm_with_stats:
        return launch_rows(launcher, LayernormRow<T>{{call.output<RowStats>(1), eps}, call.arg<float>(1)}, {first},
                           call.output<T>(), rows, cols);
      case OpKind::layernorm_grad_params:
        return reduce_columns<T>(launcher, call.scratch, LayernormGradSums{{}, call.arg<RowStats>(2)},
                                 {first, call.arg<T>(1)}, call.output<float>(), rows, cols);
      case OpKind::layernorm_grad_input:
        return launch_rows(launcher, LayernormGradRow<T>{call.arg<RowStats>(2), call.arg<float>(3)},
                           {first, call.arg<T>(1)}, call.output<T>(), rows, cols);
      default:
        return;
    }
  });
}

}  // namespace cairn::runtime::device
