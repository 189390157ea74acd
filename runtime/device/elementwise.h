#pragma once

#include <algorithm>
#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/call.h"
#include "cairn/runtime/device/elements.h"
#include "cairn/runtime/internal/element.h"

/// Elementwise ops: every thread has four accesses of 16 bytes in flight for each argument.
namespace cairn::runtime::device {

namespace formulas {

struct Add {
  CAIRN_HD float operator()(std::int64_t, const float (&x)[2]) const { return x[0] + x[1]; }
};
struct Scale {
  float alpha;
  CAIRN_HD float operator()(std::int64_t, const float (&x)[1]) const { return alpha * x[0]; }
};
struct Relu {
  CAIRN_HD float operator()(std::int64_t, const float (&x)[1]) const { return runtime::relu(x[0]); }
};
struct ReluGrad {
  CAIRN_HD float operator()(std::int64_t, const float (&x)[2]) const { return runtime::relu_grad(x[0], x[1]); }
};
struct Gelu {
  CAIRN_HD float operator()(std::int64_t, const float (&x)[1]) const { return runtime::gelu(x[0]); }
};
struct GeluGrad {
  CAIRN_HD float operator()(std::int64_t, const float (&x)[2]) const { return runtime::gelu_grad(x[0], x[1]); }
};
struct Dropout {
  DropoutMask mask;
  float factor;
  CAIRN_HD float operator()(std::int64_t i, const float (&x)[1]) const {
    return mask.keeps(static_cast<std::uint64_t>(i)) ? x[0] * factor : 0.0F;
  }
};
struct MseGrad {
  float factor;
  CAIRN_HD float operator()(std::int64_t, const float (&x)[2]) const { return factor * (x[0] - x[1]); }
};

}  // namespace formulas

/// out[i] = formula(i, elements i of the N arguments). `out` may be any of them.
template <class T, int N, class Formula>
struct Map {
  static constexpr int kThreads = 256;
  static constexpr int kUnroll = 4;
  static constexpr std::int64_t kPacks = kThreads * kUnroll;  ///< of one team

  Formula formula;
  const T* in[N];
  T* out;
  std::int64_t count;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    constexpr int kWidth = Pack<T>::kWidth;
    const std::int64_t whole = count / kWidth;
    const std::int64_t begin = index * kPacks;
    const std::int64_t end = begin + kPacks < whole ? begin + kPacks : whole;
    walk_packs<kUnroll>(team, in, begin, end, [&](std::int64_t p, const auto& packs) {
      float values[kWidth][N], results[kWidth];
      to_columns(packs, values);
      CAIRN_UNROLL
      for (int i = 0; i < kWidth; ++i) results[i] = formula(p * kWidth + i, values[i]);
      store_floats(out, p, results);
    });
    if (index == 0) {
      for (std::int64_t i = whole * kWidth + team.rank(); i < count; i += team.size()) {
        float values[N];
        for (int n = 0; n < N; ++n) values[n] = to_float(in[n][i]);
        out[i] = from_float<T>(formula(i, values));
      }
    }
  }
};

template <int N, class Machine, class Formula>
void map_elements(Machine& machine, Call& call, const Formula& formula) {
  with_storage(call.op.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    Map<T, N, Formula> map{formula, {}, call.output<T>(), elements(call.out_shape())};
    for (int n = 0; n < N; ++n) map.in[n] = call.arg<T>(static_cast<std::size_t>(n));
    constexpr std::int64_t kElements = Map<T, N, Formula>::kPacks * Pack<T>::kWidth;
    machine.launch(map, std::max<std::int64_t>(1, blocks_of(map.count, kElements)));
  });
}

template <class Machine>
void elementwise(Machine& machine, Call& call) {
  using core::OpKind;
  const core::OpAttrs& a = call.attrs();
  switch (call.op.kind) {
    case OpKind::add:
      return map_elements<2>(machine, call, formulas::Add{});
    case OpKind::scale:
      return map_elements<1>(machine, call, formulas::Scale{static_cast<float>(a.alpha)});
    case OpKind::relu:
      return map_elements<1>(machine, call, formulas::Relu{});
    case OpKind::relu_grad:
      return map_elements<2>(machine, call, formulas::ReluGrad{});
    case OpKind::gelu:
      return map_elements<1>(machine, call, formulas::Gelu{});
    case OpKind::gelu_grad:
      return map_elements<2>(machine, call, formulas::GeluGrad{});
    case OpKind::dropout:
      return map_elements<1>(machine, call,
                             formulas::Dropout{DropoutMask(a.seed, a.stream, a.p), static_cast<float>(1 / (1 - a.p))});
    case OpKind::mse_grad:
      return map_elements<2>(machine, call,
                             formulas::MseGrad{static_cast<float>(2 / static_cast<double>(elements(call.shape(0))))});
    default:
      return;
  }
}

}  // namespace cairn::runtime::device
