#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/models/autodiff.h"
#include "cairn/models/builder.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests {

struct RandomNetworkOptions {
  std::int64_t least_blocks = 1, most_blocks = 10;
  bool dead_ends = false;  ///< whether some activations that nothing else reads are also left out of the loss
  bool kept = false;       ///< whether some activations are kept
};

/// Draws small networks. All their activations have the shape [2, 2, 2, 4], so that any op can read any of them.
/// Several ops can read the same weight, even a product and a transposed product. A weight can be computed from other
/// weights.
class RandomNetwork {
 public:
  RandomNetwork(Random& random, const models::BuildOptions& options, const RandomNetworkOptions& network = {})
      : random_(random), network_(network), model_("random network", options) {}

  /// Returns a training step of a random network. It may be called only once.
  core::Graph build() {
    use(random_.chance(70) ? model_.data("x", kShape) : embedding());
    for (std::int64_t i = random_.between(network_.least_blocks, network_.most_blocks); i > 0; --i) use(block());
    Tensor y = project(pick());
    if (!network_.dead_ends) {
      for (std::size_t i = 0; i < activations_.size(); ++i) {
        if (!read_[i]) y = model_.add(name("add"), y, activations_[i]);
      }
    }
    if (network_.kept && y.operand.kind == core::Operand::Kind::node) model_.keep(y.operand.index);
    const Tensor loss = random_.chance(50) ? model_.mse("loss", y, model_.data("target", kShape))
                                           : model_.cross_entropy("loss", y, model_.indices("labels", {2, 2, 2}, 4));
    return models::training_step(model_, loss);
  }

 private:
  using Tensor = models::Tensor;
  using Init = core::Resident::Init;
  inline static const core::Shape kShape{2, 2, 2, 4};

  std::string name(const char* kind) { return fmt::format("{}.{}", kind, ++count_); }

  void use(Tensor x) {
    activations_.push_back(std::move(x));
    read_.push_back(false);
  }

  /// Returns a random activation, which is the latest one in most cases.
  Tensor pick() {
    const std::size_t i = random_.chance(60) ? activations_.size() - 1 : random_.place(activations_);
    read_[i] = true;
    return activations_[i];
  }

  /// Returns a new weight or one that was drawn earlier.
  Tensor weight(const core::Shape& shape, Init init = Init::normal) {
    std::vector<Tensor> known;
    for (const Tensor& w : weights_) {
      if (w.shape == shape) known.push_back(w);
    }
    if (!known.empty() && random_.chance(40)) return random_.pick(known);
    weights_.push_back(model_.weight(name("weight"), shape, init, 0.5));
    return weights_.back();
  }

  Tensor embedding() {
    std::optional<Tensor> positions;
    if (random_.chance(50)) positions = weight({2, 4});
    return model_.embedding(name("embedding"), model_.indices("ids", {2, 2, 2}, 5), weight({5, 4}), positions);
  }

  /// Returns a [4, 4] matrix, which is either a weight or computed from weights.
  Tensor matrix() {
    const Tensor w = weight({4, 4});
    switch (random_.below(8)) {
      case 0:
        return model_.batched_matmul(name("product"), w, weight({4, 4}), {.trans_b = random_.chance(50)});
      case 1:
        return model_.gelu(name("gelu"), w);
      case 2:
        return model_.layernorm(name("layernorm"), w, weight({2, 4}, Init::norm_params));
      default:
        return w;
    }
  }

  Tensor project(const Tensor& x) {
    models::ProjectOptions options{.transposed = random_.chance(30)};
    if (random_.chance(50)) options.bias = weight({4});
    return model_.project(name("linear"), x, matrix(), options);
  }

  Tensor convolution(const Tensor& x) {
    const bool wide = random_.chance(50);
    std::optional<Tensor> bias;
    if (random_.chance(50)) bias = weight({4});
    return model_.conv2d(name("conv"), x, weight({4, wide ? 3 : 1, wide ? 3 : 1, 4}), bias, 1, wide ? 1 : 0);
  }

  Tensor attention() {
    const Tensor scores = model_.batched_matmul(name("scores"), pick(), pick(), {.trans_b = true, .alpha = 0.5});
    return model_.batched_matmul(name("mixed"), model_.softmax(name("softmax"), scores, random_.chance(50)), pick());
  }

  Tensor block() {
    const Tensor y = any_op();
    if (network_.kept && y.operand.kind == core::Operand::Kind::node && random_.chance(20))
      model_.keep(y.operand.index);
    return y;
  }

  Tensor any_op() {
    switch (random_.below(14)) {
      case 0:
        return convolution(pick());
      case 1:
        return model_.batchnorm(name("batchnorm"), pick(), weight({2, 4}, Init::norm_params));
      case 2:
        return model_.layernorm(name("layernorm"), pick(), weight({2, 4}, Init::norm_params));
      case 3:
        return model_.relu(name("relu"), pick());
      case 4:
        return model_.gelu(name("gelu"), pick());
      case 5:
        return model_.add(name("add"), pick(), pick());
      case 6:
        return model_.project(name("join"), model_.concat(name("concat"), pick(), pick()), weight({8, 4}));
      case 7:
        return attention();
      case 8:
        return model_.softmax(name("softmax"), pick(), false);
      case 9:
        return model_.dropout(name("dropout"), pick(), 0.25);
      case 10:
        return model_.upsample(name("upsample"), model_.maxpool(name("maxpool"), pick(), 2, 2, 0));
      case 11:
        return model_.permute(name("permute"), pick(), {0, 2, 1, 3});
      default:
        return project(pick());
    }
  }

  Random& random_;
  RandomNetworkOptions network_;
  models::ModelBuilder model_;
  std::vector<Tensor> activations_, weights_;
  std::vector<bool> read_;  ///< for each activation, whether an op reads it
  int count_ = 0;
};

}  // namespace cairn::tests
