#include <fmt/format.h>

#include <array>

#include "cairn/models/autodiff.h"
#include "cairn/models/internal/families.h"
#include "cairn/models/internal/layers.h"
#include "cairn/models/internal/options.h"

namespace cairn::models {
namespace {

constexpr std::array<ModelOption, 5> kResNetOptions{{
    {"batch", 32, 1, "images in a step"},
    {"image", 224, 1, "pixels of an image's side"},
    {"classes", 1000, 1, "classes"},
    {"width", 64, 1, "channels of the first stage"},
    {"depth-multiplier", 1, 1, "how often each stage has its blocks: a deeper network"},
}};

enum class Block : std::uint8_t { basic, bottleneck };
struct ResNet {
  std::string_view name;
  Block block;
  std::array<int, 4> blocks;  ///< number of blocks in each stage
};
constexpr ResNet kResNet18{"resnet18", Block::basic, {2, 2, 2, 2}};
constexpr ResNet kResNet34{"resnet34", Block::basic, {3, 4, 6, 3}};
constexpr ResNet kResNet50{"resnet50", Block::bottleneck, {3, 4, 6, 3}};
constexpr ResNet kResNet101{"resnet101", Block::bottleneck, {3, 4, 23, 3}};
constexpr ResNet kResNet152{"resnet152", Block::bottleneck, {3, 8, 36, 3}};
constexpr ResNet kResNet200{"resnet200", Block::bottleneck, {3, 24, 36, 3}};

/// Adds a convolution and a batch norm. The padding is such that, with stride 1, the image keeps its extents.
Tensor conv_norm(ModelBuilder& model, const std::string& name, int index, const Tensor& x, std::int64_t channels,
                 std::int64_t kernel, std::int64_t stride) {
  const Tensor y = conv(model, fmt::format("{}.conv{}", name, index), x, channels, kernel, stride, kernel / 2);
  return batch_norm(model, fmt::format("{}.bn{}", name, index), y);
}

/// Adds a residual block. In a bottleneck block, `stride` is the stride of the 3x3 convolution. If the block changes
/// the shape, its shortcut is a projection (a 1x1 convolution).
Tensor residual(ModelBuilder& model, const std::string& name, Block block, const Tensor& x, std::int64_t width,
                std::int64_t stride) {
  Tensor y;
  if (block == Block::basic) {
    y = model.relu(name + ".relu1", conv_norm(model, name, 1, x, width, 3, stride));
    y = conv_norm(model, name, 2, y, width, 3, 1);
  } else {
    y = model.relu(name + ".relu1", conv_norm(model, name, 1, x, width, 1, 1));
    y = model.relu(name + ".relu2", conv_norm(model, name, 2, y, width, 3, stride));
    y = conv_norm(model, name, 3, y, 4 * width, 1, 1);
  }
  Tensor shortcut = x;
  if (stride != 1 || x.channels() != y.channels()) {
    shortcut = conv(model, name + ".downsample.conv", x, y.channels(), 1, stride, 0);
    shortcut = batch_norm(model, name + ".downsample.bn", shortcut);
  }
  return model.relu(name + ".relu", model.add(name + ".add", y, shortcut));
}

/// Builds a residual network (He et al. 2016) in its ImageNet form, with batch norm after every convolution and cross
/// entropy as loss.
core::Graph build_resnet(const ResNet& net, const BuildOptions& options) {
  const OptionValues value(net.name, kResNetOptions, options);
  ModelBuilder model(std::string(net.name), options);
  const std::int64_t width = value["width"];
  Tensor x = model.data("images", {value["batch"], value["image"], value["image"], 3});
  const Tensor labels = model.indices("labels", {value["batch"]}, value["classes"]);

  x = model.relu("stem.relu", conv_norm(model, "stem", 1, x, width, 7, 2));
  x = model.maxpool("stem.maxpool", x, 3, 2, 1);
  for (int stage = 0; stage < 4; ++stage) {
    for (std::int64_t i = 0; i < net.blocks[stage] * value["depth-multiplier"]; ++i) {
      const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = residual(model, fmt::format("layer{}.{}", stage + 1, i), net.block, x, width << stage, stride);
    }
  }
  x = linear(model, "fc", model.mean_pool("avgpool", x), value["classes"]);
  return training_step(model, model.cross_entropy("loss", x, labels));
}

template <const ResNet& kNet>
core::Graph build(const BuildOptions& options) {
  return build_resnet(kNet, options);
}

constexpr std::array<ModelInfo, 6> kResNetModels{{
    {kResNet18.name, "residual network, 18 layers", kResNetOptions, build<kResNet18>, "momentum", true},
    {kResNet34.name, "residual network, 34 layers", kResNetOptions, build<kResNet34>, "momentum", true},
    {kResNet50.name, "residual network, 50 layers, bottleneck blocks", kResNetOptions, build<kResNet50>, "momentum",
     true},
    {kResNet101.name, "residual network, 101 layers, bottleneck blocks", kResNetOptions, build<kResNet101>, "momentum",
     true},
    {kResNet152.name, "residual network, 152 layers, bottleneck blocks", kResNetOptions, build<kResNet152>, "momentum",
     true},
    {kResNet200.name, "residual network, 200 layers, bottleneck blocks", kResNetOptions, build<kResNet200>, "momentum",
     true},
}};

}  // namespace

std::span<const ModelInfo> resnet_models() { return kResNetModels; }

}  // namespace cairn::models
