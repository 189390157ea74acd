// Tests that launches of ops and of the simulator are valid on every card, for random sizes.
#include "cairn/cuda/internal/launch_shape.h"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cairn/core/machine/support/machine.h"
#include "cairn/models/random_graphs.h"
#include "cairn/runtime/device/batchnorm.h"
#include "cairn/runtime/device/conv.h"
#include "cairn/runtime/device/elementwise.h"
#include "cairn/runtime/device/embedding.h"
#include "cairn/runtime/device/layernorm.h"
#include "cairn/runtime/device/loss.h"
#include "cairn/runtime/device/matmul.h"
#include "cairn/runtime/device/ops.h"
#include "cairn/runtime/device/pool.h"
#include "cairn/runtime/device/shape.h"
#include "cairn/runtime/device/softmax.h"
#include "cairn/sim/tally.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/simulators.h"

namespace cairn::tests::launch_shape_test {
namespace {

using core::ElementType;
using core::OpKind;
using core::Shape;

/// A card and its limits.
struct Card {
  const char* name;
  std::int64_t shared;  ///< bytes of shared memory that a block may opt in to
  std::int64_t memory;  ///< GiB of the card
};
constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kThreadsOfBlock = 1024, kBlocks = (std::int64_t{1} << 31) - 1;
constexpr Card kCards[] = {
    {"A100", 163 * kKiB, 80},  {"H100", 227 * kKiB, 80},    {"H200", 227 * kKiB, 141},
    {"B200", 227 * kKiB, 180}, {"RTX 4090", 99 * kKiB, 24},
};

/// Checks that the card permits a launch.
void check_launch(const Card& card, int threads, std::int64_t teams, std::int64_t shared_bytes) {
  const cuda::LaunchShape shape = cuda::launch_shape(threads, teams, shared_bytes);
  CHECK((shape.blocks >= 1 && shape.blocks <= kBlocks));
  CHECK((shape.threads >= 32 && shape.threads <= kThreadsOfBlock && shape.threads % 32 == 0));
  CHECK(shape.blocks * cuda::teams_of_block(threads) >= teams);
  CHECK((shape.shared_of_team >= shared_bytes && shape.shared_of_team % 16 == 0));
  CHECK(shape.shared_of_block == shape.shared_of_team * cuda::teams_of_block(threads));
  CHECK(shape.shared_of_block + cuda::kStaticShared <= card.shared);
}

/// A Machine that checks launches and runs nothing.
class LaunchChecker {
 public:
  explicit LaunchChecker(const Card& card) : shared_limit_(cuda::dynamic_shared_limit(card.shared)), card_(card) {}

  std::int64_t shared_limit() const { return shared_limit_; }
  template <class F>
  void launch(const F&, std::int64_t teams, std::int64_t shared_bytes) {
    if (teams == 0) return;
    static_assert(sizeof(F) <= 4096 - 16);
    ++launches_;
    check_launch(card_, F::kThreads, teams, shared_bytes);
  }
  void fill(void*, int, std::int64_t) {}
  std::int64_t sort_workspace(std::int64_t count) const { return count; }
  void sort_by_key(const std::int32_t*, std::int32_t*, std::int32_t*, std::int64_t, std::int64_t, void*) {}
  std::int64_t launches() const { return launches_; }

 private:
  std::int64_t shared_limit_;
  const Card& card_;
  std::int64_t launches_ = 0;
};

/// A library that has no convolutions, adds no biases, and computes every product in tiles.
class NoLibrary : public runtime::device::Library {
 public:
  std::int64_t gemm_workspace(const runtime::device::GemmShape&) override { return 0; }
  void gemm(const runtime::device::GemmShape&, const runtime::device::GemmOperands&, void*) override {}
  bool gemm_in_tiles(const runtime::device::GemmShape&) override { return true; }
  bool gemm_adds_bias(const runtime::device::GemmShape&) override { return false; }
  std::optional<std::int64_t> conv_workspace(const runtime::device::ConvShape&, std::optional<std::int64_t>) override {
    return std::nullopt;
  }
  void conv(const runtime::device::ConvShape&, const runtime::device::ConvOperands&, void*, std::int64_t) override {}
  std::vector<runtime::ScratchVariant> conv_variants(const runtime::device::ConvShape&) override { return {}; }
};

/// Draws random sizes whose logarithms are about evenly distributed.
class Sizes {
 public:
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(limit));
  }
  std::int64_t up_to(std::int64_t most) {
    std::int64_t bound = 1;
    for (std::int64_t doublings = below(64); doublings > 0 && bound < most; --doublings) bound *= 2;
    return 1 + below(std::min(bound, std::max<std::int64_t>(1, most)));
  }
  /// Returns a shape of `rank` axes with at most `most` elements.
  Shape shape(std::size_t rank, std::int64_t most) {
    Shape shape(rank);
    for (std::int64_t& extent : shape) {
      extent = up_to(most);
      if (below(2) == 0 && extent >= 8) extent = extent / 8 * 8;
      most /= extent;
    }
    std::shuffle(shape.begin(), shape.end(), random_);
    return shape;
  }

