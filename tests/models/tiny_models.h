#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cairn/models/registry.h"

/// These are all models of the registry, in sizes that run in milliseconds.
namespace cairn::tests {

struct TinyModel {
  std::string name;
  models::BuildOptions options;

  core::Graph build() const { return models::build_model(name, options); }
};

inline std::vector<TinyModel> tiny_models() {
  const auto tiny = [](std::string name, decltype(models::BuildOptions::values) values) {
    models::BuildOptions options{.values = std::move(values)};
    return TinyModel{std::move(name), std::move(options)};
  };
  // In the last stage of a residual network, images have only image / 32 pixels per side. With a smaller `image`, batch
  // norm would average over too few values and would be ill-conditioned.
  const auto resnet = [&](std::string name) {
    return tiny(std::move(name), {{"batch", 2}, {"image", 64}, {"classes", 3}, {"width", 2}});
  };
  const auto transformer = [&](std::string name) {
    return tiny(std::move(name), {{"batch", 2},
                                  {"seq", 5},
                                  {"layers", 2},
                                  {"width", 8},
                                  {"heads", 2},
                                  {"ff", 6},
                                  {"vocab", 7},
                                  {"dropout", 25}});
  };
  return {
      tiny("ffn", {{"batch", 3}, {"layers", 3}, {"width", 5}, {"inputs", 4}, {"outputs", 2}}),
      resnet("resnet18"),
      resnet("resnet34"),
      resnet("resnet50"),
      resnet("resnet101"),
      resnet("resnet152"),
      resnet("resnet200"),
      tiny("unet", {{"batch", 2}, {"image", 8}, {"width", 2}, {"depth", 2}, {"classes", 3}}),
      transformer("transformer"),
      transformer("transformer-big"),
      tiny("gpt2",
           {{"batch", 2}, {"seq", 6}, {"layers", 2}, {"width", 8}, {"heads", 2}, {"vocab", 11}, {"dropout", 25}}),
      tiny("mlp-mixer", {{"batch", 2},
                         {"image", 6},
                         {"patch", 2},
                         {"layers", 2},
                         {"width", 4},
                         {"token-mlp", 5},
                         {"channel-mlp", 7},
                         {"classes", 3}}),
  };
}

inline core::Graph tiny_model(const std::string& name) {
  for (const TinyModel& model : tiny_models()) {
    if (model.name == name) return model.build();
  }
  throw std::out_of_range("no tiny " + name);
}

}  // namespace cairn::tests
