#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "cairn/core/plan.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::core::plan_check_test {
namespace {

using tests::Random;

Plan plan_of(const std::vector<BufferSpec>& specs, const std::vector<std::int64_t>& offsets) {
  Plan plan;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    plan.buffers.push_back({.node = static_cast<NodeId>(i),
                            .first = specs[i].lower,
                            .last = specs[i].upper - 1,
                            .size = specs[i].size,
                            .offset = offsets[i]});
    plan.bytes = std::max(plan.bytes, offsets[i] + specs[i].size);
  }
  return plan;
}

bool says(const std::string& message, const std::vector<std::string>& parts) {
  INFO(message);
  for (const std::string& part : parts) {
    if (message.find(part) == std::string::npos) return false;
  }
  return true;
}

TEST_CASE("what is wrong with a plan of a free-standing problem is named") {
  const std::vector<BufferSpec> specs{
      {"a", 0, 9, 4, 1, std::nullopt, std::nullopt, {{3, 5}}}, {"b", 3, 5, 4}, {"c", 6, 9, 8, 8, 8}};
  const Plan right = plan_of(specs, {0, 0, 8});  // b is live only in the gap of a, in which a needs no bytes
  REQUIRE(check_specs(specs, {}, right) == "");

  CHECK(says(check_specs(specs, {}, plan_of(specs, {0, 0, 16})), {"'c'", "must lie at 8"}));
  CHECK(says(check_specs(specs, {}, plan_of(specs, {6, 0, 8})), {"'a'", "'c'", "at time 6 and overlap"}));
  CHECK(says(check_specs(specs, {}, plan_of(specs, {-1, 0, 8})), {"'a'", "offset -1"}));
  const auto spoiled = [&](auto&& spoil) {
    Plan plan = right;
    spoil(plan);
    return check_specs(specs, {}, plan);
  };
  CHECK(says(spoiled([](Plan& p) { p.bytes = 15; }), {"need 16 bytes, not 15"}));
  CHECK(says(spoiled([](Plan& p) { p.bytes = 17; }), {"need 16 bytes, not 17"}));
  CHECK(says(spoiled([](Plan& p) { p.buffers.pop_back(); }), {"2 buffers, but the problem has 3"}));
  CHECK(says(spoiled([](Plan& p) { p.buffers[1].node = 0; }), {"occurs twice"}));
  CHECK(says(spoiled([](Plan& p) { p.buffers[1].node = 3; }), {"is unknown"}));
  CHECK(says(spoiled([](Plan& p) { p.buffers[1].last = 3; }), {"'b' lives from 3 to 3"}));
  CHECK(says(spoiled([](Plan& p) { p.buffers[1].size = 3; }), {"'b' has 3 bytes, but needs 4"}));
  CHECK(says(spoiled([](Plan& p) { p.alignment = 16; }), {"'c'", "is not aligned to 16"}));
  std::vector<BufferSpec> aligned = specs;
  aligned[0].alignment = 3;
  CHECK(says(check_specs(aligned, {}, plan_of(aligned, {16, 0, 8})), {"'a'", "is not aligned to 3"}));
  // If a has no gap in its lifetime, a overlaps b.
  aligned[0] = {"a", 0, 9, 4};
  CHECK(says(check_specs(aligned, {}, right), {"'a'", "'b'", "at time 3"}));
}

TEST_CASE("forbidden addresses and walls are respected") {
  const std::vector<BufferSpec> specs{{"a", 0, 9, 4}, {"empty", 0, 9, 0}};
  const auto at = [&](std::int64_t offset, const std::vector<AddressRange>& forbidden) {
    return check_specs(specs, forbidden, plan_of(specs, {offset, offset}));
  };
  const std::vector<AddressRange> forbidden{{20, 20}, {0, 3}, {8, 16}, {9, 10}};
  CHECK(at(3, forbidden) == "");
  CHECK(at(4, forbidden) == "");
  CHECK(at(16, forbidden) == "");
  CHECK(at(20, forbidden) == "");
  CHECK(says(at(2, forbidden), {"'a'", "forbidden bytes [0, 3)"}));
  CHECK(says(at(5, forbidden), {"'a'", "forbidden bytes [8, 16)"}));
  CHECK(says(at(12, forbidden), {"'a'", "forbidden bytes [8, 16)"}));
  CHECK(says(at(18, forbidden), {"'a'", "wall at 20"}));
}

TEST_CASE("guards belong to the buffers") {
  const std::vector<BufferSpec> specs{{"a", 0, 9, 4}, {"b", 0, 9, 4}};
  Plan plan = plan_of(specs, {0, 6});
  plan.bytes = 12;
  CHECK(check_specs(specs, {}, plan, 2) == "");
  CHECK(says(check_specs(specs, {}, plan, 3), {"12"}));
  plan.bytes = 13;
  CHECK(says(check_specs(specs, {}, plan, 3), {"'a'", "'b'", "overlap"}));
}

