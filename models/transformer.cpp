#include <fmt/format.h>

#include <array>
#include <cmath>

#include "cairn/models/autodiff.h"
#include "cairn/models/internal/families.h"
#include "cairn/models/internal/layers.h"
#include "cairn/models/internal/options.h"

namespace cairn::models {
namespace {

using Init = core::Resident::Init;
using Options = std::array<ModelOption, 10>;

constexpr Options options_of_size(std::int64_t width, std::int64_t heads, std::int64_t ff, std::int64_t dropout) {
  return {{
      {"batch", 16, 1, "sentence pairs in a step"},
      {"seq", 128, 1, "tokens of a sentence"},
      {"layers", 6, 1, "layers of the encoder, and of the decoder"},
      {"width", width, 1, "model width, a multiple of heads"},
      {"heads", heads, 1, "attention heads"},
      {"ff", ff, 1, "units of the feed-forward layer"},
      {"vocab", 37000, 1, "tokens, shared by source and target"},
      {"dropout", dropout, 0, "percent of each sublayer's output that is dropped"},
      {"attention-dropout", 0, 0, "percent of the attention weights that is dropped"},
      {"relu-dropout", 0, 0, "percent of the feed-forward layer's units that is dropped"},
  }};
}
constexpr Options kBase = options_of_size(512, 8, 2048, 10);
constexpr Options kBig = options_of_size(1024, 16, 4096, 30);

/// Builds the encoder-decoder transformer of Vaswani et al. 2017. It has layer norm after each residual sum, and
/// residual dropout (section 5.4 of the paper). One embedding matrix serves source, target and the output projection.
class Transformer {
 public:
  Transformer(std::string_view name, const Options& options, const BuildOptions& given)
      : value_(name, options, given), model_(std::string(name), given) {}

  core::Graph build() {
    const std::int64_t heads = value_["heads"];
    value_.require_multiple("width", heads, fmt::format("heads ({})", heads));
    const core::Shape tokens{value_["batch"], value_["seq"]};
    const std::int64_t width = value_["width"];
    const Tensor source = model_.indices("source", tokens, value_["vocab"]);
    const Tensor target = model_.indices("target", tokens, value_["vocab"]);
    const Tensor labels = model_.indices("labels", tokens, value_["vocab"]);
    // With an embedding matrix E, the paper looks up rows of sqrt(width) * E and projects with E^T. Here the weight is
    // sqrt(width) * E itself, and the projection divides by sqrt(width). The function that the model computes is the
    // same, but no node is needed for the factor.
    const Tensor table = model_.weight("embedding.weight", {value_["vocab"], width}, Init::normal);
    const Tensor positions = model_.constant("positions", {value_["seq"], width}, Init::sinusoid);

    const Tensor memory = encoder(embed("encoder.embedding", source, table, positions));
    const Tensor y = decoder(embed("decoder.embedding", target, table, positions), memory);
    const Tensor logits =
        model_.project("logits", y, table, {.transposed = true, .alpha = 1.0 / std::sqrt(static_cast<double>(width))});
    return training_step(model_, model_.cross_entropy("loss", logits, labels));
  }

 private:
  Tensor embed(const std::string& name, const Tensor& ids, const Tensor& table, const Tensor& positions) {
    return drop(name, model_.embedding(name, ids, table, positions));
  }

  Tensor encoder(Tensor x) {
    for (std::int64_t i = 0; i < value_["layers"]; ++i) {
      const std::string name = fmt::format("encoder.{}", i);
      x = attend(name + ".self_attention", x, x, false);
      x = feed_forward(name + ".ff", x);
    }
    return x;
  }

  Tensor decoder(Tensor x, const Tensor& memory) {
    for (std::int64_t i = 0; i < value_["layers"]; ++i) {
      const std::string name = fmt::format("decoder.{}", i);
      x = attend(name + ".self_attention", x, x, true);
      x = attend(name + ".cross_attention", x, memory, false);
      x = feed_forward(name + ".ff", x);
    }
    return x;
  }

  Tensor attend(const std::string& name, const Tensor& x, const Tensor& memory, bool causal) {
    return add_and_norm(
        name, x,
        attention(model_, name, x, memory,
                  {.heads = value_["heads"], .causal = causal, .dropout = value_.probability("attention-dropout")}));
  }

  Tensor feed_forward(const std::string& name, const Tensor& x) {
    Tensor hidden = model_.relu(name + ".relu", linear(model_, name + ".linear1", x, value_["ff"]));
    hidden = model_.dropout(name + ".relu.dropout", hidden, value_.probability("relu-dropout"));
    return add_and_norm(name, x, linear(model_, name + ".linear2", hidden, x.channels()));
  }

  Tensor add_and_norm(const std::string& name, const Tensor& x, const Tensor& y) {
    return layer_norm(model_, name + ".norm", model_.add(name + ".add", x, drop(name, y)));
  }

  Tensor drop(const std::string& name, const Tensor& x) {
    return model_.dropout(name + ".dropout", x, value_.probability("dropout"));
  }

  OptionValues value_;
  ModelBuilder model_;
};

core::Graph build_base(const BuildOptions& options) { return Transformer("transformer", kBase, options).build(); }
core::Graph build_big(const BuildOptions& options) { return Transformer("transformer-big", kBig, options).build(); }

constexpr std::array<ModelInfo, 2> kTransformerModels{{
    {"transformer", "encoder-decoder of \"Attention is all you need\", base", kBase, build_base},
    {"transformer-big", "encoder-decoder of \"Attention is all you need\", big", kBig, build_big},
}};

}  // namespace

std::span<const ModelInfo> transformer_models() { return kTransformerModels; }

}  // namespace cairn::models
