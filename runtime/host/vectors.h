#pragma once

#include <cstdint>

#include "cairn/runtime/host/products/gemm.h"

/// These loops over floats are compiled for three families of processors: with AVX-512, with AVX2, and all others. At
/// run time, the version for the machine's processor runs. The bits of product() depend on the family, as do those of
/// BLAS products, because processors with AVX2 multiply and add with a single rounding. The remaining functions give
/// the same bits on every processor.
namespace cairn::runtime::vectors {

/// Sets out[i] = runtime::gelu(x[i]) for i < count. The relative error of the tanh in gelu is below 5e-7, and NaN stays
/// NaN. `out` may be x.
void gelu(const float* x, float* out, std::int64_t count);
/// Sets out[i] to the gradient runtime::gelu_grad(dy[i], x[i]) for i < count. `out` may be dy or x.
void gelu_grad(const float* dy, const float* x, float* out, std::int64_t count);

/// Sets out[i] = exp(x[i] - shift) for i < count, and returns the sum. No x[i] may be above `shift`. The relative error
/// of an element is below 3e-7; an element below 1.2e-38 is 0. NaN stays NaN. `out` may be x, or nullptr if only the
/// sum is needed.
double exponentials(const float* x, float shift, float* out, std::int64_t count);

/// Computes a product of matrices on the calling thread. Allocates nothing. For every element of C, the products are
/// added in ascending order of k.
void product(const kernels::Gemm<float>& product);

}  // namespace cairn::runtime::vectors
