#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/plan.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::core::plan_property_test {
namespace {

using solvers::plan_buffers;
using solvers::plan_memory;
using tests::Random;
using tests::random_graph;
using tests::random_invalid_schedule;
using tests::random_schedule;

bool live_together(const Buffer& a, const Buffer& b) { return a.first <= b.last && b.first <= a.last; }

/// Returns whether the buffer `output` overwrites the buffer `input` in place. For this, the lifetime of `input` must
/// end at the step that computes `output`.
bool in_place_pair(const Buffer& output, const Buffer& input) {
  return !output.scratch && !input.scratch && output.alias_of != kNoNode && output.alias_of == input.node &&
         input.last == output.first && input.first < output.first;
}

/// The buffers that one step of a schedule must have by the definitions.
struct ExpectedStep {
  Lifetime life;
  std::int64_t output_bytes = 0;   ///< size of the output, rounded up to the alignment
  std::int64_t scratch_bytes = 0;  ///< scratch, rounded up to the alignment, or 0 if it is negative
  std::int64_t shared_bytes = 0;   ///< bytes of the in-place input if this step reads it for the last time, else 0
};

std::vector<ExpectedStep> expected_steps(const Graph& graph, const Schedule& schedule, std::int64_t alignment) {
  const std::vector<Lifetime> lives = reference::lifetimes(graph, schedule);
  std::vector<ExpectedStep> steps;
  for (const Lifetime& life : lives) {
    ExpectedStep step;
    step.life = life;
    step.output_bytes = align_up(graph.size(life.node), alignment);
    step.scratch_bytes = align_up(std::max<std::int64_t>(graph.scratch(life.node), 0), alignment);
    for (const Lifetime& input : lives) {
      if (input.node == graph.inplace(life.node) && input.first < life.first && input.last == life.first) {
        step.shared_bytes = align_up(graph.size(input.node), alignment);
      }
    }
    steps.push_back(step);
  }
  return steps;
}

/// Returns the largest number of live bytes at any step. An output and the input that it overwrites in place count
/// once, with the larger of their sizes.
std::int64_t max_live(const std::vector<ExpectedStep>& steps) {
  std::int64_t highest = 0;
  for (const ExpectedStep& at : steps) {
    std::int64_t bytes = at.scratch_bytes - std::min(at.output_bytes, at.shared_bytes);
    for (const ExpectedStep& other : steps) {
      if (other.life.first <= at.life.first && at.life.first <= other.life.last) bytes += other.output_bytes;
    }
    highest = std::max(highest, bytes);
  }
  return highest;
}

/// Checks that the plan's buffers are exactly the outputs and the scratch of all steps, and that outputs overwrite
/// inputs wherever the definitions permit it.
void check_buffers(const Plan& plan, const std::vector<ExpectedStep>& steps) {
  std::size_t expected = 0;
  for (const ExpectedStep& step : steps) {
    expected += step.output_bytes > 0;
    expected += step.scratch_bytes > 0;
  }
  REQUIRE(plan.buffers.size() == expected);
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    REQUIRE(buffer.first >= 0);
    REQUIRE(buffer.first < static_cast<std::int64_t>(steps.size()));
    if (i > 0) REQUIRE(plan.buffers[i - 1].first <= buffer.first);
    const ExpectedStep& step = steps[static_cast<std::size_t>(buffer.first)];
    REQUIRE(buffer.node == step.life.node);
    REQUIRE(buffer.last == (buffer.scratch ? buffer.first : step.life.last));
    REQUIRE(buffer.size == (buffer.scratch ? step.scratch_bytes : step.output_bytes));
    const bool shares = !buffer.scratch && step.shared_bytes > 0;
    REQUIRE((buffer.alias_of != kNoNode) == shares);
    const auto twin = [&](const Buffer& other) {
      return other.first == buffer.first && other.scratch == buffer.scratch;
    };
    REQUIRE(std::count_if(plan.buffers.begin(), plan.buffers.end(), twin) == 1);
  }
}

