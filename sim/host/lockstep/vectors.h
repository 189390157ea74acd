#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#if CAIRN_VECTOR_BYTES > 0
#include <immintrin.h>
#endif

// A file that includes this header has defined CAIRN_VECTOR_BYTES: 64 if the processor has AVX-512, 32 if it has AVX2,
// and 0 otherwise. The compiler's own macros (__AVX2__ and so on) cannot be used for this, because `#pragma GCC target`
// does not set them in C++.
//
// This header is included under `#pragma GCC target`. The namespace has no name; lockstep_lanes.h explains why.
namespace cairn::sim {
namespace {

// Functions on vectors must be inlined, because a call of a function that is not inlined would pass vectors in memory.
#define CAIRN_INLINE __attribute__((always_inline)) inline

template <class T, int kCount>
struct VectorOf {
  typedef T Type __attribute__((vector_size(sizeof(T) * kCount), may_alias));
};

/// Returns a vector whose element i is element from[i] of `a` followed by `b`.
template <class V, class Places>
CAIRN_INLINE V shuffled(V a, V b, Places from) {
#ifdef __clang__
  constexpr int kCount = sizeof(V) / sizeof(a[0]);
  V result;
  for (int i = 0; i < kCount; ++i) result[i] = from[i] < kCount ? a[from[i]] : b[from[i] - kCount];
  return result;
#else
  return __builtin_shuffle(a, b, from);
#endif
}

/// Returns a number whose bit i says whether element i of a comparison of vectors is true.
template <class V>
CAIRN_INLINE std::uint64_t mask_of(V compared) {
  constexpr std::size_t kBytes = sizeof(compared[0]);
#if CAIRN_VECTOR_BYTES == 64
  if constexpr (sizeof(V) == 64) {
    const auto whole = reinterpret_cast<__m512i>(compared);
    if constexpr (kBytes == 2) return _mm512_movepi16_mask(whole);
    if constexpr (kBytes == 4) return _mm512_movepi32_mask(whole);
    if constexpr (kBytes == 8) return _mm512_movepi64_mask(whole);
  }
#endif
#if CAIRN_VECTOR_BYTES == 32
  if constexpr (sizeof(V) == 32) {
    const auto whole = reinterpret_cast<__m256i>(compared);
    if constexpr (kBytes == 2) {
      const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
      return static_cast<std::uint32_t>(_mm_movemask_epi8(bytes));
    }
    if constexpr (kBytes == 4) return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(whole)));
    if constexpr (kBytes == 8) return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(whole)));
  }
#endif
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < sizeof(V) / kBytes; ++i) mask |= compared[i] != 0 ? std::uint64_t{1} << i : 0;
  return mask;
}

