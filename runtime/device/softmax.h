#pragma once

#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/exponentials.h"
#include "cairn/runtime/device/families.h"
#include "cairn/runtime/device/machine.h"
#include "cairn/runtime/device/row_teams.h"
#include "cairn/runtime/device/rows.h"

namespace cairn::runtime::device {

template <class T>
struct SoftmaxRow {
  using Storage = T;
  static constexpr int kInputs = 1;
  static constexpr bool kReadsTwice = true;

  bool causal;

  template <class Team, class Source>
  CAIRN_HD void operator()(const Team& team, std::int64_t row, const Source& x, std::int64_t cols, T* out) const {
    const std::int64_t visible = causal ? row % cols + 1 : cols;
    const Exponentials all = exponentials_of_row(team, x, visible);
    const float factor = 1 / all.sum;
    map_rows<1>(team, again(x), out, visible,
                [&](std::int64_t, const float(&values)[1]) { return all.of(values[0]) * factor; });
    fill_row(team, out + visible, cols - visible, 0.0F);
  }
};

template <class T>
struct SoftmaxGradRow {
  using Storage = T;
  static constexpr int kInputs = 2;
  static constexpr bool kReadsTwice = true;

  template <class Team, class Source>
  CAIRN_HD void operator()(const Team& team, std::int64_t, const Source& dy_y, std::int64_t cols, T* out) const {
    float own = 0;
    visit_packs<2>(team, dy_y, cols, [&](std::int64_t, const auto& values) {
      constexpr int kWidth = static_cast<int>(sizeof(values[0]) / sizeof(float));
      float terms[kWidth];
      CAIRN_UNROLL
      for (int i = 0; i < kWidth; ++i) terms[i] = values[0][i] * values[1][i];
      own += sum_values(terms);
    });
    const float dot = team.reduce(own, Sum());
    map_rows<2>(team, again(dy_y), out, cols,
                [&](std::int64_t, const float(&values)[2]) { return values[1] * (values[0] - dot); });
  }
};

template <class Machine>
void softmax(Machine& machine, Call& call) {
  with_storage(call.op.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const std::int64_t rows = row_count(call.shape(0)), cols = last_extent(call.shape(0));
    if (call.op.kind == core::OpKind::softmax) {
      launch_rows(machine, SoftmaxRow<T>{call.attrs().causal}, {call.arg<T>(0)}, call.output<T>(), rows, cols);
    } else {
      launch_rows(machine, SoftmaxGradRow<T>{}, {call.arg<T>(0), call.arg<T>(1)}, call.output<T>(), rows, cols);
    }
  });
}

}  // namespace cairn::runtime::device
