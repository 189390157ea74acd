// Prints tables of what kernels do, as counted by the PTX interpreter, and of the least time that this work takes on
// some GPUs. This is not a test. It runs only as `test_ptx_cuda '[counted]'` or `cairn_cuda_bench --counted`.
#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/bench/cuda/op_cases.h"
#include "cairn/bench/dominance_populations.h"
#include "cairn/bench/key_tree.h"
#include "cairn/bench/pumpkin_chains.h"
#include "cairn/bench/random_layered.h"
#include "cairn/cuda/support/accelerator.h"
#include "cairn/cuda/support/dominance.h"
#include "cairn/cuda/support/executor.h"
#include "cairn/cuda/support/simulator.h"
#include "cairn/models/registry.h"
#include "cairn/sim/simulator.h"
#include "cairn/solvers/common/support/accelerator.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cuda/no_device.h"
#include "cairn/tests/fake_cuda/fake_cuda.h"
#include "cairn/tests/ptx_cuda/cards.h"
#include "cairn/tests/ptx_cuda/interpreter.h"
#include "cairn/tests/support/device_program.h"

namespace cairn::tests::ptx {
namespace {

/// Sizes for which the interpreter needs a second or less. Rows are as long as in the benchmarks.
constexpr bench::OpSizes kSmall{.images = 1, .batch = 1, .seq = 128, .heads = 1, .labels = 4, .vocabulary = 400};

double ratio(std::uint64_t a, std::uint64_t b) { return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b); }

/// The titles of the table columns that say what a kernel did.
constexpr std::string_view kColumns = "Lanes busy, of 32 | Sectors a global request | Passes a shared request |";
std::string columns(const Counts& counts) {
  return fmt::format("{:.1f} | {:.1f} | {:.2f} |", ratio(counts.lanes(), counts.warps()),
                     ratio(counts.global_sectors, counts.global_requests),
                     ratio(counts.shared_wavefronts, counts.shared_requests));
}

void print_header(std::string_view first) {
  fmt::print("\n{}", first);
  for (const Card& card : kCards) fmt::print(" {} |", card.name);
  fmt::print("\n");
}

/// The kernels about which the next call of print_details() prints a line.
std::vector<std::pair<std::string, Counts>>& detailed() {
  static std::vector<std::pair<std::string, Counts>> rows;
  return rows;
}

/// Prints a second table about the kernels since the last call. Per 1000 warp instructions of a kernel, it has the
/// number of instructions of each kind, and the numbers of three things that slow a kernel down: divergent branches,
/// sectors of local memory, and atomics of several lanes at one address.
void print_details(std::string_view first) {
  fmt::print("\n| In 1000 warp instructions: {} |", first);
  for (const std::string_view name : kClassNames) fmt::print(" {} |", name);
  fmt::print(" Divergent branches | Sectors of local memory | Lanes of atomics beyond the first at an address |\n");
  for (const auto& [name, counts] : std::exchange(detailed(), {})) {
    std::vector<std::uint64_t> numbers(counts.warp_instructions.begin(), counts.warp_instructions.end());
    numbers.insert(numbers.end(), {counts.divergent_branches, counts.local_sectors, counts.atomic_same_address});
    fmt::print("| {} |", name);
    for (const std::uint64_t number : numbers) fmt::print(" {:.1f} |", 1000 * ratio(number, counts.warps()));
    fmt::print("\n");
  }
}

// The following functions count the kernels of ops.

/// Runs an op once, and counts what its kernels do. Returns the number of bytes that the op has to move.
std::int64_t count_op(cuda::Device& device, const OpCase& one, core::ElementType storage) {
  const core::Graph graph = device.with_scratch(graph_of(one, storage), false);
  reset_counts();
  const cuda::Executor executor(device, device_program(device, graph),
                                {.launch = cuda::Launch::stream});  // the constructor runs the op once
  return bench::moved_bytes(graph);
}

/// Returns the counts of Cairn's own kernels. Leaves out the kernel of plain_product.cu, which takes the place of
/// cuBLASLt.
std::vector<Counts> own_counts() {
  std::vector<Counts> own;
  for (const auto& [kernel, counts] : counts()) {
    if (kernel.find("plain_product") == std::string::npos) own.push_back(counts);
  }
  return own;
}

/// Prints a line about the kernels of an op that has to move `bytes` bytes. The line has the number of warp
/// instructions per KiB of `bytes`, the number of bytes that the kernels really move divided by `bytes`, and for each
/// card the largest fraction of its memory bandwidth that the op can reach.
void print_op(const std::string& name, std::int64_t bytes) {
  constexpr double kKiB = 1024, kSectorBytes = 32, kBytesOfGbUs = 1e3;
  const std::vector<Counts> kernels = own_counts();
  Counts all;
  for (const Counts& counts : kernels) all.add(counts);
  const auto moved = static_cast<double>(bytes);
  fmt::print("| {} | {:.1f} | {} {:.2f} |", name, static_cast<double>(all.warps()) / moved * kKiB, columns(all),
             kSectorBytes * static_cast<double>(all.read_sectors + all.written_sectors) / moved);
  for (const Card& card : kCards) {
    Bound bound;
    for (const Counts& counts : kernels) bound.add(least_times(counts, card));
    fmt::print(" {:.0f}%, {} |", 100 * moved / (card.dram_gb_per_s * kBytesOfGbUs) / bound.us, bound.limiter);
  }
  fmt::print("\n");
  detailed().emplace_back(name, all);
}

// The following functions count all other kernels.

/// Returns the name of a kernel's functor. Leaves out namespaces and the template around the functor.
std::string name_of(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  std::string name = status == 0 ? text.get() : mangled;
  if (const std::size_t begin = name.find("run_teams<"); begin != std::string::npos) name = name.substr(begin + 10);
  if (const std::size_t end = name.find(">(cairn"); end != std::string::npos) name.resize(end);
  for (const std::string_view space : {"void ", "cairn::", "sim::", "device::", "runtime::", "core::", "solvers::",
                                       "cub::CUB_300001_SM_900::", "detail::"}) {
    for (std::size_t at = name.find(space); at != std::string::npos; at = name.find(space))
      name.erase(at, space.size());
  }
  return name.substr(0, name.find('<'));
}

/// Counts the work of run(), which handles `items` items, such as schedules. Prints a line for each kernel that runs a
/// notable part of the instructions. The numbers in the line are per item.
void print_kernels(const std::string& title, double items, const std::function<void()>& run) {
  reset_counts();
  run();
  std::uint64_t all = 0;
  for (const auto& [mangled, counts] : counts()) all += counts.warps();
  for (const auto& [mangled, counts] : counts()) {
    constexpr double kMatters = 0.02;  // least fraction of all warp instructions at which a kernel is printed
    const auto warps = static_cast<double>(counts.warps());
    if (warps < kMatters * static_cast<double>(all)) continue;
    const std::string name = title + ": " + name_of(mangled);
    fmt::print("| {} | {:.1f} | {}", name, warps / items, columns(counts));
    detailed().emplace_back(name, counts);
    for (const Card& card : kCards) {
      Bound bound;
      bound.add(least_times(counts, card));
      const double millions = items / bound.us;  // millions of items per second
      constexpr double kMany = 1000;
      if (millions < kMany) fmt::print(" {:.4g} million/s, {} |", millions, bound.limiter);
      if (millions >= kMany) fmt::print(" {:.4g} billion/s, {} |", millions / kMany, bound.limiter);
    }
    fmt::print("\n");
  }
}

constexpr std::int64_t kCandidates = 64;

/// Counts the work of evaluating given schedules (candidates), and of drawing and evaluating random schedules.
void print_evaluation(const std::string& name, const core::Graph& graph, const sim::Generator& generator) {
  const auto device = cuda::device_simulator(graph);
  const sim::ScheduleBatch batch = sim::host_simulator(graph)->generate(generator, 0, kCandidates);
  sim::Outcomes outcomes;
  print_kernels("evaluate, " + name, kCandidates, [&] { device->evaluate(batch, outcomes); });
  print_kernels("draw and evaluate, " + name, kCandidates,
                [&] { device->evaluate(generator, 0, kCandidates, outcomes); });
}

void print_simulator() {
  const core::Graph layered = bench::random_layered(1000, 5875);
  const sim::Generator orders{.seed = 1}, schedules{.seed = 1, .moves = 500};
  print_evaluation("an order of the layered graph", layered, orders);
  const auto device = cuda::device_simulator(layered);
  print_kernels("draw, an order of the layered graph", kCandidates, [&] { device->generate(orders, 0, kCandidates); });
  print_evaluation("a schedule with 500 moves", layered, schedules);
  const sim::ScheduleBatch batch = sim::host_simulator(layered)->generate(schedules, 0, kCandidates);
  print_kernels("profile, a schedule with 500 moves", kCandidates, [&] { device->profiles(batch); });
  print_kernels("segments, a schedule with 500 moves", kCandidates, [&] { device->internal_profiles(batch); });
  for (const std::string name : {"gpt2", "resnet50", "unet", "transformer", "transformer-big"}) {
    models::BuildOptions options;
    if (name == "gpt2") options.values["layers"] = 24;
    print_evaluation("an order of " + name, models::build_model(name, options), orders);
  }
}

void print_dominance() {
  constexpr std::int64_t kProfiles = 512, kBandBytes = 1 << 20;
  constexpr int kSteps = 2000;
  core::Random random(7);
  std::vector<std::int64_t> values, offsets{0};
  for (std::int64_t i = 0; i < kProfiles; ++i) {
    const bench::Values profile = bench::walk(random, kSteps);
    values.insert(values.end(), profile.begin(), profile.end());
    offsets.push_back(static_cast<std::int64_t>(values.size()));
  }
  print_kernels("segments, a step of walks", static_cast<double>(values.size()),
                [&] { cuda::canonical_batch(values, offsets); });
  for (const std::string name : {"walks_200", "funnels"}) {
    const sim::CanonicalBatch& batch = bench::population(name, kProfiles);
    std::unique_ptr<sim::DominanceSet> set;
    print_kernels("prepare, a profile of " + name, kProfiles, [&] { set = cuda::dominance_set(batch); });
    print_kernels("all pairs, a pair of " + name, kProfiles * kProfiles,
                  [&] { set->for_each_band(kBandBytes, [](const sim::DominanceBand&) {}); });
    print_kernels("dominated by one, a profile of " + name, kProfiles, [&] { set->dominated_by(batch[0]); });
  }
}

void print_solvers() {
  constexpr std::int64_t kBranches = 12, kNodes = 16;
  constexpr int kReaders = 6;
  const auto accelerator = cuda::make_accelerator();
  const solvers::PumpkinProblem problem = bench::chains(kBranches, kNodes, 1);
  print_kernels("pumpkin, an entry of the table of 12 branches", static_cast<double>(1 << kBranches),
                [&] { accelerator->pumpkin(problem, {}); });
  const solvers::KeyTree tree = bench::key_tree(kReaders);
  std::int64_t relaxations = 1;
  const solvers::KeyOrderOptions options{.least_width = 1 << 13, .least_batch = 0};
  const auto search = [&] { relaxations = accelerator->key_orders(tree, options).relaxations; };
  search();  // sets `relaxations`
  print_kernels("key orders, a relaxation of 6 readers", static_cast<double>(relaxations), search);
}

}  // namespace

