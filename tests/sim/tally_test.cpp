#include "cairn/sim/tally.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/parts.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests::tally_test {
namespace {

using sim::Entry;
using sim::Outcomes;
using sim::Tally;
using sim::TallyOptions;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

struct Range {
  std::int64_t low, high;
};

Outcomes random_outcomes(Random& random, std::int64_t count, Range peaks, Range costs, int invalid_percent) {
  Outcomes outcomes;
  outcomes.resize(count);
  for (std::int64_t c = 0; c < count; ++c) {
    outcomes.valid[c] = random.chance(invalid_percent) ? 0 : 1;
    outcomes.peak[c] = outcomes.valid[c] != 0 ? random.between(peaks.low, peaks.high) : 0;
    outcomes.cost[c] = outcomes.valid[c] != 0 ? random.between(costs.low, costs.high) : 0;
  }
  return outcomes;
}

Outcomes slice(const Outcomes& outcomes, std::int64_t begin, std::int64_t end) {
  Outcomes part;
  part.valid.assign(outcomes.valid.begin() + begin, outcomes.valid.begin() + end);
  part.peak.assign(outcomes.peak.begin() + begin, outcomes.peak.begin() + end);
  part.cost.assign(outcomes.cost.begin() + begin, outcomes.cost.begin() + end);
  part.peak_step.assign(static_cast<std::size_t>(end - begin), 0);
  return part;
}

TallyOptions random_options(Random& random) {
  TallyOptions options{.top = static_cast<std::int32_t>(random.pick(std::vector<std::int64_t>{0, 1, 3, 10, 500}))};
  options.invalid = static_cast<std::int32_t>(random.pick(std::vector<std::int64_t>{0, 1, 8}));
  options.from = random.between(0, 40);
  options.shift = static_cast<std::int32_t>(random.below(6));
  options.bins = static_cast<std::int32_t>(random.between(1, 60));
  options.budget = random.between(0, 300);
  return options;
}

/// Returns the entries that no other entry dominates, i.e. for which no other entry is at least as good in both peak
/// and cost. `ascending` is sorted by peak and then by cost, so only an earlier entry can dominate an entry.
std::vector<Entry> front_of(const std::vector<Entry>& ascending) {
  std::vector<Entry> front;
  for (const Entry& entry : ascending) {
    if (front.empty() || entry.cost < front.back().cost) front.push_back(entry);
  }
  return front;
}

/// Checks a tally of `outcomes` by the definitions, i.e. by sorting, by comparing all pairs, and by summing.
void check_against_definition(const Tally& tally, std::int64_t first, const Outcomes& outcomes) {
  const TallyOptions& options = tally.options();
  std::vector<Entry> all;
  std::vector<std::int64_t> invalid;
  for (std::int64_t c = 0; c < outcomes.count(); ++c) {
    if (outcomes.valid[c] != 0) {
      all.push_back({outcomes.peak[c], outcomes.cost[c], first + c});
    } else {
      invalid.push_back(first + c);
    }
  }
  const auto count = static_cast<std::int64_t>(all.size());
  REQUIRE(tally.counts().valid == count);
  REQUIRE(tally.counts().invalid == static_cast<std::int64_t>(invalid.size()));
  invalid.resize(std::min(invalid.size(), static_cast<std::size_t>(options.invalid)));
  REQUIRE(tally.invalid() == invalid);

  std::sort(all.begin(), all.end());
  std::vector<Entry> top = all;
  top.resize(std::min(top.size(), static_cast<std::size_t>(options.top)));
  REQUIRE(tally.top() == top);
  REQUIRE(tally.front() == front_of(all));

  std::vector<std::int64_t> histogram(static_cast<std::size_t>(options.bins), 0);
  std::int64_t within = 0, outside = 0;
  sim::WideSum peaks = 0, costs = 0;
  for (const Entry& entry : all) {
    std::int64_t bin = 0;
    while (bin + 1 < options.bins && options.from + (bin + 1) * options.width() <= entry.peak) ++bin;
    ++histogram[static_cast<std::size_t>(bin)];
    within += entry.peak <= options.budget ? 1 : 0;
    const bool inside = entry.peak >= options.from && entry.peak < options.from + options.bins * options.width();
    outside += inside ? 0 : 1;
    peaks += static_cast<std::uint64_t>(entry.peak);
    costs += static_cast<std::uint64_t>(entry.cost);
  }
  REQUIRE(tally.histogram() == histogram);
  REQUIRE(tally.counts().within == within);
  REQUIRE(tally.counts().outside == outside);
  REQUIRE(tally.counts().peak_sum == peaks);
  REQUIRE(tally.counts().cost_sum == costs);
  if (all.empty()) {
    REQUIRE(tally.quantile(50) == 0);
    return;
  }
  REQUIRE(tally.counts().least_peak == all.front().peak);
  REQUIRE(tally.counts().most_peak == all.back().peak);
  const auto [low, high] =
      std::minmax_element(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.cost < b.cost; });
  REQUIRE(tally.counts().least_cost == low->cost);
  REQUIRE(tally.counts().most_cost == high->cost);
  REQUIRE(tally.mean_peak() == Approx(static_cast<double>(peaks) / static_cast<double>(count)));
  if (outside > 0) return;
  for (const std::int32_t percent : {0, 1, 5, 25, 50, 75, 95, 99, 100}) {
    const std::int64_t rank = std::max<std::int64_t>(1, (count * percent + 99) / 100);
    const std::int64_t exact = all[static_cast<std::size_t>(rank - 1)].peak;
    REQUIRE(tally.quantile(percent) <= exact);
    REQUIRE(tally.quantile(percent) + options.width() > exact);
  }
}

}  // namespace

