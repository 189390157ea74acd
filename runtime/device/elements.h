#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cairn/core/host_device.h"
#include "cairn/core/support/bf16.h"

/// These functions move tensor elements between memory and registers. Elements are stored as T, which is float or
/// core::Bf16; arithmetic is in float. Elements are moved in packs of 16 bytes, or one by one if rows do not begin at
/// multiples of 16 bytes.
namespace cairn::runtime::device {

/// The elements of one memory access of 16 bytes. T is float or core::Bf16.
template <class T>
struct alignas(16) Pack {
  static constexpr int kWidth = 16 / static_cast<int>(sizeof(T));
  T value[kWidth];
};

CAIRN_HD inline float to_float(float x) { return x; }
CAIRN_HD inline float to_float(core::Bf16 x) { return static_cast<float>(x); }

template <class T>
CAIRN_HD T from_float(float x) {
  return T(x);
}

/// Returns whether contiguous rows of `cols` elements all begin at multiples of 16 bytes, given that the first row
/// does.
template <class T>
CAIRN_HD bool rows_are_packed(std::int64_t cols) {
  return cols % Pack<T>::kWidth == 0;
}

template <int W>
using Width = std::integral_constant<int, W>;

/// Calls body(Width<W>), where W is the number of elements of a pack if `packed` is true, else 1.
template <class T, class F>
void with_width(bool packed, const F& body) {
  if (packed) {
    body(Width<Pack<T>::kWidth>{});
  } else {
    body(Width<1>{});
  }
}

/// W elements as they are stored in memory. They are converted to float only when they are used, so that Bf16 elements
/// take no more bytes in registers than in memory. A new object is uninitialised. Memory that holds elements may be
/// accessed as objects of this type.
template <class T, int W>
struct Loaded;
template <int W>
struct alignas(W * sizeof(float)) Loaded<float, W> {
  float value[W];
};
template <>
struct [[gnu::may_alias]] alignas(16) Loaded<core::Bf16, Pack<core::Bf16>::kWidth> {
  std::uint32_t word[4];  ///< each word holds two elements, the first of them in its lower half
};
template <>
struct [[gnu::may_alias]] alignas(2) Loaded<core::Bf16, 1> {
  std::uint16_t half;
};

namespace detail {

CAIRN_HD inline float float_of_bits(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// Rounds two floats to bf16, as Bf16(float) does, and returns both in one word.
CAIRN_HD inline std::uint32_t two_halves(float lower, float upper) {
#ifdef CAIRN_DEVICE_PASS
  std::uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(upper), "f"(lower));
  return word;
#else
  return static_cast<std::uint32_t>(core::Bf16(upper).bits) << 16 | core::Bf16(lower).bits;
#endif
}

}  // namespace detail

/// Loads elements [W * index, W * index + W) of a tensor that is aligned to W elements. `index` counts groups of W
/// elements, so nvcc sees that the address is a multiple of the access's size. Otherwise, nvcc would not combine the
/// words into one access.
template <int W, class T>
CAIRN_HD Loaded<T, W> load(const T* tensor, std::int64_t index) {
  static_assert(sizeof(Loaded<T, W>) == W * sizeof(T));
  return reinterpret_cast<const Loaded<T, W>*>(tensor)[index];
}

/// Stores loaded elements to elements [W * index, W * index + W) of `tensor`, without a conversion.
template <class T, int W>
CAIRN_HD void store(T* tensor, std::int64_t index, const Loaded<T, W>& loaded) {
  reinterpret_cast<Loaded<T, W>*>(tensor)[index] = loaded;
}

template <int W>
CAIRN_HD void to_floats(const Loaded<float, W>& loaded, float (&values)[W]) {
  CAIRN_UNROLL
  for (int i = 0; i < W; ++i) values[i] = loaded.value[i];
}
CAIRN_HD inline void to_floats(const Loaded<core::Bf16, 8>& loaded, float (&values)[8]) {
  CAIRN_UNROLL
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = detail::float_of_bits(loaded.word[i] << 16);
    values[2 * i + 1] = detail::float_of_bits(loaded.word[i] & 0xFFFF0000U);
  }
}
CAIRN_HD inline void to_floats(const Loaded<core::Bf16, 1>& loaded, float (&values)[1]) {
  values[0] = detail::float_of_bits(static_cast<std::uint32_t>(loaded.half) << 16);
}

