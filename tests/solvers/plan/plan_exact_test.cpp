#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/plan.h"
#include "cairn/solvers/plan/internal/search/guided_search.h"
#include "cairn/solvers/plan/internal/search/time_beam.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/solvers/plan/plan_cases.h"
#include "cairn/tests/support/seeds.h"

/// These tests compare the planner with exhaustive search, and run it on problems whose solution is known.
namespace cairn::solvers::plan_exact_test {
namespace {

using tests::PlacedBuffer;
using tests::PlanCase;
using tests::Random;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Returns how many bytes from its offset on buffer i occupies at a step. The number includes the guard and is rounded
/// up to the alignment.
std::int64_t bytes_at(const PlanProblem& problem, const PlanOptions& options, std::size_t i, std::int64_t step) {
  const core::Buffer& buffer = problem.buffers[i];
  if (buffer.size == 0 || step < buffer.first || step > buffer.last) return 0;
  for (const core::StepRange& gap : problem.rules[i].gaps) {
    if (gap.first <= step && step <= gap.last) return 0;
  }
  return round_up(round_up(buffer.size, options.alignment) + options.guard_bytes, options.alignment);
}

std::int64_t steps_of(const PlanProblem& problem) {
  std::int64_t steps = 0;
  for (const core::Buffer& buffer : problem.buffers) steps = std::max(steps, buffer.last + 1);
  return steps;
}

bool touches(const core::AddressRange& forbidden, std::int64_t lower, std::int64_t upper) {
  if (forbidden.lower == forbidden.upper) return lower < forbidden.lower && forbidden.lower < upper;
  return lower < forbidden.upper && forbidden.lower < upper;
}

/// Returns what is wrong with a plan, or an empty text. Checks the definitions for each pair of buffers at each step.
std::string fault(const PlanProblem& problem, const PlanOptions& options, const core::Plan& plan) {
  if (plan.buffers.size() != problem.buffers.size()) return "number of buffers";
  std::int64_t height = 0;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const core::Buffer& a = plan.buffers[i];
    const PlacementRules& rules = problem.rules[i];
    if (a.first != problem.buffers[i].first || a.last != problem.buffers[i].last) return "lifetime";
    if (a.size != round_up(problem.buffers[i].size, options.alignment)) return "size";
    if (a.offset < 0 || a.offset % options.alignment != 0 || a.offset % rules.alignment != 0) return "offset";
    if (rules.offset && a.offset != *rules.offset) return "fixed offset";
    if (problem.takes_over[i] >= 0 && a.offset != plan.buffers[problem.takes_over[i]].offset) return "in-place offset";
    height = std::max(height, a.offset + a.size);
    for (std::int64_t step = a.first; step <= a.last; ++step) {
      const std::int64_t bytes = bytes_at(problem, options, i, step);
      if (bytes == 0) continue;
      height = std::max(height, a.offset + bytes);
      for (const core::AddressRange& range : problem.forbidden) {
        if (touches(range, a.offset, a.offset + bytes)) return "forbidden addresses";
      }
      for (std::size_t j = 0; j < i; ++j) {
        const std::int64_t others = bytes_at(problem, options, j, step);
        const std::int64_t offset = plan.buffers[j].offset;
        if (others == 0 || offset + others <= a.offset || a.offset + bytes <= offset) continue;
        const bool in_place = (problem.takes_over[i] == static_cast<std::int32_t>(j) && step == a.first) ||
                              (problem.takes_over[j] == static_cast<std::int32_t>(i) && step == a.last);
        if (!in_place) return "overlap";
      }
    }
  }
  if (plan.bytes != height) return "height";
  return "";
}

/// Finds the least height of a plan by exhaustive search. Buffers that overwrite each other in place have the same
/// offset and form a block. At each step, a block holds some number of bytes, counted from its offset. Two blocks meet
/// if both hold bytes at the same step. In a plan, the one with the higher offset then lies above the other one at all
/// such steps.
///
/// Consider the plans of least height, and among them a plan with the least sum of offsets. Sort its blocks that have
/// no fixed offset by (offset, index). Then each block lies at the lowest offset that its alignment, the forbidden
/// addresses, the fixed blocks and the blocks before it permit. Otherwise, the block could be moved down to that
/// offset, because every later block that it meets lies above all of its bytes. But then the sum of offsets would be
/// smaller.
///
/// So it suffices to place one block after another, each at the lowest possible offset, in all orders in which (offset,
/// index) ascends. Of interchangeable blocks, the first one is always placed first.
class ExhaustiveSearch {
 public:
  ExhaustiveSearch(const PlanProblem& problem, const PlanOptions& options) : forbidden_(problem.forbidden) {
    const std::size_t count = problem.buffers.size();
    const auto steps = static_cast<std::size_t>(steps_of(problem));
    std::vector<std::size_t> first(count);  // for each buffer, the first buffer of its in-place chain
    for (std::size_t i = 0; i < count; ++i) {
      first[i] = i;
      while (problem.takes_over[first[i]] >= 0) first[i] = static_cast<std::size_t>(problem.takes_over[first[i]]);
    }
    for (std::size_t chain = 0; chain < count; ++chain) {
      if (first[chain] != chain) continue;
      Block block{.alignment = options.alignment};
      block.held.resize(steps);
      for (std::size_t i = 0; i < count; ++i) {
        if (first[i] != chain) continue;
        const PlacementRules& rules = problem.rules[i];
        block.alignment = std::lcm(block.alignment, rules.alignment);
        if (rules.offset) {
          contradiction_ = contradiction_ || (block.fixed && *block.fixed != *rules.offset);
          block.fixed = rules.offset;
        }
        for (std::size_t step = 0; step < steps; ++step) {
          const std::int64_t bytes = bytes_at(problem, options, i, static_cast<std::int64_t>(step));
          block.held[step] = std::max(block.held[step], bytes);
          block.most = std::max(block.most, bytes);
        }
      }
      blocks_.push_back(block);
    }
    above_.assign(blocks_.size(), std::vector<std::int64_t>(blocks_.size(), 0));
    for (std::size_t step = 0; step < steps; ++step) {
      std::int64_t live = 0;
      for (std::size_t i = 0; i < blocks_.size(); ++i) {
        live += blocks_[i].held[step];
        for (std::size_t j = 0; j < blocks_.size(); ++j) {
          if (blocks_[i].held[step] > 0) above_[i][j] = std::max(above_[i][j], blocks_[j].held[step]);
        }
      }
      max_live_ = std::max(max_live_, live);
    }
    for (std::size_t i = 0; i < blocks_.size() && !contradiction_; ++i) {
      if (!blocks_[i].fixed) continue;
      contradiction_ = lowest(i, *blocks_[i].fixed) != *blocks_[i].fixed;
      place(i, *blocks_[i].fixed);
    }
    if (contradiction_) return;
    std::int64_t height = 0;
    for (const Block& block : blocks_) height = std::max(height, block.fixed ? *block.fixed + block.most : 0);
    search(0, 0, height);
  }

