// Measures how fast a GPU finds which of many memory profiles dominate others (docs/order.md).
// bench/dominance_bench.cpp measures the same operations on the host. Times include launches and the copy of results to
// the host; the time of `prepare` also includes the upload of the profiles.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

#include "cairn/bench/dominance_pairs.h"
#include "cairn/bench/dominance_populations.h"
#include "cairn/cuda/support/dominance.h"
#include "cairn/sim/canonical_batch.h"

namespace cairn::bench {
namespace {

void dominated_by(benchmark::State& state, const std::string& name, std::int64_t count) {
  const sim::CanonicalBatch& batch = population(name, count);
  const auto set = cuda::dominance_set(batch);
  for (auto _ : state) benchmark::DoNotOptimize(set->dominated_by(batch[0]));
  count_pairs(state, count);
}
void all_pairs(benchmark::State& state, const std::string& name, std::int64_t count) {
  const auto set = cuda::dominance_set(population(name, count));
  for (auto _ : state) {
    set->for_each_band(64 << 20, [](const sim::DominanceBand& band) { benchmark::DoNotOptimize(band.words.data()); });
  }
  count_pairs(state, count * count);
}
void prepare(benchmark::State& state, const std::string& name, std::int64_t count) {
  const sim::CanonicalBatch& batch = population(name, count);
  for (auto _ : state) benchmark::DoNotOptimize(cuda::dominance_set(batch)->size());
  state.SetItemsProcessed(state.iterations() * count);
}
void non_dominated(benchmark::State& state, const std::string& name, std::int64_t count) {
  const auto set = cuda::dominance_set(population(name, count));
  std::size_t found = 0;
  for (auto _ : state) found = set->non_dominated().size();
  state.counters["non_dominated"] = static_cast<double>(found);
  state.SetItemsProcessed(state.iterations() * count);
}

[[maybe_unused]] const bool registered = [] {
  for (const std::string name : {"kahn_200", "walks_200", "funnels_40"}) {
    add("dominated_by/1000000/" + name, dominated_by, name, 1'000'000);
    add("prepare/1000000/" + name, prepare, name, 1'000'000);
    add("non_dominated/1000000/" + name, non_dominated, name, 1'000'000);
  }
  for (const std::string name : {"kahn", "walks", "funnels", "raised", "narrowing"}) {
    add("all_pairs/4096/" + name, all_pairs, name, 4096);
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench
