// Tests, for random sizes, that the launches of ops and of training steps are valid on every card.
#include "cairn/cuda/internal/launch_shape.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/precision.h"
#include "cairn/core/schedule.h"
#include "cairn/models/random_graphs.h"
#include "cairn/models/registry.h"
#include "cairn/runtime/device/kernels/batchnorm.h"
#include "cairn/runtime/device/kernels/conv.h"
#include "cairn/runtime/device/kernels/elementwise.h"
#include "cairn/runtime/device/kernels/embedding.h"
#include "cairn/runtime/device/kernels/layernorm.h"
#include "cairn/runtime/device/kernels/loss.h"
#include "cairn/runtime/device/kernels/matmul.h"
#include "cairn/runtime/device/kernels/pool.h"
#include "cairn/runtime/device/kernels/shape.h"
#include "cairn/runtime/device/kernels/softmax.h"
#include "cairn/runtime/device/kernels/update.h"
#include "cairn/runtime/device/ops.h"
#include "cairn/runtime/device/step.h"
#include "cairn/runtime/program.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/fake_cuda/launch_checker.h"
#include "cairn/tests/models/tiny_models.h"

namespace cairn::tests::launch_shape_test {
namespace {

using core::ElementType;
using core::OpKind;
using core::Shape;

/// A library that computes nothing and leaves as much work as possible to Cairn's own kernels. It adds no biases, and
/// wants Cairn to divide every product into tiles. It offers convolutions only if `convolves` is true.
class IdleLibrary : public runtime::device::Library {
 public:
  explicit IdleLibrary(bool convolves = false) : convolves_(convolves) {}
  std::int64_t gemm_workspace(const runtime::device::GemmShape&) override { return 0; }
  void gemm(const runtime::device::GemmShape&, const runtime::device::GemmOperands&, void*) override {}
  bool gemm_in_tiles(const runtime::device::GemmShape&) override { return true; }
  bool gemm_adds_bias(const runtime::device::GemmShape&) override { return false; }
  std::optional<std::int64_t> conv_workspace(const runtime::device::ConvShape&, std::optional<std::int64_t>) override {
    return convolves_ ? std::optional<std::int64_t>(0) : std::nullopt;
  }
  void conv(const runtime::device::ConvShape&, const runtime::device::ConvOperands&, void*, std::int64_t) override {}
  std::vector<runtime::ScratchVariant> conv_variants(const runtime::device::ConvShape&) override { return {}; }