  /// Returns the least height. Returns nothing if fixed offsets contradict each other, an alignment, or the forbidden
  /// addresses.
  std::optional<std::int64_t> least() const {
    return contradiction_ ? std::nullopt : std::optional<std::int64_t>(best_);
  }
  std::int64_t max_live() const { return max_live_; }

  /// Returns whether no choice of offsets has a height below `height`. It tries every choice, so it can check the
  /// result of least(). Its time is exponential in the number of blocks.
  bool none_below(std::int64_t height) {
    for (Block& block : blocks_) block.placed = block.fixed;
    return !any_below(0, height);
  }

 private:
  struct Block {
    std::vector<std::int64_t> held;  ///< number of bytes at each step
    std::int64_t most = 0;           ///< largest number of bytes in `held`
    std::int64_t alignment = 1;
    std::optional<std::int64_t> fixed;
    std::optional<std::int64_t> placed;

    bool interchangeable(const Block& other) const {
      return held == other.held && alignment == other.alignment && !fixed && !other.fixed;
    }
  };

  void place(std::size_t i, std::int64_t offset) { blocks_[i].placed = offset; }

  /// Returns the lowest offset from `from` on at which block i overlaps neither placed blocks nor forbidden addresses.
  std::int64_t lowest(std::size_t i, std::int64_t from) const {
    const Block& block = blocks_[i];
    for (std::int64_t offset = round_up(from, block.alignment);;) {
      std::int64_t next = offset;
      if (block.most > 0) {
        for (const core::AddressRange& range : forbidden_) {
          if (touches(range, offset, offset + block.most)) next = std::max(next, range.upper);
        }
      }
      for (std::size_t j = 0; j < blocks_.size(); ++j) {
        if (j == i || !blocks_[j].placed || above_[i][j] == 0) continue;
        const std::int64_t end = *blocks_[j].placed + above_[i][j];
        if (offset < end && *blocks_[j].placed < offset + above_[j][i]) next = std::max(next, end);
      }
      if (next == offset) return offset;
      offset = round_up(next, block.alignment);
    }
  }

