#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "cairn/core/error.h"
#include "cairn/solvers/order/device/pumpkin_kernel.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference_order.h"
#include "cairn/tests/solvers/order/pumpkin_cases.h"
#include "cairn/tests/support/fiber_machine.h"

// Tests solve_pumpkin(), i.e. the table of Theorem 8.2 of Jin et al., on the host and on a simulated device. The
// answers are compared with all interleavings of the branches, and with a literal version of the theorem.
namespace cairn::solvers::pumpkin_property_test {
namespace {

using core::Segment;
using tests::Random;
using End = PumpkinAnswer::End;
using Digits = std::vector<std::int32_t>;

PumpkinAnswer on_host(const PumpkinProblem& problem, const PumpkinOptions& options = {}, int threads = 1) {
  return solve_pumpkin(core::HostMachine(threads), problem, options);
}
PumpkinAnswer on_fibers(const PumpkinProblem& problem, bool reverse, const PumpkinOptions& options = {}) {
  tests::FiberMachine machine(reverse ? tests::Threads::reverse : tests::Threads::forward);
  return solve_pumpkin(machine, problem, options);
}

Digits copies_of(const PumpkinProblem& problem) {
  Digits copies;
  for (const PumpkinKind& kind : problem.kinds) copies.push_back(kind.copies);
  return copies;
}

/// Calls visit(profile) for every order of all steps in which the steps of each branch stay in their order.
void for_each_interleaving(const PumpkinProblem& problem,
                           const std::function<void(const std::vector<std::int64_t>&)>& visit) {
  std::vector<std::vector<Segment>> left;  // the remaining steps of each branch, from last to next
  for (const PumpkinKind& kind : problem.kinds) {
    std::vector<Segment> steps(kind.rest.rbegin(), kind.rest.rend());
    steps.push_back(kind.key);
    left.insert(left.end(), static_cast<std::size_t>(kind.copies), steps);
  }
  std::vector<std::size_t> lengths;
  for (const auto& steps : left) lengths.push_back(steps.size());
  std::size_t keys_left = left.size();
  std::vector<Segment> played;
  const std::function<void()> play = [&] {
    bool done = true;
    for (std::size_t b = 0; b < left.size(); ++b) {
      if (left[b].empty()) continue;
      done = false;
      const Segment step = left[b].back();
      const bool is_key = left[b].size() == lengths[b];
      Segment next = step;
      if (is_key && --keys_left == 0) next.drop += problem.released;
      left[b].pop_back();
      played.push_back(next);
      play();
      played.pop_back();
      left[b].push_back(step);
      if (is_key) ++keys_left;
    }
    if (done) visit(tests::profile_of(played));
  };
  play();
}

/// Returns the segments of the schedule in which branches start in the given order. It is built as in Theorem 8.2 of
/// Jin et al.: first the key (first step) of the first branch, then the remaining steps of this branch, merged with the
/// schedule of the remaining branches.
std::vector<Segment> played(const PumpkinProblem& problem, const std::vector<std::uint8_t>& order) {
  std::vector<Segment> others;
  for (auto kind = order.rbegin(); kind != order.rend(); ++kind) {
    Segment key = problem.kinds[*kind].key;
    if (kind == order.rbegin()) key.drop += problem.released;
    std::vector<Segment> all{key};
    const std::vector<std::vector<Segment>> parts{others, problem.kinds[*kind].rest};
    for (const Segment& segment : core::merge_segments(parts)) core::append_segment(all, segment);
    others = all;
  }
  return others;
}

/// A literal version of Theorem 8.2 of Jin et al. For each kind of branch, it builds the best order that begins with
/// this kind, and then compares these orders. Among equally good orders, it takes the one whose first kind has the
/// highest number.
class Table {
 public:
  explicit Table(const PumpkinProblem& problem) : problem_(problem) {}

  const std::vector<std::uint8_t>& best_order(const Digits& left) {
    const auto [found, is_new] = orders_.try_emplace(left);
    if (!is_new) return found->second;
    std::vector<std::uint8_t> best;
    for (std::size_t k = 0; k < left.size(); ++k) {
      if (left[k] == 0) continue;
      Digits others = left;
      --others[k];
      std::vector<std::uint8_t> order{static_cast<std::uint8_t>(k)};
      const auto& rest = best_order(others);
      order.insert(order.end(), rest.begin(), rest.end());
      if (best.empty() || dominates(order, best)) best = order;
    }
    return orders_[left] = best;
  }

