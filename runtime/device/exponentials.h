#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/rows.h"

namespace cairn::runtime::device {

/// 2^x as a device has it, to 2 units in the last place; 0 where that is below the least normal number. std::exp2 would
/// double the work of a softmax there, only to keep such numbers.
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

/// The sum of exp(x - largest x) over some numbers, found in one pass. A NaN among them makes `sum` NaN.
struct Exponentials {
  float largest = kLowest;  ///< finite, so that -inf before the first finite number gives 0 and not NaN
  float sum = 0;

  /// exp(x - largest).
  CAIRN_HD float of(float x) const {
    constexpr float kLog2E = 1.442695041F;
    return power_of_two((x - largest) * kLog2E);
  }
  template <int W>
  CAIRN_HD void add(const float (&x)[W]) {
    const float before = largest;
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) largest = std::fmax(largest, x[i]);  // passes over NaN
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

/// Of a row's first `cols` elements. `source` is Rows or StagedRows of one row.
template <class Team, class Source>
CAIRN_HD Exponentials exponentials_of_row(const Team& team, const Source& source, std::int64_t cols) {
  Exponentials own;
  visit_packs<1>(team, source, cols, [&](std::int64_t, const auto& values) { own.add(values[0]); });
  return team.reduce(own, JoinExponentials());
}

}  // namespace cairn::runtime::device