  /// Places the remaining blocks in all possible ways. Each must come after the block placed last, in the order of
  /// (offset, index). `height` is the height of the blocks placed so far.
  void search(std::int64_t last_offset, std::size_t last_index, std::int64_t height) {
    if (best_ == max_live_ || height >= best_) return;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (!blocks_[i].placed && lowest(i, last_offset) + blocks_[i].most >= best_) return;
    }
    bool all = true;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].placed) continue;
      all = false;
      const auto earlier = [&](const Block& other) { return !other.placed && other.interchangeable(blocks_[i]); };
      if (std::any_of(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(i), earlier)) continue;
      const std::int64_t offset = lowest(i, 0);
      if (offset < last_offset || (offset == last_offset && i < last_index)) continue;
      place(i, offset);
      search(offset, i, std::max(height, offset + blocks_[i].most));
      blocks_[i].placed.reset();
    }
    if (all) best_ = height;
  }

  bool any_below(std::size_t i, std::int64_t height) {
    if (i == blocks_.size()) return true;
    Block& block = blocks_[i];
    if (block.fixed) return *block.fixed + block.most < height && any_below(i + 1, height);
    if (block.most == 0) return any_below(i + 1, height);
    for (std::int64_t offset = 0; offset + block.most < height; offset += block.alignment) {
      if (lowest(i, offset) != offset) continue;
      block.placed = offset;
      if (any_below(i + 1, height)) return true;
      block.placed.reset();
    }
    block.placed.reset();
    return false;
  }

  std::vector<Block> blocks_;
  /// above_[i][j] is the largest number of bytes that block j holds at a step at which block i holds any.
  std::vector<std::vector<std::int64_t>> above_;
  std::vector<core::AddressRange> forbidden_;
  std::int64_t max_live_ = 0, best_ = INT64_MAX;
  bool contradiction_ = false;
};

TEST_CASE("the exhaustive search finds what trying all offsets finds") {
  int over_max_live = 0;
  tests::for_each_seed(3000, [&](Random& random) {
    const PlanCase test = tests::random_plan_case(random, 4);
    ExhaustiveSearch search(test.problem, test.options);
    const std::optional<std::int64_t> least = search.least();
    if (!least || *least == 0) return;
    over_max_live += *least > search.max_live();
    REQUIRE(search.none_below(*least));
    REQUIRE_FALSE(search.none_below(*least + 1));
  });
  CHECK(over_max_live > 300);
}

/// Checks what must be true of every answer of the planner. `least` is the least height of all plans.
void check_solution(const PlanCase& test, std::int64_t least, const PlanSolution& found) {
  REQUIRE(fault(test.problem, test.options, found.plan) == "");
  REQUIRE(found.plan.bytes >= least);
  REQUIRE(found.lower_bound >= found.plan.lower_bound);
  REQUIRE(found.lower_bound <= least);
  const std::int64_t capacity = test.options.capacity.value_or(found.plan.bytes);
  REQUIRE((found.status == Status::optimal || found.status == Status::feasible) == (found.plan.bytes <= capacity));
  if (found.status == Status::optimal) REQUIRE(found.lower_bound == found.plan.bytes);
  if (found.status == Status::infeasible) REQUIRE(found.lower_bound > capacity);
}

TEST_CASE("greedy plans keep every rule and claim no more than exhaustive search finds") {
  int contradictions = 0, least_found = 0;
  tests::for_each_seed(20000, [&](Random& random) {
    PlanCase test = tests::random_plan_case(random, 9);
    const ExhaustiveSearch search(test.problem, test.options);
    const std::optional<std::int64_t> least = search.least();
    test.options.limit.work = random.chance(50) ? 0 : 20'000;
    if (!least) {
      ++contradictions;
      REQUIRE_THROWS_AS(greedy_plan(test.problem, test.options), core::InputError);
      return;
    }
    if (random.chance(50)) test.options.capacity = *least + random.between(-1, 1);
    if (*least == 0) test.options.capacity.reset();
    const PlanSolution found = greedy_plan(test.problem, test.options);
    check_solution(test, *least, found);
    REQUIRE(found.plan.lower_bound == search.max_live());
    least_found += found.plan.bytes == *least;
  });
  CHECK(contradictions > 100);
  CHECK(least_found > 10000);
}