/// Converts the elements of N tensors to float.
template <class T, int N, int W>
CAIRN_HD void to_floats(const Loaded<T, W> (&loaded)[N], float (&values)[N][W]) {
  CAIRN_UNROLL
  for (int n = 0; n < N; ++n) to_floats(loaded[n], values[n]);
}
/// Converts the elements of N tensors to float and transposes them: values[i] holds the i-th elements of all N tensors.
template <int N, class T, int W>
CAIRN_HD void to_columns(const Loaded<T, W> (&loaded)[N], float (&values)[W][N]) {
  float of_tensor[N][W];
  to_floats(loaded, of_tensor);
  CAIRN_UNROLL
  for (int i = 0; i < W; ++i) {
    CAIRN_UNROLL
    for (int n = 0; n < N; ++n) values[i][n] = of_tensor[n][i];
  }
}

/// Loads elements [W * index, W * index + W) of a tensor of floats. The tensor must be aligned to 16 bytes unless W =
/// 1.
template <int W>
CAIRN_HD void load_floats(const float* tensor, std::int64_t index, float (&values)[W]) {
  constexpr int kWidth = W < Pack<float>::kWidth ? W : Pack<float>::kWidth;
  CAIRN_UNROLL
  for (int i = 0; i < W / kWidth; ++i) {
    const Loaded<float, kWidth> part = load<kWidth>(tensor, index * (W / kWidth) + i);
    CAIRN_UNROLL
    for (int k = 0; k < kWidth; ++k) values[i * kWidth + k] = part.value[k];
  }
}

/// Rounds W values to the type of `tensor` and stores them to elements [W * index, W * index + W).
template <int W>
CAIRN_HD void store_floats(float* tensor, std::int64_t index, const float (&values)[W]) {
  Loaded<float, W> rounded;
  CAIRN_UNROLL
  for (int i = 0; i < W; ++i) rounded.value[i] = values[i];
  store(tensor, index, rounded);
}
CAIRN_HD inline void store_floats(core::Bf16* tensor, std::int64_t index, const float (&values)[8]) {
  Loaded<core::Bf16, 8> rounded;
  CAIRN_UNROLL
  for (int i = 0; i < 4; ++i) rounded.word[i] = detail::two_halves(values[2 * i], values[2 * i + 1]);
  store(tensor, index, rounded);
}
CAIRN_HD inline void store_floats(core::Bf16* tensor, std::int64_t index, const float (&values)[1]) {
  tensor[index] = core::Bf16(values[0]);
}

/// Stores W values to elements [W * index, W * index + W). W may be larger than a pack of floats (16 bytes); then
/// several packs are stored.
template <int W>
CAIRN_HD void store_packs(float* tensor, std::int64_t index, const float (&values)[W]) {
  constexpr int kWidth = W < Pack<float>::kWidth ? W : Pack<float>::kWidth;
  CAIRN_UNROLL
  for (int i = 0; i < W / kWidth; ++i) {
    float part[kWidth];
    CAIRN_UNROLL
    for (int k = 0; k < kWidth; ++k) part[k] = values[i * kWidth + k];
    store_floats(tensor, index * (W / kWidth) + i, part);
  }
}

template <int W>
CAIRN_HD void store_packs(core::Bf16* tensor, std::int64_t index, const float (&values)[W]) {
  CAIRN_UNROLL
  for (int i = 0; i < W; ++i) tensor[index * W + i] = core::Bf16(values[i]);
}