TEST_CASE("a tally is what sorting and counting all candidates gives") {
  Random random(1);
  for (int round = 0; round < 3000; ++round) {
    const Range peaks{0, random.pick(std::vector<std::int64_t>{0, 5, 300, 3000})};
    const Range costs{0, random.pick(std::vector<std::int64_t>{0, 5, 300, 1'000'000})};
    const Outcomes outcomes = random_outcomes(random, random.between(0, 200), peaks, costs,
                                              static_cast<int>(random.pick<std::int64_t>({0, 10, 100})));
    Tally tally(random_options(random));
    const std::int64_t first = random.pick(std::vector<std::int64_t>{0, 17, std::int64_t{1} << 40});
    tally.add(first, outcomes);
    check_against_definition(tally, first, outcomes);
  }
}

TEST_CASE("a tally of many candidates and a long front is what sorting gives") {
  Random random(2);
  for (int round = 0; round < 3; ++round) {
    // Peak + cost is almost the same for all candidates, so thousands of candidates are Pareto-optimal.
    Outcomes outcomes = random_outcomes(random, 60'000, {0, 1 << 20}, {0, 200 << (4 * (round % 3))}, 1);
    for (std::int64_t c = 0; c < outcomes.count(); ++c) {
      if (outcomes.valid[c] != 0) outcomes.cost[c] += (1 << 20) - outcomes.peak[c];
    }
    Tally tally({.top = 100, .shift = 5 + round % 2, .bins = 1 << 15});
    tally.add(0, outcomes);
    CHECK(tally.front().size() > 100);
    // The histogram is not checked here. By its definition, it would take too long, and the test above checks it.
    std::vector<Entry> all;
    for (std::int64_t c = 0; c < outcomes.count(); ++c) {
      if (outcomes.valid[c] != 0) all.push_back({outcomes.peak[c], outcomes.cost[c], c});
    }
    std::sort(all.begin(), all.end());
    REQUIRE(tally.front() == front_of(all));
    REQUIRE(tally.top() == std::vector<Entry>(all.begin(), all.begin() + 100));
  }
}

TEST_CASE("costs and peaks at the ends of their range are kept") {
  Outcomes outcomes;
  outcomes.resize(4);
  outcomes.valid = {1, 1, 1, 1};
  outcomes.peak = {5, 5, std::int64_t{1} << 62, 7};
  outcomes.cost = {kMost, kMost, 0, kMost};
  Tally tally({.shift = 62, .bins = 1});
  for (int times = 0; times < 3; ++times) tally.add(10 - times * 4, outcomes);
  CHECK(tally.front() == std::vector<Entry>{{5, kMost, 2}, {std::int64_t{1} << 62, 0, 4}});
  CHECK(tally.counts().cost_sum == static_cast<sim::WideSum>(kMost) * 9);
  CHECK(tally.mean_cost() == Approx(static_cast<double>(kMost) * 0.75));
}

TEST_CASE("pieces in any order and merged tallies give the same tally") {
  Random random(3);
  for (int round = 0; round < 400; ++round) {
    const Outcomes outcomes = random_outcomes(random, random.between(1, 400), {0, 60}, {0, 30}, 10);
    const TallyOptions options = random_options(random);
    Tally whole(options);
    whole.add(1000, outcomes);

    std::vector<std::int64_t> cuts = {0, outcomes.count()};
    for (std::int64_t cut = random.below(12); cut > 0; --cut) cuts.push_back(random.below(outcomes.count()));
    std::sort(cuts.begin(), cuts.end());
    std::vector<std::size_t> pieces(cuts.size() - 1);
    std::iota(pieces.begin(), pieces.end(), std::size_t{0});
    random.shuffle(pieces);
    std::vector<Tally> parts(3, Tally(options));
    for (const std::size_t piece : pieces) {
      Tally& part = random.pick(parts) == parts[0] ? parts[0] : parts[static_cast<std::size_t>(random.below(3))];
      part.add(1000 + cuts[piece], slice(outcomes, cuts[piece], cuts[piece + 1]));
    }
    random.shuffle(parts);
    Tally merged(options);
    for (const Tally& part : parts) merged.merge(part);
    REQUIRE(merged == whole);

    // A device adds counts and bins for all candidates, but entries only for candidates that may be among the best.
    Tally device(options);
    device.add_counts(whole.counts());
    std::vector<std::int64_t> first_half = whole.histogram(), second_half = whole.histogram();
    for (std::size_t b = 0; b < first_half.size(); ++b) second_half[b] -= first_half[b] /= 2;
    device.add_histogram(first_half);
    device.add_histogram(second_half);
    std::vector<std::int64_t> order(static_cast<std::size_t>(outcomes.count()));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    random.shuffle(order);
    for (const std::int64_t c : order) {
      const Entry entry{outcomes.peak[c], outcomes.cost[c], 1000 + c};
      if (outcomes.valid[c] == 0) {
        device.add_invalid(entry.index);
        continue;
      }
      const auto beats = [&](const Entry& other) { return other.peak < entry.peak && other.cost <= entry.cost; };
      const bool dominated = std::any_of(device.front().begin(), device.front().end(), beats);
      if (entry < device.worst_top() || !dominated) device.add_entry(entry);
    }
    REQUIRE(device == whole);

    std::vector<std::int64_t> indices(static_cast<std::size_t>(outcomes.count()));
    std::iota(indices.begin(), indices.end(), std::int64_t{1000});
    Tally by_index(options);
    by_index.add(indices, outcomes);
    REQUIRE(by_index == whole);
  }
  CHECK_THROWS_AS(Tally(TallyOptions{.top = 3}).merge(Tally(TallyOptions{.top = 4})), core::InputError);
}

TEST_CASE("a tally read back from its JSON is the same") {
  Random random(4);
  for (int round = 0; round < 300; ++round) {
    Tally tally(random_options(random));
    const Range costs{0, random.pick(std::vector<std::int64_t>{3, kMost - 1})};
    tally.add(random.below(1000), random_outcomes(random, random.below(100), {0, 100}, costs, 20));
    REQUIRE(Tally::from_json(tally.to_json(), "t") == tally);
  }
}

TEST_CASE("the JSON of no tally is refused") {
  Random random(5);
  Tally tally(TallyOptions{.bins = 64, .budget = 9});
  tally.add(0, random_outcomes(random, 50, {0, 50}, {0, 50}, 10));
  const std::string good = tally.to_json();
  for (std::size_t length = 0; length < good.size(); length += 7) {
    REQUIRE_THROWS_AS(Tally::from_json(good.substr(0, length), "t"), core::InputError);
  }
  const std::vector<std::pair<std::string, std::string>> changes = {{"\"bins\":64", "\"bins\":0"},
                                                                    {"\"bins\":64", "\"bins\":100000000"},
                                                                    {"\"shift\":0", "\"shift\":63"},
                                                                    {"\"top_size\":10", "\"top_size\":2"},
                                                                    {"\"peak_sum\":\"", "\"peak_sum\":\"-"},
                                                                    {"\"valid\":", "\"valid\":1"},
                                                                    {"\"histogram\":[[", "\"histogram\":[[64,1],["},
                                                                    {"\"top\":[[", "\"top\":[[1,2],["},
                                                                    {"\"from\":0", "\"from\":0.5"},
                                                                    {"\"within\":", "\"within\":-"},
                                                                    {"\"outside\":", "\"outside\":77"},
                                                                    {"\"least_peak\":", "\"least_peak\":99"},
                                                                    {"\"most_cost\":", "\"most_cost\":-"},
                                                                    {"\"peak_sum\":\"", "\"peak_sum\":\"99"},
                                                                    {"\"invalid_count\":", "\"invalid_count\":1"},
                                                                    {"\"front\":[", "\"front\":[[99,99,99],"}};
  for (const auto& [from, to] : changes) {
    INFO(from << " -> " << to);
    CHECK_THROWS_AS(Tally::from_json(replaced(good, from, to), "t"), core::InputError);
  }
  for (const std::string list : {"top", "front"}) {  // makes this list empty
    const std::size_t begin = good.find("\"" + list + "\":[") + list.size() + 4, end = good.find("]]", begin) + 1;
    CHECK_THROWS_AS(Tally::from_json(good.substr(0, begin) + good.substr(end), "t"), core::InputError);
  }
}

TEST_CASE("no schedule of a graph has a peak outside the bins made for it") {
  Random random(6);
  for (int round = 0; round < 500; ++round) {
    const core::Graph graph = random_graph(random);
    const TallyOptions options = sim::tally_options(graph);
    CHECK(options.bins <= 65'536);
    Outcomes outcomes;
    outcomes.resize(10);
    for (std::int64_t c = 0; c < outcomes.count(); ++c) {
      outcomes.valid[c] = 1;
      outcomes.peak[c] = core::evaluate(graph, random_schedule(random, graph)).peak;
    }
    Tally tally(options);
    tally.add(0, outcomes);
    REQUIRE(tally.counts().outside == 0);
  }
}

TEST_CASE("bins are as narrow as 65536 of them allow") {
  const auto options = [](std::int64_t size) {
    return sim::tally_options(build_graph({make_node("a", size), make_node("b", size)}));
  };
  // The graph has two nodes of `size` bytes that nobody reads. So the peaks, which the bins must cover, are between
  // size and 2 * size.
  CHECK(options(65'535) == TallyOptions{.from = 65'535, .shift = 0, .bins = 65'536});
  CHECK(options(65'536) == TallyOptions{.from = 65'536, .shift = 1, .bins = 32'769});
  CHECK(options(std::int64_t{1} << 61).bins <= 65'536);
  CHECK(sim::tally_options(core::Graph()).bins == 1);
}

}  // namespace cairn::tests::tally_test
