#include <fmt/format.h>

#include <array>

#include "cairn/models/autodiff.h"
#include "cairn/models/internal/families.h"
#include "cairn/models/internal/layers.h"
#include "cairn/models/internal/options.h"

namespace cairn::models {
namespace {

constexpr std::array<ModelOption, 8> kMlpMixerOptions{{
    {"batch", 32, 1, "images in a step"},
    {"image", 224, 1, "pixels of an image's side, a multiple of patch"},
    {"patch", 16, 1, "pixels of a patch's side"},
    {"layers", 8, 1, "mixer blocks"},
    {"width", 512, 1, "channels of a patch"},
    {"token-mlp", 256, 1, "units of the token-mixing layer"},
    {"channel-mlp", 2048, 1, "units of the channel-mixing layer"},
    {"classes", 1000, 1, "classes"},
}};

/// Adds the layers that mix the tokens (patches of the image) of each channel. They first transpose x [N, h, w, C] to
/// N * C rows of h * w tokens.
Tensor mix_tokens(ModelBuilder& model, const std::string& name, const Tensor& x, std::int64_t units) {
  const std::int64_t tokens = x.shape[1] * x.shape[2];
  const core::Shape hidden{x.shape[0], x.channels(), units};
  const core::Shape channels_first{x.shape[0], x.channels(), x.shape[1], x.shape[2]};
  Tensor y = model.permute(name + ".transpose", x, {0, 3, 1, 2});
  y = model.gelu(name + ".gelu", linear(model, name + ".linear1", y, tokens, units, hidden));
  y = linear(model, name + ".linear2", y, units, tokens, channels_first);
  return model.permute(name + ".transpose_back", y, {0, 2, 3, 1});
}

Tensor mix_channels(ModelBuilder& model, const std::string& name, const Tensor& x, std::int64_t units) {
  const Tensor hidden = model.gelu(name + ".gelu", linear(model, name + ".linear1", x, units));
  return linear(model, name + ".linear2", hidden, x.channels());
}

/// Builds MLP-Mixer (Tolstikhin et al. 2021). The defaults are those of Mixer-S/16.
core::Graph build_mlp_mixer(const BuildOptions& options) {
  const OptionValues value("mlp-mixer", kMlpMixerOptions, options);
  const std::int64_t patch = value["patch"];
  value.require_multiple("image", patch, fmt::format("patch ({})", patch));

  ModelBuilder model("mlp-mixer", options);
  Tensor x = model.data("images", {value["batch"], value["image"], value["image"], 3});
  const Tensor labels = model.indices("labels", {value["batch"]}, value["classes"]);
  x = conv_with_bias(model, "patches", x, value["width"], patch, patch, 0);
  for (std::int64_t i = 0; i < value["layers"]; ++i) {
    const std::string name = fmt::format("block{}", i);
    Tensor y = layer_norm(model, name + ".norm1", x);
    x = model.add(name + ".add1", x, mix_tokens(model, name + ".tokens", y, value["token-mlp"]));
    y = layer_norm(model, name + ".norm2", x);
    x = model.add(name + ".add2", x, mix_channels(model, name + ".channels", y, value["channel-mlp"]));
  }
  x = model.mean_pool("avgpool", layer_norm(model, "norm", x));
  x = linear(model, "head", x, value["classes"]);
  return training_step(model, model.cross_entropy("loss", x, labels));
}

constexpr std::array<ModelInfo, 1> kMlpMixerModels{{
    {"mlp-mixer", "MLPs over patches and over channels in turn, cross entropy", kMlpMixerOptions, build_mlp_mixer},
}};

}  // namespace

std::span<const ModelInfo> mlp_mixer_models() { return kMlpMixerModels; }

}  // namespace cairn::models
