#include "cairn/models/internal/layers.h"

#include <cmath>
#include <optional>
#include <utility>

namespace cairn::models {

namespace {

using Init = core::Resident::Init;

Tensor conv_weight(ModelBuilder& model, const std::string& name, const Tensor& x, std::int64_t channels,
                   std::int64_t kernel) {
  const auto fan_in = static_cast<double>(kernel * kernel * x.channels());
  return model.weight(name + ".weight", {channels, kernel, kernel, x.channels()}, Init::normal,
                      std::sqrt(2.0 / fan_in));
}

Tensor norm_params(ModelBuilder& model, const std::string& name, const Tensor& x) {
  return model.weight(name + ".params", {2, x.channels()}, Init::norm_params);
}

}  // namespace

Tensor linear(ModelBuilder& model, const std::string& name, const Tensor& x, std::int64_t outputs) {
  return linear(model, name, x, x.channels(), outputs, {});
}

Tensor linear(ModelBuilder& model, const std::string& name, const Tensor& x, std::int64_t inputs, std::int64_t outputs,
              core::Shape shape) {
  const double deviation = 1.0 / std::sqrt(static_cast<double>(inputs));
  const Tensor weight = model.weight(name + ".weight", {inputs, outputs}, Init::normal, deviation);
  const Tensor bias = model.weight(name + ".bias", {outputs}, Init::zeros);
  return model.project(name, x, weight, {.bias = bias, .shape = std::move(shape)});
}

Tensor conv(ModelBuilder& model, const std::string& name, const Tensor& x, std::int64_t channels, std::int64_t kernel,
            std::int64_t stride, std::int64_t pad) {
  const Tensor weight = conv_weight(model, name, x, channels, kernel);
  return model.conv2d(name, x, weight, std::nullopt, stride, pad);
}

Tensor conv_with_bias(ModelBuilder& model, const std::string& name, const Tensor& x, std::int64_t channels,
                      std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
  const Tensor weight = conv_weight(model, name, x, channels, kernel);
  const Tensor bias = model.weight(name + ".bias", {channels}, Init::zeros);
  return model.conv2d(name, x, weight, bias, stride, pad);
}

Tensor batch_norm(ModelBuilder& model, const std::string& name, const Tensor& x) {
  return model.batchnorm(name, x, norm_params(model, name, x));
}

Tensor layer_norm(ModelBuilder& model, const std::string& name, const Tensor& x) {
  return model.layernorm(name, x, norm_params(model, name, x));
}

Tensor attention(ModelBuilder& model, const std::string& name, const Tensor& x, const Tensor& memory,
                 const AttentionOptions& options) {
  const std::int64_t width = x.channels();
  const std::int64_t head_width = width / options.heads;
  const auto heads_first = [&](const std::string& part, const Tensor& from) {  // [B, S, W] -> [B, heads, S, W / heads]
    const core::Shape split{from.shape[0], from.shape[1], options.heads, head_width};
    const Tensor projected = linear(model, name + "." + part, from, width, width, split);
    return model.permute(name + "." + part + ".heads", projected, {0, 2, 1, 3});
  };
  const Tensor query = heads_first("query", x);
  const Tensor key = heads_first("key", memory);
  const Tensor value = heads_first("value", memory);

  const double alpha = 1.0 / std::sqrt(static_cast<double>(head_width));
  const Tensor scores = model.batched_matmul(name + ".scores", query, key, {.trans_b = true, .alpha = alpha});
  const Tensor weights = model.dropout(name + ".weights.dropout",
                                       model.softmax(name + ".weights", scores, options.causal), options.dropout);
  const Tensor context = model.batched_matmul(name + ".context", weights, value);
  const Tensor joined = model.permute(name + ".context.joined", context, {0, 2, 1, 3});
  return linear(model, name + ".output", joined, width, width, x.shape);
}

}  // namespace cairn::models
