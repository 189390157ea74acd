#pragma once

#include <span>

#include "cairn/models/registry.h"

namespace cairn::models {

// Each function returns the models that one file defines. registry() lists the models in the order of these functions.
std::span<const ModelInfo> ffn_models();
std::span<const ModelInfo> resnet_models();
std::span<const ModelInfo> unet_models();
std::span<const ModelInfo> transformer_models();
std::span<const ModelInfo> gpt2_models();
std::span<const ModelInfo> mlp_mixer_models();

}  // namespace cairn::models