 private:
  bool convolves_;
};

/// Lets the checker see all launches of an op whose arguments have the shapes `args`. `launches` says whether the op
/// uses any kernel of Cairn besides those of the library.
void launch(LaunchChecker& checker, const core::Op& op, const std::vector<Shape>& args, IdleLibrary& library,
            bool launches = true) {
  INFO(core::to_string(op.kind));
  std::vector<runtime::device::Tensor> tensors;
  for (const Shape& shape : args) tensors.push_back({nullptr, op.type, shape});
  runtime::device::Call call{op, tensors, nullptr, library};
  call.scratch = runtime::device::Scratch(nullptr, std::int64_t{1} << 60);
  const std::int64_t before = checker.launches();
  runtime::device::run_op(checker, call);
  CHECK((checker.launches() > before) == launches);
}

/// Launches a random matrix product. The library's own kernels are not checked, because cuBLASLt chooses their
/// launches.
void launch_random_product(LaunchChecker& checker, core::Op op, std::int64_t most, Sizes& sizes) {
  const Shape extents = sizes.shape(4, most);
  op.kind = OpKind::matmul;
  op.attrs.batch = sizes.below(2) == 0 ? 1 : extents[0];
  op.attrs.m = extents[1];
  op.attrs.n = extents[2];
  op.attrs.k = extents[3];
  op.attrs.trans_a = sizes.below(2) == 0;
  op.attrs.trans_b = sizes.below(2) == 0;
  op.shape = {op.attrs.batch, op.attrs.m, op.attrs.n};
  std::vector<Shape> args = {{op.attrs.batch, op.attrs.m, op.attrs.k}, {op.attrs.batch, op.attrs.k, op.attrs.n}};
  if (sizes.below(2) == 0) args.push_back({op.attrs.n});
  IdleLibrary library;
  const runtime::device::Call call{op, {}, nullptr, library};
  const bool in_tiles = runtime::device::gemm_tiles(runtime::device::gemm_shape(call), 1).has_value();
  launch(checker, op, args, library, args.size() == 3 || in_tiles);
}

/// Launches the convolutions of a random shape, once computed by the library and once by Cairn. The library's own
/// kernels are not checked, because cuDNN chooses their launches.
void launch_random_convolutions(LaunchChecker& checker, core::Op op, std::int64_t most, Sizes& sizes) {
  constexpr std::int64_t kMostKernel = 8;
  // These bounds keep x, y, the weights, and the patches of all images (im2col) smaller than the card's memory.
  Shape x = sizes.shape(4, most / kMostKernel / kMostKernel);
  const std::int64_t kernel = sizes.up_to(std::min({x[1], x[2], kMostKernel}));
  op.attrs.kernel = kernel;
  op.attrs.stride = sizes.up_to(kernel);
  op.attrs.pad = sizes.below((kernel + 1) / 2);
  const auto windows = [&](std::int64_t extent) { return (extent + 2 * op.attrs.pad - kernel) / op.attrs.stride + 1; };
  const std::int64_t pixels = x[0] * windows(x[1]) * windows(x[2]);
  const std::int64_t channels = sizes.up_to(most / std::max(pixels, kernel * kernel * x[3]));
  const Shape y = {x[0], windows(x[1]), windows(x[2]), channels}, w = {channels, kernel, kernel, x[3]};
  const bool pointwise = kernel == 1;
  for (const bool convolves : {false, true}) {
    IdleLibrary library(convolves);
    const auto run = [&](OpKind kind, const Shape& out, const std::vector<Shape>& args) {
      op.kind = kind;
      op.shape = out;
      launch(checker, op, args, library, args.size() == 3 || (!convolves && !pointwise));
    };
    run(OpKind::conv2d, y, {x, w});
    run(OpKind::conv2d, y, {x, w, {channels}});
    run(OpKind::conv2d_grad_input, x, {y, w});
    run(OpKind::conv2d_grad_weight, w, {y, x});
  }
}

void launch_random_ops(LaunchChecker& checker, const Card& card, Sizes& sizes) {
  core::Op op;
  op.type = sizes.below(2) == 0 ? ElementType::f32 : ElementType::bf16;
  const auto run = [&](OpKind kind, const Shape& out, const std::vector<Shape>& args) {
    IdleLibrary library;
    op.kind = kind;
    op.shape = out;
    launch(checker, op, args, library);
  };
  const std::int64_t most = (card.memory << 30) / core::element_bytes(op.type);
  launch_random_product(checker, op, most, sizes);
  launch_random_convolutions(checker, op, most, sizes);
  const Shape rows = sizes.shape(2, most);
  for (const OpKind kind :
       {OpKind::add, OpKind::gelu, OpKind::softmax, OpKind::softmax_grad, OpKind::mse, OpKind::layernorm,
        OpKind::layernorm_stats, OpKind::layernorm_with_stats, OpKind::layernorm_grad_params,
        OpKind::layernorm_grad_input, OpKind::cross_entropy, OpKind::cross_entropy_grad, OpKind::batchnorm,
        OpKind::batchnorm_stats, OpKind::batchnorm_grad_params, OpKind::batchnorm_grad_input}) {
    run(kind, rows, {rows, rows, rows, rows, rows});
  }
  op.attrs.rows = rows[0];
  op.attrs.cols = rows[1];
  run(OpKind::reduce_rows, rows, {rows});
  run(OpKind::concat, rows, {rows, rows});
  run(OpKind::sum_of_squares, {1}, {rows});
  run(OpKind::sgd, rows, {rows, rows, rows, {1}});
  run(OpKind::adamw, rows, {rows, rows, rows, rows, {1}, {1}, {1}});
  op.attrs.offset = sizes.below(rows[1]);
  run(OpKind::slice, {rows[0], rows[1] - op.attrs.offset}, {rows});
  const std::int64_t vocabulary = sizes.up_to(200'000);
  run(OpKind::embedding, {1, rows[0], rows[1]}, {{1, rows[0]}, {vocabulary, rows[1]}});
  run(OpKind::embedding_grad, {vocabulary, rows[1]}, {rows, {1, rows[0]}});

  const std::size_t rank = 2 + static_cast<std::size_t>(sizes.below(5));
  const Shape any = sizes.shape(rank, most);
  op.attrs.perm.resize(rank);
  for (std::size_t axis = 0; axis < rank; ++axis) op.attrs.perm[axis] = static_cast<std::int64_t>(axis);
  for (std::size_t axis = rank; axis > 1; --axis) {
    std::swap(op.attrs.perm[axis - 1], op.attrs.perm[static_cast<std::size_t>(sizes.below(static_cast<int>(axis)))]);
  }
  run(OpKind::permute, any, {any});

  // mean_pool launches one block for each image, and a launch has fewer than 2^31 blocks. So the number of images is
  // bounded.
  const std::int64_t images = sizes.up_to(std::int64_t{1} << 24);
  Shape x = sizes.shape(3, most / 4 / images);
  x.insert(x.begin(), images);
  op.attrs.kernel = sizes.up_to(std::min(x[1], x[2]));
  op.attrs.stride = sizes.up_to(op.attrs.kernel);
  op.attrs.pad = sizes.below(op.attrs.kernel);
  const auto windows = [&](std::int64_t extent) {
    return (extent + 2 * op.attrs.pad - op.attrs.kernel) / op.attrs.stride + 1;
  };
  const Shape y = {x[0], windows(x[1]), windows(x[2]), x[3]};
  run(OpKind::maxpool, y, {x});
  run(OpKind::maxpool_grad, x, {y, x});
  run(OpKind::mean_pool, {x[0], x[3]}, {x});
  run(OpKind::mean_pool_grad, x, {{x[0], x[3]}});
  run(OpKind::upsample, {x[0], 2 * x[1], 2 * x[2], x[3]}, {x});
  run(OpKind::upsample_grad, x, {{x[0], 2 * x[1], 2 * x[2], x[3]}});
}

/// Lets the checker see all launches of the first training step of an executor. This step also overwrites scratch with
/// a fixed byte. After it, the executor searches for the end of the memory that was written.
void launch_step(LaunchChecker& checker, const core::Graph& given, std::int64_t guard_bytes, bool tf32) {
  IdleLibrary library;
  const core::Graph graph = runtime::device::with_scratch(checker, library, given, tf32);
  const core::Schedule schedule = core::baseline_schedule(graph);
  constexpr std::int64_t kAlignment = 256;
  const core::Plan plan = solvers::plan_memory(
      graph, schedule, {.alignment = kAlignment, .guard_bytes = guard_bytes, .limit = {.work = 0}});
  const runtime::Program program = runtime::compile(
      graph, schedule, plan,
      {.guard_bytes = guard_bytes,
       .tf32 = tf32,
       .scratch_need = [&](const core::Graph& of,
                           core::NodeId v) { return runtime::device::scratch_bytes(checker, library, of, v, tf32); },
       .address_alignment = kAlignment});
  const runtime::Liveness lives = runtime::liveness(program, guard_bytes > 0);
  runtime::device::StepMemory memory;
  memory.residents.resize(graph.residents().size());
  runtime::device::Step step(program, lives, true, memory, library);
  step.begin(checker);
  for (const runtime::Instruction& instruction : program.instructions) step.issue(checker, instruction, true);
  runtime::device::find_touched(checker, nullptr, program.arena_bytes, runtime::kArenaPaint, nullptr);
}

}  // namespace

TEST_CASE("no card refuses a launch of an op, whatever its sizes") {
  Sizes sizes;
  for (const Card& card : kCards) {
    INFO(card.name);
    LaunchChecker checker(card);
    for (int round = 0; round < 1000; ++round) launch_random_ops(checker, card, sizes);
    CHECK(checker.launches() > 10'000);
  }
}

TEST_CASE("no card refuses a launch of a step, whatever the model and its sizes") {
  constexpr std::int64_t kGuard = 64;
  Sizes sizes;
  std::vector<core::Graph> graphs;
  for (const TinyModel& model : tiny_models()) graphs.push_back(model.build());
  for (const char* name : {"gpt2", "resnet50", "unet"}) {
    for (const core::Precision precision : {core::Precision::fp32, core::Precision::bf16}) {
      graphs.push_back(
          core::with_precision(models::build_model(name, {.values = {{"batch", 1 + sizes.below(64)}}}), precision));
    }
  }
  for (const std::int64_t most : {std::int64_t{8}, std::int64_t{1} << 20, std::int64_t{1} << 34}) {
    graphs.push_back(models::generate_random(200, 400, {.most = most, .scratch = 0.3, .keep = 0.2}, 1));
  }
  for (const Card& card : kCards) {
    INFO(card.name);
    LaunchChecker checker(card);
    for (const core::Graph& graph : graphs) {
      for (const std::int64_t guard_bytes : {std::int64_t{0}, kGuard}) launch_step(checker, graph, guard_bytes, false);
    }
    CHECK(checker.has_launched<runtime::device::CheckGuards>());
    CHECK(checker.has_launched<runtime::device::FindTouched>());
    CHECK(checker.has_launched<runtime::device::DigestParts>());
    CHECK(checker.has_launched<runtime::device::JoinParts>());
    CHECK(checker.has_launched<runtime::device::WriteHash>());
  }
}

TEST_CASE("a launch has a block for every team, and is refused if there are too many") {
  for (const int threads : {1, 32, 64, 256, 1024}) {
    const int of_block = cuda::teams_of_block(threads);
    for (const std::int64_t blocks : {std::int64_t{1}, std::int64_t{1000}, kBlocks}) {
      for (const std::int64_t teams : {(blocks - 1) * of_block + 1, blocks * of_block}) {
        CHECK(cuda::launch_shape(threads, teams, 0).blocks == blocks);
      }
    }
    CHECK_THROWS_AS(cuda::launch_shape(threads, kBlocks * of_block + 1, 0), core::DeviceError);
  }
  CHECK(cuda::launch_shape(256, 1, 100).shared_of_block == 112);
  CHECK(cuda::launch_shape(32, 1, 100).shared_of_block == 112 * core::kWarpsOfBlock);
}

}  // namespace cairn::tests::launch_shape_test
