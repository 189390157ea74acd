#include <fmt/format.h>

#include <array>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/support/text.h"
#include "cairn/models/autodiff.h"
#include "cairn/models/internal/families.h"
#include "cairn/models/internal/layers.h"
#include "cairn/models/internal/options.h"

namespace cairn::models {
namespace {

constexpr std::array<ModelOption, 5> kUNetOptions{{
    {"batch", 4, 1, "images in a step"},
    {"image", 64, 1, "pixels of an image's side, a multiple of 2^depth"},
    {"width", 16, 1, "channels of the first level; each level doubles them"},
    {"depth", 4, 1, "levels between the image and the bottom"},
    {"classes", 2, 1, "classes of a pixel"},
}};

Tensor double_conv(ModelBuilder& model, const std::string& name, Tensor x, std::int64_t channels) {
  for (int i = 1; i <= 2; ++i) {
    x = conv(model, fmt::format("{}.conv{}", name, i), x, channels, 3, 1, 1);
    x = batch_norm(model, fmt::format("{}.bn{}", name, i), x);
    x = model.relu(fmt::format("{}.relu{}", name, i), x);
  }
  return x;
}

/// Builds a U-Net (Ronneberger et al. 2015) with padded convolutions, batch norm, and nearest-neighbour upsampling
/// before the up-convolution. The loss is the mean cross entropy over pixels.
core::Graph build_unet(const BuildOptions& options) {
  const OptionValues value("unet", kUNetOptions, options);
  const std::int64_t depth = value["depth"];
  constexpr std::int64_t kDeepest = 20;
  if (depth > kDeepest) {
    throw core::InputError(
        fmt::format("unet: {} is out of range; use 1 to {}", core::option("depth", std::to_string(depth)), kDeepest));
  }
  const std::int64_t factor = std::int64_t{1} << depth;
  value.require_multiple("image", factor, fmt::format("2^depth ({})", factor));

  ModelBuilder model("unet", options);
  const std::int64_t image = value["image"];
  Tensor x = model.data("images", {value["batch"], image, image, 3});
  const Tensor labels = model.indices("labels", {value["batch"], image, image}, value["classes"]);

  std::vector<Tensor> skips;
  for (std::int64_t level = 0; level < depth; ++level) {
    const std::string name = fmt::format("down{}", level);
    skips.push_back(double_conv(model, name, x, value["width"] << level));
    x = model.maxpool(name + ".maxpool", skips.back(), 2, 2, 0);
  }
  x = double_conv(model, "bottom", x, value["width"] << depth);
  for (std::int64_t level = depth - 1; level >= 0; --level) {
    const std::string name = fmt::format("up{}", level);
    const std::int64_t channels = value["width"] << level;
    x = conv_with_bias(model, name + ".upconv", model.upsample(name + ".upsample", x), channels, 3, 1, 1);
    x = double_conv(model, name, model.concat(name + ".concat", skips[level], x), channels);
  }
  x = conv_with_bias(model, "head", x, value["classes"], 1, 1, 0);
  return training_step(model, model.cross_entropy("loss", x, labels));
}

constexpr std::array<ModelInfo, 1> kUNetModels{{
    {"unet", "convolutional encoder-decoder with skip connections, cross entropy of every pixel", kUNetOptions,
     build_unet, "momentum"},
}};

}  // namespace

std::span<const ModelInfo> unet_models() { return kUNetModels; }

}  // namespace cairn::models
