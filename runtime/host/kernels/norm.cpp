#include <array>
#include <cmath>

#include "cairn/runtime/host/kernels/call.h"
#include "cairn/runtime/support/element.h"

/// These kernels compute batch norm and layer norm: y = xhat * gamma + beta, where xhat = (x - mean) * rstd and rstd =
/// 1 / sqrt(variance + eps).
/// Batch norm: x is [rows, C], stats [2, C] (mean, rstd), params [2, C] (gamma, beta).
/// Layer norm: x is [rows, C], stats [rows, 2] (mean, rstd), params [2, C].
/// Sums are computed in double, in a fixed order: a sum over the rows of a channel adds row by row, and a sum over the
/// elements of a row uses a fixed number of interleaved partial sums.
namespace cairn::runtime::kernels {
namespace {

using ColumnSums = std::array<double, kColumnBlock>;

/// Returns the sums of term(row, column) over all rows, for the columns [begin, end).
template <class F>
ColumnSums sum_columns(std::int64_t rows, std::int64_t begin, std::int64_t end, const F& term) {
  ColumnSums sums{};
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = begin; c < end; ++c) {
      sums[static_cast<std::size_t>(c - begin)] += static_cast<double>(term(r, c));
    }
  }
  return sums;
}

double reciprocal_deviation(double sum_of_squares, std::int64_t count, double eps) {
  return 1 / std::sqrt(sum_of_squares / static_cast<double>(count) + eps);
}

}  // namespace

template <class T>
void batchnorm_stats(const Call<T>& call) {
  const T* x = call.arg(0);
  const std::int64_t cols = last_extent(call.shape(0));
  const std::int64_t rows = row_count(call.shape(0));
  const double eps = call.attrs().eps;
  T* mean = call.out;
  T* rstd = call.out + cols;
  for_blocks(cols, kColumnBlock, [=](std::int64_t begin, std::int64_t end) {
    ColumnSums means = sum_columns(rows, begin, end, [=](std::int64_t r, std::int64_t c) { return x[r * cols + c]; });
    for (double& value : means) value /= static_cast<double>(rows);
    const double* center = means.data() - begin;
    const ColumnSums squares = sum_columns(rows, begin, end, [=](std::int64_t r, std::int64_t c) {
      const double d = static_cast<double>(x[r * cols + c]) - center[c];
      return d * d;
    });
    for (std::int64_t c = begin; c < end; ++c) {
      mean[c] = static_cast<T>(center[c]);
      rstd[c] = static_cast<T>(reciprocal_deviation(squares[static_cast<std::size_t>(c - begin)], rows, eps));
    }
  });
}

template <class T>
void batchnorm(const Call<T>& call) {
  const std::int64_t cols = last_extent(call.shape(0));
  const T* mean = call.arg(1);
  const T* rstd = mean + cols;
  const T* gamma = call.arg(2);
  const T* beta = gamma + cols;
  for_rows(row_count(call.shape(0)), cols, [&, cols, mean, rstd, gamma, beta](std::int64_t r) {
    const T* x = call.arg(0) + r * cols;
    T* out = call.out + r * cols;
    for (std::int64_t c = 0; c < cols; ++c) out[c] = normalize(x[c], mean[c], rstd[c], gamma[c], beta[c]);
  });
}

/// Computes the statistics and y: calls make_stats, the kernel for the statistics, then normalize_by, the kernel that
/// computes y from them.
template <class T, class Kernel>
void norm_with_stats(const Call<T>& call, const Kernel& make_stats, const Kernel& normalize_by) {
  T* stats = static_cast<T*>(call.more[0]);
  make_stats({call.op, call.args, stats, nullptr});
  const TensorRef<T> args[] = {call.args[0], {stats, {}}, call.args[1]};
  normalize_by({call.op, args, call.out, nullptr});
}

template <class T>
void batchnorm_with_stats(const Call<T>& call) {
  norm_with_stats(call, batchnorm_stats<T>, batchnorm<T>);
}

/// Computes two sums over all rows r for each channel c: dgamma is the sum of dy(r, c) * xhat(r, c), and dbeta is the
/// sum of dy(r, c).
template <class T, class Normalized>
void norm_grad_params(const Call<T>& call, const Normalized& xhat) {
  const T* dy = call.arg(0);
  const std::int64_t cols = last_extent(call.shape(0));
  const std::int64_t rows = row_count(call.shape(0));
  T* dgamma = call.out;
  T* dbeta = call.out + cols;
  for_blocks(cols, kColumnBlock, [=](std::int64_t begin, std::int64_t end) {
    const ColumnSums gammas =
        sum_columns(rows, begin, end, [=](std::int64_t r, std::int64_t c) { return dy[r * cols + c] * xhat(r, c); });
    const ColumnSums betas =
        sum_columns(rows, begin, end, [=](std::int64_t r, std::int64_t c) { return dy[r * cols + c]; });
    for (std::int64_t c = begin; c < end; ++c) {
      dgamma[c] = static_cast<T>(gammas[static_cast<std::size_t>(c - begin)]);
      dbeta[c] = static_cast<T>(betas[static_cast<std::size_t>(c - begin)]);
    }
  });
}

template <class T>
void batchnorm_grad_params(const Call<T>& call) {
  const T* x = call.arg(1);
  const std::int64_t cols = last_extent(call.shape(0));
  const T* mean = call.arg(2);
  const T* rstd = mean + cols;
  norm_grad_params(call, [=](std::int64_t r, std::int64_t c) { return (x[r * cols + c] - mean[c]) * rstd[c]; });
}

