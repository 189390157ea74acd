#pragma once

#include <array>
#include <utility>
#include <vector>

#include "cairn/core/op.h"
#include "cairn/tests/runtime/window_cases.h"
#include "cairn/tests/support/op_case.h"

/// These functions return ops of every kind, with shapes that together reach every path of the ops' kernels.
namespace cairn::tests {

/// Adds to `cases` the sum of squares of a gradient of n elements, and two ops that update a weight of n elements. If n
/// is odd, each op gets one more argument: the updates then clip the gradient, and the sum of squares adds to another
/// sum.
inline void add_updates(std::vector<OpCase>& cases, std::int64_t n) {
  const core::Shape of_weight{n}, one{1};
  const core::OpAttrs attrs{.eps = 1e-8, .beta1 = 0.8, .beta2 = 0.95, .decay = 0.1, .limit = 2};
  const auto add = [&](core::OpKind kind, const core::Shape& out, std::vector<core::Shape> args) {
    if (n % 2 == 1) args.push_back(one);
    cases.push_back({{.kind = kind, .shape = out, .attrs = attrs}, std::move(args)});
  };
  add(core::OpKind::sum_of_squares, one, {of_weight});
  add(core::OpKind::sgd, of_weight, {of_weight, of_weight, of_weight, one});
  add(core::OpKind::adamw, of_weight, {of_weight, of_weight, of_weight, of_weight, one, one});
}

/// Returns ops on common shapes. `large` adds shapes that fill a device. Without `large`, the ops are fast enough for a
/// memory checker.
inline std::vector<OpCase> op_cases(bool large) {
  using core::OpKind;
  using core::Shape;
  std::vector<OpCase> cases;
  const auto add = [&](OpKind kind, Shape out, std::vector<Shape> args, core::OpAttrs attrs = {},
                       std::int64_t limit = 1) {
    cases.push_back({{.kind = kind, .shape = std::move(out), .attrs = std::move(attrs)}, std::move(args), limit});
  };
  std::vector<std::int64_t> counts = {1, 7, 8, 1000, 8200};
  if (large) counts.push_back(3'000'001);
  for (const std::int64_t n : counts) {
    for (const OpKind kind : {OpKind::add, OpKind::relu_grad, OpKind::gelu_grad, OpKind::mse_grad})
      add(kind, {n}, {{n}, {n}});
    for (const OpKind kind : {OpKind::relu, OpKind::gelu}) add(kind, {n}, {{n}});
    add(OpKind::scale, {n}, {{n}}, {.alpha = -0.75});
    add(OpKind::dropout, {n}, {{n}}, {.p = 0.4, .seed = 3, .stream = 9});
    add(OpKind::mse, {1}, {{n}, {n}});
    add_updates(cases, n);
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> tables = {{1, 1}, {3, 5}, {70, 8}, {129, 24}, {17, 33}, {9, 1030}};
  if (large) tables.insert(tables.end(), {{100'000, 64}, {2048, 768}, {64, 50'257}, {300, 4096}});
  for (const auto& [rows, cols] : tables) {
    const Shape x{rows, cols}, params{2, cols}, row_stats{rows, 2};
    add(OpKind::reduce_rows, {cols}, {x}, {.rows = rows, .cols = cols});
    add(OpKind::batchnorm_stats, params, {x});
    add(OpKind::batchnorm, x, {x, params, params});
    add(OpKind::batchnorm_with_stats, x, {x, params});
    add(OpKind::batchnorm_grad_params, params, {x, x, params});
    add(OpKind::batchnorm_grad_input, x, {x, x, params, params, params});
    add(OpKind::layernorm_stats, row_stats, {x});
    add(OpKind::layernorm, x, {x, row_stats, params});
    add(OpKind::layernorm_with_stats, x, {x, params});
    add(OpKind::layernorm_grad_params, params, {x, x, row_stats});
    add(OpKind::layernorm_grad_input, x, {x, x, row_stats, params});
    add(OpKind::softmax, x, {x});
    add(OpKind::softmax_grad, x, {x, x});
    add(OpKind::cross_entropy, {1}, {x, {rows}}, {}, cols);
    add(OpKind::cross_entropy_grad, x, {x, {rows}}, {}, cols);
    add(OpKind::embedding, {7, 9, cols}, {{7, 9}, {rows, cols}}, {}, rows);
    add(OpKind::embedding, {7, 9, cols}, {{7, 9}, {rows, cols}, {9, cols}}, {}, rows);
    add(OpKind::embedding_grad, {rows, cols}, {{7, 9, cols}, {7, 9}}, {}, rows);
    add(OpKind::concat, {rows, cols + 4}, {x, {rows, 4}});
    add(OpKind::slice, {rows, (cols + 1) / 2}, {x}, {.offset = cols / 2});
    add(OpKind::permute, {cols, rows}, {x}, {.perm = {1, 0}});
    add(OpKind::permute, {2, cols, 3, rows}, {{2, 3, rows, cols}}, {.perm = {0, 3, 1, 2}});
    add(OpKind::permute, {2, rows, 3, cols}, {{2, 3, rows, cols}}, {.perm = {0, 2, 1, 3}});
  }
  for (const std::int64_t s : {1, 5, 32, 65}) add(OpKind::softmax, {3, s, s}, {{3, s, s}}, {.causal = true});
  for (const std::int64_t c : {1, 3, 8, 36}) {
    for (const PoolCase& p : {PoolCase{2, 9, 7, c, 3, 2, 1}, {2, 9, 7, c, 2, 2, 0}, {2, 9, 7, c, 3, 1, 1}}) {
      add(OpKind::maxpool, p.y(), {p.x()}, p.attrs());
      add(OpKind::maxpool_grad, p.x(), {p.y(), p.x()}, p.attrs());
      add(OpKind::maxpool_with_indices, p.y(), {p.x()}, p.attrs());
      add(OpKind::maxpool_with_indices_grad, p.x(), {p.y(), p.y()}, p.attrs(), p.kernel * p.kernel);
    }
    add(OpKind::mean_pool, {3, c}, {{3, 5, 7, c}});
    add(OpKind::mean_pool_grad, {3, 5, 7, c}, {{3, c}});
    add(OpKind::upsample, {2, 6, 10, c}, {{2, 3, 5, c}});
    add(OpKind::upsample_grad, {2, 3, 5, c}, {{2, 6, 10, c}});
    for (const auto& [kernel, stride, pad] :
         std::vector<std::array<std::int64_t, 3>>{{1, 1, 0}, {3, 1, 1}, {3, 2, 1}, {7, 2, 3}, {1, 2, 0}}) {
      const ConvCase conv{2, 11, 8, c, 12, kernel, kernel, stride, pad};
      add(OpKind::conv2d, conv.y(), {conv.x(), conv.weight()}, conv.attrs());
      add(OpKind::conv2d, conv.y(), {conv.x(), conv.weight(), {conv.oc}}, conv.attrs());
      add(OpKind::conv2d_grad_input, conv.x(), {conv.y(), conv.weight()}, conv.attrs());
      add(OpKind::conv2d_grad_weight, conv.weight(), {conv.y(), conv.x()}, conv.attrs());
    }
  }
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      for (const std::int64_t batch : {1, 4}) {
        for (const std::int64_t n : {9, 64}) {
          const core::OpAttrs attrs{
              .batch = batch, .m = 33, .n = n, .k = 40, .trans_a = trans_a, .trans_b = trans_b, .alpha = 0.5};
          const Shape a{batch, 33 * 40}, b{batch, 40 * n}, out{batch, 33, n};
          add(OpKind::matmul, out, {a, b}, attrs);
          add(OpKind::matmul, out, {a, b, {n}}, attrs);
        }
      }
    }
  }
  return cases;
}

