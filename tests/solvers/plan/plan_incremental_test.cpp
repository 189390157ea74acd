#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/plan.h"
#include "cairn/solvers/plan/internal/incremental.h"
#include "cairn/solvers/plan/planner.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::solvers::plan {
namespace {

using BlockId = IncrementalPlan::BlockId;
using Spec = IncrementalPlan::Spec;
using Edit = IncrementalPlan::Edit;

/// What the plan is of: a test's own account of it.
using Blocks = std::map<BlockId, Spec>;

Spec random_block(tests::Random& random, std::int64_t horizon, bool rules) {
  Spec spec;
  const std::int64_t first = random.between(0, horizon);
  const std::int64_t length = random.chance(70) ? random.below(horizon / 8 + 1) : random.below(horizon);
  spec.rectangles.push_back({first, first + length, random.between(rules ? 0 : 1, 1000)});
  if (!rules) return spec;
  while (random.chance(30)) {  // takes over, or is used again after a while
    const Rectangle& before = spec.rectangles.back();
    const std::int64_t start =
        before.last + (random.chance(50) && before.last > before.first ? 0 : random.between(1, 9));
    spec.rectangles.push_back({start, start + random.between(1, horizon / 8 + 1), random.between(0, 1000)});
  }
  if (random.chance(30)) spec.alignment = random.between(2, 64);
  if (random.chance(2)) spec.offset = spec.alignment * random.below(200);
  return spec;
}

/// Every rectangle as a buffer; those of one block take over from another where they meet.
core::Plan plan_of(const Blocks& blocks, const IncrementalPlan& incremental) {
  core::Plan plan;
  plan.bytes = incremental.height();
  for (const auto& [block, spec] : blocks) {
    for (std::size_t i = 0; i < spec.rectangles.size(); ++i) {
      const Rectangle& r = spec.rectangles[i];
      core::Buffer buffer;
      buffer.node = static_cast<core::NodeId>(plan.buffers.size());
      buffer.first = r.first;
      buffer.last = r.last;
      buffer.size = r.size;
      buffer.offset = incremental.offset(block);
      if (i > 0 && spec.rectangles[i - 1].last == r.first) buffer.alias_of = core::OutputRef(buffer.node - 1);
      if (r.size > 0) plan.bytes = std::max(plan.bytes, incremental.height());
      plan.buffers.push_back(buffer);
    }
  }
  return plan;
}

std::int64_t live_at(const Blocks& blocks, std::int64_t time) {
  std::int64_t live = 0;
  for (const auto& [block, spec] : blocks) {
    std::int64_t most = 0;
    for (const Rectangle& r : spec.rectangles) {
      if (r.first <= time && time <= r.last) most = std::max(most, r.size);
    }
    live += most;
  }
  return live;
}

std::int64_t max_live(const Blocks& blocks, std::int64_t first, std::int64_t last) {
  std::int64_t most = live_at(blocks, first);
  for (const auto& [block, spec] : blocks) {
    for (const Rectangle& r : spec.rectangles) {
      if (first < r.first && r.first <= last) most = std::max(most, live_at(blocks, r.first));
    }
  }
  return most;
}

std::vector<std::int64_t> offsets(const Blocks& blocks, const IncrementalPlan& plan) {
  std::vector<std::int64_t> offsets;
  for (const auto& [block, spec] : blocks) offsets.push_back(plan.offset(block));
  return offsets;
}

/// What is wrong with a plan, or empty.
std::string fault(const Blocks& blocks, const IncrementalPlan& plan, const std::vector<core::AddressRange>& forbidden) {
  std::int64_t height = 0;
  for (const auto& [block, spec] : blocks) {
    const std::int64_t offset = plan.offset(block);
    if (offset < 0 || offset % spec.alignment != 0) return "not aligned";
    if (spec.offset && offset != *spec.offset) return "not where it is fixed";
    for (const Rectangle& r : spec.rectangles) {
      if (r.size == 0) continue;
      height = std::max(height, offset + r.size);
      for (const core::AddressRange& range : forbidden) {
        if (offset < range.upper && offset + r.size > range.lower) return "on forbidden addresses";
      }
    }
  }
  if (height != plan.height()) return "another height";
  core::Plan whole = plan_of(blocks, plan);
  for (core::Buffer& buffer : whole.buffers) {  // what has no bytes may lie anywhere
    if (buffer.size == 0) buffer.offset = 0;
  }
  return core::check_overlaps(whole);
}

/// The same edit of the plan and of the account.
void edit_both(IncrementalPlan& plan, Blocks& blocks, const Edit& edit) {
  const std::vector<BlockId> inserted = plan.apply(edit);
  for (const BlockId block : edit.removed) blocks.erase(block);
  for (const auto& [block, spec] : edit.changed) blocks[block] = spec;
  for (std::size_t i = 0; i < inserted.size(); ++i) blocks[inserted[i]] = edit.inserted[i];
}

Edit random_edit(tests::Random& random, const Blocks& blocks, std::int64_t horizon, bool rules) {
  Edit edit;
  std::vector<BlockId> ids;
  for (const auto& [block, spec] : blocks) ids.push_back(block);
  random.shuffle(ids);
  for (std::int64_t i = random.below(3); i > 0 && !ids.empty(); --i, ids.pop_back()) edit.removed.push_back(ids.back());
  for (std::int64_t i = random.below(3); i > 0 && !ids.empty(); --i, ids.pop_back()) {
    Spec spec = blocks.at(ids.back());
    if (random.chance(50)) {
      spec.rectangles.back().last += random.below(20);
    } else {
      spec.rectangles.front().size = random.between(1, 1000);
    }
    edit.changed.emplace_back(ids.back(), spec);
  }
  for (std::int64_t i = random.below(3); i > 0; --i) edit.inserted.push_back(random_block(random, horizon, rules));
  return edit;
}

TEST_CASE("a plan that follows local changes never overlaps, and each can be taken back") {
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    tests::Random random(seed);
    const bool rules = seed % 2 == 1;
    const std::int64_t horizon = random.pick<std::int64_t>({10, 100, 2000});
    PlanProblem problem;
    for (std::int64_t i = random.below(200); i > 0; --i) {
      const Spec spec = random_block(random, horizon, false);
      problem.buffers.push_back(
          {.first = spec.rectangles[0].first, .last = spec.rectangles[0].last, .size = spec.rectangles[0].size});
    }
    if (rules) problem.forbidden = {{700, 800}, {1500, 1500}};
    constexpr std::int64_t kSpacing = 1000;
    IncrementalPlan plan(problem, {.limit = {.work = 0}}, kSpacing);
    Blocks blocks;
    for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
      const core::Buffer& buffer = problem.buffers[b];
      blocks[plan.block_of(b)] = {{{buffer.first * kSpacing, buffer.last * kSpacing, buffer.size}}, 1, {}};
    }
    REQUIRE(fault(blocks, plan, problem.forbidden) == "");
    for (int i = 0; i < 60; ++i) {
      CAPTURE(i);
      const Blocks blocks_before = blocks;
      const std::vector<std::int64_t> before = offsets(blocks, plan);
      const std::int64_t height = plan.height(), live = plan.max_live();
      try {
        edit_both(plan, blocks, random_edit(random, blocks, horizon * kSpacing, rules));
      } catch (const core::InputError&) {
        ++refused;
        REQUIRE(offsets(blocks, plan) == before);
      }
      REQUIRE(fault(blocks, plan, problem.forbidden) == "");
      REQUIRE(plan.max_live() == max_live(blocks, -1, 4 * horizon * kSpacing));
      REQUIRE(plan.lower_bound() >= plan.max_live());
      REQUIRE(plan.height() >= plan.lower_bound());
      const std::int64_t from = random.below(horizon * kSpacing), to = from + random.below(horizon * kSpacing / 4 + 1);
      REQUIRE(plan.max_live(from, to) == max_live(blocks, from, to));
      if (random.chance(40)) {
        plan.undo();
        // A change that was refused has been taken back already.
        blocks = blocks_before;
        REQUIRE(offsets(blocks, plan) == before);
        REQUIRE(plan.height() == height);
        REQUIRE(plan.max_live() == live);
        REQUIRE(fault(blocks, plan, problem.forbidden) == "");
      }
      if (random.chance(5)) {
        plan.replan();
        REQUIRE(fault(blocks, plan, problem.forbidden) == "");
      }
    }
  }
  CHECK(refused > 0);
}

