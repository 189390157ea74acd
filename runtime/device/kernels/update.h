#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "cairn/core/host_device.h"
#include "cairn/runtime/device/call.h"
#include "cairn/runtime/device/elements.h"
#include "cairn/runtime/support/element.h"

/// These kernels update weights.
namespace cairn::runtime::device {

/// The numbers of an SGD update that are the same for all elements. Those that can change from step to step are read
/// through pointers to the machine's memory, so that a captured CUDA graph reads their current values in every replay.
struct SgdNumbers {
  static constexpr int kTensors = 2;  ///< w, m
  float momentum, decay, limit;
  const float* rate;
  const float* norm;  ///< nullptr: gradients are not clipped

  CAIRN_HD SgdRule<float> rule() const {
    return {momentum, decay, *rate, norm == nullptr ? 1.0F : clip_factor(*norm, limit)};
  }
  CAIRN_HD static float apply(const SgdRule<float>& rule, float gradient, float (&x)[kTensors]) {
    return rule(gradient, x[0], x[1]);
  }
};

struct AdamwNumbers {
  static constexpr int kTensors = 3;                         ///< w, m, v
  float beta2, part1, part2, log1, log2, eps, decay, limit;  ///< see AdamwRule
  const float* rate;
  const float* step;
  const float* norm;  ///< nullptr: gradients are not clipped

  CAIRN_HD AdamwRule<float> rule() const {
    const float clip = norm == nullptr ? 1.0F : clip_factor(*norm, limit);
    return {beta2, part1, part2, log1, log2, eps, decay, *rate, *step, clip};
  }
  CAIRN_HD static float apply(const AdamwRule<float>& rule, float gradient, float (&x)[kTensors]) {
    return rule(gradient, x[0], x[1], x[2]);
  }
};

/// Updates every element of a weight. Reads the gradient, whose elements have type T, and overwrites N fp32 tensors,
/// the first of which is the weight. Also writes the new weight to `out`, unless `out` is that first tensor.
template <class T, class Numbers>
struct Update {
  static constexpr int kThreads = 256;
  static constexpr int kUnroll = 2;
  static constexpr std::int64_t kPacks = kThreads * kUnroll;  ///< number of packs that one team updates
  static constexpr int N = Numbers::kTensors;

  Numbers numbers;
  const T* gradient;
  float* tensors[N];
  T* out;
  std::int64_t count;

  template <int W>
  struct Elements {
    Loaded<T, W> gradient;
    float of[N][W];
  };

  template <int W>
  CAIRN_HD Elements<W> load_elements(std::int64_t index) const {
    Elements<W> loaded;
    loaded.gradient = load<W>(gradient, index);
    CAIRN_UNROLL
    for (int n = 0; n < N; ++n) load_floats(tensors[n], index, loaded.of[n]);
    return loaded;
  }

  template <int W, class Rule>
  CAIRN_HD void update(const Rule& rule, std::int64_t index, const Elements<W>& loaded) const {
    float gradients[W], next[N][W];
    to_floats(loaded.gradient, gradients);
    CAIRN_UNROLL
    for (int i = 0; i < W; ++i) {
      float x[N];
      CAIRN_UNROLL
      for (int n = 0; n < N; ++n) x[n] = loaded.of[n][i];
      next[0][i] = Numbers::apply(rule, gradients[i], x);
      CAIRN_UNROLL
      for (int n = 1; n < N; ++n) next[n][i] = x[n];
    }
    CAIRN_UNROLL
    for (int n = 0; n < N; ++n) store_packs(tensors[n], index, next[n]);
    if (static_cast<const void*>(out) != tensors[0]) store_floats(out, index, next[0]);
  }

  template <class Team>
  CAIRN_HD void operator()(const Team& team, std::int64_t share) const {
    constexpr int kWidth = Pack<T>::kWidth;
    const auto rule = numbers.rule();
    const std::int64_t whole = count / kWidth, begin = share * kPacks;
    const std::int64_t end = begin + kPacks < whole ? begin + kPacks : whole;
    load_ahead<kUnroll>(
        begin + team.rank(), team.size(), end, [&](std::int64_t p) { return load_elements<kWidth>(p); },
        [&](std::int64_t p, const Elements<kWidth>& loaded) { update(rule, p, loaded); });
    if (share != 0) return;
    for (std::int64_t i = whole * kWidth + team.rank(); i < count; i += team.size()) {
      update(rule, i, load_elements<1>(i));
    }
  }
};

template <class Machine, class Numbers>
void update_elements(Launcher<Machine>& launcher, Call& call, const Numbers& numbers) {
  with_storage(call.op.type, [&]<class T>(TypeTag<T>) {
    Update<T, Numbers> update{numbers, call.arg<T>(0), {}, call.output<T>(), elements(call.out_shape())};
    for (int n = 0; n < Numbers::kTensors; ++n) update.tensors[n] = call.updated(static_cast<std::size_t>(n + 1));
    constexpr std::int64_t kElements = Update<T, Numbers>::kPacks * Pack<T>::kWidth;
    launcher.launch(update, std::max<std::int64_t>(1, blocks_of(update.count, kElements)));
  });
}

template <class Machine>
void update(Launcher<Machine>& launcher, Call& call) {
  const core::OpAttrs& a = call.attrs();
  const auto number = [&](std::size_t i) { return call.args.size() > i ? call.arg<float>(i) : nullptr; };
  const auto real = [](double x) { return static_cast<float>(x); };
  if (call.op.kind == core::OpKind::sgd)
    return update_elements(launcher, call,
                           SgdNumbers{real(a.beta1), real(a.decay), real(a.limit), number(3), number(4)});
  update_elements(launcher, call,
                  AdamwNumbers{real(a.beta2), real(1 - a.beta1), real(1 - a.beta2), real(std::log(a.beta1)),
                               real(std::log(a.beta2)), real(a.eps), real(a.decay), real(a.limit), number(4), number(5),
                               number(6)});
}

}  // namespace cairn::runtime::device