/// Checks all buffers and pairs of buffers. They must be aligned and inside of the arena, and the two buffers of an
/// in-place pair must have one address. Other buffers that are live together must not overlap, including the guards
/// behind them.
void check_geometry(const Plan& plan, std::int64_t guard_bytes) {
  std::int64_t height = 0;
  for (const Buffer& a : plan.buffers) {
    REQUIRE(a.offset >= 0);
    REQUIRE(a.offset % plan.alignment == 0);
    REQUIRE(a.size % plan.alignment == 0);
    height = std::max(height, a.offset + a.size);
    bool partner = a.alias_of == kNoNode;
    for (const Buffer& b : plan.buffers) {
      if (&a == &b || !live_together(a, b)) continue;
      if (in_place_pair(a, b)) {
        REQUIRE(a.offset == b.offset);
        partner = true;
      } else if (!in_place_pair(b, a)) {
        REQUIRE((a.offset + a.size + guard_bytes <= b.offset || b.offset + b.size + guard_bytes <= a.offset));
      }
    }
    REQUIRE(partner);
  }
  REQUIRE(plan.bytes >= height);
  REQUIRE(plan.bytes <= height + align_up(guard_bytes, plan.alignment));
}

struct Setting {
  std::int64_t alignment, guard_bytes;
};
constexpr std::array<Setting, 6> kSettings{{{1, 0}, {8, 0}, {256, 0}, {1, 3}, {8, 16}, {256, 64}}};

