#include "cairn/runtime/host/vectors.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "cairn/core/support/processor.h"

namespace cairn::runtime::vectors {
namespace {

using kernels::Gemm;

// The functions with this attribute are inlined into one function per processor family (see Family), which is compiled
// for that family.
#define CAIRN_INLINE [[gnu::always_inline]] inline

/// Returns exp(x) for x <= 0. Splits x into n log 2 + r with an integer n, so exp(x) = 2^n exp(r), and computes exp(r)
/// by a polynomial.
CAIRN_INLINE float exp_of(float x) {
  constexpr float kLeast = -87.33654F;   // the logarithm of the least normal number
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding and subtracting it rounds to an integer
  const float bounded = x < kLeast ? kLeast : x;
  const float n = (bounded * 1.44269504F + kRound) - kRound;
  // Subtracts n log 2 in two parts, so that fewer digits are lost: log 2 = 0.693359375 - 2.12194440e-4.
  const float r = (bounded - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float fraction = p * (r * r) + r + 1.0F;
  // A NaN cannot be converted to an integer, so it is replaced by 0 before the conversion.
  const auto exponent = static_cast<std::int32_t>(n == n ? n : 0.0F) + 127;
  const float power = std::bit_cast<float>(exponent << 23);
  return x < kLeast ? 0.0F : fraction * power;
}

/// Returns tanh(x), computed as a quotient of polynomials. Beyond the bound kBound, tanh(x) rounds to 1 or -1.
CAIRN_INLINE float tanh_of(float x) {
  constexpr float kBound = 7.90531110763549805F;
  const float below = x > kBound ? kBound : x;
  const float t = below < -kBound ? -kBound : below;
  const float s = t * t;
  float p = -2.76076847742355e-16F;
  p = p * s + 2.00018790482477e-13F;
  p = p * s + -8.60467152213735e-11F;
  p = p * s + 5.12229709037114e-08F;
  p = p * s + 1.48572235717979e-05F;
  p = p * s + 6.37261928875436e-04F;
  p = p * s + 4.89352455891786e-03F;
  float q = 1.19825839466702e-06F;
  q = q * s + 1.18534705686654e-04F;
  q = q * s + 2.26843463243900e-03F;
  q = q * s + 4.89352518554385e-03F;
  return t * p / q;
}

CAIRN_INLINE float inner_of_gelu(float x) { return 0.7978845608028654F * (x + 0.044715F * x * x * x); }

CAIRN_INLINE void gelu_loop(const float* x, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = 0.5F * x[i] * (1.0F + tanh_of(inner_of_gelu(x[i])));
}

CAIRN_INLINE void gelu_grad_loop(const float* dy, const float* x, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float slope = 0.7978845608028654F * (1.0F + 3 * 0.044715F * x[i] * x[i]);
    const float t = tanh_of(inner_of_gelu(x[i]));
    out[i] = dy[i] * (0.5F * (1.0F + t) + 0.5F * x[i] * (1.0F - t * t) * slope);
  }
}

CAIRN_INLINE double exponentials_loop(const float* x, float shift, float* out, std::int64_t count) {
  // The sum is computed as 16 interleaved partial sums, which the compiler can vectorise.
  constexpr std::int64_t kGroups = 16;
  double sums[kGroups] = {};
  float values[kGroups];
  for (std::int64_t i = 0; i < count; i += kGroups) {
    const std::int64_t some = std::min(kGroups, count - i);
    if (some == kGroups) {
      for (std::int64_t g = 0; g < kGroups; ++g) values[g] = exp_of(x[i + g] - shift);
      for (std::int64_t g = 0; g < kGroups; ++g) sums[g] += static_cast<double>(values[g]);
    } else {
      for (std::int64_t g = 0; g < some; ++g) values[g] = exp_of(x[i + g] - shift);
      for (std::int64_t g = 0; g < some; ++g) sums[g] += static_cast<double>(values[g]);
    }
    if (out != nullptr) std::copy_n(values, some, out + i);
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

// Sizes for matrix products C = A B. A block of C has kRows rows and kCols columns, and its sums are in registers. A
// panel is a copy of kDepth rows and kCols columns of B.
constexpr std::int64_t kRows = 4, kCols = 32, kDepth = 256;

/// Returns a * b + c. If kFused is set, the result is rounded only once, as the processor's fused instruction does.
template <bool kFused>
CAIRN_INLINE float multiply_add(float a, float b, float c) {
  if constexpr (kFused) {
    return __builtin_fmaf(a, b, c);
  } else {
    return a * b + c;
  }
}

/// Adds alpha * A * panel to a block of C with `rows` <= kRows rows and `cols` columns. Row i of A begins at a + i *
/// row_step, and its `depth` elements are `step` entries apart.
template <bool kFused>
CAIRN_INLINE void block_product(const float* a, std::int64_t row_step, std::int64_t step, const float* panel,
                                std::int64_t depth, std::int64_t rows, std::int64_t cols, float alpha, float* c,
                                std::int64_t ldc) {
  float sums[kRows][kCols] = {};
  const float* row[kRows];
  for (std::int64_t i = 0; i < kRows; ++i)
    row[i] = a + std::min(i, rows - 1) * row_step;  // rows beyond `rows` repeat the last row
  for (std::int64_t k = 0; k < depth; ++k) {
    const float* b = panel + k * kCols;
    for (std::int64_t i = 0; i < kRows; ++i) {
      const float factor = row[i][k * step];
      for (std::int64_t j = 0; j < kCols; ++j) sums[i][j] = multiply_add<kFused>(factor, b[j], sums[i][j]);
    }
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) c[i * ldc + j] += alpha * sums[i][j];
  }
}

/// Copies `depth` rows and `cols` columns of op(B), from row k and column j on, to a panel. Fills further columns of
/// the panel with 0.
CAIRN_INLINE void fill_panel(const Gemm<float>& g, std::int64_t k, std::int64_t j, std::int64_t depth,
                             std::int64_t cols, float* panel) {
  for (std::int64_t p = 0; p < depth; ++p) {
    float* to = panel + p * kCols;
    if (!g.trans_b) {
      std::copy_n(g.b + (k + p) * g.ldb + j, cols, to);
    } else {
      for (std::int64_t c = 0; c < cols; ++c) to[c] = g.b[(j + c) * g.ldb + k + p];
    }
    std::fill(to + cols, to + kCols, 0.0F);
  }
}

template <bool kFused>
CAIRN_INLINE void product_loop(const Gemm<float>& g) {
  alignas(64) float panel[kDepth * kCols];
  for (std::int64_t i = 0; i < g.m; ++i) {
    float* c = g.c + i * g.ldc;
    for (std::int64_t j = 0; j < g.n; ++j) c[j] = g.beta == 0.0F ? 0.0F : g.beta * c[j];
  }
  const std::int64_t row_step = g.trans_a ? 1 : g.lda, step = g.trans_a ? g.lda : 1;
  for (std::int64_t j = 0; j < g.n; j += kCols) {
    const std::int64_t cols = std::min(kCols, g.n - j);
    for (std::int64_t k = 0; k < g.k; k += kDepth) {
      const std::int64_t depth = std::min(kDepth, g.k - k);
      fill_panel(g, k, j, depth, cols, panel);
      for (std::int64_t i = 0; i < g.m; i += kRows)
        block_product<kFused>(g.a + i * row_step + k * step, row_step, step, panel, depth, std::min(kRows, g.m - i),
                              cols, g.alpha, g.c + i * g.ldc + j, g.ldc);
    }
  }
}

/// The functions of this file for one family of processors.
struct Family {
  void (*gelu)(const float*, float*, std::int64_t);
  void (*gelu_grad)(const float*, const float*, float*, std::int64_t);
  double (*exponentials)(const float*, float, float*, std::int64_t);
  void (*product)(const Gemm<float>&);
};

// Defines a Family whose functions are compiled with the attributes ATTRIBUTES.
// NOLINTBEGIN(bugprone-macro-parentheses): attributes cannot be in parentheses
#define CAIRN_FAMILY(NAME, FUSED, ATTRIBUTES)                                                        \
  namespace NAME {                                                                                   \
  ATTRIBUTES void gelu(const float* x, float* out, std::int64_t count) { gelu_loop(x, out, count); } \
  ATTRIBUTES void gelu_grad(const float* dy, const float* x, float* out, std::int64_t count) {       \
    gelu_grad_loop(dy, x, out, count);                                                               \
  }                                                                                                  \
  ATTRIBUTES double exponentials(const float* x, float shift, float* out, std::int64_t count) {      \
    return exponentials_loop(x, shift, out, count);                                                  \
  }                                                                                                  \
  ATTRIBUTES void product(const Gemm<float>& g) { product_loop<FUSED>(g); }                          \
  constexpr Family kFamily{gelu, gelu_grad, exponentials, product};                                  \
  }

// NOLINTEND(bugprone-macro-parentheses)

CAIRN_FAMILY(plain, false, )
#if defined(__x86_64__)
// By default, GCC uses only half of each AVX-512 register; this option makes it use whole registers. Clang does not
// know the option.
#if defined(__clang__)
#define CAIRN_WIDE ""
#else
#define CAIRN_WIDE ",prefer-vector-width=512"
#endif
CAIRN_FAMILY(avx2, true, [[gnu::target("avx2,fma")]])
CAIRN_FAMILY(avx512, true, [[gnu::target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq" CAIRN_WIDE)]])
#endif

const Family& family() {
#if defined(__x86_64__)
  static const Family& chosen = core::processor() == core::Processor::avx512 ? avx512::kFamily
                                : core::processor() == core::Processor::avx2 ? avx2::kFamily
                                                                             : plain::kFamily;
  return chosen;
#else
  return plain::kFamily;
#endif
}

}  // namespace

void gelu(const float* x, float* out, std::int64_t count) { family().gelu(x, out, count); }
void gelu_grad(const float* dy, const float* x, float* out, std::int64_t count) {
  family().gelu_grad(dy, x, out, count);
}
double exponentials(const float* x, float shift, float* out, std::int64_t count) {
  return family().exponentials(x, shift, out, count);
}
void product(const Gemm<float>& product) { family().product(product); }

}  // namespace cairn::runtime::vectors
