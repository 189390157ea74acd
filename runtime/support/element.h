#pragma once

#include <cmath>
#include <cstdint>

#include "cairn/core/host_device.h"

/// This file has formulas on single tensor elements, which the kernels of all machines share. T is float or double.
namespace cairn::runtime {

/// 2^64 / golden ratio. Its multiples are spread evenly over all 64-bit words.
inline constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ULL;

/// Returns a hash of `word`. The map is one to one, and each output bit depends on every input bit (SplitMix64's
/// finalizer).
CAIRN_HD inline std::uint64_t mix(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ULL;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBULL;
  return word ^ (word >> 31);
}

/// Returns the hash of a word at position `index` of a sequence.
CAIRN_HD inline std::uint64_t mix(std::uint64_t word, std::uint64_t index) { return mix(word + (index + 1) * kGolden); }

/// Returns random bits that depend only on the three arguments.
CAIRN_HD inline std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t element) {
  return mix(mix(mix(seed, 0), stream), element);
}

/// Returns the top 53 bits as a number in [0, 1).
CAIRN_HD inline double unit_interval(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

template <class T>
CAIRN_HD T relu(T x) {
  return x < T(0) ? T(0) : x;  // NaN stays NaN, so that a read of freed memory (poison) is noticed
}

template <class T>
CAIRN_HD T relu_grad(T dy, T y) {
  return y > T(0) ? dy : T(0);
}

/// Computes GPT-2's approximation of GELU: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
template <class T>
CAIRN_HD T gelu(T x) {
  const T inner = T(0.7978845608028654) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + std::tanh(inner));
}

template <class T>
CAIRN_HD T gelu_grad(T dy, T x) {
  const T inner = T(0.7978845608028654) * (x + T(0.044715) * x * x * x);
  const T slope = T(0.7978845608028654) * (T(1) + T(3 * 0.044715) * x * x);
  const T t = std::tanh(inner);
  return dy * (T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * slope);
}

/// Returns the number with which the keys of all dropouts are combined (XOR) for a training step with seed `step_seed`.
/// It is 0 for seed 0.
CAIRN_HD inline std::uint64_t dropout_key(std::uint64_t step_seed) { return step_seed == 0 ? 0 : mix(step_seed, 0); }

/// Decides which elements a dropout of probability p keeps. An element is kept if the number in [0, 1) that
/// random_bits(seed, stream, element) gives is at least p. Integers are compared, so the decision is exact.
struct DropoutMask {
  std::uint64_t key = 0;        ///< hash of seed and stream
  std::uint64_t threshold = 0;  ///< p * 2^53, rounded up

  /// `dropout_key` is the result of the function dropout_key().
  DropoutMask(std::uint64_t seed, std::uint64_t stream, double p, std::uint64_t dropout_key = 0)
      : key(mix(mix(seed, 0), stream) ^ dropout_key), threshold(static_cast<std::uint64_t>(std::ceil(p * 0x1p53))) {}

  CAIRN_HD bool keeps(std::uint64_t element) const { return mix(key, element) >> 11 >= threshold; }
};

/// Returns (x - mean) * rstd * gamma + beta.
template <class T>
CAIRN_HD T normalize(T x, T mean, T rstd, T gamma, T beta) {
  return (x - mean) * rstd * gamma + beta;
}

/// Returns the gradient with respect to x, an element that normalize() normalizes: rstd (g - mean(g) - xhat mean(g
/// xhat)). Here, g = dy gamma, and xhat = (x - mean) rstd.
template <class T>
CAIRN_HD T normalize_grad(T g, T xhat, T rstd, T mean_g, T mean_g_xhat) {
  return rstd * (g - mean_g - xhat * mean_g_xhat);
}

/// Returns the factor, at most 1, by which all gradients are multiplied so that their norm is at most about `limit`.
/// `squares` is the sum of the squares of all gradients.
template <class T>
CAIRN_HD T clip_factor(T squares, T limit) {
  const T factor = limit / (std::sqrt(squares) + T(1e-6));
  return factor < T(1) ? factor : T(1);  // NaN gives 1, so that NaN gradients show in the weights
}

/// Stochastic gradient descent with momentum, for one element (core::OpKind::sgd).
template <class T>
struct SgdRule {
  T momentum, decay, rate, clip;

  /// Returns the new weight, and updates the momentum m.
  CAIRN_HD T operator()(T gradient, T weight, T& m) const {
    m = momentum * m + (clip * gradient + decay * weight);
    return weight - rate * m;
  }
};

/// AdamW for one element (core::OpKind::adamw).
template <class T>
struct AdamwRule {
  T beta2, eps, decay, rate, clip;
  T part1, part2;  ///< 1 - beta1 and 1 - beta2
  T rate_of_m;     ///< rate / (1 - beta1^step)
  T root_of_v;     ///< sqrt(1 - beta2^step)

  /// `log1`, `log2`: natural logarithms of beta1 and beta2. `part1`, `part2`: 1 - beta1 and 1 - beta2 as differences of
  /// doubles, because a difference of floats near 1 has few correct digits.
  CAIRN_HD AdamwRule(T beta2_in, T part1_in, T part2_in, T log1, T log2, T eps_in, T decay_in, T rate_in, T step,
                     T clip_in)
      : beta2(beta2_in),
        eps(eps_in),
        decay(decay_in),
        rate(rate_in),
        clip(clip_in),
        part1(part1_in),
        part2(part2_in),
        rate_of_m(rate_in / -std::expm1(step * log1)),
        root_of_v(std::sqrt(-std::expm1(step * log2))) {}

  /// Returns the new weight, and updates the moments m and v.
  CAIRN_HD T operator()(T gradient, T weight, T& m, T& v) const {
    const T g = clip * gradient;
    m = m + part1 * (g - m);
    v = beta2 * v + part2 * (g * g);
    return (weight - rate * decay * weight) - rate_of_m * (m / (std::sqrt(v) / root_of_v + eps));
  }
};

/// Returns the hash with which a node's synthetic kernel starts. This kernel runs if the node has no op
/// (runtime/host/kernels/synthetic.h).
CAIRN_HD inline std::uint64_t synthetic_seed(std::int32_t node) { return mix(static_cast<std::uint64_t>(node), 0); }
/// Returns the synthetic kernel's hash after one more input. `hash` is the hash before, and `digest` the input's
/// digest.
CAIRN_HD inline std::uint64_t synthetic_join(std::uint64_t hash, std::uint64_t digest) { return mix(hash ^ digest, 1); }
/// Returns the hash h with which the synthetic kernel fills one output: word j of the output is mix(h, j). `hash` is
/// the kernel's hash after all inputs.
CAIRN_HD inline std::uint64_t synthetic_output(std::uint64_t hash, std::int64_t output) {
  return output == 0 ? hash : synthetic_join(hash, static_cast<std::uint64_t>(output));
}

}  // namespace cairn::runtime