/// Returns, for each pair of 64-bit elements, the product of their low 32 bits.
template <class V>
CAIRN_INLINE V product_of_low(V a, V b) {
#if CAIRN_VECTOR_BYTES == 64
  if constexpr (sizeof(V) == 64) {
    // GCC 12 warns about an uninitialised variable in its own header if the form without a mask is used.
    return reinterpret_cast<V>(
        _mm512_maskz_mul_epu32(0xFF, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
  }
#endif
#if CAIRN_VECTOR_BYTES == 32
  if constexpr (sizeof(V) == 32) {
    return reinterpret_cast<V>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
  }
#endif
  return (a & 0xFFFFFFFFU) * (b & 0xFFFFFFFFU);
}

/// Returns a * b / 2^16, rounded down, for each pair of 16-bit elements.
template <class V>
CAIRN_INLINE V high_product(V a, V b) {
#if CAIRN_VECTOR_BYTES == 64
  if constexpr (sizeof(V) == 64)
    return reinterpret_cast<V>(_mm512_mulhi_epu16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#endif
#if CAIRN_VECTOR_BYTES == 32
  if constexpr (sizeof(V) == 32)
    return reinterpret_cast<V>(_mm256_mulhi_epu16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#endif
  V product;
  for (std::size_t i = 0; i < sizeof(V) / sizeof(a[0]); ++i) {
    product[i] = static_cast<std::uint16_t>(std::uint32_t{a[i]} * b[i] >> 16);
  }
  return product;
}

/// The number of rows and columns of the tables that are transposed at once. AVX-512 has an instruction that takes
/// 16-bit elements of two registers in any order. Without it, interleaving is one instruction for 8 elements only.
constexpr int kTransposed = CAIRN_VECTOR_BYTES == 64 ? 16 : 8;

/// Transposes a table of kSize rows and columns by log2(kSize) perfect shuffles (interleavings) of its rows.
/// from_stride and to_stride are the distances between rows, in elements.
template <int kSize, class T>
CAIRN_INLINE void transpose(const T* from, std::size_t from_stride, T* to, std::size_t to_stride) {
  using Row = typename VectorOf<T, kSize>::Type;
  using Places = typename VectorOf<std::make_signed_t<T>, kSize>::Type;
  Places low, high;
  for (int i = 0; i < kSize; ++i) {
    low[i] = static_cast<std::make_signed_t<T>>(i / 2 + i % 2 * kSize);
    high[i] = static_cast<std::make_signed_t<T>>(low[i] + kSize / 2);
  }
  Row a[kSize], b[kSize];
#pragma GCC unroll 16
  for (int i = 0; i < kSize; ++i) std::memcpy(&a[i], from + static_cast<std::size_t>(i) * from_stride, sizeof(Row));
#pragma GCC unroll 4
  for (int size = 1; size < kSize; size *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kSize / 2; ++i) {
      b[2 * i] = shuffled(a[i], a[i + kSize / 2], low);
      b[2 * i + 1] = shuffled(a[i], a[i + kSize / 2], high);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kSize; ++i) a[i] = b[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kSize; ++i) std::memcpy(to + static_cast<std::size_t>(i) * to_stride, &a[i], sizeof(Row));
}

template <int kBy, class V>
CAIRN_INLINE V shifted(V values) {
  constexpr int kCount = sizeof(V) / sizeof(values[0]);
  V from;
  for (int i = 0; i < kCount; ++i) from[i] = i < kBy ? i : kCount + i - kBy;
  return shuffled(V{}, values, from);
}
/// Replaces each element by the sum of itself and all elements before it.
template <int kBy = 1, class V>
CAIRN_INLINE void sum_up(V& values) {
  if constexpr (kBy < sizeof(V) / sizeof(values[0])) {
    values += shifted<kBy>(values);
    sum_up<2 * kBy>(values);
  }
}
/// Sets every element to the best of all elements, where better(a, b) returns the better of a and b for each element.
template <int kBy = 1, class V, class Better>
CAIRN_INLINE void fold(V& values, const Better& better) {
  constexpr int kCount = sizeof(V) / sizeof(values[0]);
  if constexpr (kBy < kCount) {
    V from;
    for (int i = 0; i < kCount; ++i) from[i] = static_cast<std::remove_reference_t<decltype(from[0])>>(i ^ kBy);
    values = better(values, shuffled(values, values, from));
    fold<2 * kBy>(values, better);
  }
}

struct FreeAligned {
  void operator()(void* memory) const { std::free(memory); }
};

/// An array that is aligned to 64 bytes. resize() fills it with zeros, and allocates so much more than needed that a
/// whole vector can be read at any element.
template <class T>
class Aligned {
 public:
  void resize(std::size_t count) {
    const std::size_t bytes = (count * sizeof(T) + 255) / 64 * 64;
    memory_.reset(static_cast<T*>(std::aligned_alloc(64, bytes)));
    if (!memory_) throw std::bad_alloc();
    std::memset(static_cast<void*>(memory_.get()), 0, bytes);
  }
  T* data() const { return memory_.get(); }

 private:
  std::unique_ptr<T[], FreeAligned> memory_;
};

}  // namespace
}  // namespace cairn::sim

#undef CAIRN_INLINE