/// Returns ops on shapes that reach rare paths of the kernels: long rows, transpositions in tiles of every shape, many
/// axes, large pooling windows, sums that are computed in parts, and products with padded rows. `large` adds pooling
/// windows of more than 2^16 elements, and convolutions whose patches (im2col) are too many to be gathered at once.
inline std::vector<OpCase> rare_op_cases(bool large) {
  using core::OpKind;
  using core::Shape;
  std::vector<OpCase> cases;
  const auto add = [&](OpKind kind, Shape out, std::vector<Shape> args, core::OpAttrs attrs = {},
                       std::int64_t limit = 1) {
    cases.push_back({{.kind = kind, .shape = std::move(out), .attrs = std::move(attrs)}, std::move(args), limit});
  };
  // Rows of at most 8 KiB, added up over an op's arguments, are computed by a warp, and longer rows by a block of 256
  // threads. If the op reads its rows twice, rows of more than 64 KiB are computed by a block of 1024 threads. The
  // first of the following lengths is above 8 KiB, the second above 64 KiB.
  for (const std::int64_t cols : {5000, 40'000}) {
    const Shape x{2, cols}, params{2, cols}, stats{2, 2};
    add(OpKind::softmax, x, {x});
    add(OpKind::softmax_grad, x, {x, x});
    add(OpKind::layernorm_stats, stats, {x});
    add(OpKind::layernorm, x, {x, stats, params});
    add(OpKind::layernorm_with_stats, x, {x, params});
    add(OpKind::layernorm_grad_input, x, {x, x, stats, params});
    add(OpKind::cross_entropy, {1}, {x, {2}}, {}, cols);
    add(OpKind::cross_entropy_grad, x, {x, {2}}, {}, cols);
  }
  for (const auto& [rows, cols] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {4, 1024}, {16, 256}, {32, 128}, {64, 64}, {128, 32}, {256, 16}, {1024, 4}}) {
    for (const std::int64_t less : {0, 1})  // if both extents are even, the kernel moves pairs of elements
      add(OpKind::permute, {cols - less, rows - less}, {{rows - less, cols - less}}, {.perm = {1, 0}});
  }
  for (const std::int64_t cols : {3, 8})
    add(OpKind::permute, {3, 2, 3, 2, cols}, {{2, 3, 2, 3, cols}}, {.perm = {3, 2, 1, 0, 4}});
  add(OpKind::permute, {3, 2, 5, 16}, {{2, 3, 5, 16}}, {.perm = {1, 0, 2, 3}});
  // This op has so many ids that several blocks sort them.
  add(OpKind::embedding_grad, {50, 8}, {{100, 100, 8}, {100, 100}}, {}, 50);
  add(OpKind::concat, {5, 24}, {{5, 16}, {5, 8}});
  add(OpKind::slice, {5, 16}, {{5, 32}}, {.offset = 16});
  for (const std::int64_t c : {3, 8}) {
    // An index of a position in the window takes 2 bytes for an extent of 17, and 8 bytes for 257.
    for (const std::int64_t kernel : {17, 257}) {
      if (kernel > 256 && !large) continue;
      const core::OpAttrs attrs{.kernel = kernel, .stride = 1, .pad = 0};
      const Shape x{1, kernel + 1, kernel + 1, c}, y{1, 2, 2, c};
      add(OpKind::maxpool_grad, x, {y, x}, attrs);
    }
    add(OpKind::mean_pool, {1, c}, {{1, 128, 128, c}});
  }
  for (const std::int64_t c : {16, 15}) {  // patches of 64 MiB and more are gathered in several tiles
    if (!large) break;
    const Shape x{2, 384, 384, c}, weight{4, 3, 3, c}, y{2, 384, 384, 4};
    add(OpKind::conv2d_grad_weight, weight, {y, x}, {.stride = 1, .pad = 1});
  }
  // If n is 64, the kernels must pad the rows of A, which do not begin at multiples of 16 bytes. If n is 9, they must
  // pad the rows of A and C.
  for (const std::int64_t n : {9, 64})
    add(OpKind::matmul, {1, 33, n}, {{1, 33 * 41}, {1, 41 * n}}, {.m = 33, .n = n, .k = 41});
  return cases;
}

}  // namespace cairn::tests
