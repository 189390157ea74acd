#include <atomic>
#include <cmath>
#include <optional>
#include <thread>
#include <vector>

#include "cairn/core/support/random.h"
#include "cairn/solvers/engines/engine.h"
#include "cairn/solvers/engines/wire_format.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/solvers/no_engine.h"

namespace cairn::solvers::engines_test {
namespace {

using tests::no_engine;

/// Returns a random number from 0 to most - 1.
std::int64_t below(core::Random& random, std::uint64_t most) { return static_cast<std::int64_t>(random.next() % most); }

/// Returns the least objective of all feasible assignments, or nothing if none is feasible. It tries every assignment,
/// so the ranges of the columns (variables) must be small.
std::optional<std::int64_t> least_by_trying(const LinearModel& model) {
  std::optional<std::int64_t> least;
  std::vector<std::int64_t> values;
  for (const LinearModel::Column& column : model.columns()) values.push_back(column.lower);
  while (true) {
    bool feasible = true;
    for (std::size_t row = 0; row < model.rows().size(); ++row) {
      std::int64_t sum = 0;
      for (const LinearTerm& term : model.terms(row)) sum += term.factor * values[term.variable];
      feasible = feasible && sum >= model.rows()[row].lower && sum <= model.rows()[row].upper;
    }
    std::int64_t cost = 0;
    for (std::size_t j = 0; j < values.size(); ++j) cost += model.columns()[j].cost * values[j];
    if (feasible && (!least || cost < *least)) least = cost;
    std::size_t next = 0;
    while (next < values.size() && ++values[next] > model.columns()[next].upper) {
      values[next] = model.columns()[next].lower;
      ++next;
    }
    if (next == values.size()) return least;
  }
}

LinearModel random_model(core::Random& random) {
  LinearModel model;
  // In half of the cases, costs are as large as numbers of bytes.
  const std::int64_t unit = below(random, 2) == 0 ? 1 : 1'000'003;
  const auto columns = 1 + static_cast<int>(below(random, 5));
  for (int j = 0; j < columns; ++j) {
    const auto lower = below(random, 4) - 2;
    model.add({lower, lower + below(random, 4), (below(random, 21) - 10) * unit, true});
  }
  for (std::int64_t i = below(random, 5); i > 0; --i) {
    std::vector<LinearTerm> terms;
    for (int j = 0; j < columns; ++j) {
      const auto factor = below(random, 9) - 4;
      if (factor != 0) terms.push_back({j, factor * unit});
    }
    const auto lower = below(random, 12) - 8;
    const bool open = below(random, 2) == 0;
    model.add_row(terms, lower * unit, open ? LinearModel::kInfinity : (lower + below(random, 6)) * unit);
  }
  return model;
}

TEST_CASE("both engines find the optimum of small linear programs, and the relaxation is below it", "[engines]") {
  if (no_engine()) return;
  core::Random random(1);
  int infeasible = 0;
  for (int round = 0; round < 400; ++round) {
    const LinearModel model = random_model(random);
    const std::optional<std::int64_t> least = least_by_trying(model);
    EngineOptions options{.threads = 1};
    const EngineAnswer milp = solve_milp(model, options), cp = solve_cp(model, options);
    INFO("round " << round);
    infeasible += least ? 0 : 1;
    for (const EngineAnswer* answer : {&milp, &cp}) {
      REQUIRE(answer->status == (least ? EngineStatus::optimal : EngineStatus::infeasible));
      if (!least) continue;
      REQUIRE(std::llround(answer->objective) == *least);
      REQUIRE(answer->whole_bound() <= *least);
      REQUIRE(answer->values.size() == model.columns().size());
    }
    if (!least) continue;
    const EngineAnswer relaxed = solve_relaxation(model, options);
    REQUIRE(relaxed.status == EngineStatus::optimal);
    REQUIRE(relaxed.whole_bound() <= *least);
  }
  REQUIRE(infeasible > 20);
}

TEST_CASE("a constraint program with intervals and a capacity", "[engines]") {
  if (no_engine()) return;
  // There are three jobs, and each takes two steps. The capacity suffices for two jobs at once. The third job is
  // optional, but leaving it out costs 10. Without further constraints, it is best to run all three jobs, which takes
  // four steps.
  CpModel model;
  std::vector<CpModel::Interval> intervals;
  std::vector<CpModel::Variable> starts;
  const CpModel::Literal third = model.add_literal();
  const CpModel::Variable last = model.add_variable(0, 20);
  for (int job = 0; job < 3; ++job) {
    starts.push_back(model.add_variable(0, 10));
    std::vector<CpModel::Literal> present;
    if (job == 2) present.push_back(third);
    intervals.push_back(model.add_interval(starts.back(), CpModel::Affine::constant(2), {starts.back(), 2}, present));
    model.add_linear({{{last, 1}, {starts.back(), -1}}}, 2, LinearModel::kInfinity, present);
  }
  model.add_cumulative(intervals, std::vector<std::int64_t>{3, 3, 3}, CpModel::Affine::constant(6));
  std::vector<LinearTerm> objective{{last, 1}, {third, -10}};
  SECTION("all of them") {
    model.minimize(objective);
    const EngineAnswer answer = solve_cp(model, {});
    REQUIRE(answer.status == EngineStatus::optimal);
    REQUIRE(answer.objective == 4 - 10);
    REQUIRE(answer.whole(third) == 1);
  }
  SECTION("different starts and a forbidden pair") {
    model.add_all_different(std::vector<CpModel::Affine>{starts[0], starts[1], starts[2]});
    model.add_or({{CpModel::not_(third)}});
    model.minimize(objective);
    const EngineAnswer answer = solve_cp(model, {});
    REQUIRE(answer.status == EngineStatus::optimal);
    REQUIRE(answer.objective == 3);
  }
}

/// Returns a knapsack problem with 300 items and 30 capacities. No engine can solve it quickly, because all items have
/// nearly the same worth.
LinearModel hard_model() {
  core::Random random(3);
  LinearModel model;
  std::vector<std::vector<LinearTerm>> rows(30);
  for (int j = 0; j < 300; ++j) {
    model.add_binary(-1'000'000 - below(random, 1000));
    for (auto& row : rows) row.push_back({j, 500 + below(random, 1000)});
  }
  for (const auto& row : rows) model.add_row(row, 0, 75'000);
  return model;
}

TEST_CASE("engines stop when told to, with what they have", "[engines]") {
  if (no_engine()) return;
  const LinearModel model = hard_model();
  std::atomic<bool> stop{false};
  EngineOptions options{.limit = {.stop = &stop}, .threads = 1};
  int incumbents = 0;
  options.incumbent = [&](const std::vector<double>& values, double) {
    ++incumbents;
    REQUIRE(values.size() == model.columns().size());
  };
  for (const bool cp : {false, true}) {
    stop = false;
    incumbents = 0;
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
      stop = true;
    });
    const EngineAnswer answer = cp ? solve_cp(model, options) : solve_milp(model, options);
    later.join();
    INFO((cp ? "CP-SAT" : "HiGHS"));
    REQUIRE(answer.status == EngineStatus::feasible);
    REQUIRE(answer.interrupted);
    REQUIRE(incumbents > 0);
    REQUIRE(answer.bound < answer.objective);
  }
}

TEST_CASE("under a work limit an engine answers the same each time", "[engines]") {
  if (no_engine()) return;
  const LinearModel model = hard_model();
  EngineOptions options{.limit = {.work = 20'000'000}};
  const EngineAnswer once = solve_cp(model, options), again = solve_cp(model, options);
  REQUIRE(once.solved());
  REQUIRE(once.values == again.values);
  REQUIRE(once.bound == again.bound);
}

TEST_CASE("a hint that is a solution is not lost", "[engines]") {
  if (no_engine()) return;
  const LinearModel model = hard_model();
  EngineOptions options;
  options.hint.assign(model.columns().size(), 0);
  options.hint[0] = 1;
  options.limit.work = 2'000'000;
  REQUIRE(solve_cp(model, options).objective <= static_cast<double>(model.columns()[0].cost));
  options.limit.work = 100'000;
  REQUIRE(solve_milp(model, options).objective <= static_cast<double>(model.columns()[0].cost));
}

TEST_CASE("bounds are never above the optimum, however large or unequal the numbers", "[engines]") {
  if (no_engine()) return;
  for (const std::int64_t large : {(std::int64_t{1} << 57) + 246, (std::int64_t{1} << 42) + 7, std::int64_t{9}}) {
    // At least two of three variables must be 1. Two variables have a very large cost, and one has a very small cost.
    // So the optimum is large + 5, which no bound may exceed.
    LinearModel model;
    model.add_binary(large);
    model.add_binary(5);
    model.add_binary(large + 2);
    model.add_row({{{0, 1}, {1, 1}, {2, 1}}}, 2, 3);
    EngineOptions options{.threads = 1};
    INFO("large " << large);
    CHECK(solve_milp(model, options).whole_bound() <= large + 5);
    CHECK(solve_relaxation(model, options).whole_bound() <= large + 5);
    CHECK(solve_cp(model, options).whole_bound() <= large + 5);
  }
}

TEST_CASE("an answer that is cut short is refused", "[engines]") {
  MessageWriter message;
  message.whole(1, 300);
  message.bytes(2, "abc");
  for (std::size_t length = 0; length <= message.str().size(); ++length) {
    MessageReader reader(std::string_view(message.str()).substr(0, length));
    if (length == 0 || length == 3 || length == message.str().size()) {
      while (reader.next()) {
      }
    } else {
      REQUIRE_THROWS_AS(
          [&] {
            while (reader.next()) {
            }
          }(),
          std::runtime_error);
    }
  }
}

}  // namespace
}  // namespace cairn::solvers::engines_test