TEST_CASE("under any limit a plan keeps every rule, its bound holds, and the answer is the same again") {
  tests::for_each_seed(2000, [&](Random& random) {
    PlanCase test = tests::random_plan_case(random, 9);
    const std::optional<std::int64_t> least = ExhaustiveSearch(test.problem, test.options).least();
    if (!least) return;
    test.options.limit.work = random.below(random.pick(std::vector<std::int64_t>{10, 100, 1000, 10'000}));
    if (random.chance(50)) test.options.capacity = std::max<std::int64_t>(0, *least + random.between(-2, 1));
    const PlanSolution found = find_plan(test.problem, test.options);
    check_solution(test, *least, found);
    const PlanSolution again = find_plan(test.problem, test.options);
    REQUIRE(again.plan.buffers == found.plan.buffers);
    REQUIRE(again.lower_bound == found.lower_bound);
    REQUIRE(again.status == found.status);
    REQUIRE(again.work == found.work);
  });
}

namespace {

/// Checks the plan that results from the offsets that a search has found, one for each block.
void check_offsets(const PlanCase& test, const plan::Instance& instance, const std::vector<std::int64_t>& offsets,
                   std::int64_t capacity) {
  core::Plan plan{0, 0, test.options.alignment, test.problem.buffers};
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    core::Buffer& buffer = plan.buffers[i];
    buffer.size = round_up(buffer.size, test.options.alignment);
    buffer.offset = offsets[instance.block_of[i]];
    plan.bytes = std::max(plan.bytes, buffer.offset + bytes_at(test.problem, test.options, i, buffer.first));
  }
  REQUIRE(fault(test.problem, test.options, plan) == "");
  REQUIRE(plan.bytes <= capacity);
}

}  // namespace

TEST_CASE("a beam over time keeps every rule, in pieces as at once, and fits nothing that cannot be") {
  constexpr std::int64_t kWork = 100'000;
  int fitting = 0, fixed = 0;
  tests::for_each_seed(10000, [&](Random& random) {
    PlanCase test = tests::random_plan_case(random, 9);
    const std::optional<std::int64_t> least = ExhaustiveSearch(test.problem, test.options).least();
    if (!least) return;
    const plan::Instance instance(test.problem, test.options);
    const bool any_fixed = std::any_of(instance.blocks.begin(), instance.blocks.end(),
                                       [](const plan::Block& block) { return block.fixed.has_value(); });
    REQUIRE(plan::TimeBeam::takes(instance) == !any_fixed);
    fixed += any_fixed;
    if (any_fixed) return;
    const plan::TimeBeam::Problem problem(instance);
    const std::int64_t capacity = std::max<std::int64_t>(0, *least + random.between(-1, 3));
    const std::atomic<std::int64_t> most = kWork;
    const core::Stopwatch watch({});
    const int seed = static_cast<int>(random.below(4));
    plan::TimeBeam beam(problem, capacity, seed), pieces(problem, capacity, seed);
    const plan::Verdict verdict = beam.run(kWork, most, watch);
    REQUIRE(verdict != plan::Verdict::impossible);
    REQUIRE((verdict == plan::Verdict::fits || beam.stuck() || beam.work() >= kWork));
    plan::Verdict later = plan::Verdict::unknown;
    while (later == plan::Verdict::unknown && !pieces.stuck() && pieces.work() < kWork)
      later = pieces.run(1 + random.below(300), most, watch);
    REQUIRE(later == verdict);
    if (verdict == plan::Verdict::unknown) return;
    ++fitting;
    REQUIRE(pieces.offsets() == beam.offsets());
    REQUIRE(capacity >= *least);
    check_offsets(test, instance, beam.offsets(), capacity);
  });
  CHECK(fitting > 2000);
  CHECK(fixed > 1000);
}

TEST_CASE("a guided search keeps every rule, in pieces as at once, and fits nothing that cannot be") {
  constexpr std::int64_t kWork = 100'000;
  int fitting = 0, possible = 0, taken = 0, fixed = 0;
  tests::for_each_seed(10000, [&](Random& random) {
    PlanCase test = tests::random_plan_case(random, 9);
    const std::optional<std::int64_t> least = ExhaustiveSearch(test.problem, test.options).least();
    if (!least) return;
    const plan::Instance instance(test.problem, test.options);
    if (!plan::GuidedSearch::takes(instance)) return;
    ++taken;
    plan::GuidedSearch::Problem problem(instance);
    const std::int64_t unit = problem.unit;
    std::int64_t most_size = 0;
    for (const plan::Block& block : instance.blocks) {
      most_size = std::max(most_size, block.fixed.value_or(0) + instance.bounds(block).size);
      fixed += block.fixed ? 1 : 0;
    }
    const std::int64_t capacity = std::max(most_size, (*least + random.between(-1, 3)) / unit * unit);
    for (const plan::Block& block : instance.blocks)
      problem.start.push_back(block.fixed.value_or(random.between(0, 2 * capacity / unit) * unit));
    const std::atomic<std::int64_t> most = kWork;
    const core::Stopwatch watch({});
    const int seed = static_cast<int>(random.below(4));
    plan::GuidedSearch whole(problem, capacity, seed), pieces(problem, capacity, seed);
    const plan::Verdict verdict = whole.run(kWork, most, watch);
    REQUIRE(verdict != plan::Verdict::impossible);
    possible += capacity >= *least ? 1 : 0;
    if (verdict == plan::Verdict::unknown) return;
    while (pieces.run(1 + random.below(300), most, watch) == plan::Verdict::unknown) REQUIRE(pieces.work() < kWork);
    ++fitting;
    REQUIRE(pieces.offsets() == whole.offsets());
    REQUIRE(capacity >= *least);
    check_offsets(test, instance, whole.offsets(), capacity);
  });
  CHECK(taken > 2000);
  CHECK(fitting > possible * 9 / 10);
  CHECK(fixed > 1000);
}

TEST_CASE("fixed offsets that a guided search could not keep apart or aligned are not given to it") {
  const auto taken = [](const PlanProblem& problem) {
    return plan::GuidedSearch::takes(plan::Instance(problem, PlanOptions{}));
  };
  PlanProblem problem{.buffers = {{.first = 0, .last = 9, .size = 8}, {.first = 4, .last = 4, .size = 8}}};
  problem.rules = {{.offset = 0}, {}};
  CHECK(taken(problem));
  problem.rules = {{.offset = 0, .gaps = {{3, 5}}}, {.offset = 0}};
  CHECK_FALSE(taken(problem));
  problem.rules = {{.offset = 4}, {.alignment = 8}};
  CHECK_FALSE(taken(problem));
  problem.rules = {{.offset = 16}, {.alignment = 8}};
  CHECK(taken(problem));
}

TEST_CASE("memory that is full at every step is planned lower than greedy orders have it") {
  tests::for_each_seed(3, [](Random& random) {
    constexpr std::int64_t kSteps = 1000, kMostSize = 4'000'000, kFull = 25 * kMostSize;
    PlanProblem problem;
    std::vector<std::size_t> live;
    std::int64_t load = 0;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      core::Buffer buffer{.first = step, .last = kSteps, .size = random.between(1, kMostSize)};
      for (load += buffer.size; load > kFull;) {
        std::size_t& one = random.pick(live);
        problem.buffers[one].last = step - 1;
        load -= problem.buffers[one].size;
        one = live.back();
        live.pop_back();
      }
      live.push_back(problem.buffers.size());
      problem.buffers.push_back(buffer);
    }
    PlanOptions options{.limit = {.work = 200'000'000}};
    const std::int64_t greedy = greedy_plan(problem, options).plan.bytes;
    const PlanSolution found = find_plan(problem, options);
    REQUIRE(found.plan.bytes >= found.lower_bound);
    CHECK(static_cast<double>(found.plan.bytes) < 0.96 * static_cast<double>(greedy));
  });
}

TEST_CASE("the checks of free-standing plans and fixed offsets find what the definitions say") {
  int wrong = 0, right = 0, contradictions = 0;
  tests::for_each_seed(20000, [&](Random& random) {
    PlanCase test = tests::random_plan_case(random, 5);
    test.problem.takes_over.assign(test.problem.buffers.size(), -1);
    std::vector<core::BufferSpec> specs;
    for (std::size_t i = 0; i < test.problem.buffers.size(); ++i) {
      const core::Buffer& buffer = test.problem.buffers[i];
      const PlacementRules& rules = test.problem.rules[i];
      core::BufferSpec spec{std::to_string(i), buffer.first,    buffer.last + 1,
                            buffer.size,       rules.alignment, rules.offset};
      for (const core::StepRange& gap : rules.gaps) spec.gaps.emplace_back(gap.first, gap.last + 1);
      specs.push_back(spec);
    }
    const bool contradiction = !ExhaustiveSearch(test.problem, test.options).least();
    contradictions += contradiction;
    if (test.options.guard_bytes == 0) {
      const std::string found = core::check_fixed_offsets(specs, test.problem.forbidden, test.options.alignment);
      REQUIRE(found.empty() != contradiction);
    }
    if (contradiction) return;
    core::Plan plan = greedy_plan(test.problem, {test.options.alignment, test.options.guard_bytes}).plan;
    for (std::size_t i = 0; i < specs.size(); ++i) plan.buffers[i].node = static_cast<core::NodeId>(i);
    while (random.chance(40)) {
      core::Buffer& moved = random.pick(plan.buffers);
      moved.offset = random.between(0, plan.bytes);
    }
    plan.bytes = 0;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const std::int64_t bytes = bytes_at(test.problem, test.options, i, plan.buffers[i].first);
      plan.bytes = std::max(plan.bytes, plan.buffers[i].offset + bytes);
    }
    const bool faulty = !fault(test.problem, test.options, plan).empty();
    REQUIRE(core::check_specs(specs, test.problem.forbidden, plan, test.options.guard_bytes).empty() != faulty);
    (faulty ? wrong : right) += 1;
  });
  CHECK(wrong > 2000);
  CHECK(right > 2000);
  CHECK(contradictions > 100);
}

