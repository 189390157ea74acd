#pragma once

#include <cstdint>
#include <string>

#include "cairn/models/builder.h"

namespace cairn::models {

// A layer is an op (or a few) together with its own weights, `name`.weight, `name`.bias or `name`.params.

/// Maps x [..., inputs] to [..., outputs] with a bias; x is read as rows x inputs. The weight is [inputs, outputs].
Tensor linear(ModelBuilder& model, const std::string& name, const Tensor& x, std::int64_t outputs);
/// Adds a linear layer if the last `inputs` elements of a row span several axes; `shape` is that of the output.
Tensor linear(ModelBuilder& model, const std::string& name, const Tensor& x, std::int64_t inputs, std::int64_t outputs,
              core::Shape shape);

/// Adds a square convolution without a bias. The weight is [channels, kernel, kernel, in_channels].
Tensor conv(ModelBuilder& model, const std::string& name, const Tensor& x, std::int64_t channels, std::int64_t kernel,
            std::int64_t stride, std::int64_t pad);
Tensor conv_with_bias(ModelBuilder& model, const std::string& name, const Tensor& x, std::int64_t channels,
                      std::int64_t kernel, std::int64_t stride, std::int64_t pad);

/// Adds a normalisation, with gamma and beta as one weight [2, C].
Tensor batch_norm(ModelBuilder& model, const std::string& name, const Tensor& x);
Tensor layer_norm(ModelBuilder& model, const std::string& name, const Tensor& x);

struct AttentionOptions {
  std::int64_t heads = 1;
  bool causal = false;   ///< a position does not see later ones
  double dropout = 0.0;  ///< probability with which an attention weight is dropped
};
/// Multi-head attention (Vaswani et al. 2017, section 3.2) of queries from x [B, S, W] over `memory` [B, S', W]:
/// softmax(Q K^T / sqrt(W / heads)) V, then the output projection. It is self-attention if `memory` is x.
Tensor attention(ModelBuilder& model, const std::string& name, const Tensor& x, const Tensor& memory,
                 const AttentionOptions& options);

}  // namespace cairn::models
