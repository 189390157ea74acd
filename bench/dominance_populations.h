#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cairn/bench/random_layered.h"
#include "cairn/core/dominance.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/random.h"
#include "cairn/sim/canonical_batch.h"

/// This file makes memory profiles for the benchmarks of dominance between profiles (sim/support/dominance.h). A
/// population is a set of profiles of one kind. Its name is one of the words below, optionally followed by the number
/// of values of a profile (default: 2001).
/// - kahn: Profiles of random orders of a layered graph of 1000 nodes. All profiles start and end at 0, so the peaks
///   alone decide dominance.
/// - walks: Random walks that all end where they began.
/// - funnels: Noise whose amplitude grows towards the middle and then shrinks again. Profiles have many segments.
///   Almost no profile dominates another.
/// - raised: Copies of one profile of the kind `funnels`. Each copy is raised by a different amount and has a little
///   noise added. In half of all pairs, the first profile dominates the second.
/// - narrowing: Copies of a profile in which each peak is lower than the previous peak, and each valley higher than the
///   previous valley. The copies are raised by less than the distance between two such peaks, and have a little noise
///   added. Profiles have a thousand segments, all of which a comparison must visit.
namespace cairn::bench {

using Values = std::vector<std::int64_t>;

inline std::int64_t below(core::Random& random, std::int64_t count) {
  return static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(count));
}

class RandomOrders {
 public:
  explicit RandomOrders(const core::Graph& graph) : graph_(graph) {}

  std::span<const core::NodeId> next(core::Random& random) {
    missing_.clear();
    ready_.clear();
    order_.clear();
    for (core::NodeId v = 0; v < graph_.node_count(); ++v) {
      missing_.push_back(graph_.inputs(v).size());
      if (missing_.back() == 0) ready_.push_back(v);
    }
    while (!ready_.empty()) {
      const auto place = static_cast<std::size_t>(below(random, static_cast<std::int64_t>(ready_.size())));
      const core::NodeId v = ready_[place];
      ready_[place] = ready_.back();
      ready_.pop_back();
      order_.push_back(v);
      for (const core::NodeId reader : graph_.readers(v)) {
        if (--missing_[static_cast<std::size_t>(reader)] == 0) ready_.push_back(reader);
      }
    }
    return order_;
  }

 private:
  const core::Graph& graph_;
  std::vector<std::size_t> missing_;
  std::vector<core::NodeId> ready_, order_;
};

using Generator = std::function<Values(core::Random&)>;

inline Generator kahn(core::Graph graph) {
  return [graph = std::move(graph)](core::Random& random) {
    return core::Evaluator(graph).profile(RandomOrders(graph).next(random));
  };
}
inline Values walk(core::Random& random, int length) {
  Values steps;
  for (int i = 0; i < length / 2; ++i) {
    const std::int64_t up = 1 + below(random, 1 << 20);
    steps.push_back(up);
    steps.push_back(-up);
  }
  for (std::size_t i = steps.size(); i > 1; --i)
    std::swap(steps[i - 1], steps[static_cast<std::size_t>(below(random, static_cast<std::int64_t>(i)))]);
  Values profile{0};
  for (const std::int64_t step : steps) profile.push_back(profile.back() + step);
  return profile;
}
inline Generator raised(Values base, std::int64_t most, std::int64_t noise) {
  return [base = std::move(base), most, noise](core::Random& random) {
    Values profile = base;
    const std::int64_t by = below(random, most);
    for (std::int64_t& value : profile) value += by + below(random, noise);
    return profile;
  };
}
inline Values funnel(core::Random& random, std::int64_t length) {
  Values profile{0};
  for (std::int64_t i = 1; i <= length; ++i) {
    const std::int64_t width = (1 + std::min(i, length - i)) << 16;
    profile.push_back(below(random, 2 * width) - width);
  }
  return profile;
}
inline Values narrowing() {
  Values profile;
  for (std::int64_t i = 0; i < 2001; ++i) profile.push_back((i % 2 == 0 ? i : 4000 - i) << 12);
  return profile;
}

inline Generator generator(const std::string& population) {
  core::Random random(7);
  if (population == "kahn") return kahn(random_layered(1000, 5875));
  if (population == "kahn_200") return kahn(random_layered(200, 500));
  if (population == "walks") return [](core::Random& r) { return walk(r, 2000); };
  if (population == "walks_200") return [](core::Random& r) { return walk(r, 200); };
  if (population == "funnels") return [](core::Random& r) { return funnel(r, 2000); };
  if (population == "funnels_20") return [](core::Random& r) { return funnel(r, 20); };
  if (population == "funnels_40") return [](core::Random& r) { return funnel(r, 40); };
  if (population == "raised") return raised(funnel(random, 2000), 1 << 24, 1 << 10);
  return raised(narrowing(), 1 << 12, 1 << 8);
}

/// Returns the first `count` profiles of the population `name`. The profiles are made once per process.
inline const sim::CanonicalBatch& population(const std::string& name, std::int64_t count) {
  static std::map<std::pair<std::string, std::int64_t>, sim::CanonicalBatch> known;
  const auto [place, is_new] = known.try_emplace({name, count});
  if (!is_new) return place->second;
  const Generator generate = generator(name);
  core::Random random(1);
  for (std::int64_t i = 0; i < count; ++i) place->second.add(core::canonical(generate(random)));
  return place->second;
}

}  // namespace cairn::bench
