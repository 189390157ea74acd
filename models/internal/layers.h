#pragma once

#include <cstdint>
#include <string>

#include "cairn/models/builder.h"

namespace cairn::models {

// A layer is one op or a few ops, together with their weights. The weights are named `name`.weight, `name`.bias or
// `name`.params.

/// Adds a linear layer with a bias, which maps x [..., inputs] to [..., outputs]. A row of x has `inputs` elements
/// along the last axis. The layer multiplies each row by the weight [inputs, outputs].
Tensor linear(ModelBuilder& model, const std::string& name, const Tensor& x, std::int64_t outputs);
/// Adds a linear layer in which the `inputs` elements of a row can span several of the last axes of x. `shape` is the
/// output's shape.
Tensor linear(ModelBuilder& model, const std::string& name, const Tensor& x, std::int64_t inputs, std::int64_t outputs,
              core::Shape shape);

/// Adds a square convolution without a bias. The weight is [channels, kernel, kernel, in_channels].
Tensor conv(ModelBuilder& model, const std::string& name, const Tensor& x, std::int64_t channels, std::int64_t kernel,
            std::int64_t stride, std::int64_t pad);
Tensor conv_with_bias(ModelBuilder& model, const std::string& name, const Tensor& x, std::int64_t channels,
                      std::int64_t kernel, std::int64_t stride, std::int64_t pad);

/// Adds a batch norm. Gamma and beta are one weight [2, C].
Tensor batch_norm(ModelBuilder& model, const std::string& name, const Tensor& x);
/// Adds a layer norm. Gamma and beta are one weight [2, C].
Tensor layer_norm(ModelBuilder& model, const std::string& name, const Tensor& x);

struct AttentionOptions {
  std::int64_t heads = 1;
  bool causal = false;   ///< whether a position sees only itself and earlier positions
  double dropout = 0.0;  ///< probability with which an attention weight is dropped
};
/// Adds multi-head attention (Vaswani et al. 2017, section 3.2): softmax(Q K^T / sqrt(W / heads)) V, then the output
/// projection. Queries are computed from x [B, S, W], keys and values from `memory` [B, S', W]. If `memory` is x, this
/// is self-attention.
Tensor attention(ModelBuilder& model, const std::string& name, const Tensor& x, const Tensor& memory,
                 const AttentionOptions& options);

}  // namespace cairn::models