TEST_CASE("plans hold every buffer for its lifetime, apart from all others") {
  std::int64_t in_place = 0;
  tests::for_each_seed(12000, [&](Random& random, std::uint64_t seed) {
    const Setting setting = kSettings[seed % kSettings.size()];
    CAPTURE(setting.alignment, setting.guard_bytes);
    const Graph graph = random_graph(random);
    const Schedule schedule = random_schedule(random, graph);
    const Plan plan = plan_memory(graph, schedule,
                                  {.alignment = setting.alignment,
                                   .guard_bytes = setting.guard_bytes,
                                   .limit = {.work = seed % 2 == 0 ? 20'000 : 0}});
    const std::vector<ExpectedStep> steps = expected_steps(graph, schedule, setting.alignment);
    REQUIRE(plan.alignment == setting.alignment);
    check_buffers(plan, steps);
    check_geometry(plan, setting.guard_bytes);
    if (setting.guard_bytes == 0) REQUIRE(plan.lower_bound == max_live(steps));
    REQUIRE(plan.bytes >= max_live(steps));
    REQUIRE(plan.bytes >= plan.lower_bound);
    REQUIRE(check_plan(graph, schedule, plan) == "");
    REQUIRE(check_overlaps(plan) == "");
    for (const Buffer& buffer : plan.buffers) in_place += buffer.alias_of != kNoNode;
  });
  CHECK(in_place > 5000);
}

TEST_CASE("max-live is the peak, but for what scratch says and storage does not") {
  // With alignment 1, a plan has these bytes live at step i: values that are live before i, and the output and positive
  // scratch of i, minus the bytes that output and input share if i runs in place. The profile's during(i) counts the
  // same values and the same output, but scratch with its sign. So the two numbers are equal if the scratch of each
  // in-place step is minus the shared bytes, and no other step has negative scratch. A node does not run in place if
  // its input is read again later, for example because the node itself is recomputed. Then during(i) still counts its
  // negative scratch, so during(i) can be below the plan's bytes.
  std::int64_t equal = 0, in_place = 0;
  tests::for_each_seed(10000, [&](Random& random) {
    const Graph graph = random_graph(random);
    const Schedule schedule = random_schedule(random, graph);
    const Plan plan = plan_memory(graph, schedule, {.limit = {.work = 0}});
    std::int64_t highest = 0;
    bool agree = true, shares = false;
    for (const ExpectedStep& step : expected_steps(graph, schedule, 1)) {
      const std::int64_t scratch = graph.scratch(step.life.node);
      const std::int64_t shared = std::min(step.output_bytes, step.shared_bytes);
      const std::int64_t slack = std::max<std::int64_t>(-scratch, 0) - shared;
      highest = std::max(highest, reference::during(graph, schedule, step.life.first) + slack);
      agree = agree && slack == 0;
      shares = shares || shared > 0;
    }
    REQUIRE(plan.lower_bound == highest);
    if (agree) REQUIRE(plan.lower_bound == reference::peak(graph, schedule));
    equal += agree;
    in_place += agree && shares;
  });
  CHECK(equal > 2000);
  CHECK(in_place > 100);
}

TEST_CASE("a schedule's plan is what its aligned graph needs") {
  tests::for_each_seed(1000, [&](Random& random) {
    const Graph graph = random_graph(random, {.in_place = false});
    const Schedule schedule = random_schedule(random, graph);
    for (const std::int64_t alignment : {1, 8, 256}) {
      const Plan plan = plan_memory(graph, schedule, {.alignment = alignment, .limit = {.work = 0}});
      REQUIRE(plan.lower_bound == reference::peak(align_sizes(graph, alignment), schedule));
    }
  });
}

/// Returns the indices of two buffers that are live at the same time and do not share storage.
std::optional<std::pair<std::size_t, std::size_t>> pick_neighbours(const Plan& plan) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    for (std::size_t j = 0; j < plan.buffers.size(); ++j) {
      const Buffer& a = plan.buffers[i];
      const Buffer& b = plan.buffers[j];
      if (i != j && live_together(a, b) && !in_place_pair(a, b) && !in_place_pair(b, a)) return std::pair{i, j};
    }
  }
  return std::nullopt;
}

/// A way to make a plan wrong. If it is impossible for a plan, `corrupt` returns false and leaves the plan unchanged.
struct Corruption {
  const char* name;
  std::function<bool(Random&, const Graph&, const Schedule&, Plan&)> corrupt;
};

/// Makes a plan wrong by calling change(random, graph, plan, buffer) for a random buffer.
template <class Change>
Corruption of_a_buffer(const char* name, const Change& change) {
  return {name, [change](Random& random, const Graph& graph, const Schedule&, Plan& plan) {
            if (plan.buffers.empty()) return false;
            change(random, graph, plan, random.pick(plan.buffers));
            return true;
          }};
}

/// Makes a plan wrong by calling change(buffer, neighbour) for two buffers that are live at the same time. Only the
/// first one is changed.
template <class Change>
Corruption of_neighbours(const char* name, const Change& change) {
  return {name, [change](Random&, const Graph&, const Schedule&, Plan& plan) {
            const auto pair = pick_neighbours(plan);
            if (!pair) return false;
            change(plan.buffers[pair->first], plan.buffers[pair->second]);
            plan.bytes += plan.buffers[pair->first].size;
            return true;
          }};
}

bool forget_alias(Random&, const Graph&, const Schedule&, Plan& plan) {
  for (Buffer& buffer : plan.buffers) {
    if (buffer.alias_of == kNoNode) continue;
    buffer.alias_of = kNoNode;
    return true;
  }
  return false;
}

/// Moves an output within the input that it overwrites in place. A kernel would then overwrite input that it has not
/// read.
bool shift_alias(Random&, const Graph&, const Schedule&, Plan& plan) {
  for (Buffer& output : plan.buffers) {
    for (const Buffer& input : plan.buffers) {
      if (!in_place_pair(output, input) || input.size <= plan.alignment) continue;
      output.offset += plan.alignment;
      plan.bytes += plan.alignment;
      return true;
    }
  }
  return false;
}

std::vector<Corruption> corruptions() {
  return {
      of_a_buffer("drop",
                  [](Random&, const Graph&, Plan& plan, Buffer& buffer) {
                    plan.buffers.erase(plan.buffers.begin() + (&buffer - plan.buffers.data()));
                  }),
      {"add",
       [](Random&, const Graph&, const Schedule& schedule, Plan& plan) {
         plan.buffers.push_back(
             {.node = schedule.steps.back(), .first = 0, .last = 0, .size = 256, .offset = plan.bytes});
         plan.bytes += 256;
         return true;
       }},
      of_a_buffer("shrink",
                  [](Random& random, const Graph& graph, Plan&, Buffer& buffer) {
                    const std::int64_t needed = buffer.scratch ? graph.scratch(buffer.node) : graph.size(buffer.node);
                    buffer.size = needed - random.between(1, needed);
                  }),
      of_a_buffer("move_first", [](Random& random, const Graph&, Plan&,
                                   Buffer& buffer) { buffer.first += random.chance(50) ? 1 : -1; }),
      of_a_buffer("move_last", [](Random& random, const Graph&, Plan&,
                                  Buffer& buffer) { buffer.last += random.chance(50) ? 1 : -1; }),
      of_a_buffer("rename",
                  [](Random& random, const Graph& graph, Plan&, Buffer& buffer) {
                    buffer.node = random.chance(30)
                                      ? random.pick(std::vector<NodeId>{kNoNode, graph.node_count(), 2147483647})
                                      : (buffer.node + 1) % graph.node_count();
                  }),
      {"misalign",
       [](Random& random, const Graph&, const Schedule&, Plan& plan) {
         if (plan.buffers.empty()) return false;
         Buffer& buffer = random.pick(plan.buffers);
         if (plan.alignment == 1) return false;
         buffer.offset += random.between(1, plan.alignment - 1);
         plan.bytes += plan.alignment;
         return true;
       }},
      of_a_buffer("leave_the_arena",
                  [](Random& random, const Graph&, Plan& plan, Buffer& buffer) {
                    buffer.offset = random.chance(50) ? -plan.alignment : plan.bytes;
                  }),
      of_neighbours("overlap", [](Buffer& buffer, const Buffer& other) { buffer.offset = other.offset; }),
      // The first buffer claims to overwrite the second one in place, although this is not permitted.
      of_neighbours("forge_alias",
                    [](Buffer& buffer, const Buffer& other) {
                      buffer.offset = other.offset;
                      buffer.alias_of = other.node;
                    }),
      {"forget_alias", forget_alias},
      {"shift_alias", shift_alias},
      of_a_buffer("duplicate",
                  [](Random&, const Graph&, Plan& plan, const Buffer& buffer) {
                    plan.buffers.push_back(Buffer(buffer));
                    plan.buffers.back().offset = plan.bytes;
                    plan.bytes += plan.buffers.back().size;
                  }),
  };
}

TEST_CASE("spoiled plans are found out") {
  const std::vector<Corruption> ways = corruptions();
  std::map<std::string, int> tried;
  tests::for_each_seed(3000, [&](Random& random, std::uint64_t seed) {
    const Graph graph = random_graph(random);
    const Schedule schedule = random_schedule(random, graph);
    const Plan plan = plan_memory(graph, schedule, {.alignment = kSettings[seed % 3].alignment, .limit = {.work = 0}});
    for (const auto& [name, corrupt] : ways) {
      CAPTURE(name);
      Plan spoiled = plan;
      if (!corrupt(random, graph, schedule, spoiled)) continue;
      const std::string message = check_plan(graph, schedule, spoiled);
      REQUIRE_FALSE(message.empty());
      REQUIRE(message.find('\n') == std::string::npos);
      ++tried[name];
    }
  });
  CHECK(tried.size() == ways.size());
  for (const auto& [name, count] : tried) {
    CAPTURE(name);
    CHECK(count > 300);
  }
}

TEST_CASE("a plan is for its schedule, and only for a valid one") {
  tests::for_each_seed(1000, [&](Random& random) {
    const Graph graph = random_graph(random);
    const Schedule invalid = random_invalid_schedule(random, graph);
    REQUIRE_THROWS_AS(plan_memory(graph, invalid), InputError);
    REQUIRE_THROWS_AS(check_plan(graph, invalid, Plan{}), InputError);
  });
  Random random(0);
  const Graph graph = random_graph(random);
  for (const std::int64_t alignment : {0, -1}) {
    CHECK_THROWS_AS(plan_memory(graph, baseline_schedule(graph), {.alignment = alignment}), InputError);
  }
}

TEST_CASE("plans are the same every time") {
  tests::for_each_seed(100, [&](Random& random) {
    const Graph graph = random_graph(random);
    const Schedule schedule = random_schedule(random, graph);
    const Plan plan = plan_memory(graph, schedule);
    for (int i = 0; i < 4; ++i) REQUIRE(plan_memory(graph, schedule).buffers == plan.buffers);
  });
}

std::vector<BufferSpec> random_specs(Random& random) {
  std::vector<BufferSpec> specs(static_cast<std::size_t>(random.between(0, 40)));
  const std::int64_t steps = random.between(1, 30);
  const std::int64_t max_size = random.pick(std::vector<std::int64_t>{1, 10, 5000});
  for (std::size_t i = 0; i < specs.size(); ++i) {
    specs[i].id = fmt::format("b{}", i);
    specs[i].lower = random.below(steps);
    specs[i].upper = specs[i].lower + random.between(1, steps);
    specs[i].size = random.between(1, max_size);
  }
  return specs;
}

TEST_CASE("free-standing buffers are placed apart, in the order given") {
  std::int64_t at_the_bound = 0;
  tests::for_each_seed(2000, [&](Random& random, std::uint64_t seed) {
    const std::vector<BufferSpec> specs = random_specs(random);
    const std::int64_t alignment = kSettings[seed % 3].alignment;
    const Plan plan = plan_buffers(specs, {.alignment = alignment});
    REQUIRE(plan.buffers.size() == specs.size());
    std::int64_t bound = 0;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const Buffer& buffer = plan.buffers[i];
      REQUIRE(buffer.node == static_cast<NodeId>(i));
      REQUIRE(buffer.first == specs[i].lower);
      REQUIRE(buffer.last == specs[i].upper - 1);
      REQUIRE(buffer.size == align_up(specs[i].size, alignment));
      REQUIRE(buffer.alias_of == kNoNode);
      REQUIRE_FALSE(buffer.scratch);
      // The number of live bytes can only rise when a buffer begins. So it suffices to look at the steps at which
      // buffers begin.
      std::int64_t bytes = 0;
      for (const BufferSpec& other : specs) {
        if (other.lower <= specs[i].lower && specs[i].lower < other.upper) bytes += align_up(other.size, alignment);
      }
      bound = std::max(bound, bytes);
    }
    REQUIRE(plan.lower_bound == bound);
    REQUIRE(plan.bytes >= bound);
    check_geometry(plan, 0);
    REQUIRE(check_overlaps(plan) == "");
    at_the_bound += plan.bytes == bound;

    Plan spoiled = plan;
    if (const auto pair = pick_neighbours(plan)) {
      spoiled.buffers[pair->first].offset = spoiled.buffers[pair->second].offset;
      spoiled.bytes += spoiled.buffers[pair->first].size;
      REQUIRE_FALSE(check_overlaps(spoiled).empty());
    }
  });
  CHECK(at_the_bound > 1000);
}

}  // namespace
TEST_CASE("with overlap_steps, no step shares addresses with buffers that ended so many steps before") {
  Random random(61);
  std::int64_t dearer = 0;
  for (int i = 0; i < 300; ++i) {
    const Graph graph = random_graph(random, tests::any_graph(random));
    const Schedule schedule = random_schedule(random, graph);
    const solvers::PlanProblem problem = solvers::plan_problem(graph, schedule);
    solvers::PlanOptions options{.alignment = random.pick(std::vector<std::int64_t>{1, 8}), .limit = {.work = 20'000}};
    const solvers::PlanSolution closer = solvers::find_plan(problem, options);
    options.overlap_steps = random.pick(std::vector<std::int64_t>{1, 2, 5, 1'000'000'000});
    for (const bool greedy : {true, false}) {
      const solvers::PlanSolution found = greedy ? greedy_plan(problem, options) : find_plan(problem, options);
      const Plan& plan = found.plan;
      CHECK(check_plan(graph, schedule, plan).empty());
      CHECK(plan.bytes >= plan.lower_bound);
      CHECK(found.lower_bound >= closer.plan.lower_bound);
      REQUIRE(plan.buffers.size() == problem.buffers.size());
      // Buffers that overwrite each other in place share storage. All of them get the number of the first of these
      // buffers.
      std::vector<std::size_t> storage;
      for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
        const std::int32_t taken = problem.takes_over[b];
        storage.push_back(taken < 0 ? b : storage[static_cast<std::size_t>(taken)]);
        CHECK(plan.buffers[b].last == problem.buffers[b].last);
        for (std::size_t a = 0; a < b; ++a) {
          const Buffer &first = plan.buffers[a], &second = plan.buffers[b];
          const bool apart = first.offset + first.size <= second.offset || second.offset + second.size <= first.offset;
          CHECK((apart || first.size == 0 || second.size == 0 || storage[a] == storage[b] ||
                 second.first - first.last > options.overlap_steps ||
                 first.first - second.last > options.overlap_steps));
        }
      }
      dearer += plan.bytes > closer.plan.bytes ? 1 : 0;
    }
  }
  CHECK(dearer > 100);
}

TEST_CASE("with overlap_steps, a gap is used by others only with so many steps on both sides") {
  solvers::PlanProblem problem;
  problem.buffers = {{.node = 0, .first = 0, .last = 9, .size = 4}, {.node = 1, .first = 5, .last = 5, .size = 4}};
  problem.rules.resize(2);
  problem.rules[0].gaps = {{3, 7}};
  const auto bytes = [&](std::int64_t first, std::int64_t steps) {
    problem.buffers[1].first = problem.buffers[1].last = first;
    return find_plan(problem, {.overlap_steps = steps}).plan.bytes;
  };
  CHECK(bytes(5, 0) == 4);
  CHECK(bytes(5, 2) == 4);
  CHECK(bytes(4, 2) == 8);  // only one step lies between the lifetime's first part and step 4
  CHECK(bytes(6, 2) == 8);  // only one step lies between step 6 and the lifetime's second part
  CHECK(bytes(5, 3) == 8);
  CHECK_THROWS_AS(bytes(5, -1), InputError);
}

}  // namespace cairn::core::plan_property_test
