#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace cairn::runtime::kernels {

/// out = exp(x - max x), cols >= 1 elements; returns their sum. `out` may be x.
template <class T>
double exponentials(const T* x, std::int64_t cols, T* out) {
  const T largest = *std::max_element(x, x + cols);
  double sum = 0;
  for (std::int64_t c = 0; c < cols; ++c) {
    out[c] = std::exp(x[c] - largest);
    sum += static_cast<double>(out[c]);
  }
  return sum;
}

/// log(sum of exp(x)).
template <class T>
double log_sum_exp(const T* x, std::int64_t cols) {
  const T largest = *std::max_element(x, x + cols);
  double sum = 0;
  for (std::int64_t c = 0; c < cols; ++c) sum += static_cast<double>(std::exp(x[c] - largest));
  return std::log(sum) + static_cast<double>(largest);
}

}  // namespace cairn::runtime::kernels
