// Tests the choice between several ways to compute a convolution. The tests invent the engines and their times, so they
// need no device.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/cuda/internal/conv_variants.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::tests::conv_choice_test {

using namespace cuda;

namespace {

struct Engine {
  std::optional<std::int64_t> workspace;  ///< bytes; nullopt if the engine must not be used
  std::optional<double> ms;               ///< milliseconds; nullopt if the engine fails to run
};

class InventedTrials final : public ConvTrials {
 public:
  InventedTrials(std::vector<Engine> engines, ConvVariant lowered)
      : engines_(std::move(engines)), lowered_(std::move(lowered)) {}

  std::size_t engines() const override { return engines_.size(); }
  std::optional<std::int64_t> workspace(std::size_t engine) override { return engines_[engine].workspace; }
  std::optional<double> engine_ms(std::size_t engine) override {
    REQUIRE(engines_[engine].workspace);
    timed.push_back(engine);
    return engines_[engine].ms;
  }
  ConvVariant lowered() override {
    ++lowered_tried;
    return lowered_;
  }

  std::vector<std::size_t> timed;  ///< indices of the timed engines, in the order in which they were timed
  int lowered_tried = 0;

 private:
  std::vector<Engine> engines_;
  ConvVariant lowered_;
};

constexpr ConvVariant kNoLowered = {};
constexpr ConvLimits kLimits = {
    .small_workspace = 32, .large_workspace = 256, .near_ms = 1, .most_time = std::chrono::hours(1)};

std::vector<std::int64_t> scratches(const ConvVariants& found) {
  std::vector<std::int64_t> bytes;
  for (const ConvVariant& variant : found.all) bytes.push_back(variant.scratch);
  return bytes;
}

}  // namespace

TEST_CASE("the first engine is taken alone if it is near what can be reached") {
  InventedTrials trials({{8, 0.9}, {0, 0.1}}, {std::nullopt, 5, 0.1});
  const ConvVariants found = find_variants(trials, kLimits);
  CHECK(scratches(found) == std::vector<std::int64_t>{8});
  CHECK(trials.timed == std::vector<std::size_t>{0});
  CHECK(trials.lowered_tried == 0);
}

TEST_CASE("a slow engine is compared with others, with im2col, and with engines of a large workspace") {
  // The engine that needs 300 bytes of workspace exceeds both limits on workspace (kLimits). The engine with workspace
  // nullopt must not be used.
  InventedTrials trials({{200, 2.0}, {300, 0.1}, {16, 9.0}, {std::nullopt, 0.1}, {32, 8.0}}, {std::nullopt, 64, 5});
  const ConvVariants found = find_variants(trials, kLimits);
  CHECK(scratches(found) == std::vector<std::int64_t>{16, 64, 200});
  CHECK(trials.timed == std::vector<std::size_t>{2, 4, 0});
  CHECK(trials.lowered_tried == 1);
  REQUIRE(found.usual == 1);  // variant 1 is im2col, i.e. a matrix product
  CHECK_FALSE(found.all[1].engine.has_value());
  CHECK(found.all[2].engine == 0);
  CHECK(found.workspace(std::nullopt) == std::nullopt);
  CHECK(found.workspace(16) == 16);
  CHECK(found.workspace(64) == std::nullopt);
  CHECK(found.workspace(199) == std::nullopt);
  CHECK(found.workspace(1000) == 200);
  // No variant fits into 0 bytes. The result is the least workspace, so the caller sees that it is too large.
  CHECK(found.workspace(0) == 16);
}

TEST_CASE("what needs more scratch than the small limit is not the usual way, except for im2col") {
  InventedTrials large_only({{200, 2.0}}, kNoLowered);
  CHECK(find_variants(large_only, kLimits).all.empty());
  InventedTrials beside_lowered({{200, 2.0}}, {std::nullopt, 500, 8});
  const ConvVariants found = find_variants(beside_lowered, kLimits);
  // This engine is faster than im2col and needs less scratch. So it is the usual way, although its workspace is large.
  CHECK(scratches(found) == std::vector<std::int64_t>{200});
  CHECK(found.usual == 0);
}

