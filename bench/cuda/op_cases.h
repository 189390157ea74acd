#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/core/op.h"
#include "cairn/tests/support/op_case.h"

/// This file lists the ops that the benchmarks measure: ops of ResNet-50 and of GPT-2 small.
namespace cairn::bench {

/// An op to measure, with a name. If arguments of the op are ids or labels, they are random numbers below `op.limit`.
struct NamedCase {
  std::string name;
  tests::OpCase op;
};

inline NamedCase op_case(std::string name, core::OpKind kind, core::Shape out, std::vector<core::Shape> args,
                         core::OpAttrs attrs = {}, std::int64_t limit = 1) {
  NamedCase result{std::move(name), {{}, std::move(args), limit}};
  result.op.op.kind = kind;
  result.op.op.shape = std::move(out);
  result.op.op.attrs = std::move(attrs);
  return result;
}

/// Sizes of the ops. The defaults are the sizes of ResNet-50 with 128 images, and of GPT-2 small with 16 sequences of
/// 1024 tokens. All dimensions that are not listed here are fixed.
struct OpSizes {
  std::int64_t images = 128, batch = 16, seq = 1024, heads = 16 * 12;
  std::int64_t labels = 4096, vocabulary = 50257;
};

inline std::vector<NamedCase> elementwise_cases(const OpSizes& sizes) {
  using core::OpKind;
  using core::Shape;
  const std::int64_t batch = sizes.batch, images = sizes.images, seq = sizes.seq;
  const Shape image{images, 56, 56, 256}, wide{batch, seq, 3072};
  return {op_case("add", OpKind::add, image, {image, image}),
          op_case("scale", OpKind::scale, image, {image}, {.alpha = 0.5}),
          op_case("relu", OpKind::relu, image, {image}),
          op_case("relu_grad", OpKind::relu_grad, image, {image, image}),
          op_case("gelu", OpKind::gelu, wide, {wide}),
          op_case("gelu_grad", OpKind::gelu_grad, wide, {wide, wide}),
          op_case("dropout", OpKind::dropout, image, {image}, {.p = 0.1, .seed = 1, .stream = 2}),
          op_case("mse", OpKind::mse, {1}, {image, image}),
          op_case("mse_grad", OpKind::mse_grad, image, {image, image}),
          op_case("sum_of_squares", OpKind::sum_of_squares, {1}, {image})};
}

/// Returns the ops that update the weights of the embedding table, with clipped gradients.
inline std::vector<NamedCase> update_cases(const OpSizes& sizes) {
  const core::Shape table{sizes.vocabulary, 768}, one{1};
  return {op_case("sgd", core::OpKind::sgd, table, {table, table, table, one, one}),
          op_case("adamw", core::OpKind::adamw, table, {table, table, table, table, one, one, one})};
}

/// Returns the ops of batch norm and layer norm, and the sums over rows.
inline std::vector<NamedCase> normalization_cases(const OpSizes& sizes) {
  using core::OpKind;
  using core::Shape;
  const std::int64_t batch = sizes.batch, images = sizes.images, seq = sizes.seq, ids = sizes.batch * sizes.seq;
  const Shape image{images, 56, 56, 256}, channels{2, 256}, tokens{batch, seq, 768}, rows{ids, 2}, params{2, 768};
  return {op_case("batchnorm_stats", OpKind::batchnorm_stats, channels, {image}),
          op_case("batchnorm", OpKind::batchnorm, image, {image, channels, channels}),
          op_case("batchnorm_grad_params", OpKind::batchnorm_grad_params, channels, {image, image, channels}),
          op_case("batchnorm_grad_input", OpKind::batchnorm_grad_input, image,
                  {image, image, channels, channels, channels}),
          op_case("layernorm_stats", OpKind::layernorm_stats, rows, {tokens}),
          op_case("layernorm", OpKind::layernorm, tokens, {tokens, rows, params}),
          op_case("layernorm_grad_params", OpKind::layernorm_grad_params, params, {tokens, tokens, rows}),
          op_case("layernorm_grad_input", OpKind::layernorm_grad_input, tokens, {tokens, tokens, rows, params}),
          op_case("reduce_rows", OpKind::reduce_rows, {3072}, {{ids, 3072}}, {.rows = ids, .cols = 3072})};
}

/// Returns the ops that resize images, and the concatenation of images.
inline std::vector<NamedCase> resampling_cases(const OpSizes& sizes) {
  using core::OpKind;
  const std::int64_t batch = sizes.batch, images = sizes.images;
  return {op_case("maxpool", OpKind::maxpool, {images, 56, 56, 64}, {{images, 112, 112, 64}},
                  {.kernel = 3, .stride = 2, .pad = 1}),
          op_case("maxpool_grad", OpKind::maxpool_grad, {images, 112, 112, 64},
                  {{images, 56, 56, 64}, {images, 112, 112, 64}}, {.kernel = 3, .stride = 2, .pad = 1}),
          op_case("mean_pool", OpKind::mean_pool, {4 * images, 2048}, {{4 * images, 7, 7, 2048}}),
          op_case("mean_pool_grad", OpKind::mean_pool_grad, {4 * images, 7, 7, 2048}, {{4 * images, 2048}}),
          op_case("upsample", OpKind::upsample, {batch, 256, 256, 64}, {{batch, 128, 128, 64}}),
          op_case("upsample_grad", OpKind::upsample_grad, {batch, 128, 128, 64}, {{batch, 256, 256, 64}}),
          op_case("concat", OpKind::concat, {batch, 128, 128, 256}, {{batch, 128, 128, 128}, {batch, 128, 128, 128}})};
}

/// Returns the ops on sequences of tokens, and the ops that compute the loss of a language model.
inline std::vector<NamedCase> sequence_cases(const OpSizes& sizes) {
  using core::OpKind;
  using core::Shape;
  const std::int64_t batch = sizes.batch, seq = sizes.seq;
  const Shape tokens{batch, seq, 768}, scores{sizes.heads, 1024, 1024}, logits{sizes.labels, 50257};
  return {
      op_case("slice", OpKind::slice, tokens, {{batch, seq, 2304}}, {.offset = 768}),
      op_case("permute heads", OpKind::permute, {batch, 12, seq, 64}, {{batch, seq, 12, 64}}, {.perm = {0, 2, 1, 3}}),
      op_case("permute transpose", OpKind::permute, {4 * batch, 768, seq}, {{4 * batch, seq, 768}},
              {.perm = {0, 2, 1}}),
      op_case("softmax", OpKind::softmax, scores, {scores}),
      op_case("softmax causal", OpKind::softmax, scores, {scores}, {.causal = true}),
      op_case("softmax_grad", OpKind::softmax_grad, scores, {scores, scores}),
      op_case("embedding", OpKind::embedding, tokens, {{batch, seq}, {sizes.vocabulary, 768}}, {}, sizes.vocabulary),
      op_case("embedding_grad", OpKind::embedding_grad, {sizes.vocabulary, 768}, {tokens, {batch, seq}}, {},
              sizes.vocabulary),
      op_case("cross_entropy", OpKind::cross_entropy, {1}, {logits, {sizes.labels}}, {}, 50257),
      op_case("cross_entropy_grad", OpKind::cross_entropy_grad, logits, {logits, {sizes.labels}}, {}, 50257)};
}

inline std::vector<NamedCase> memory_bound_cases(const OpSizes& sizes) {
  std::vector<NamedCase> cases;
  for (const auto& part : {elementwise_cases, update_cases, normalization_cases, resampling_cases, sequence_cases})
    for (NamedCase& one : part(sizes)) cases.push_back(std::move(one));
  return cases;
}

/// Returns ops whose time is limited by arithmetic: matrix products and convolutions.
inline std::vector<NamedCase> compute_bound_cases() {
  using core::OpKind;
  return {op_case("matmul 16384x3072x768", OpKind::matmul, {16384, 3072}, {{16384, 768}, {768, 3072}},
                  {.m = 16384, .n = 3072, .k = 768}),
          op_case("matmul batched 1024x1024x64", OpKind::matmul, {192, 1024, 1024}, {{192, 1024, 64}, {192, 1024, 64}},
                  {.batch = 192, .m = 1024, .n = 1024, .k = 64, .trans_b = true}),
          op_case("conv 3x3 56x56x64", OpKind::conv2d, {128, 56, 56, 64}, {{128, 56, 56, 64}, {64, 3, 3, 64}},
                  {.stride = 1, .pad = 1}),
          op_case("conv_grad_input 3x3 56x56x64", OpKind::conv2d_grad_input, {128, 56, 56, 64},
                  {{128, 56, 56, 64}, {64, 3, 3, 64}}, {.stride = 1, .pad = 1}),
          op_case("conv_grad_weight 3x3 56x56x64", OpKind::conv2d_grad_weight, {64, 3, 3, 64},
                  {{128, 56, 56, 64}, {128, 56, 56, 64}}, {.stride = 1, .pad = 1})};
}

/// Returns the bytes that the op of a graph's first node must read and write: the bytes of all inputs and of the
/// output, and once more the bytes of inputs that an update overwrites. Of an embedding's table and of the input of a
/// slice, only the elements that are read count.
inline std::int64_t moved_bytes(const core::Graph& graph) {
  const core::Op& op = *graph.op(0);
  const std::int64_t out = graph.size(0);
  if (op.kind == core::OpKind::slice) return 2 * out;
  std::int64_t bytes = out;
  for (std::size_t i = 0; i < op.args.size(); ++i) {
    const bool gathered = op.kind == core::OpKind::embedding && i == 1;
    bytes += gathered ? out : graph.residents()[op.args[i].index].bytes();
  }
  for (const std::size_t i : core::updated_args(op.kind)) bytes += graph.residents()[op.args[i].index].bytes();
  const bool writes_copy = op.writes >= 0 && op.writes != op.args[1].index;  // the bf16 copy of an fp32 weight
  return writes_copy ? bytes + graph.residents()[op.writes].bytes() : bytes;
}

}  // namespace cairn::bench