 private:
  std::mt19937_64 random_{1};
};

/// Passes the launches of an op with arguments of these shapes to the checker.
void launch(LaunchChecker& checker, const core::Op& op, const std::vector<Shape>& args) {
  std::vector<runtime::device::Tensor> tensors;
  for (const Shape& shape : args) tensors.push_back({nullptr, op.type, shape});
  NoLibrary library;
  runtime::device::Call call{op, tensors, nullptr, library};
  call.scratch = runtime::device::Scratch(nullptr, std::int64_t{1} << 60);
  runtime::device::Launcher<LaunchChecker> launcher(checker, call);
  constexpr auto kFamilies = runtime::device::families<LaunchChecker>();
  const std::int64_t before = checker.launches();
  kFamilies[static_cast<std::size_t>(op.kind)](launcher, call);
  CHECK((checker.launches() > before || op.kind == OpKind::matmul || op.kind == OpKind::conv2d));
}

void launch_random_ops(LaunchChecker& checker, const Card& card, Sizes& sizes) {
  core::Op op;
  op.type = sizes.below(2) == 0 ? ElementType::f32 : ElementType::bf16;
  const auto run = [&](OpKind kind, const Shape& out, const std::vector<Shape>& args) {
    INFO(core::to_string(kind));
    op.kind = kind;
    op.shape = out;
    launch(checker, op, args);
  };
  const std::int64_t most = (card.memory << 30) / core::element_bytes(op.type);
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

  // mean_pool launches one block for each image, so there must be fewer than 2^31 images.
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

/// A machine that runs kernels on the host, but with a card's limits. Checks each launch before it runs.
class CardOnHost : public core::HostMachine {
 public:
  explicit CardOnHost(const Card& card) : core::HostMachine(1), card_(card) {}

  std::int64_t shared_limit() const { return cuda::dynamic_shared_limit(card_.shared); }
  template <class F>
  void launch(const F& functor, std::int64_t teams, std::int64_t shared_bytes = 0) const {
    if (teams == 0) return;
    static_assert(sizeof(F) <= 4096 - 16);
    shared_bytes > 0 ? ++shared_launches_ : ++other_launches_;
    check_launch(card_, F::kThreads, teams, shared_bytes);
    core::HostMachine::launch(functor, teams, shared_bytes);
  }
  std::int64_t shared_launches() const { return shared_launches_; }
  std::int64_t other_launches() const { return other_launches_; }

 private:
  const Card& card_;
  mutable std::int64_t shared_launches_ = 0, other_launches_ = 0;
};

/// Makes the simulator generate, evaluate and tally `count` random schedules of the graph.
template <class Id>
void simulate(CardOnHost& machine, const core::Graph& graph, std::int64_t count) {
  OnMachine<CardOnHost, Id> simulator(machine, graph);
  const sim::Generator generator{.seed = 1, .moves = 3};
  const sim::ScheduleBatch batch = simulator.generate(generator, 0, count);
  sim::Outcomes again;
  simulator.evaluate(generator, 0, count, again);
  CHECK(evaluated(simulator, batch) == again);
  CHECK(std::ssize(simulator.profiles(batch).begin) == count + 1);
  sim::Tally tally;
  simulator.sweep(generator, 0, count, tally);
}

}  // namespace

TEST_CASE("no card refuses a launch of the simulator, whatever the size of the graph") {
  for (const Card& card : kCards) {
    INFO(card.name);
    CardOnHost machine(card);
    // A team's arrays are in shared memory only for the small graphs.
    for (const core::NodeId nodes : {3, 60, 500, 2'000, 6'000, 20'000}) {
      const core::Graph graph = models::generate_layered({.nodes = nodes, .edge_density = 0.01, .seed = 1});
      simulate<std::uint16_t>(machine, graph, nodes <= 60 ? 700 : nodes <= 2'000 ? 40 : 3);
    }
    simulate<std::uint32_t>(machine, models::generate_random(70'000, 70'000, {}, 1), 2);
    CHECK(machine.shared_launches() > 10);
    CHECK(machine.other_launches() > 10);
  }
}

TEST_CASE("no card refuses a launch of an op, whatever its sizes") {
  Sizes sizes;
  for (const Card& card : kCards) {
    INFO(card.name);
    LaunchChecker checker(card);
    for (int round = 0; round < 400; ++round) launch_random_ops(checker, card, sizes);
    CHECK(checker.launches() > 10'000);
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
