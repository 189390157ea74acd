// Measures the search for key orders. In an in-forest, paths begin at a source, may meet, and never branch again. Its
// key nodes are the nodes that read the source and the nodes at which paths meet, and a key order is an order of the
// key nodes. Also measures the solver of caduceus graphs, which this search calls for every prefix of an order that it
// tries. A caduceus graph is a path (the staff) with further paths (the bends) that leave the staff and rejoin it; see
// docs/order.md. The counters `relaxations` and `dominant` of the search are rates per second (see
// solvers::KeyOrdersFound). The search runs in two ways: depth-first with one thread, and in layers (many prefixes of
// the same length at once) with different numbers of threads.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cairn/bench/key_tree.h"
#include "cairn/bench/rate.h"
#include "cairn/core/dominance.h"
#include "cairn/solvers/order/device/key_orders.h"
#include "cairn/solvers/order/internal/papers/caduceus.h"

namespace cairn::bench {
namespace {

/// Searches the key orders of a tree with state.range(0) readers of the source. Ends the search after kMostWork units
/// of work, so that the benchmark does not take too long on large trees.
void search(benchmark::State& state, std::int64_t most_width, int threads) {
  constexpr std::int64_t kMostWork = 4'000'000;
  const solvers::KeyTree tree = key_tree(static_cast<int>(state.range(0)));
  core::HostMachine machine(threads);
  solvers::KeyOrderOptions options;
  options.most_width = most_width;
  solvers::KeyOrdersFound found;
  for (auto _ : state) {
    std::int64_t left = kMostWork;
    options.stop = [&](std::int64_t work) { return (left -= work) <= 0; };
    found = solvers::search_key_orders(tree, options, machine);
  }
  state.counters["relaxations"] = rate(static_cast<double>(found.relaxations));
  state.counters["dominant"] = rate(static_cast<double>(found.dominant));
  state.counters["complete"] = found.complete;
  state.counters["peak"] = static_cast<double>(found.peak);
}
void key_orders_depth_first(benchmark::State& state) { search(state, 1, 1); }
void key_orders_by_layers(benchmark::State& state) {
  search(state, solvers::KeyOrderOptions().most_width, static_cast<int>(state.range(1)));
}
BENCHMARK(key_orders_depth_first)->Unit(benchmark::kMillisecond)->UseRealTime()->DenseRange(8, 12);
BENCHMARK(key_orders_by_layers)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->ArgsProduct({benchmark::CreateDenseRange(8, 12, 1), {1, 2}});

struct Instance {
  struct Bend {
    std::int32_t first, last;
    std::vector<core::Segment> segments;
  };
  std::vector<core::Segment> staff;
  std::vector<Bend> bends;
};

/// Returns random caduceus graphs (docs/order.md), which are about as large as the caduceus graphs in the search of key
/// orders. Each has a staff of 8 segments, and 14 bends of about 3 segments.
std::vector<Instance> instances(int count) {
  tests::Random random(1);
  const auto segment = [&] { return core::Segment{random.between(0, 100), random.between(0, 100)}; };
  std::vector<Instance> instances(static_cast<std::size_t>(count));
  for (Instance& instance : instances) {
    for (int i = 0; i < 8; ++i) instance.staff.push_back(segment());
    for (int b = 0; b < 14; ++b) {
      const std::int64_t first = random.between(0, 8);
      instance.bends.push_back(
          {static_cast<std::int32_t>(first), static_cast<std::int32_t>(random.between(first, 8)), {}});
      for (int i = 0; i < 10; ++i) core::append_segment(instance.bends.back().segments, segment());
    }
  }
  return instances;
}

constexpr int kInstances = 20'000;

void caduceus_one_by_one(benchmark::State& state) {
  const std::vector<Instance> all = instances(kInstances);
  solvers::CaduceusSize size{8, 14, 0};
  for (const Instance& instance : all) {
    std::size_t segments = instance.staff.size();
    for (const Instance::Bend& bend : instance.bends) segments += bend.segments.size();
    size.segments = std::max(size.segments, static_cast<std::int32_t>(segments));
  }
  solvers::CaduceusWorkspace work(size);
  for (auto _ : state) {
    for (const Instance& instance : all) {
      work.graph.clear();
      for (const core::Segment& segment : instance.staff) work.graph.add_staff(segment);
      for (const Instance::Bend& bend : instance.bends) {
        std::copy(bend.segments.begin(), bend.segments.end(), work.graph.begin_bend().first);
        work.graph.end_bend(bend.first, bend.last, static_cast<std::int32_t>(bend.segments.size()));
      }
      work.graph.rank();
      if (state.range(0) != 0) {
        work.solver.dominant(work.graph);
        benchmark::DoNotOptimize(work.solver.dominant_order());
      } else {
        benchmark::DoNotOptimize(work.solver.least_peak(work.graph));
      }
    }
  }
  state.counters["graphs"] = rate(kInstances);
}
BENCHMARK(caduceus_one_by_one)->Unit(benchmark::kMillisecond)->UseRealTime()->ArgName("dominant")->DenseRange(0, 1);

}  // namespace
}  // namespace cairn::bench