 private:
  bool dominates(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) const {
    return core::dominates(tests::profile_of(played(problem_, a)), tests::profile_of(played(problem_, b)));
  }
  const PumpkinProblem& problem_;
  std::map<Digits, std::vector<std::uint8_t>> orders_;
};

TEST_CASE("pumpkin table: it dominates every interleaving of small pumpkins") {
  Random random(1);
  int solved = 0;
  for (int i = 0; i < 8000; ++i) {
    tests::PumpkinShape shape{.kinds = random.between(1, 3)};
    shape.copies = shape.kinds == 3 ? 1 : 2;
    shape.length = shape.kinds == 3 ? 2 : random.between(0, 4 - shape.kinds);
    shape.bytes = random.pick(std::vector<std::int64_t>{1, 3, 9});
    const PumpkinProblem problem = tests::random_pumpkin(random, shape);
    std::int64_t steps = 0;
    for (const PumpkinKind& kind : problem.kinds)
      steps += kind.copies * static_cast<std::int64_t>(1 + kind.rest.size());
    if (steps > 8) continue;
    ++solved;
    const PumpkinAnswer answer = on_host(problem);
    REQUIRE(answer.end == End::solved);
    const auto profile = tests::profile_of(answer.segments);
    std::set<std::vector<std::int64_t>> profiles;
    bool found = false;
    for_each_interleaving(problem, [&](const std::vector<std::int64_t>& other) {
      if (!profiles.insert(other).second) return;
      if (!core::reference::dominates_by_pointers(profile, other)) FAIL("case " << i << ": not dominant");
      found = found || core::reference::dominates_by_pointers(other, profile);
    });
    INFO(i);
    CHECK(found);
    // The answer's segments must be those of the schedule in the answer's order. They may differ in segments that do
    // not matter for dominance, so the two profiles must dominate each other.
    const auto in_order = tests::profile_of(played(problem, answer.order));
    CHECK(core::reference::dominates_by_pointers(in_order, profile));
    CHECK(core::reference::dominates_by_pointers(profile, in_order));
  }
  CHECK(solved > 4000);
}

TEST_CASE("pumpkin table: the order is that of the theorem and the same on all machines") {
  Random random(2);
  int ties = 0;
  for (int i = 0; i < 8000; ++i) {
    tests::PumpkinShape shape{.kinds = random.between(1, 5),
                              .copies = random.pick(std::vector<std::int64_t>{1, 1, 2, 3}),
                              .length = random.between(0, 6)};
    shape.bytes = random.pick(std::vector<std::int64_t>{1, 2, 5, 40, 1000});
    const PumpkinProblem problem = tests::random_pumpkin(random, shape);
    if (problem.branches() > 9) continue;
    INFO(i);
    const PumpkinAnswer answer = on_host(problem);
    CHECK(answer.order == Table(problem).best_order(copies_of(problem)));
    ties += answer.order.size() > 1 && answer.order[0] != answer.order[1] ? 1 : 0;
    PumpkinOptions options{.chunk = random.between(1, 20), .go_on = [](std::int64_t) { return true; }};
    if (i % 40 == 0)
      // Two threads are tested only rarely, because waking threads is slow.
      CHECK(answer == on_host(problem, options, 2));
    CHECK(answer == on_fibers(problem, false, options));
    CHECK(answer == on_fibers(problem, true));
  }
  CHECK(ties > 1000);
}

TEST_CASE("pumpkin table: up to 16 branches of 16 nodes as on a device") {
  Random random(3);
  for (std::int64_t branches = 2; branches <= 16; ++branches) {
    INFO(branches);
    const PumpkinProblem problem = tests::pumpkin_of_chains(random, branches, 16);
    const PumpkinAnswer answer = on_host(problem);
    REQUIRE(answer.end == End::solved);
    CHECK(core::canonical(tests::profile_of(played(problem, answer.order))).segments == answer.segments);
    CHECK(answer == on_host(problem, {}, 2));
    CHECK(answer == on_fibers(problem, false));
    CHECK(answer == on_fibers(problem, true));
  }
}

TEST_CASE("pumpkin table: branches of many segments") {
  // In each branch, valleys rise and peaks fall, so no two of its segments can be merged.
  Random random(4);
  for (int i = 0; i < 300; ++i) {
    PumpkinProblem problem{.released = random.below(100)};
    for (int k = 0; k < 4; ++k) {
      PumpkinKind kind{.key = {random.between(1, 3), 1}};
      for (std::int64_t height = 40; height > 20; height -= random.between(2, 3)) {
        kind.rest.push_back({height, height - random.between(0, 1)});
      }
      problem.kinds.push_back(kind);
    }
    INFO(i);
    const PumpkinAnswer answer = on_host(problem);
    CHECK(answer.order == Table(problem).best_order(copies_of(problem)));
    CHECK(answer == on_fibers(problem, i % 2 == 0));
  }
}

TEST_CASE("pumpkin table: all bytes multiplied up to near the most that a graph may have") {
  constexpr std::int64_t kMany = std::int64_t{1} << 53;
  const auto multiplied = [](Segment segment) { return Segment{segment.rise * kMany, segment.drop * kMany}; };
  Random random(8);
  for (int i = 0; i < 3000; ++i) {
    tests::PumpkinShape shape{.kinds = random.between(1, 5),
                              .length = random.between(0, 6),
                              .bytes = random.pick(std::vector<std::int64_t>{1, 5, 9})};
    PumpkinProblem problem = tests::random_pumpkin(random, shape);
    PumpkinAnswer answer = on_host(problem);
    problem.released *= kMany;
    for (PumpkinKind& kind : problem.kinds) {
      kind.key = multiplied(kind.key);
      std::transform(kind.rest.begin(), kind.rest.end(), kind.rest.begin(), multiplied);
    }
    std::transform(answer.segments.begin(), answer.segments.end(), answer.segments.begin(), multiplied);
    INFO(i);
    CHECK(answer == on_host(problem));
  }
}

TEST_CASE("pumpkin table: every multiset has its rank and so have those with one branch less") {
  Random random(5);
  for (int i = 0; i < 300; ++i) {
    tests::PumpkinShape shape{.kinds = random.between(1, 5), .copies = random.between(1, 4)};
    const PumpkinProblem problem = tests::random_pumpkin(random, shape);
    const Digits copies = copies_of(problem);
    // Lists all multisets of branches, by size. Those of one size are sorted by the number of branches of the last
    // kind, then by that of the second-to-last kind, and so on.
    std::vector<std::vector<Digits>> layers(static_cast<std::size_t>(problem.branches()) + 1);
    Digits digits(copies.size(), 0);
    for (bool more = true; more;) {
      layers[std::accumulate(digits.begin(), digits.end(), std::size_t{0})].push_back(digits);
      std::size_t k = 0;
      while (k < digits.size() && digits[k] == copies[k]) digits[k++] = 0;
      more = k < digits.size();
      if (more) ++digits[k];
    }
    const std::vector<std::int64_t> states = count_states(problem);
    const std::vector<std::int64_t> before = count_of_kinds_before(problem);
    const PumpkinRanks ranks{before.data(), static_cast<std::int32_t>(copies.size()), problem.branches()};
    REQUIRE(states.size() == layers.size());
    for (std::size_t size = 0; size < layers.size(); ++size) {
      REQUIRE(states[size] == static_cast<std::int64_t>(layers[size].size()));
      for (std::size_t rank = 0; rank < layers[size].size(); ++rank) {
        Digits expected = layers[size][rank];
        std::vector<std::int32_t> kinds;
        ranks.for_each_kind(static_cast<std::int64_t>(rank), static_cast<std::int64_t>(size),
                            [&](std::int32_t kind, std::int64_t others) {
                              kinds.push_back(kind);
                              Digits less = expected;
                              --less[kind];
                              REQUIRE(layers[size - 1][others] == less);
                              return true;
                            });
        std::vector<std::int32_t> present;
        for (auto k = static_cast<std::int32_t>(copies.size()); k-- > 0;) {
          if (expected[k] > 0) present.push_back(k);
        }
        REQUIRE(kinds == present);
      }
    }
  }
}

template <class Type>
PumpkinAnswer in_table(const PumpkinProblem& problem) {
  tests::FiberMachine machine(tests::Threads::forward);
  const PumpkinOptions options;
  PumpkinAnswer answer = PumpkinSolver<tests::FiberMachine, Type>(machine, problem, options).solve();
  answer.bytes = 0;
  return answer;
}

TEST_CASE("pumpkin table: narrow and wide tables have the same answer") {
  Random random(8);
  for (int i = 0; i < 500; ++i) {
    PumpkinProblem problem = tests::random_pumpkin(random, {.kinds = random.between(1, 6),
                                                            .copies = random.between(1, 2),
                                                            .length = random.between(0, 8),
                                                            .bytes = random.between(1, 1000)});
    if (problem.branches() > 9) continue;
    INFO(i);
    CHECK(scale_of(problem).fits_narrow());
    const PumpkinAnswer answer = in_table<NarrowTable>(problem);
    CHECK(answer == in_table<WideTable>(problem));
    // Multiplies all sizes by `unit`, which is then a common divisor of them.
    const std::int64_t unit = std::int64_t{1} << random.between(1, 40);
    for (PumpkinKind& kind : problem.kinds) {
      kind.key = {kind.key.rise * unit, kind.key.drop * unit};
      for (Segment& segment : kind.rest) segment = {segment.rise * unit, segment.drop * unit};
    }
    problem.released *= unit;
    CHECK(scale_of(problem).fits_narrow());
    CHECK((scale_of(problem).unit % unit == 0 || scale_of(problem).sum == 0));
    PumpkinAnswer large = in_table<NarrowTable>(problem);
    CHECK(large == in_table<WideTable>(problem));
    CHECK(large.order == answer.order);
    for (Segment& segment : large.segments) segment = {segment.rise / unit, segment.drop / unit};
    CHECK(large.segments == answer.segments);
  }
  // A narrow table holds sums below 2^31 units, and fewer than 1,024 segments.
  const std::int64_t most = NarrowTable::kMostSum;
  CHECK(scale_of({.kinds = {{{most - 1, 1}, {}, 1}}}).fits_narrow());
  CHECK_FALSE(scale_of({.kinds = {{{most - 1, 1}, {}, 1}}, .released = 1}).fits_narrow());
  PumpkinKind long_kind{{1, 0}, std::vector<Segment>(1022, {3, 3}), 1};
  CHECK(scale_of({.kinds = {long_kind}}).fits_narrow());
  long_kind.rest.push_back({3, 3});
  CHECK_FALSE(scale_of({.kinds = {long_kind}}).fits_narrow());
  CHECK(on_host({.kinds = {long_kind}}).order == std::vector<std::uint8_t>{0});
}

TEST_CASE("pumpkin table: it fits into the bytes it says and into none less") {
  Random random(6);
  int late = 0;
  for (int i = 0; i < 200; ++i) {
    tests::PumpkinShape shape{.kinds = random.between(2, 6), .copies = random.between(1, 2), .length = 8, .bytes = 100};
    const PumpkinProblem problem = tests::random_pumpkin(random, shape);
    const PumpkinAnswer answer = on_host(problem);
    INFO(i);
    CHECK(answer.bytes <= most_bytes(problem));
    PumpkinOptions options{.memory_bytes = answer.bytes};
    CHECK(answer == on_fibers(problem, false, options));
    options.memory_bytes = random.below(answer.bytes);
    const PumpkinAnswer none = on_fibers(problem, false, options);
    // When the table is complete, the solver reads the order from it. The few bytes that this needs are not compared
    // with the limit. So the solver may succeed if the limit is too low by only these bytes.
    if (none.end == End::solved) {
      CHECK(answer.bytes - options.memory_bytes < 16 * (problem.branches() + 2));
      continue;
    }
    CHECK(none.end == End::too_large);
    CHECK(none.bytes > options.memory_bytes);
    CHECK(none.bytes <= answer.bytes);
    CHECK(none.order.empty());
    late += none.segments_of_layer.size() > 2 ? 1 : 0;
  }
  CHECK(late > 10);
}

TEST_CASE("pumpkin table: it stops where it is told to and counts its work") {
  Random random(7);
  const PumpkinProblem problem = tests::pumpkin_of_chains(random, 8, 16);
  std::int64_t work = 0, calls = 0, last_call = -1;
  PumpkinOptions options{.chunk = 16};
  options.go_on = [&](std::int64_t more) {
    work += more;
    return calls++ != last_call;
  };
  CHECK(on_host(problem, options).end == End::solved);
  CHECK(work == 8 * (1 << 7));  // each of the 2^8 states tries each branch that it contains
  const std::int64_t all = calls;
  for (last_call = 0; last_call < all; last_call += 3) {
    calls = 0;
    const PumpkinAnswer answer = on_fibers(problem, false, options);
    CHECK(answer.end == End::stopped);
    CHECK(answer.order.empty());
    CHECK(calls == last_call + 1);
  }
}

TEST_CASE("pumpkin table: what is too large for any table is refused") {
  PumpkinProblem problem;
  problem.kinds.assign(41, {{1, 0}, {}, 1});
  CHECK(count_states(problem).empty());
  CHECK(most_bytes(problem) == std::numeric_limits<std::int64_t>::max());
  CHECK_THROWS_AS(on_host(problem), core::InputError);
  problem.kinds.resize(40);
  CHECK(count_states(problem)[20] == 137846528820);
  problem.kinds.assign(2, {{1, 0}, {}, 2'000'000});
  CHECK(count_states(problem).empty());
}

TEST_CASE("pumpkin table: no branches and many equal ones") {
  PumpkinProblem problem;
  PumpkinAnswer answer = on_host(problem);
  CHECK(answer.end == End::solved);
  CHECK(answer.order.empty());
  CHECK(answer.segments.empty());
  problem.kinds.push_back({{5, 2}, {{3, 6}}, 300});
  problem.released = 7;
  answer = on_fibers(problem, true);
  CHECK(answer.order == std::vector<std::uint8_t>(300, 0));
  CHECK(answer.segments == std::vector<Segment>{{6, 13}});  // the branches run one after the other
}

}  // namespace
}  // namespace cairn::solvers::pumpkin_property_test