TEST_CASE("problems of known height are full from the first byte to the last") {
  constexpr std::int64_t kHeight = 1024;
  for (const tests::FullKind kind : tests::kFullKinds) {
    tests::for_each_seed(40, [&](Random& random) {
      CAPTURE(kind);
      const std::vector<PlacedBuffer> placed =
          tests::full_problem(random, kind, kHeight, static_cast<std::size_t>(random.between(30, 300)));
      const PlanProblem problem = tests::without_places(placed);
      core::Plan known{.bytes = kHeight, .buffers = problem.buffers};
      for (std::size_t i = 0; i < placed.size(); ++i) known.buffers[i].offset = placed[i].lower;
      REQUIRE(fault(problem, {}, known) == "");
      const PlanSolution greedy = greedy_plan(problem, {.limit = {.work = 0}});
      REQUIRE(greedy.plan.lower_bound == kHeight);
      REQUIRE(fault(problem, {}, greedy.plan) == "");
    });
  }
}

PlanOptions with_capacity(PlanOptions options, std::int64_t capacity) {
  options.capacity = capacity;
  return options;
}

TEST_CASE("plans are as low as exhaustive search finds, and proved so, or shown not to fit") {
  int contradictions = 0, over_max_live = 0, compared = 0;
  tests::for_each_seed(23000, [&](Random& random) {
    const PlanCase test = tests::random_plan_case(random, 9);
    const PlanProblem& problem = test.problem;
    const ExhaustiveSearch search(problem, test.options);
    const std::optional<std::int64_t> least = search.least();
    if (!least) {
      ++contradictions;
      REQUIRE_THROWS_AS(find_plan(problem, test.options), core::InputError);
      return;
    }
    const PlanSolution lowest = find_plan(problem, test.options);
    REQUIRE(fault(problem, test.options, lowest.plan) == "");
    REQUIRE(lowest.plan.lower_bound == search.max_live());
    REQUIRE(lowest.plan.bytes == *least);
    REQUIRE(lowest.lower_bound == *least);
    REQUIRE(lowest.status == Status::optimal);
    ++compared;
    if (*least == search.max_live()) return;
    ++over_max_live;

    const PlanSolution none = find_plan(problem, with_capacity(test.options, *least - 1));
    REQUIRE(fault(problem, test.options, none.plan) == "");
    REQUIRE(none.status == Status::infeasible);
    REQUIRE(none.lower_bound == *least);
    if (over_max_live % 4 != 0) return;
    const PlanSolution tight = find_plan(problem, with_capacity(test.options, *least));
    REQUIRE(fault(problem, test.options, tight.plan) == "");
    REQUIRE(tight.plan.bytes == *least);
    REQUIRE((tight.status == Status::optimal || tight.status == Status::feasible));
  });
  CHECK(contradictions > 100);
  CHECK(over_max_live > 2000);
  CHECK(compared >= 20000);
}

