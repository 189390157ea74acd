#pragma once

#include <algorithm>
#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/call.h"
#include "cairn/runtime/device/elements.h"
#include "cairn/runtime/support/element.h"

/// These kernels compute elementwise ops. Every thread keeps four accesses of 16 bytes in flight per argument.
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
  const std::uint64_t* step_key;  ///< the step's dropout_key(), in the machine's memory; nullptr stands for the key 0
  CAIRN_HD Dropout of_thread() const {
    Dropout dropout = *this;
    if (step_key != nullptr) dropout.mask.key ^= *step_key;
    return dropout;
  }
  CAIRN_HD float operator()(std::int64_t i, const float (&x)[1]) const {
    return mask.keeps(static_cast<std::uint64_t>(i)) ? x[0] * factor : 0.0F;
  }
};
struct MseGrad {
  float factor;
  CAIRN_HD float operator()(std::int64_t, const float (&x)[2]) const { return factor * (x[0] - x[1]); }
};

}  // namespace formulas

/// Returns a copy of the formula for one thread. If the formula has a member of_thread(), calls it, so that the thread
/// reads data that all elements need only once.
template <class Formula>
CAIRN_HD Formula of_thread(const Formula& formula) {
  if constexpr (requires { formula.of_thread(); }) {
    return formula.of_thread();
  } else {
    return formula;
  }
}

/// Sets out[i] = formula(i, x) for all i < count, where x holds element i of each of the N arguments. `out` may be any
/// of the arguments.
template <class T, int N, class Formula>
struct Map {
  static constexpr int kThreads = 256;
  static constexpr int kUnroll = 4;
  static constexpr std::int64_t kPacks = kThreads * kUnroll;  ///< number of packs that one team computes

  Formula formula;
  const T* in[N];
  T* out;
  std::int64_t count;

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t index) const {
    const Formula ready = of_thread(formula);
    visit_elements<kUnroll>(team, in, count, kPacks, index, [&]<int W>(std::int64_t at, const float(&values)[W][N]) {
      float results[W];
      CAIRN_UNROLL
      for (int i = 0; i < W; ++i) results[i] = ready(at * W + i, values[i]);
      store_floats(out, at, results);
    });
  }
};

template <int N, class Machine, class Formula>
void map_elements(Launcher<Machine>& launcher, Call& call, const Formula& formula) {
  with_storage(call.op.type, [&]<class T>(TypeTag<T>) {
    Map<T, N, Formula> map{formula, {}, call.output<T>(), elements(call.out_shape())};
    for (int n = 0; n < N; ++n) map.in[n] = call.arg<T>(static_cast<std::size_t>(n));
    constexpr std::int64_t kElements = Map<T, N, Formula>::kPacks * Pack<T>::kWidth;
    launcher.launch(map, std::max<std::int64_t>(1, blocks_of(map.count, kElements)));
  });
}

template <class Machine>
void elementwise(Launcher<Machine>& launcher, Call& call) {
  using core::OpKind;
  const core::OpAttrs& a = call.attrs();
  switch (call.op.kind) {
    case OpKind::add:
      return map_elements<2>(launcher, call, formulas::Add{});
    case OpKind::scale:
      return map_elements<1>(launcher, call, formulas::Scale{static_cast<float>(a.alpha)});
    case OpKind::relu:
      return map_elements<1>(launcher, call, formulas::Relu{});
    case OpKind::relu_grad:
      return map_elements<2>(launcher, call, formulas::ReluGrad{});
    case OpKind::gelu:
      return map_elements<1>(launcher, call, formulas::Gelu{});
    case OpKind::gelu_grad:
      return map_elements<2>(launcher, call, formulas::GeluGrad{});
    case OpKind::dropout:
      return map_elements<1>(
          launcher, call,
          formulas::Dropout{DropoutMask(a.seed, a.stream, a.p), static_cast<float>(1 / (1 - a.p)), call.dropout_key});
    case OpKind::mse_grad:
      return map_elements<2>(launcher, call,
                             formulas::MseGrad{static_cast<float>(2 / static_cast<double>(elements(call.shape(0))))});
    default:
      return;
  }
}

}  // namespace cairn::runtime::device
