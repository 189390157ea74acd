#include "cairn/core/op.h"

#include <algorithm>
#include <limits>
#include <set>

#include "cairn/core/error.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/tensors.h"
#include "cairn/tests/support/errors.h"

namespace cairn::tests::op_test {

using core::InputError;

TEST_CASE("element_count multiplies, and refuses negative and absurd shapes") {
  CHECK(core::element_count({}) == 1);
  CHECK(core::element_count({3, 4, 5}) == 60);
  CHECK(core::element_count({0, std::int64_t{1} << 60}) == 0);
  CHECK(core::element_count({std::int64_t{1} << 60}) == std::int64_t{1} << 60);
  CHECK_THROWS_AS(core::element_count({2, -1}), InputError);
  CHECK_THROWS_AS(core::element_count({0, -1}), InputError);
  CHECK_THROWS_AS(core::element_count({std::int64_t{1} << 60, 2}), InputError);
  CHECK_THROWS_AS(core::element_count({std::numeric_limits<std::int64_t>::max(), 8, 8}), InputError);
}

TEST_CASE("every op kind has one name, and the name finds it again") {
  std::set<std::string_view> names;
  for (int i = 0; i < core::kOpKindCount; ++i) {
    const auto kind = static_cast<OpKind>(i);
    CHECK(core::op_kind_from_string(core::to_string(kind)) == kind);
    names.insert(core::to_string(kind));
  }
  CHECK(names.size() == core::kOpKindCount);
}

TEST_CASE("an unknown op kind suggests the nearest") {
  CHECK(contains(error_of([] { core::op_kind_from_string("matmull"); }), "did you mean 'matmul'"));
  CHECK_THROWS_AS(core::to_string(static_cast<OpKind>(200)), InputError);
}

TEST_CASE("check_op refuses what a kernel could not index") {
  struct Case {
    OpKind kind;
    Shape out;
    std::vector<Shape> args;
    OpAttrs attrs = {};
  };
  const OpAttrs product = {.m = 2, .n = 3, .k = 4};
  const OpAttrs window = {.kernel = 2, .stride = 2};
  const Shape image = {1, 4, 4, 2};
  // All cases in `good` are accepted. Each case in `bad` differs from an accepted case in one place.
  const std::vector<Case> good = {
      {OpKind::matmul, {2, 3}, {{2, 4}, {4, 3}, {3}}, product},
      {OpKind::reduce_rows, {5}, {{3, 5}}, {.rows = 3, .cols = 5}},
      {OpKind::add, {4}, {{4}, {2, 2}}},
      {OpKind::conv2d, {1, 4, 4, 3}, {image, {3, 3, 3, 2}, {3}}, {.pad = 1}},
      {OpKind::conv2d_grad_input, image, {{1, 4, 4, 3}, {3, 3, 3, 2}}, {.pad = 1}},
      {OpKind::conv2d_grad_weight, {3, 3, 3, 2}, {{1, 4, 4, 3}, image}, {.pad = 1}},
      {OpKind::batchnorm, image, {image, {2, 2}, {2, 2}}},
      {OpKind::layernorm, {4, 6}, {{4, 6}, {4, 2}, {2, 6}}},
      {OpKind::batchnorm_with_stats, image, {image, {2, 2}}},
      {OpKind::layernorm_with_stats, {4, 6}, {{4, 6}, {2, 6}}},
      {OpKind::maxpool, {1, 2, 2, 2}, {image}, window},
      {OpKind::maxpool_with_indices, {1, 2, 2, 2}, {image}, window},
      {OpKind::maxpool_with_indices_grad, image, {{1, 2, 2, 2}, {1, 2, 2, 2}}, window},
      {OpKind::maxpool_grad, image, {{1, 2, 2, 2}, image}, window},
      {OpKind::mean_pool, {1, 2}, {image}},
      {OpKind::upsample, {1, 8, 8, 2}, {image}},
      {OpKind::upsample_grad, image, {{1, 8, 8, 2}}},
      {OpKind::concat, {2, 5}, {{2, 2}, {2, 3}}},
      {OpKind::slice, {2, 2}, {{2, 3}}, {.offset = 1}},
      {OpKind::permute, {3, 2}, {{2, 3}}, {.perm = {1, 0}}},
      {OpKind::softmax, {2, 3, 3}, {{2, 3, 3}}, {.causal = true}},
      {OpKind::embedding, {2, 3, 4}, {{2, 3}, {9, 4}, {3, 4}}},
      {OpKind::embedding_grad, {9, 4}, {{2, 3, 4}, {2, 3}}},
      {OpKind::cross_entropy, {1}, {{5, 7}, {5}}},
      {OpKind::mse, {1}, {{5, 7}, {35}}},
      {OpKind::dropout, {4}, {{4}}, {.p = 0.5}},
      {OpKind::sum_of_squares, {1}, {{5, 7}}},
      {OpKind::sum_of_squares, {1}, {{5, 7}, {1}}},
      {OpKind::sgd, {2, 3}, {{2, 3}, {2, 3}, {2, 3}, {1}, {1}}, {.beta1 = 0, .decay = 0.1, .limit = 2}},
      {OpKind::adamw, {2, 3}, {{2, 3}, {2, 3}, {2, 3}, {2, 3}, {1}, {1}, {1}}, {.beta1 = 0, .beta2 = 0}},
  };
  for (const Case& c : good) {
    INFO(core::to_string(c.kind));
    CHECK_NOTHROW(core::check_op(make_op(c.kind, c.out, c.attrs), c.args));
  }
  const std::vector<Case> bad = {
      {OpKind::matmul, {2, 3}, {{2, 4}}, product},
      {OpKind::matmul, {2, 3}, {{2, 4}, {4, 3}, {3}, {3}}, product},
      {OpKind::matmul, {2, 3}, {{2, 5}, {4, 3}}, product},
      {OpKind::matmul, {2, 3}, {{2, 4}, {4, 4}}, product},
      {OpKind::matmul, {2, 4}, {{2, 4}, {4, 3}}, product},
      {OpKind::matmul, {2, 3}, {{2, 4}, {4, 3}, {2}}, product},
      {OpKind::matmul, {2, 3}, {{2, 4}, {4, 3}}, {.m = 2, .n = 3, .k = 0}},
      {OpKind::matmul, {2, 3}, {{2, 4}, {4, 3}}, {.batch = -1, .m = 2, .n = 3, .k = 4}},
      {OpKind::matmul, {2, 3}, {{2, 4}, {4, 3}}, {.m = 2, .n = 3, .k = 4, .alpha = std::nan("")}},
      {OpKind::matmul, {2, 3}, {{2, 4}, {4, 3}}, {.m = std::int64_t{1} << 40, .n = 3, .k = 4}},
      {OpKind::reduce_rows, {5}, {{3, 5}}, {.rows = 3, .cols = 4}},
      {OpKind::reduce_rows, {3}, {{3, 5}}, {.rows = 3, .cols = 5}},
      {OpKind::add, {4}, {{4}, {5}}},
      {OpKind::add, {5}, {{4}, {4}}},
      {OpKind::relu, {5}, {{4}}},
      {OpKind::relu, {0}, {{0}}},
      {OpKind::conv2d, {1, 4, 4, 3}, {image, {3, 3, 3, 1}}, {.pad = 1}},
      {OpKind::conv2d, {1, 4, 3, 3}, {image, {3, 3, 3, 2}}, {.pad = 1}},
      {OpKind::conv2d, {1, 4, 4, 3}, {image, {3, 3, 3, 2}}, {.stride = 0, .pad = 1}},
      {OpKind::conv2d, {1, 4, 4, 3}, {image, {3, 3, 3, 2}}, {.pad = -1}},
      {OpKind::conv2d, {1, 1, 1, 3}, {image, {3, 5, 5, 2}}},
      {OpKind::conv2d, {1, 4, 4, 3}, {{4, 4, 2}, {3, 3, 3, 2}}, {.pad = 1}},
      {OpKind::conv2d, {1, 4, 4, 3}, {image, {3, 3, 3, 2}, {2}}, {.pad = 1}},
      {OpKind::conv2d_grad_input, image, {{1, 4, 4, 3}, {3, 3, 3, 2}}},
      {OpKind::conv2d_grad_weight, {3, 3, 3, 2}, {{1, 4, 4, 2}, image}, {.pad = 1}},
      {OpKind::batchnorm, image, {image, {2, 3}, {2, 2}}},
      {OpKind::batchnorm, image, {image, {2, 2}, {4}}},
      {OpKind::batchnorm_stats, {2, 2}, {image}, {.eps = 0}},
      {OpKind::layernorm, {4, 6}, {{4, 6}, {2, 4}, {2, 6}}},
      {OpKind::layernorm, {4, 6}, {{4, 6}, {4, 2}, {2, 5}}},
      {OpKind::batchnorm_with_stats, image, {image, {2, 3}}},
      {OpKind::batchnorm_with_stats, image, {image}},
      {OpKind::layernorm_with_stats, {6, 4}, {{4, 6}, {2, 6}}},
      {OpKind::layernorm_with_stats, {4, 6}, {{4, 6}, {4, 2}, {2, 6}}},
      {OpKind::maxpool_with_indices, {1, 2, 2, 1}, {image}, window},
      {OpKind::maxpool_with_indices, {1, 1, 1, 2}, {image}, {.kernel = 46341, .pad = 23200}},
      {OpKind::maxpool_with_indices_grad, image, {{1, 2, 2, 2}, image}, window},
      {OpKind::maxpool_with_indices_grad, image, {{1, 3, 3, 2}, {1, 3, 3, 2}}, window},
      {OpKind::maxpool, {1, 2, 2, 2}, {image}, {.kernel = 0, .stride = 2}},
      {OpKind::maxpool, {1, 3, 3, 2}, {image}, {.kernel = 2, .stride = 2, .pad = 2}},
      {OpKind::maxpool, {1, 2, 2, 1}, {image}, window},
      {OpKind::maxpool_grad, {1, 4, 4, 1}, {{1, 2, 2, 2}, image}, window},
      {OpKind::mean_pool, {2, 1}, {image}},
      {OpKind::upsample, {1, 4, 8, 2}, {image}},
      {OpKind::upsample_grad, image, {{1, 7, 8, 2}}},
      {OpKind::concat, {2, 5}, {{2, 2}, {3, 3}}},
      {OpKind::concat, {2, 6}, {{2, 2}, {2, 3}}},
      {OpKind::slice, {2, 2}, {{2, 3}}, {.offset = 2}},
      {OpKind::slice, {2, 2}, {{2, 3}}, {.offset = -1}},
      {OpKind::slice, {3, 2}, {{2, 3}}},
      {OpKind::permute, {3, 2}, {{2, 3}}, {.perm = {0, 0}}},
      {OpKind::permute, {3, 2}, {{2, 3}}, {.perm = {1, 2}}},
      {OpKind::permute, {3, 2}, {{2, 3}}, {.perm = {0}}},
      {OpKind::permute, {2, 3}, {{2, 3}}, {.perm = {1, 0}}},
      {OpKind::permute, Shape(9, 1), {Shape(9, 1)}, {.perm = {0, 1, 2, 3, 4, 5, 6, 7, 8}}},
      {OpKind::softmax, {2, 3, 4}, {{2, 3, 4}}, {.causal = true}},
      {OpKind::softmax, {2, 3}, {{3, 2}}},
      {OpKind::embedding, {2, 3, 4}, {{2, 3}, {9, 5}}},
      {OpKind::embedding, {2, 3, 4}, {{2, 3}, {9, 4}, {2, 4}}},
      {OpKind::embedding_grad, {9, 4}, {{2, 3, 4}, {5}}},
      {OpKind::cross_entropy, {1}, {{5, 7}, {7}}},
      {OpKind::cross_entropy, {5}, {{5, 7}, {5}}},
      {OpKind::mse, {2}, {{5, 7}, {35}}},
      {OpKind::dropout, {4}, {{4}}, {.p = 1.0}},
      {OpKind::dropout, {4}, {{4}}, {.p = -0.1}},
      {OpKind::sum_of_squares, {2}, {{5, 7}}},
      {OpKind::sum_of_squares, {1}, {{5, 7}, {2}}},
      {OpKind::sum_of_squares, {1}, {{5, 7}, {1}, {1}}},
      {OpKind::sgd, {2, 3}, {{2, 3}, {2, 3}, {2, 3}}},
      {OpKind::sgd, {2, 3}, {{3, 2}, {2, 3}, {2, 3}, {1}}},
      {OpKind::sgd, {2, 3}, {{2, 3}, {2, 3}, {6}, {1}}},
      {OpKind::sgd, {2, 3}, {{2, 3}, {2, 3}, {2, 3}, {2}}},
      {OpKind::sgd, {2, 3}, {{2, 3}, {2, 3}, {2, 3}, {1}, {2}}},
      {OpKind::sgd, {2, 4}, {{2, 3}, {2, 3}, {2, 3}, {1}}},
      {OpKind::sgd, {2, 3}, {{2, 3}, {2, 3}, {2, 3}, {1}}, {.beta1 = 1}},
      {OpKind::sgd, {2, 3}, {{2, 3}, {2, 3}, {2, 3}, {1}}, {.decay = -0.1}},
      {OpKind::sgd, {2, 3}, {{2, 3}, {2, 3}, {2, 3}, {1}}, {.decay = std::nan("")}},
      {OpKind::sgd, {2, 3}, {{2, 3}, {2, 3}, {2, 3}, {1}, {1}}, {.limit = 0}},
      {OpKind::adamw, {2, 3}, {{2, 3}, {2, 3}, {2, 3}, {2, 3}, {1}}},
      {OpKind::adamw, {2, 3}, {{2, 3}, {2, 3}, {2, 3}, {2, 2}, {1}, {1}}},
      {OpKind::adamw, {2, 3}, {{2, 3}, {2, 3}, {2, 3}, {2, 3}, {1}, {6}}},
      {OpKind::adamw, {2, 3}, {{2, 3}, {2, 3}, {2, 3}, {2, 3}, {1}, {1}}, {.beta2 = 1}},
      {OpKind::adamw, {2, 3}, {{2, 3}, {2, 3}, {2, 3}, {2, 3}, {1}, {1}}, {.beta1 = -0.1}},
      {OpKind::adamw, {2, 3}, {{2, 3}, {2, 3}, {2, 3}, {2, 3}, {1}, {1}}, {.eps = 0}},
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    INFO(core::to_string(bad[i].kind) << ", bad case " << i);
    CHECK_THROWS_AS(core::check_op(make_op(bad[i].kind, bad[i].out, bad[i].attrs), bad[i].args), InputError);
  }
}

TEST_CASE("shapes, types and bytes of an op's further outputs") {
  Op op = make_op(OpKind::layernorm_with_stats, {2, 3, 8});
  op.type = ElementType::bf16;
  CHECK(core::output_count(op.kind) == 2);
  CHECK(core::output_shape(op, 1) == Shape{6, 2});
  CHECK(core::output_type(op, 0) == ElementType::bf16);
  CHECK(core::output_type(op, 1) == ElementType::f32);
  CHECK(core::output_bytes(op, 0) == 96);
  CHECK(core::output_bytes(op, 1) == 48);
  CHECK(core::output_shape(make_op(OpKind::batchnorm_with_stats, {5, 8}), 1) == Shape{2, 8});
  op = make_op(OpKind::maxpool_with_indices, {1, 2, 2, 3});
  CHECK(core::output_shape(op, 1) == op.shape);
  CHECK(core::output_type(op, 1) == ElementType::i32);
  CHECK(core::output_count(OpKind::maxpool) == 1);
  const std::vector<Shape> image = {{1, 4, 4, 3}};
  CHECK(core::op_work(op, image).bytes == 4 * (48 + 12 + 12));
}

TEST_CASE("ids and labels must be resident") {
  Op op = make_op(OpKind::cross_entropy, {1});
  const std::vector<Shape> shapes = {{5, 7}, {5}};
  op.args = {Operand::node(0), Operand::resident(0)};
  CHECK_NOTHROW(core::check_op(op, shapes));
  op.args[1] = Operand::node(1);
  CHECK_THROWS_AS(core::check_op(op, shapes), InputError);
}

TEST_CASE("tensors that an update overwrites must be resident") {
  const Shape w{4}, one{1};
  const std::vector<Shape> shapes = {w, w, w, w, one, one};
  Op op = make_op(OpKind::adamw, w);
  op.args.push_back(Operand::node(0));  // the gradient
  for (std::int32_t r = 0; r < 5; ++r) op.args.push_back(Operand::resident(r));
  CHECK_NOTHROW(core::check_op(op, shapes));
  CHECK(std::ranges::equal(core::updated_args(op.kind), std::vector<std::size_t>{1, 2, 3}));
  for (const std::size_t i : core::updated_args(op.kind)) {
    Op wrong = op;
    wrong.args[i] = Operand::node(1);
    CHECK(contains(error_of([&] { core::check_op(wrong, shapes); }), "must be a resident tensor"));
  }
  CHECK(std::ranges::equal(core::updated_args(OpKind::sgd), std::vector<std::size_t>{1, 2}));
  CHECK_FALSE(core::is_update(OpKind::sum_of_squares));
}

TEST_CASE("work of an update: its arguments are read, and w, m and v are written") {
  const Shape w{100}, one{1};
  CHECK(core::op_work(make_op(OpKind::sgd, w), std::vector<Shape>{w, w, w, one}).bytes == 4 * (300 + 1 + 200));
  CHECK(core::op_work(make_op(OpKind::adamw, w), std::vector<Shape>{w, w, w, w, one, one}).bytes ==
        4 * (400 + 2 + 300));
  CHECK(core::op_work(make_op(OpKind::sum_of_squares, one), std::vector<Shape>{w}).flops == 200);
}

TEST_CASE("work of a matmul and of a convolution") {
  const std::vector<Shape> factors = {{2, 4}, {4, 3}};
  const core::OpWork product = core::op_work(make_op(OpKind::matmul, {2, 3}, {.m = 2, .n = 3, .k = 4}), factors);
  CHECK(product.flops == 2 * 2 * 3 * 4);
  CHECK(product.bytes == 4 * (8 + 12 + 6));
  CHECK(product.scratch == 0);

  const Shape image = {2, 8, 8, 3}, weight = {5, 3, 3, 3}, output = {2, 8, 8, 5};
  const std::vector<Shape> conv_args = {image, weight};
  const core::OpWork conv = core::op_work(make_op(OpKind::conv2d, output, {.pad = 1}), conv_args);
  CHECK(conv.flops == 2 * 27 * 640);
  CHECK(conv.bytes == 4 * (384 + 135 + 640));
  CHECK(conv.scratch == 4 * 27 * 128);
  const std::vector<Shape> grad_args = {output, weight};
  CHECK(core::op_work(make_op(OpKind::conv2d_grad_input, image, {.pad = 1}), grad_args).flops == conv.flops);

  const std::vector<Shape> pointwise = {image, {5, 1, 1, 3}};
  CHECK(core::op_work(make_op(OpKind::conv2d, output), pointwise).scratch == 0);
}

TEST_CASE("an embedding reads only the rows that it gathers") {
  const std::vector<Shape> shapes = {{6}, {1000, 4}};
  CHECK(core::op_work(make_op(OpKind::embedding, {6, 4}), shapes).bytes == 4 * (6 + 24 + 24));
}

TEST_CASE("tiles of a convolution hold at most 2 MiB, but always a row") {
  CHECK(core::conv_tile_rows(100, 27) == 100);
  CHECK(core::conv_tile_rows(1000000, 576) == (2 << 20) / (4 * 576));
  CHECK(core::conv_tile_rows(10, 1 << 20) == 1);
}

TEST_CASE("roofline: the slower of compute and memory, and the launch") {
  const core::Roofline roofline{.flops_per_ns = 10, .bytes_per_ns = 2, .launch_ns = 100};
  CHECK(roofline.cost({.flops = 1000, .bytes = 10}) == 200);
  CHECK(roofline.cost({.flops = 10, .bytes = 1000}) == 600);
  CHECK(core::Roofline{.launch_ns = 0}.cost({}) == 1);
  CHECK(roofline.cost({.flops = std::numeric_limits<std::int64_t>::max()}) > 0);
}

}  // namespace cairn::tests::op_test
