#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/reductions.h"

/// This file computes softmax and softmax_grad on tensors [rows, cols]. loss.h uses its sums of exponentials for cross
/// entropy.
namespace cairn::runtime::device {

/// Returns 2^x. On a GPU, one instruction computes it, with an error of up to 2 units in the last place. Its result is
/// 0 if 2^x is below the least normal number. std::exp2 would return such denormal numbers, but would double the work
/// of a softmax.
CAIRN_HD inline float power_of_two(float x) {
#ifdef CAIRN_DEVICE_PASS
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  return std::exp2(x);
#endif
}

inline constexpr float kLowest = std::numeric_limits<float>::lowest();

/// The sum of exp(x - largest) over some numbers x, where `largest` is the largest of them, computed in one pass. If a
/// number is NaN, `sum` is NaN.
struct Exponentials {
  float largest = kLowest;  ///< finite, so that a -inf before the first finite number contributes 0 and not NaN
  float sum = 0;

  /// Returns exp(x - largest).
  CAIRN_HD float of(float x) const {
    constexpr float kLog2E = 1.442695041F;
    return power_of_two((x - largest) * kLog2E);
  }
  template <int W>
  CAIRN_HD void add(const float (&x)[W]) {
    const float before = largest;
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) largest = std::fmax(largest, x[i]);  // fmax ignores NaN
    float terms[W];
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) terms[i] = of(x[i]);
    sum = sum * of(before) + sum_values(terms);
  }
};

struct JoinExponentials {
  CAIRN_HD Exponentials operator()(const Exponentials& a, const Exponentials& b) const {
    Exponentials joined;
    joined.largest = std::fmax(a.largest, b.largest);
    joined.sum = a.sum * joined.of(a.largest) + b.sum * joined.of(b.largest);
    return joined;
  }
};

/// Returns the Exponentials of a row's first `cols` elements. `source` is a Rows object (reductions.h) with this row,
/// which may be staged, i.e. copied to shared memory.
template <class Team, class Source>
CAIRN_HD Exponentials exponentials_of_row(const Team& team, const Source& source, std::int64_t cols) {
  Exponentials own;
  visit_packs<1>(team, source, cols, [&](std::int64_t, const auto& values) { own.add(values[0]); });
  return team.reduce(own, JoinExponentials());
}

template <class T>
struct SoftmaxRow {
  static constexpr bool kReadsTwice = true;

  bool causal;

  template <class Team, class Source>
  CAIRN_HD void operator()(const Team& team, std::int64_t row, const Source& x, std::int64_t cols, T* out) const {
    const std::int64_t visible = causal ? row % cols + 1 : cols;
    const Exponentials all = exponentials_of_row(team, x, visible);
    const float factor = 1 / all.sum;
    map_packs<1>(team, x.again(), out, visible,
                 [&]<int W>(std::int64_t, const float(&values)[1][W], float(&results)[W]) {
                   CAIRN_UNROLL
                   for (int i = 0; i < W; ++i) results[i] = all.of(values[0][i]) * factor;
                 });
    fill_row(team, out + visible, cols - visible, 0.0F);
  }
};

template <class T>
struct SoftmaxGradRow {
  static constexpr bool kReadsTwice = true;

  template <class Team, class Source>
  CAIRN_HD void operator()(const Team& team, std::int64_t, const Source& dy_y, std::int64_t cols, T* out) const {
    float own = 0;
    visit_packs<2>(team, dy_y, cols, [&]<int W>(std::int64_t, const float(&values)[2][W]) {
      float terms[W];
      CAIRN_UNROLL
      for (int i = 0; i < W; ++i) terms[i] = values[0][i] * values[1][i];
      own += sum_values(terms);
    });
    const float dot = team.reduce(own, core::Sum());
    map_packs<2>(team, dy_y.again(), out, cols,
                 [&]<int W>(std::int64_t, const float(&values)[2][W], float(&results)[W]) {
                   CAIRN_UNROLL
                   for (int i = 0; i < W; ++i) results[i] = values[1][i] * (values[0][i] - dot);
                 });
  }
};

template <class Machine>
void softmax(Launcher<Machine>& launcher, Call& call) {
  with_storage(call.op.type, [&]<class T>(TypeTag<T>) {
    const std::int64_t rows = row_count(call.shape(0)), cols = last_extent(call.shape(0));
    if (call.op.kind == core::OpKind::softmax) {
      launch_rows(launcher, SoftmaxRow<T>{call.attrs().causal}, {call.arg<T>(0)}, call.output<T>(), rows, cols);
    } else {
      launch_rows(launcher, SoftmaxGradRow<T>{}, {call.arg<T>(0), call.arg<T>(1)}, call.output<T>(), rows, cols);
    }
  });
}
}  // namespace cairn::runtime::device
