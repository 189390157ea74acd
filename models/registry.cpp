#include "cairn/models/registry.h"

#include <fmt/format.h>

#include "cairn/core/error.h"
#include "cairn/core/text.h"
#include "cairn/models/internal/families.h"

namespace cairn::models {
namespace {

std::vector<ModelInfo> all_models() {
  std::vector<ModelInfo> models;
  for (const auto family :
       {ffn_models(), resnet_models(), unet_models(), transformer_models(), gpt2_models(), mlp_mixer_models()}) {
    models.insert(models.end(), family.begin(), family.end());
  }
  return models;
}

}  // namespace

std::span<const ModelInfo> registry() {
  static const std::vector<ModelInfo> models = all_models();
  return models;
}

const ModelInfo& find_model(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ModelInfo& model : registry()) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  throw core::InputError(
      fmt::format("unknown model '{}'; `cairn models` lists them{}", name, core::did_you_mean(name, names)));
}

core::Graph build_model(std::string_view name, const BuildOptions& options) {
  return find_model(name).build(options);  // every build starts with its OptionValues, which check
}

}  // namespace cairn::models