/// Returns the problem with only these buffers, whose indices must ascend. A buffer that would overwrite an omitted
/// buffer in place overwrites none instead.
PlanProblem only(const PlanProblem& problem, const std::vector<std::int32_t>& buffers) {
  PlanProblem part{.forbidden = problem.forbidden};
  for (const std::int32_t i : buffers) {
    part.buffers.push_back(problem.buffers[i]);
    part.rules.push_back(problem.rules[i]);
    const auto before = std::find(buffers.begin(), buffers.end(), problem.takes_over[i]);
    part.takes_over.push_back(before == buffers.end() ? -1 : static_cast<std::int32_t>(before - buffers.begin()));
  }
  return part;
}

TEST_CASE("an irreducible conflict does not fit, and fits without any one of its buffers") {
  int reduced = 0;
  tests::for_each_seed(2000, [&](Random& random) {
    const PlanCase test = tests::random_plan_case(random, 9);
    const std::optional<std::int64_t> least = ExhaustiveSearch(test.problem, test.options).least();
    if (!least || *least == 0) return;
    const PlanOptions options =
        with_capacity(test.options, *least - 1 - random.below(std::min<std::int64_t>(*least, 3)));
    const PlanConflict found = irreducible_conflict(test.problem, options);
    const std::vector<std::int32_t>& conflict = found.buffers;
    REQUIRE(found.irreducible);
    const auto needs = [&](const std::vector<std::int32_t>& buffers) {
      return ExhaustiveSearch(only(test.problem, buffers), options).least().value();
    };
    REQUIRE_FALSE(conflict.empty());
    REQUIRE(std::is_sorted(conflict.begin(), conflict.end()));
    REQUIRE(needs(conflict) > *options.capacity);
    for (const std::int32_t left_out : conflict) {
      std::vector<std::int32_t> others;
      std::copy_if(conflict.begin(), conflict.end(), std::back_inserter(others), [&](auto i) { return i != left_out; });
      REQUIRE((others.empty() || needs(others) <= *options.capacity));
    }
    reduced += conflict.size() < test.problem.buffers.size();
  });
  CHECK(reduced > 1000);
}