TEST_CASE("after many local changes the arena is about as high as planned from scratch") {
  double excess = 0, kept = 0;
  constexpr int kSeeds = 20, kEdits = 300;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    tests::Random random(seed);
    const std::int64_t horizon = 1000;
    PlanProblem problem;
    for (int i = 0; i < 300; ++i) {
      const Rectangle r = random_block(random, horizon, false).rectangles[0];
      problem.buffers.push_back({.first = r.first, .last = r.last, .size = r.size});
    }
    IncrementalPlan plan(problem);
    Blocks blocks;
    for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
      const core::Buffer& buffer = problem.buffers[b];
      blocks[plan.block_of(b)] = {{{buffer.first, buffer.last, buffer.size}}, 1, {}};
    }
    for (int i = 0; i < kEdits; ++i) {
      edit_both(plan, blocks, random_edit(random, blocks, horizon, false));
      kept += static_cast<double>(plan.lower_bound()) / static_cast<double>(plan.height());
      if (i % 50 == 49 && plan.height() > plan.lower_bound() * 11 / 10) plan.replan();
    }
    for (int i = 0; i < 20; ++i) edit_both(plan, blocks, random_edit(random, blocks, horizon, false));
    const std::int64_t height = plan.height();
    plan.replan();
    REQUIRE(fault(blocks, plan, {}) == "");
    const double ratio = static_cast<double>(height) / static_cast<double>(plan.height());
    CHECK(ratio < 1.3);
    excess += ratio - 1;
  }
  CHECK(excess / kSeeds < 0.12);
  CHECK(kept / kSeeds / kEdits > 0.85);
}

