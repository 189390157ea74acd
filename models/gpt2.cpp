#include <fmt/format.h>

#include <array>

#include "cairn/models/autodiff.h"
#include "cairn/models/internal/families.h"
#include "cairn/models/internal/layers.h"
#include "cairn/models/internal/options.h"

namespace cairn::models {
namespace {

using Init = core::Resident::Init;

constexpr std::array<ModelOption, 7> kGpt2Options{{
    {"batch", 4, 1, "sequences in a step"},
    {"seq", 1024, 1, "tokens of a sequence"},
    {"layers", 12, 1, "transformer blocks"},
    {"width", 768, 1, "model width, a multiple of heads"},
    {"heads", 12, 1, "attention heads"},
    {"vocab", 50257, 1, "tokens"},
    {"dropout", 0, 0, "percent dropped of embeddings, attention weights and sublayer outputs"},
}};

/// Builds GPT-2 (Radford et al. 2019). It has layer norm before each sublayer, learned positions and tanh GELU. The
/// embedding matrix is also the output matrix.
core::Graph build_gpt2(const BuildOptions& options) {
  const OptionValues value("gpt2", kGpt2Options, options);
  const std::int64_t width = value["width"];
  const std::int64_t heads = value["heads"];
  value.require_multiple("width", heads, fmt::format("heads ({})", heads));
  const double p = value.probability("dropout");

  ModelBuilder model("gpt2", options);
  const core::Shape tokens_shape{value["batch"], value["seq"]};
  const Tensor tokens = model.indices("tokens", tokens_shape, value["vocab"]);
  const Tensor labels = model.indices("labels", tokens_shape, value["vocab"]);
  const Tensor table = model.weight("wte.weight", {value["vocab"], width}, Init::normal, 0.02);
  const Tensor positions = model.weight("wpe.weight", {value["seq"], width}, Init::normal, 0.01);

  Tensor x = model.dropout("embedding.dropout", model.embedding("embedding", tokens, table, positions), p);
  for (std::int64_t i = 0; i < value["layers"]; ++i) {
    const std::string name = fmt::format("block{}", i);
    const Tensor normed = layer_norm(model, name + ".norm1", x);
    const Tensor attended =
        attention(model, name + ".attention", normed, normed, {.heads = heads, .causal = true, .dropout = p});
    x = model.add(name + ".add1", x, model.dropout(name + ".attention.dropout", attended, p));

    Tensor y = linear(model, name + ".mlp.linear1", layer_norm(model, name + ".norm2", x), 4 * width);
    y = linear(model, name + ".mlp.linear2", model.gelu(name + ".mlp.gelu", y), width);
    x = model.add(name + ".add2", x, model.dropout(name + ".mlp.dropout", y, p));
  }
  x = layer_norm(model, "norm", x);
  const Tensor logits = model.project("logits", x, table, {.transposed = true});
  return training_step(model, model.cross_entropy("loss", logits, labels));
}

constexpr std::array<ModelInfo, 1> kGpt2Models{{
    {"gpt2", "decoder-only language model, cross entropy of the next token", kGpt2Options, build_gpt2},
}};

}  // namespace

std::span<const ModelInfo> gpt2_models() { return kGpt2Models; }

}  // namespace cairn::models
