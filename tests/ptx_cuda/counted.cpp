// What kernels do, counted by the interpreter, and the time that this takes at least on some GPUs. Not part of the
// tests: test_ptx_cuda '[counted]' prints the table.
#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "cairn/cuda/support/simulator.h"
#include "cairn/models/random_graphs.h"
#include "cairn/sim/simulator.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cuda/no_device.h"
#include "cairn/tests/ptx_cuda/interpreter.h"

namespace cairn::tests::ptx {
namespace {

/// A GPU by its data sheet: the number of its multiprocessors, and their clock in GHz.
struct Card {
  std::string_view name;
  double multiprocessors, clock;
};
constexpr std::array<Card, 5> kCards{{{"A100", 108, 1.41},
                                      {"H100 SXM", 132, 1.755},
                                      {"H200", 132, 1.755},
                                      {"B200", 148, 1.85},
                                      {"RTX 4090", 128, 2.52}}};

/// A time in microseconds that no run of the kernel can beat on the card, and what sets it. In one cycle, a
/// multiprocessor starts four warp instructions, makes one pass over its shared memory, and gets four sectors from its
/// L1 cache. Whether a sector is in a cache is not counted.
struct LeastTime {
  double us = 0;
  std::string_view limiter;
};
LeastTime least_time(const Counts& counts, const Card& card) {
  constexpr double kStartsOfCycle = 4, kSectorsOfCycle = 4, kCyclesOfUs = 1e3;
  double instructions = 0;
  for (const std::uint64_t of_class : counts.warp_instructions) instructions += static_cast<double>(of_class);
  const double cycles = card.multiprocessors * card.clock * kCyclesOfUs;  // of all multiprocessors, in a microsecond
  const std::array<LeastTime, 3> times{{{instructions / kStartsOfCycle / cycles, "instructions"},
                                        {static_cast<double>(counts.shared_wavefronts) / cycles, "shared memory"},
                                        {static_cast<double>(counts.global_sectors) / kSectorsOfCycle / cycles, "L1"}}};
  return *std::max_element(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.us < b.us; });
}

/// Returns the functor of a kernel, without namespaces and the template around it.
std::string name_of(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  std::string name = status == 0 ? text.get() : mangled;
  if (const std::size_t begin = name.find("run_teams<"); begin != std::string::npos) name = name.substr(begin + 10);
  if (const std::size_t end = name.find(">(cairn"); end != std::string::npos) name.resize(end);
  for (const std::string_view space : {"cairn::", "sim::", "device::", "runtime::", "core::"}) {
    for (std::size_t at = name.find(space); at != std::string::npos; at = name.find(space))
      name.erase(at, space.size());
  }
  constexpr std::size_t kMost = 60;
  return name.substr(0, kMost);
}

double ratio(std::uint64_t a, std::uint64_t b) { return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b); }

/// Prints what each kernel did since the last reset, for each of `items`.
void print(const std::string& title, double items) {
  fmt::print("\n{}\n| kernel | warp instructions | lanes busy | sectors a request | passes a shared request |", title);
  for (const Card& card : kCards) fmt::print(" {} |", card.name);
  fmt::print("\n");
  for (const auto& [mangled, counts] : counts()) {
    std::uint64_t warps = 0;
    for (const std::uint64_t of_class : counts.warp_instructions) warps += of_class;
    fmt::print("| {} | {:.0f} | {:.1f} | {:.1f} | {:.2f} |", name_of(mangled), static_cast<double>(warps) / items,
               ratio(counts.lanes(), warps), ratio(counts.global_sectors, counts.global_requests),
               ratio(counts.shared_wavefronts, counts.shared_requests));
    for (const Card& card : kCards) {
      const LeastTime least = least_time(counts, card);
      fmt::print(" {:.4f} us, {} |", least.us / items, least.limiter);
    }
    fmt::print("\n");
  }
}

}  // namespace

TEST_CASE("counted", "[.counted]") {
  if (no_device()) return;
  launch_options().count_memory = true;
  constexpr std::int64_t kCandidates = 64;
  const core::Graph graph = models::generate_layered({.nodes = 1000, .seed = 1});
  const auto device = cuda::device_simulator(graph);
  for (const int moves : {0, 500}) {
    const sim::ScheduleBatch batch = sim::host_simulator(graph)->generate({.seed = 1, .moves = moves}, 0, kCandidates);
    reset_counts();
    sim::Outcomes outcomes;
    device->evaluate(batch, outcomes);
    print(fmt::format("{} schedules of {} nodes and {} edges with up to {} recomputations: a candidate", kCandidates,
                      graph.node_count(), graph.edge_count(), moves),
          static_cast<double>(kCandidates));
  }
  reset_counts();
  device->generate({.seed = 1}, 0, kCandidates);
  print(fmt::format("{} orders of the graph, drawn: a candidate", kCandidates), static_cast<double>(kCandidates));
}

}  // namespace cairn::tests::ptx