TEST_CASE("the same changes give the same plan") {
  const auto run = [] {
    tests::Random random(5);
    IncrementalPlan plan(PlanProblem{});
    Blocks blocks;
    for (int i = 0; i < 200; ++i) edit_both(plan, blocks, random_edit(random, blocks, 500, false));
    return offsets(blocks, plan);
  };
  CHECK(run() == run());
}

TEST_CASE("malformed changes are refused and change nothing") {
  const PlanProblem problem{
      {{.first = 0, .last = 4, .size = 8}, {.first = 2, .last = 6, .size = 8}}, {}, {{.offset = 0}, {}}, {{40, 50}}};
  IncrementalPlan plan(problem, {.alignment = 4, .guard_bytes = 1});
  CHECK(plan.height() == 24);
  CHECK(plan.offset(plan.block_of(1)) == 12);
  const Spec good{{{0, 1, 4}}, 1, {}};
  const std::vector<Edit> bad{
      {{7}, {}, {}},
      {{-1}, {}, {}},
      {{0, 0}, {}, {}},
      {{1}, {{1, good}}, {}},
      {{}, {{2, good}}, {}},
      {{}, {}, {{{}, 1, {}}}},
      {{}, {}, {{{{2, 1, 4}}, 1, {}}}},
      {{}, {}, {{{{0, 3, 4}, {2, 5, 4}}, 1, {}}}},
      {{}, {}, {{{{0, 1, -4}}, 1, {}}}},
      {{}, {}, {{{{0, 1, 4}}, 0, {}}}},
      {{}, {}, {{{{0, 1, 4}}, 1, 2}}},
      {{}, {}, {{{{0, 1, 4}}, 1, -4}}},
      {{}, {}, {good, {{{3, 3, 4}}, 1, 8}}},
      {{}, {}, {good, {{{3, 3, 4}}, 1, 36}}},
      {{}, {}, {{{{0, 1, std::int64_t{1} << 61}}, 1, {}}, {{{0, 1, std::int64_t{1} << 61}}, 1, {}}}},
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    CAPTURE(i);
    CHECK_THROWS_AS(plan.apply(bad[i]), core::InputError);
    CHECK(plan.height() == 24);
    CHECK(plan.max_live() == 24);
  }
  // A fixed block drives away what lies there.
  const auto inserted = plan.apply({{}, {}, {{{{3, 3, 4}}, 1, 12}}});
  CHECK(plan.offset(inserted[0]) == 12);
  CHECK(plan.offset(plan.block_of(1)) == 20);
  CHECK(plan.height() == 32);
  plan.undo();
  CHECK(plan.height() == 24);
  CHECK_THROWS_AS(IncrementalPlan(problem, {}, 0), core::InputError);
  CHECK_THROWS_AS(IncrementalPlan(problem, {}, std::int64_t{1} << 60), core::InputError);
}

}  // namespace
}  // namespace cairn::solvers::plan