TEST_CASE("fixed offsets that contradict each other are named") {
  const std::vector<BufferSpec> specs{
      {"x", 0, 5, 8, 1, 0}, {"free", 0, 9, 99}, {"y", 4, 9, 8, 1, 7}, {"z", 5, 9, 8, 1, 16}};
  CHECK(says(check_fixed_offsets(specs, {}), {"'x'", "'y'", "at time 4"}));
  const std::vector<BufferSpec> apart{specs[0], specs[1], specs[3]};
  CHECK(check_fixed_offsets(apart, {}) == "");
  CHECK(check_fixed_offsets(apart, {}, 1, 24) == "");
  CHECK(says(check_fixed_offsets(apart, {}, 1, 23), {"'z'", "beyond the capacity of 23"}));
  CHECK(says(check_fixed_offsets(apart, {}, 1, 3), {"'x'", "capacity"}));
  CHECK(says(check_fixed_offsets(apart, {}, 32), {"'z'", "aligned to 32"}));
  CHECK(says(check_fixed_offsets(apart, std::vector<AddressRange>{{20, 21}}), {"'z'", "forbidden"}));
  CHECK(says(check_fixed_offsets(apart, std::vector<AddressRange>{{17, 17}}), {"'z'", "wall at 17"}));
  // With an alignment of 8, the size of x is rounded up from 9 to 16 bytes, so x overlaps y.
  CHECK(says(check_fixed_offsets({{"x", 0, 5, 9, 1, 0}, {"y", 0, 5, 8, 1, 8}}, {}, 8), {"'x'", "'y'"}));
  CHECK_FALSE(check_fixed_offsets({{"x", 0, 5, 9, 1, std::numeric_limits<std::int64_t>::max()}}, {}).empty());
  CHECK_FALSE(check_fixed_offsets({{"x", 0, 5, std::numeric_limits<std::int64_t>::max(), 1, 0}}, {}, 8).empty());
  CHECK_FALSE(check_fixed_offsets({}, {}, std::numeric_limits<std::int64_t>::max()).empty());
}

/// Returns whether the plan satisfies the definition. For this, the function counts the buffers that hold each byte at
/// each time.
bool right_by_definition(const std::vector<BufferSpec>& specs, const std::vector<AddressRange>& forbidden,
                         const Plan& plan) {
  constexpr std::int64_t kTimes = 16, kBytes = 64;
  std::vector<int> held(kTimes * kBytes, 0);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::int64_t begin = plan.buffers[i].offset, end = begin + specs[i].size;
    if (begin % specs[i].alignment != 0 || (specs[i].offset && *specs[i].offset != begin)) return false;
    for (const AddressRange& range : forbidden) {
      if (range.lower == range.upper && begin < range.lower && range.lower < end) return false;
      for (std::int64_t byte = begin; byte < end; ++byte) {
        if (byte >= range.lower && byte < range.upper) return false;
      }
    }
    for (std::int64_t time = specs[i].lower; time < specs[i].upper; ++time) {
      const bool unused = std::any_of(specs[i].gaps.begin(), specs[i].gaps.end(),
                                      [&](const auto& gap) { return gap.first <= time && time < gap.second; });
      for (std::int64_t byte = begin; byte < end && !unused; ++byte) {
        if (held[time * kBytes + byte]++ > 0) return false;
      }
    }
  }
  return true;
}

TEST_CASE("the check of a free-standing plan is its definition", "[property]") {
  Random random(41);
  int right = 0, wrong = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<BufferSpec> specs(static_cast<std::size_t>(random.between(0, 5)));
    std::vector<std::int64_t> offsets;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      BufferSpec& spec = specs[i];
      spec.id = std::to_string(i);
      spec.lower = random.between(0, 10);
      spec.upper = spec.lower + random.between(1, 6);
      spec.size = random.between(0, 12);
      if (random.chance(30)) spec.alignment = random.between(1, 3);
      offsets.push_back(random.between(0, 12) * (random.chance(80) ? spec.alignment : 1));
      if (random.chance(20)) spec.offset = random.chance(90) ? offsets.back() : 0;
      for (std::int64_t t = spec.lower + 1; t + 1 < spec.upper && random.chance(40); t += 2)
        spec.gaps.emplace_back(t, t + 1);
    }
    std::vector<AddressRange> forbidden;
    for (std::int64_t i = random.between(0, 2); i > 0; --i) {
      const std::int64_t lower = random.between(0, 40);
      forbidden.push_back({lower, lower + random.between(0, 2)});
    }
    const Plan plan = plan_of(specs, offsets);
    const std::string message = check_specs(specs, forbidden, plan);
    INFO(message);
    REQUIRE(message.empty() == right_by_definition(specs, forbidden, plan));
    ++(message.empty() ? right : wrong);
  }
  CHECK(right > 3000);
  CHECK(wrong > 3000);
}

}  // namespace
}  // namespace cairn::core::plan_check_test