// The last argument of this op holds, for each channel, dgamma (the sum of dy * xhat over the rows) and dbeta (the sum
// of dy). Let g = dy gamma. normalize_grad() needs the means of g xhat and of g over the rows. They follow from the
// last argument: the mean of g xhat is gamma dgamma / rows, and the mean of g is gamma dbeta / rows.
template <class T>
void batchnorm_grad_input(const Call<T>& call) {
  const std::int64_t cols = last_extent(call.shape(0));
  const std::int64_t rows = row_count(call.shape(0));
  const T* mean = call.arg(2);
  const T* rstd = mean + cols;
  const T* gamma = call.arg(3);
  const T* dgamma = call.arg(4);
  const T* dbeta = dgamma + cols;
  const T inverse_rows = T(1) / static_cast<T>(rows);
  for_rows(rows, cols, [&, cols, mean, rstd, gamma, dgamma, dbeta, inverse_rows](std::int64_t r) {
    const T* dy = call.arg(0) + r * cols;
    const T* x = call.arg(1) + r * cols;
    T* out = call.out + r * cols;
    for (std::int64_t c = 0; c < cols; ++c) {
      const T xhat = (x[c] - mean[c]) * rstd[c];
      out[c] = normalize_grad(dy[c] * gamma[c], xhat, rstd[c], gamma[c] * dbeta[c] * inverse_rows,
                              gamma[c] * dgamma[c] * inverse_rows);
    }
  });
}

template <class T>
void layernorm_stats(const Call<T>& call) {
  const std::int64_t cols = last_extent(call.shape(0));
  for_rows(row_count(call.shape(0)), cols, [&](std::int64_t r) {
    const T* x = call.arg(0) + r * cols;
    const double mean = sum_lanes(cols, [=](std::int64_t c) { return x[c]; }) / static_cast<double>(cols);
    const double squares = sum_lanes(cols, [=](std::int64_t c) {
      const double d = static_cast<double>(x[c]) - mean;
      return d * d;
    });
    call.out[2 * r] = static_cast<T>(mean);
    call.out[2 * r + 1] = static_cast<T>(reciprocal_deviation(squares, cols, call.attrs().eps));
  });
}

template <class T>
void layernorm(const Call<T>& call) {
  const std::int64_t cols = last_extent(call.shape(0));
  const T* gamma = call.arg(2);
  const T* beta = gamma + cols;
  for_rows(row_count(call.shape(0)), cols, [&, cols, gamma, beta](std::int64_t r) {
    const T* x = call.arg(0) + r * cols;
    const T mean = call.arg(1)[2 * r];
    const T rstd = call.arg(1)[2 * r + 1];
    T* out = call.out + r * cols;
    for (std::int64_t c = 0; c < cols; ++c) out[c] = normalize(x[c], mean, rstd, gamma[c], beta[c]);
  });
}

template <class T>
void layernorm_with_stats(const Call<T>& call) {
  norm_with_stats(call, layernorm_stats<T>, layernorm<T>);
}

template <class T>
void layernorm_grad_params(const Call<T>& call) {
  const T* x = call.arg(1);
  const T* stats = call.arg(2);
  const std::int64_t cols = last_extent(call.shape(0));
  norm_grad_params(call,
                   [=](std::int64_t r, std::int64_t c) { return (x[r * cols + c] - stats[2 * r]) * stats[2 * r + 1]; });
}

template <class T>
void layernorm_grad_input(const Call<T>& call) {
  const std::int64_t cols = last_extent(call.shape(0));
  const T* gamma = call.arg(3);
  for_rows(row_count(call.shape(0)), cols, [&, cols, gamma](std::int64_t r) {
    const T* dy = call.arg(0) + r * cols;
    const T* x = call.arg(1) + r * cols;
    const T mean = call.arg(2)[2 * r];
    const T rstd = call.arg(2)[2 * r + 1];
    const double sum_g = sum_lanes(cols, [=](std::int64_t c) { return dy[c] * gamma[c]; });
    const double sum_g_xhat =
        sum_lanes(cols, [=](std::int64_t c) { return dy[c] * gamma[c] * ((x[c] - mean) * rstd); });
    const T mean_g = static_cast<T>(sum_g / static_cast<double>(cols));
    const T mean_g_xhat = static_cast<T>(sum_g_xhat / static_cast<double>(cols));
    T* out = call.out + r * cols;
    for (std::int64_t c = 0; c < cols; ++c) {
      out[c] = normalize_grad(dy[c] * gamma[c], (x[c] - mean) * rstd, rstd, mean_g, mean_g_xhat);
    }
  });
}

CAIRN_INSTANTIATE_KERNEL(batchnorm_stats);
CAIRN_INSTANTIATE_KERNEL(batchnorm);
CAIRN_INSTANTIATE_KERNEL(batchnorm_with_stats);
CAIRN_INSTANTIATE_KERNEL(batchnorm_grad_params);
CAIRN_INSTANTIATE_KERNEL(batchnorm_grad_input);
CAIRN_INSTANTIATE_KERNEL(layernorm_stats);
CAIRN_INSTANTIATE_KERNEL(layernorm);
CAIRN_INSTANTIATE_KERNEL(layernorm_with_stats);
CAIRN_INSTANTIATE_KERNEL(layernorm_grad_params);
CAIRN_INSTANTIATE_KERNEL(layernorm_grad_input);

}  // namespace cairn::runtime::kernels