TEST_CASE("hints cost neither height nor truth") {
  tests::for_each_seed(3000, [](Random& random) {
    const std::int64_t unit = random.between(2, 8);
    PlanProblem problem;
    for (std::int64_t b = random.between(3, 12); b > 0; --b) {
      const std::int64_t first = random.below(8);
      problem.buffers.push_back(
          {.first = first, .last = first + random.below(4), .size = unit * random.between(1, 12)});
    }
    const PlanSolution without = find_plan(problem);
    problem.rules.resize(problem.buffers.size());
    for (PlacementRules& rules : problem.rules)
      if (random.chance(70)) rules.hint = random.below(unit * 40);
    PlanOptions options{.limit = {.work = random.chance(50) ? 600'000'000 : random.below(5000)}};
    const PlanSolution with = find_plan(problem, options);
    REQUIRE(without.status == Status::optimal);
    REQUIRE(with.lower_bound <= without.plan.bytes);
    REQUIRE((with.status != Status::optimal || with.plan.bytes == without.plan.bytes));
    options.capacity = without.plan.bytes;
    REQUIRE(find_plan(problem, options).status != Status::infeasible);
  });
}

TEST_CASE("small problems of known height are planned at that height") {
  constexpr std::int64_t kHeight = 1024;
  for (const tests::FullKind kind : tests::kFullKinds) {
    tests::for_each_seed(12, [&](Random& random) {
      CAPTURE(kind);
      const PlanProblem problem = tests::without_places(
          tests::full_problem(random, kind, kHeight, static_cast<std::size_t>(random.between(30, 80))));
      const PlanSolution found = find_plan(problem, {.limit = {.work = 2'000'000'000}});
      REQUIRE(fault(problem, {}, found.plan) == "");
      REQUIRE(found.plan.bytes == kHeight);
      REQUIRE(found.status == Status::optimal);
    });
  }
}

}  // namespace
}  // namespace cairn::solvers::plan_exact_test