TEST_CASE("engines that refuse to run, and those that cannot be timed, are no variants") {
  InventedTrials refusing({{8, std::nullopt}, {4, 3.0}}, kNoLowered);
  const ConvVariants found = find_variants(refusing, kLimits);
  REQUIRE(found.all.size() == 1);
  CHECK(found.all[0].engine == 1);

  InventedTrials untimed({{100, 0.0}, {8, 0.0}, {4, 0.0}}, kNoLowered);
  const ConvVariants first = find_variants(untimed, kLimits);
  REQUIRE(first.all.size() == 1);
  CHECK(first.all[0].engine == 1);  // no times are known, so the first engine with a small workspace is taken

  InventedTrials only_lowered({{8, std::nullopt}}, {std::nullopt, 5, 1});
  CHECK(find_variants(only_lowered, kLimits).all.empty());
}

TEST_CASE("variants are a front: more scratch is worth it, and nothing that was timed is better") {
  for_each_seed(2000, [&](Random& random) {
    std::vector<Engine> engines;
    for (std::int64_t i = random.below(9); i >= 0; --i) {
      Engine& engine = engines.emplace_back();
      if (random.below(6) > 0) engine.workspace = random.below(2) > 0 ? random.below(40) : random.below(300);
      if (random.below(6) > 0) engine.ms = 1.1 + static_cast<double>(random.below(40)) / 4;
    }
    const bool has_lowered = random.below(3) > 0;
    const ConvVariant lowered{std::nullopt, has_lowered ? random.below(100) : 0,
                              has_lowered ? 1.1 + static_cast<double>(random.below(40)) / 4 : 0};
    InventedTrials trials(engines, lowered);
    ConvLimits limits = kLimits;
    limits.most_trials = 100;
    const ConvVariants found = find_variants(trials, limits);

    // Lists all variants that find_variants() may return by its documented rules.
    std::vector<ConvVariant> possible;
    for (std::size_t i = 0; i < engines.size(); ++i)
      if (engines[i].workspace && engines[i].ms && *engines[i].workspace <= limits.large_workspace)
        possible.push_back({i, *engines[i].workspace, *engines[i].ms});
    const bool runs = !possible.empty();
    if (runs && has_lowered) possible.push_back(lowered);
    const auto is_small = [&](const ConvVariant& v) { return !v.engine || v.scratch <= limits.small_workspace; };
    if (!runs || std::none_of(possible.begin(), possible.end(), is_small)) {
      REQUIRE(found.all.empty());
      return;
    }
    REQUIRE(!found.all.empty());
    for (std::size_t i = 0; i + 1 < found.all.size(); ++i) {
      REQUIRE(found.all[i].scratch < found.all[i + 1].scratch);
      REQUIRE(found.all[i].ms > kWorthIt * found.all[i + 1].ms);
    }
    std::int64_t scratch_of_small = 0;
    double fastest_small = std::numeric_limits<double>::infinity();
    for (const ConvVariant& other : possible) {
      // find_variants() may replace a variant by another one with less scratch that takes up to kWorthIt times as long.
      // It may do so twice, once in the order of trials and once in the order of scratch. So the permitted factor is
      // squared.
      const ConvVariant& instead = found.all[found.within(other.scratch)];
      REQUIRE(instead.scratch <= other.scratch);
      REQUIRE(instead.ms <= other.ms * kWorthIt * kWorthIt);
      if (!is_small(other)) continue;
      scratch_of_small = std::max(scratch_of_small, other.scratch);
      fastest_small = std::min(fastest_small, other.ms);
    }
    REQUIRE(found.all[found.usual].scratch <= scratch_of_small);
    REQUIRE(found.all[found.usual].ms <= fastest_small * kWorthIt * kWorthIt);
  });
}

}  // namespace cairn::tests::conv_choice_test
