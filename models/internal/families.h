#pragma once

#include <span>

#include "cairn/models/registry.h"

namespace cairn::models {

// The models of each file. registry() lists them in this order.
std::span<const ModelInfo> ffn_models();
std::span<const ModelInfo> resnet_models();
std::span<const ModelInfo> unet_models();
std::span<const ModelInfo> transformer_models();
std::span<const ModelInfo> gpt2_models();
std::span<const ModelInfo> mlp_mixer_models();

}  // namespace cairn::models
