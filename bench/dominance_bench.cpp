// Measures how fast Cairn finds which of many memory profiles dominate others (sim/support/dominance.h, docs/order.md).
// For comparison, also measures a loop over core::dominates(). bench/dominance_populations.h makes the profiles.
// Benchmarks use one core unless their names say otherwise.
//
// To compare two profiles, Cairn first compares their signatures, which are a few numbers each. If these cannot decide,
// it compares staircases: lists of stairs, which say exactly what a profile dominates
// (sim/device/dominance/dominance.h). Counters:
//   pairs_per_second  pairs of profiles
//   true_pct          percentage of pairs whose first profile dominates the second
//   full_pct          percentage of pairs whose staircases are compared
//   bytes_per_second  signatures and, where they are read, stairs, each counted once per pair
#include <benchmark/benchmark.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cairn/bench/dominance_pairs.h"
#include "cairn/bench/dominance_populations.h"
#include "cairn/core/dominance.h"
#include "cairn/core/machine/support/machine.h"
#include "cairn/core/support/random.h"
#include "cairn/sim/canonical_batch.h"
#include "cairn/sim/device/dominance/dominance.h"
#include "cairn/sim/support/dominance.h"

namespace cairn::bench {
namespace {

double percent(std::int64_t part, std::int64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

constexpr std::int64_t kMany = 4096;
constexpr std::int64_t kOnes = 64;

/// Measures compare(i, j), which says whether profile i dominates profile j, for each i of the first 64 profiles and
/// each j of all profiles.
template <class Compare>
void compare_pairs(benchmark::State& state, const Compare& compare) {
  std::int64_t dominated = 0;
  for (auto _ : state) {
    dominated = 0;
    for (std::int64_t i = 0; i < kOnes; ++i) {
      for (std::int64_t j = 0; j < kMany; ++j) dominated += compare(i, j);
    }
    benchmark::DoNotOptimize(dominated);
  }
  count_pairs(state, kOnes * kMany);
  state.counters["true_pct"] = percent(dominated, kOnes * kMany);
}

void core_loop(benchmark::State& state, const std::string& name) {
  const sim::CanonicalBatch& batch = population(name, kMany);
  compare_pairs(state, [&](std::int64_t i, std::int64_t j) { return core::dominates(batch[i], batch[j]); });
  state.SetBytesProcessed(state.iterations() * kOnes * (8 * kMany + std::ssize(batch.segments()) * 16));
  state.counters["segments"] = static_cast<double>(batch.segments().size()) / static_cast<double>(kMany);
}

struct Prepared {
  explicit Prepared(const std::string& name) : machine(1), set(machine, population(name, kMany)) {}
  std::int64_t stairs(std::int64_t i) const { return profiles().outlines[i].left + profiles().outlines[i].right; }
  sim::device::Profiles profiles() const { return set.profiles(); }

  core::HostMachine machine;
  sim::device::DominanceSet<core::HostMachine> set;
};

/// Compares the staircases of every pair by the loop of Lemma 2.5 (Jin et al.), without comparing signatures first.
void stairs_alone(benchmark::State& state, const std::string& name) {
  const Prepared prepared(name);
  const sim::device::Profiles all = prepared.profiles();
  compare_pairs(state,
                [&](std::int64_t i, std::int64_t j) { return sim::device::dominates_by_stairs(all, i, all, j); });
  std::int64_t bytes = 0;
  for (std::int64_t i = 0; i < kMany; ++i) bytes += 24 + 16 * prepared.stairs(i);
  state.SetBytesProcessed(state.iterations() * kOnes * bytes);
}

/// Compares staircases like stairs_alone(), but first rejects pairs whose first values, last values, peaks or minima
/// already exclude dominance.
void four_values(benchmark::State& state, const std::string& name) {
  const Prepared prepared(name);
  const sim::device::Profiles all = prepared.profiles();
  std::vector<std::int64_t> first, last, highest, lowest;
  for (std::int64_t i = 0; i < kMany; ++i) {
    const sim::device::Outline outline = all.outlines[i];
    const sim::device::Stair* left = all.stairs + outline.first;
    first.push_back(left[outline.left - 1].floor);
    last.push_back(left[outline.left + outline.right - 1].floor);
    highest.push_back(left->height);
    lowest.push_back(outline.lowest);
  }
  const auto may = [&](std::int64_t i, std::int64_t j) {
    const auto at_most = [](auto a, auto b) { return static_cast<int>(a <= b); };  // no branch: as in the simulator
    return (at_most(first[i], first[j]) & at_most(last[i], last[j]) & at_most(highest[i], highest[j]) &
            at_most(lowest[i], lowest[j])) != 0;
  };
  compare_pairs(state, [&](std::int64_t i, std::int64_t j) {
    return may(i, j) && sim::device::dominates_by_stairs(all, i, all, j);
  });
  std::int64_t full = 0;
  for (std::int64_t i = 0; i < kOnes; ++i) {
    for (std::int64_t j = 0; j < kMany; ++j) full += may(i, j);
  }
  state.counters["full_pct"] = percent(full, kOnes * kMany);
}

/// Compares each of the first 64 profiles with all profiles by sim::dominance_set(), i.e. by signatures and, if these
/// do not decide, by staircases.
void one_against_many(benchmark::State& state, const std::string& name, bool one_dominates, int threads) {
  const sim::CanonicalBatch& batch = population(name, kMany);
  const Prepared prepared(name);
  const auto set = sim::dominance_set(batch, threads);
  std::int64_t dominated = 0;
  for (auto _ : state) {
    dominated = 0;
    for (std::int64_t i = 0; i < kOnes; ++i) {
      const std::vector<std::uint8_t> flags =
          one_dominates ? set->dominated_by(batch[i]) : set->dominators_of(batch[i]);
      for (const std::uint8_t flag : flags) dominated += flag;
    }
    benchmark::DoNotOptimize(dominated);
  }
  std::int64_t full = 0, bytes = 0;
  for (std::int64_t i = 0; i < kOnes; ++i) {
    for (std::int64_t j = 0; j < kMany; ++j) {
      const sim::device::Profiles all = prepared.profiles();
      const bool undecided = one_dominates ? may_dominate(all, i, all, j) : may_dominate(all, j, all, i);
      full += undecided;
      bytes += 16 + (undecided ? 24 + 16 * prepared.stairs(j) : 0);
    }
  }
  count_pairs(state, kOnes * kMany);
  state.SetBytesProcessed(state.iterations() * bytes);
  state.counters["true_pct"] = percent(dominated, kOnes * kMany);
  state.counters["full_pct"] = percent(full, kOnes * kMany);
}

void all_pairs(benchmark::State& state, const std::string& name, int threads) {
  const auto set = sim::dominance_set(population(name, kMany), threads);
  for (auto _ : state) {
    set->for_each_band(1 << 20, [](const sim::DominanceBand& band) { benchmark::DoNotOptimize(band.words.data()); });
  }
  count_pairs(state, kMany * kMany);
}

void prepare(benchmark::State& state, const std::string& name) {
  const sim::CanonicalBatch& batch = population(name, kMany);
  for (auto _ : state) benchmark::DoNotOptimize(sim::dominance_set(batch, 1)->size());
  state.SetItemsProcessed(state.iterations() * kMany);
  state.SetBytesProcessed(state.iterations() * 16 * std::ssize(batch.segments()));
}

void non_dominated(benchmark::State& state, const std::string& name, std::int64_t count, int threads) {
  const sim::CanonicalBatch& batch = population(name, count);
  std::size_t found = 0;
  for (auto _ : state) found = sim::non_dominated(batch, threads).size();
  state.counters["non_dominated"] = static_cast<double>(found);
  state.SetItemsProcessed(state.iterations() * count);
}

/// Converts 1000 profiles of 2001 values to canonical form (docs/order.md). If `in_bulk` is set, one call converts all
/// profiles.
void canonical(benchmark::State& state, bool in_bulk) {
  constexpr std::int64_t kProfiles = 1000;
  const Generator generate = generator("kahn");
  core::Random random(1);
  Values values;
  std::vector<std::int64_t> offsets{0};
  for (std::int64_t i = 0; i < kProfiles; ++i) {
    const Values profile = generate(random);
    values.insert(values.end(), profile.begin(), profile.end());
    offsets.push_back(std::ssize(values));
  }
  for (auto _ : state) {
    if (in_bulk) {
      benchmark::DoNotOptimize(sim::canonical_batch(values, offsets, 1));
    } else {
      sim::CanonicalBatch batch;
      for (std::size_t i = 0; i < kProfiles; ++i)
        batch.add(core::canonical(std::span(values).subspan(static_cast<std::size_t>(offsets[i]),
                                                            static_cast<std::size_t>(offsets[i + 1] - offsets[i]))));
      benchmark::DoNotOptimize(batch);
    }
  }
  state.SetItemsProcessed(state.iterations() * kProfiles);
  state.SetBytesProcessed(state.iterations() * std::ssize(values) * 8);
}

/// Divides 4096 chains into sets of 32 chains, and merges the chains of each set into one chain. If `in_bulk` is set,
/// one call merges all sets.
void merge(benchmark::State& state, const std::string& name, bool in_bulk) {
  const sim::CanonicalBatch& batch = population(name, kMany);
  constexpr std::int64_t kChains = 32, kSets = kMany / kChains;
  std::vector<std::int64_t> sets;
  for (std::int64_t set = 0; set <= kSets; ++set) sets.push_back(set * kChains);
  std::vector<std::vector<std::vector<core::Segment>>> parts(kSets);
  for (std::int64_t i = 0; i < kMany; ++i)
    parts[static_cast<std::size_t>(i / kChains)].push_back(batch.profile(i).segments);
  for (auto _ : state) {
    if (in_bulk) {
      benchmark::DoNotOptimize(sim::merge_segments(batch, sets, 1));
    } else {
      for (const auto& set : parts) benchmark::DoNotOptimize(core::merge_segments(set));
    }
  }
  state.SetItemsProcessed(state.iterations() * std::ssize(batch.segments()));
  state.SetBytesProcessed(state.iterations() * std::ssize(batch.segments()) * 16);
}

[[maybe_unused]] const bool registered = [] {
  for (const std::string name : {"kahn", "walks", "funnels", "raised", "narrowing"}) {
    add("pairs/core/" + name, core_loop, name);
    add("pairs/stairs/" + name, stairs_alone, name);
    add("pairs/four_values/" + name, four_values, name);
    add("dominated_by/" + name, one_against_many, name, true, 1);
    add("dominators_of/" + name, one_against_many, name, false, 1);
    add("all_pairs/" + name, all_pairs, name, 1);
    add("prepare/" + name, prepare, name);
  }
  add("all_pairs/raised/2_threads", all_pairs, "raised", 2);
  for (const std::string name : {"kahn", "walks", "funnels", "raised"}) {
    add("non_dominated/100000/" + name, non_dominated, name, 100'000, 2);
  }
  for (const std::string name : {"kahn_200", "walks_200", "funnels_20", "funnels_40"}) {
    add("non_dominated/1000000/" + name, non_dominated, name, 1'000'000, 2);
  }
  add("canonical/core", canonical, false);
  add("canonical/in_bulk", canonical, true);
  for (const std::string name : {"walks", "funnels", "narrowing"}) {
    add("merge/core/" + name, merge, name, false);
    add("merge/in_bulk/" + name, merge, name, true);
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench
