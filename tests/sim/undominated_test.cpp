#include "cairn/sim/undominated.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/sim/generator.h"
#include "cairn/sim/simulator.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/sim/dominance_cases.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests::undominated_test {

using namespace sim;

namespace {

/// Returns the memory from after the first step to the end of the last step. At the end, the outputs of the last step
/// are still in memory.
std::vector<std::int64_t> literal_internal_profile(const core::Graph& graph, const core::Schedule& schedule) {
  const std::vector<std::int64_t> whole = core::Evaluator(graph).profile(schedule.steps);
  std::vector<std::int64_t> inside(whole.begin() + 2, whole.end());
  for (const core::ValueId x : graph.outputs(schedule.steps.back()))
    inside.back() += graph.value_kept(x) ? 0 : graph.value_size(x);
  return inside;
}

}  // namespace

TEST_CASE("the undominated candidates are those of all pairs, in whatever pieces they come") {
  std::size_t most = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const core::Graph graph = random_graph(random, any_graph(seed));
    const auto simulator = host_simulator(graph, 1 + static_cast<int>(seed % 2));
    const Generator generator{seed, static_cast<std::int32_t>(seed % 3)};
    constexpr std::int64_t kCount = 40;
    std::vector<std::vector<std::int64_t>> profiles;
    for (std::int64_t i = 0; i < kCount; ++i)
      profiles.push_back(literal_internal_profile(graph, generate(graph, generator, i)));
    const std::vector<std::int64_t> expected = literal_non_dominated(literal_matrix(profiles));
    most = std::max(most, expected.size());
    for (const std::int64_t piece : {kCount, std::int64_t{7}}) {
      INFO("seed " << seed << ", in pieces of " << piece);
      Undominated found(graph);
      for (std::int64_t first = 0; first < kCount; first += piece) {
        const std::int64_t count = std::min(piece, kCount - first);
        std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
        std::iota(numbers.begin(), numbers.end(), first);
        found.add(*simulator, simulator->generate(generator, first, count), numbers);
      }
      CHECK(found.candidates() == kCount);
      CHECK(found.complete());
      REQUIRE(found.numbers() == expected);
      for (std::size_t k = 0; k < expected.size(); ++k) {
        const core::CanonicalProfile one = core::canonical(profiles[static_cast<std::size_t>(expected[k])]);
        CHECK(found.profiles().profile(static_cast<std::int64_t>(k)).start == one.start);
        CHECK(found.profiles().profile(static_cast<std::int64_t>(k)).segments == one.segments);
      }
    }
  }
  CHECK(most > 5);  // with fewer, the cases would be too easy
}

TEST_CASE("invalid candidates are left out, and of equal profiles the first one stays") {
  const core::Graph graph = build_graph({make_node("a", 4), make_node("b", 2, {0})});
  const auto simulator = host_simulator(graph);
  ScheduleBatch batch(2);
  batch.add(std::vector<core::NodeId>{1, 0});
  batch.add(std::vector<core::NodeId>{0, 1});
  batch.add(std::vector<core::NodeId>{0, 1});
  Undominated found(graph);
  found.add(*simulator, batch, std::vector<std::int64_t>{3, 5, 9});
  CHECK(found.candidates() == 2);
  CHECK(found.numbers() == std::vector<std::int64_t>{5});
  CHECK(found.profiles().profile(0).start == 4);
  CHECK(found.profiles().profile(0).end() == 2);
}

}  // namespace cairn::tests::undominated_test
