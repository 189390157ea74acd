#pragma once

#include <cmath>
#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/reductions.h"
#include "cairn/runtime/support/element.h"

/// These kernels compute batch norm. x is a tensor [rows, C]. Three tensors are always fp32: stats [2, C] (mean, rstd =
/// 1 / standard deviation), params [2, C] (gamma, beta) and dparams [2, C] (dgamma, dbeta).
namespace cairn::runtime::device {

struct RowSums : SumFormula {
  static constexpr int kSums = 1;
  CAIRN_HD void add(Row, Column, const float (&x)[1], float, float (&sums)[1]) const { sums[0] += x[0]; }
};

/// Computes, for each column, the mean and the sum of squared differences from the mean. A thread updates its mean and
/// its sum row by row, by Welford's formulas. The results of several threads are joined by the formula of Chan, Golub
/// and LeVeque. With these formulas, neither a large mean nor an outlier reduces precision.
struct ColumnMoments : PlainFormula {
  static constexpr int kSums = 2;
  float eps;
  float rows;

  CAIRN_HD void add(Row, Column, const float (&x)[1], float count, float (&sums)[2]) const {
    const float d = x[0] - sums[0];
    sums[0] += d * (1 / (count + 1));
    sums[1] += d * (x[0] - sums[0]);
  }
  CAIRN_HD void join(float (&sums)[2], float count, const float (&other)[2], float other_count) const {
    const float share = other_count / (count + other_count);
    const float d = other[0] - sums[0];
    sums[0] += d * share;
    sums[1] += other[1] + d * d * (count * share);
  }
  CAIRN_HD void finish(std::int64_t, float (&sums)[2]) const { sums[1] = 1 / std::sqrt(sums[1] / rows + eps); }
};

/// Computes dgamma and dbeta of each column as sums over the rows: dgamma is the sum of dy * (x - mean), multiplied by
/// rstd; dbeta is the sum of dy.
struct BatchnormGradSums : SumFormula {
  static constexpr int kSums = 2;
  struct Column {
    float mean;
  };
  const float* stats;
  std::int64_t cols;

  template <int W>
  CAIRN_HD void begin(std::int64_t piece, Column (&columns)[W]) const {
    float mean[W];
    load_floats(stats, piece, mean);
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) columns[i].mean = mean[i];
  }
  CAIRN_HD void add(Row, const Column& column, const float (&dy_x)[2], float, float (&sums)[2]) const {
    sums[0] += dy_x[0] * (dy_x[1] - column.mean);
    sums[1] += dy_x[0];
  }
  CAIRN_HD void finish(std::int64_t c, float (&sums)[2]) const { sums[0] *= stats[cols + c]; }
};

struct BatchnormMap : PlainFormula {
  struct Column {
    float mean, rstd, gamma, beta;
  };
  const float* stats;
  const float* params;
  std::int64_t cols;

  template <int W>
  CAIRN_HD void begin(std::int64_t piece, Column (&columns)[W]) const {
    float mean[W], rstd[W], gamma[W], beta[W];
    load_floats(stats, piece, mean);
    load_floats(stats + cols, piece, rstd);
    load_floats(params, piece, gamma);
    load_floats(params + cols, piece, beta);
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) columns[i] = {mean[i], rstd[i], gamma[i], beta[i]};
  }
  CAIRN_HD float operator()(Row, const Column& column, const float (&x)[1]) const {
    return normalize(x[0], column.mean, column.rstd, column.gamma, column.beta);
  }
};

/// Computes dx by normalize_grad(), with g = dy * gamma and xhat = (x - mean) * rstd. The mean of g is gamma * dbeta /
/// rows, and the mean of g * xhat is gamma * dgamma / rows.
struct BatchnormGradMap : PlainFormula {
  struct Column {
    float mean, rstd, gamma, mean_g, mean_g_xhat;
  };
  const float* stats;
  const float* params;
  const float* dparams;
  std::int64_t cols;
  float inverse_rows;

  template <int W>
  CAIRN_HD void begin(std::int64_t piece, Column (&columns)[W]) const {
    float mean[W], rstd[W], gamma[W], dgamma[W], dbeta[W];
    load_floats(stats, piece, mean);
    load_floats(stats + cols, piece, rstd);
    load_floats(params, piece, gamma);
    load_floats(dparams, piece, dgamma);
    load_floats(dparams + cols, piece, dbeta);
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) {
      columns[i] = {mean[i], rstd[i], gamma[i], gamma[i] * dbeta[i] * inverse_rows,
                    gamma[i] * dgamma[i] * inverse_rows};
    }
  }
  CAIRN_HD float operator()(Row, const Column& column, const float (&dy_x)[2]) const {
    return normalize_grad(dy_x[0] * column.gamma, (dy_x[1] - column.mean) * column.rstd, column.rstd, column.mean_g,
                          column.mean_g_xhat);
  }
};

template <class Machine>
void batchnorm(Launcher<Machine>& launcher, Call& call) {
  using core::OpKind;
  const bool reduces = call.op.kind == OpKind::reduce_rows;
  const std::int64_t cols = reduces ? call.attrs().cols : last_extent(call.shape(0));
  const std::int64_t rows = reduces ? call.attrs().rows : row_count(call.shape(0));
  with_storage(call.args[0].type, [&]<class T>(TypeTag<T>) {
    const T* first = call.arg<T>(0);
    const auto make_stats = [&](float* stats) {
      const ColumnMoments moments{{}, static_cast<float>(call.attrs().eps), static_cast<float>(rows)};
      reduce_columns<T>(launcher, call.scratch, moments, {first}, stats, rows, cols);
    };
    const auto normalize_by = [&](const float* stats, const float* params) {
      map_columns<T>(launcher, BatchnormMap{{}, stats, params, cols}, {first}, call.output<T>(), rows, cols);
    };
    switch (call.op.kind) {
      case OpKind::reduce_rows:
        return reduce_columns<T>(launcher, call.scratch, RowSums{}, {first}, call.output<T>(), rows, cols);
      case OpKind::batchnorm_stats:
        return make_stats(call.output<float>());
      case OpKind::batchnorm_grad_params:
        return reduce_columns<T>(launcher, call.scratch, BatchnormGradSums{{}, call.arg<float>(2), cols},
                                 {first, call.arg<T>(1)}, call.output<float>(), rows, cols);
      case OpKind::batchnorm:
        return normalize_by(call.arg<float>(1), call.arg<float>(2));
      case OpKind::batchnorm_with_stats:
        make_stats(call.output<float>(1));
        return normalize_by(call.output<float>(1), call.arg<float>(1));
      case OpKind::batchnorm_grad_input:
        return map_columns<T>(launcher,
                              BatchnormGradMap{{},
                                               call.arg<float>(2),
                                               call.arg<float>(3),
                                               call.arg<float>(4),
                                               cols,
                                               static_cast<float>(1 / static_cast<double>(rows))},
                              {first, call.arg<T>(1)}, call.output<T>(), rows, cols);
      default:
        return;
    }
  });
}

}  // namespace cairn::runtime::device
