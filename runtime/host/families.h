#pragma once

#include "cairn/runtime/host/call.h"

/// One kernel for each core::OpKind, named after it. Definitions: matmul.cpp, elementwise.cpp, conv.cpp, norm.cpp,
/// pool.cpp, shape.cpp, softmax.cpp, embedding.cpp, loss.cpp; instantiated there for float and double.
namespace cairn::runtime::kernels {

template <class T>
void matmul(const Call<T>& call);
template <class T>
void reduce_rows(const Call<T>& call);

template <class T>
void add(const Call<T>& call);
template <class T>
void scale(const Call<T>& call);
template <class T>
void relu(const Call<T>& call);
template <class T>
void relu_grad(const Call<T>& call);
template <class T>
void gelu(const Call<T>& call);
template <class T>
void gelu_grad(const Call<T>& call);
template <class T>
void dropout(const Call<T>& call);

template <class T>
void conv2d(const Call<T>& call);
template <class T>
void conv2d_grad_input(const Call<T>& call);
template <class T>
void conv2d_grad_weight(const Call<T>& call);

template <class T>
void batchnorm_stats(const Call<T>& call);
template <class T>
void batchnorm(const Call<T>& call);
template <class T>
void batchnorm_grad_params(const Call<T>& call);
template <class T>
void batchnorm_grad_input(const Call<T>& call);
template <class T>
void layernorm_stats(const Call<T>& call);
template <class T>
void layernorm(const Call<T>& call);
template <class T>
void layernorm_grad_params(const Call<T>& call);
template <class T>
void layernorm_grad_input(const Call<T>& call);

template <class T>
void maxpool(const Call<T>& call);
template <class T>
void maxpool_grad(const Call<T>& call);
template <class T>
void mean_pool(const Call<T>& call);
template <class T>
void mean_pool_grad(const Call<T>& call);
template <class T>
void upsample(const Call<T>& call);
template <class T>
void upsample_grad(const Call<T>& call);

template <class T>
void concat(const Call<T>& call);
template <class T>
void slice(const Call<T>& call);
template <class T>
void permute(const Call<T>& call);

template <class T>
void softmax(const Call<T>& call);
template <class T>
void softmax_grad(const Call<T>& call);

template <class T>
void embedding(const Call<T>& call);
template <class T>
void embedding_grad(const Call<T>& call);

template <class T>
void cross_entropy(const Call<T>& call);
template <class T>
void cross_entropy_grad(const Call<T>& call);
template <class T>
void mse(const Call<T>& call);
template <class T>
void mse_grad(const Call<T>& call);

}  // namespace cairn::runtime::kernels