TEST_CASE("counted ops", "[.counted]") {
  if (no_device()) return;
  launch_options().count_memory = true;
  cuda::Device device;
  for (const core::ElementType storage : {core::ElementType::f32, core::ElementType::bf16}) {
    print_header(fmt::format("| {} | Warp instructions a KiB | {} Bytes moved, of those needed |",
                             core::to_string(storage), kColumns));
    std::vector<bench::NamedCase> cases = bench::memory_bound_cases(kSmall);
    const core::Shape image{1, 56, 56, 64}, weight{64, 3, 3, 64};
    const core::OpAttrs attrs{.stride = 1, .pad = 1};
    cases.push_back(bench::op_case("patches of conv 3x3", core::OpKind::conv2d, image, {image, weight}, attrs));
    cases.push_back(bench::op_case("patches of conv_grad_input 3x3", core::OpKind::conv2d_grad_input, image,
                                   {image, weight}, attrs));
    cases.push_back(bench::op_case("padded tiles of matmul 512x1001x64", core::OpKind::matmul, {512, 1001},
                                   {{512, 64}, {1001, 64}}, {.m = 512, .n = 1001, .k = 64, .trans_b = true}));
    for (const bench::NamedCase& one : cases) {
      const std::int64_t bytes = count_op(device, one.op, storage);
      print_op(one.name, bytes);
    }
    print_details(core::to_string(storage));
  }
  launch_options().count_memory = false;
}

TEST_CASE("counted kernels of the simulator and of solvers", "[.counted]") {
  if (no_device()) return;
  launch_options().count_memory = true;
  fake::shared_of_block() = 232'448;  // the shared memory of a block on an H100
  print_header(fmt::format("| For each item: kernel | Warp instructions | {}", kColumns));
  print_simulator();
  print_dominance();
  print_solvers();
  print_details("kernel");
  launch_options().count_memory = false;
}

}  // namespace cairn::tests::ptx