/// Returns the sum of W values. Adds them pairwise, in log2(W) rounds.
template <int W>
CAIRN_HD float sum_values(const float (&values)[W]) {
  float sum[W];
  CAIRN_UNROLL
  for (int i = 0; i < W; ++i) sum[i] = values[i];
  CAIRN_UNROLL
  for (int half = W / 2; half > 0; half /= 2) {
    CAIRN_UNROLL
    for (int i = 0; i < half; ++i) sum[i] += sum[i + half];
  }
  return sum[0];
}

/// Calls use(i, load(i)) for i = first, first + step, ... below end. Issues kUnroll loads before it uses the first of
/// their results, so that several loads are in flight. The compiler cannot reorder loads like this itself, because
/// `use` might write to the memory that is loaded. If kWhole is set, the number of calls must be a multiple of kUnroll
/// for every thread.
template <int kUnroll, bool kWhole = false, class Index, class Load, class Use>
CAIRN_HD void load_ahead(Index first, int step, Index end, const Load& load, const Use& use) {
  for (; first < end; first += kUnroll * step) {
    decltype(load(first)) loaded[kUnroll] = {};
    CAIRN_UNROLL
    for (int u = 0; u < kUnroll; ++u) {
      const Index i = first + u * step;
      if (kWhole || i < end) loaded[u] = load(i);
    }
    CAIRN_UNROLL
    for (int u = 0; u < kUnroll; ++u) {
      const Index i = first + u * step;
      if (kWhole || i < end) use(i, loaded[u]);
    }
  }
}

/// The elements [W * index, W * index + W) of N tensors, as load_all() loads them.
template <class T, int W, int N>
struct LoadedAll {
  Loaded<T, W> of[N];
};
template <int W, int N, class T>
CAIRN_HD LoadedAll<T, W, N> load_all(const T* const (&in)[N], std::int64_t index) {
  LoadedAll<T, W, N> loaded;
  CAIRN_UNROLL
  for (int n = 0; n < N; ++n) loaded.of[n] = load<W>(in[n], index);
  return loaded;
}

/// Calls body(p, loaded) for each pack p (16 bytes) in [begin, end), where loaded[n] is pack p of tensor n. The team's
/// threads share the packs.
template <int kUnroll, int N, class T, class Index, class Team, class F>
CAIRN_HD void walk_packs(const Team& team, const T* const (&in)[N], Index begin, Index end, const F& body) {
  constexpr int kWidth = Pack<T>::kWidth;
  load_ahead<kUnroll>(
      static_cast<Index>(begin + team.rank()), team.size(), end, [&](Index p) { return load_all<kWidth>(in, p); },
      [&](Index p, const LoadedAll<T, kWidth, N>& packs) { body(p, packs.of); });
}

/// Calls body(index, values) for all elements of N tensors that team number `share` handles. values[i][n] is element W
/// * index + i of tensor n. W is the number of elements in a pack (16 bytes), or 1. Every team handles `packs` packs.
/// The first team also handles the elements behind the last whole pack of the tensors.
template <int kUnroll, int N, class T, class Team, class F>
CAIRN_HD void visit_elements(const Team& team, const T* const (&in)[N], std::int64_t count, std::int64_t packs,
                             std::int64_t share, const F& body) {
  const auto visit = [&]<int W>(std::int64_t index, const Loaded<T, W>(&loaded)[N]) {
    float values[W][N];
    to_columns(loaded, values);
    body(index, values);
  };
  const std::int64_t whole = count / Pack<T>::kWidth, begin = share * packs;
  walk_packs<kUnroll>(team, in, begin, begin + packs < whole ? begin + packs : whole, visit);
  if (share != 0) return;
  for (std::int64_t i = whole * Pack<T>::kWidth + team.rank(); i < count; i += team.size()) {
    visit(i, load_all<1>(in, i).of);
  }
}

}  // namespace cairn::runtime::device
