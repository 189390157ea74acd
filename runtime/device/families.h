#pragma once

#include "cairn/runtime/device/call.h"

/// The ops by family; every function is defined in the header of its name, for any Machine (machine.h).
namespace cairn::runtime::device {

/// matmul. matmul.h
template <class Machine>
void matmul(Machine& machine, Call& call);
/// add, scale, relu, relu_grad, gelu, gelu_grad, dropout, mse_grad. elementwise.h
template <class Machine>
void elementwise(Machine& machine, Call& call);
/// conv2d, conv2d_grad_input, conv2d_grad_weight. conv.h
template <class Machine>
void conv(Machine& machine, Call& call);
/// batchnorm_stats, batchnorm, batchnorm_grad_params, batchnorm_grad_input, reduce_rows. batchnorm.h
template <class Machine>
void batchnorm(Machine& machine, Call& call);
/// layernorm_stats, layernorm, layernorm_grad_params, layernorm_grad_input. layernorm.h
template <class Machine>
void layernorm(Machine& machine, Call& call);
/// maxpool, maxpool_grad, mean_pool, mean_pool_grad, upsample, upsample_grad. pool.h
template <class Machine>
void pool(Machine& machine, Call& call);
/// concat, slice, permute. shape.h
template <class Machine>
void shape(Machine& machine, Call& call);
/// softmax, softmax_grad. softmax.h
template <class Machine>
void softmax(Machine& machine, Call& call);
/// embedding, embedding_grad. embedding.h
template <class Machine>
void embedding(Machine& machine, Call& call);
/// cross_entropy, cross_entropy_grad, mse. loss.h
template <class Machine>
void loss(Machine& machine, Call& call);

}  // namespace cairn::runtime::device
