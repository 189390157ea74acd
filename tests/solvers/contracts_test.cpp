// Tests the promises of every solver about scopes (sets of allowed schedules), about bounds, and about the solver's own
// options.
#include <fmt/format.h>

#include <tuple>

#include "cairn/core/error.h"
#include "cairn/core/profile.h"
#include "cairn/solvers/common/support/incumbent.h"
#include "cairn/solvers/order/support/order.h"
#include "cairn/solvers/registry.h"
#include "cairn/solvers/remat/hiremate/hiremate.h"
#include "cairn/solvers/remat/kumar/pw_remat.h"
#include "cairn/solvers/remat/kumar/tw_remat.h"
#include "cairn/solvers/remat/rotor/rotor.h"
#include "cairn/solvers/remat/stages/checkmate.h"
#include "cairn/solvers/remat/stages/moccasin.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/solvers/measured.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::solvers::contracts_test {
namespace {

using core::Graph;
using core::Schedule;
using tests::contains;
using tests::error_of;
namespace reference = core::reference;

const std::vector<Scope> kScopes = {
    {},
    {OrderRule::free, 1},
    {OrderRule::free, 2},
    {OrderRule::free, 3},
    {OrderRule::input, 0},
    {OrderRule::input, 1},
    {OrderRule::input, 2},
    {OrderRule::input, 3},
};

/// Returns the graph of Figure 1 of Kumar et al. Its edges are A -> B, B -> C, B -> D, C -> D, A -> E and D -> E. All
/// sizes and costs are 1.
Graph figure_1() {
  using tests::make_node;
  return tests::build_graph({make_node("A", 1), make_node("B", 1, {0}), make_node("C", 1, {1}),
                             make_node("D", 1, {1, 2}), make_node("E", 1, {0, 3})});
}

TEST_CASE("scopes are sets of schedules: containment and intersection", "[contracts]") {
  tests::Random random(21);
  int inside = 0;
  for (int i = 0; i < 300; ++i) {
    const Graph graph = tests::random_graph(random);
    const Schedule schedule = i % 4 == 0 ? core::baseline_schedule(graph) : tests::random_schedule(random, graph);
    for (const Scope& a : kScopes) {
      for (const Scope& b : kScopes) {
        const bool in_a = a.contains(graph, schedule), in_b = b.contains(graph, schedule);
        if (a.contains(b) && in_b) REQUIRE(in_a);
        REQUIRE(intersection(a, b).contains(graph, schedule) == (in_a && in_b));
        REQUIRE(a.contains(intersection(a, b)));
        inside += in_a && a != kAnySchedule;
      }
    }
  }
  CHECK(inside > 0);
  CHECK_FALSE(Scope{OrderRule::free, 2}.contains(kAnySchedule));
  CHECK(describe(kAnySchedule) == "any schedule");
  CHECK(describe(kWithoutRecomputation) == "without recomputation");
  CHECK(describe({OrderRule::input, 2}) == "input order kept, at most 2 occurrences of a node");
}

TEST_CASE("in every scope, bounds are below the optimum, and what is called optimal or infeasible is", "[contracts]") {
  tests::Random random(22);
  int optimal = 0, infeasible = 0, refused = 0;
  for (int i = 0; i < 120; ++i) {
    const Graph graph = tests::random_graph(random, {.max_nodes = 6});
    const std::int64_t anyhow = reference::least_peak(graph);
    const std::int64_t once = reference::least_peak_without_recomputation(graph);
    const std::int64_t baseline = reference::peak(graph, core::baseline_schedule(graph));
    const std::int64_t budget = random.between(anyhow - 1, baseline);
    const auto best = reference::cheapest_within(graph, budget);
    // These functions bound the least peak of all schedules in a scope from above and from below. The least peak is
    // known for three scopes, by brute force, and it never rises if a scope becomes larger.
    const auto least_at_most = [&](const Scope& scope) {
      return scope == kAnySchedule ? anyhow : scope.order == OrderRule::free ? once : baseline;
    };
    const auto least_at_least = [&](const Scope& scope) {
      if (scope == Scope{OrderRule::input, 1}) return baseline;
      return scope.max_occurrences == 1 ? once : anyhow;
    };
    for (const SolverInfo& solver : registry()) {
      if (solver.graphs != "any" || !solver.why_missing().empty()) continue;
      for (const Scope& scope : kScopes) {
        for (const auto limit : {std::optional<std::int64_t>(), std::optional(budget)}) {
          INFO("graph " << i << " solver " << std::string(solver.name) << ", " << describe(scope) << ", budget "
                        << limit.value_or(-1));
          SolveOptions options{.budget = limit, .scope = scope, .limit = {.work = 2'000}};
          if (!solver.honours(scope)) {
            ++refused;
            REQUIRE_THROWS_AS(solver.solve(graph, options), core::InputError);
            continue;
          }
          const Solution solution = solver.solve(graph, options);
          REQUIRE(scope.contains(solution.scope));
          REQUIRE(solution.scope.contains(graph, solution.schedule));
          tests::require_measured(graph, solution);
          for (const Bound& bound : {solution.peak_bound, solution.cost_bound}) {
            REQUIRE(bound.scope.contains(solution.scope));
          }
          REQUIRE(solution.peak_bound.value <= least_at_most(solution.peak_bound.scope));
          REQUIRE(solution.peak_bound.value <= solution.least_peak);
          REQUIRE(solution.cost_bound.value <= solution.cost);
          if (best && solution.cost_bound.scope.contains(graph, *best)) {
            REQUIRE(solution.cost_bound.value <= reference::cost(graph, *best));
          }
          if (solution.status == Status::infeasible) {
            ++infeasible;
            REQUIRE(budget < least_at_most(solution.scope));
          }
          if (solution.status == Status::optimal) {
            ++optimal;
            if (limit) {
              REQUIRE(solution.peak <= budget);
              REQUIRE(solution.cost == solution.cost_bound.value);
            } else {
              REQUIRE(solution.peak <= least_at_most(solution.scope));
              REQUIRE(solution.peak >= least_at_least(solution.scope));
            }
          }
        }
      }
    }
  }
  CHECK(optimal > 0);
  CHECK(infeasible > 0);
  CHECK(refused > 0);
}

TEST_CASE("a cost bound makes a schedule with recomputation optimal, in scopes that it covers", "[contracts]") {
  const Graph graph = figure_1();
  const Schedule recomputed{{0, 1, 2, 3, 0, 4}};
  SolveOptions options{.budget = 3};
  const core::Stopwatch watch(options.limit);
  Incumbent incumbent(graph, options, watch);
  incumbent.offer(recomputed);
  CHECK(incumbent.finish(false).status == Status::feasible);
  incumbent.raise_cost_bound({6, kWithoutRecomputation});  // this bound does not hold for schedules that recompute
  CHECK_FALSE(incumbent.cannot_improve());
  incumbent.raise_cost_bound({6, kAnySchedule});
  CHECK(incumbent.cannot_improve());
  const Solution solution = incumbent.finish(false);
  CHECK(solution.status == Status::optimal);
  CHECK(solution.cost_bound.value == 6);
  CHECK(solution.cost_bound.scope == kAnySchedule);

  // If its scope forbids recomputation, an incumbent (the best schedule so far) does not keep a schedule that
  // recomputes.
  Incumbent once(graph, options, watch, kWithoutRecomputation);
  CHECK(once.offer(recomputed).peak == 3);
  CHECK(once.schedule().steps.empty());
  once.offer(core::baseline_schedule(graph));
  CHECK(once.least_peak() == 4);
}

TEST_CASE("a scope that a solver cannot keep to is refused in a line that names those that can", "[contracts]") {
  const Graph graph = figure_1();
  SolveOptions options{.scope = {.max_occurrences = 2}};
  const std::string often = error_of([&] { find_solver("tw").solve(graph, options); });
  tests::check_says(often, {"at most 2 occurrences", "greedy"});
  CHECK_FALSE(contains(often, "tw,"));
  options.scope = {OrderRule::input, 0};
  tests::check_says(error_of([&] { find_solver("order").solve(graph, options); }), {"input order kept", "none"});
  options.scope.max_occurrences = -1;
  CHECK(contains(error_of([&] { find_solver("auto").solve(graph, options); }), "-1"));
  for (const Scope& scope : kScopes) CHECK(find_solver("auto").honours(scope));
}

TEST_CASE("a graph whose first node is marked as backward is solved like any other", "[contracts]") {
  core::GraphBuilder builder("marked");
  builder.add({.name = "first", .size = 10, .cost = 1, .backward = true});
  for (core::NodeId v = 1; v < 4; ++v)
    builder.add({.name = fmt::format("n{}", v), .size = 10, .cost = 1, .inputs = {v - 1}});
  const Graph graph = builder.build();
  for (const char* name : {"chen", "auto"}) {
    const Solution solution = find_solver(name).solve(graph, {.limit = {.work = 100'000}});
    CHECK(core::evaluate(graph, solution.schedule).valid());
  }
}

TEST_CASE("auto keeps to the scope, with the bounds of those that it calls", "[contracts]") {
  const Graph graph = figure_1();
  SolveOptions options{.budget = 3, .scope = kWithoutRecomputation, .limit = {.work = 100'000}};
  Solution solution = find_solver("auto").solve(graph, options);
  CHECK(solution.status == Status::infeasible);
  CHECK(solution.peak_bound.value == 4);
  CHECK(solution.peak_bound.scope == kWithoutRecomputation);
  options.budget.reset();
  CHECK(find_solver("auto").solve(graph, options).status == Status::optimal);
  options.budget = 3;
  for (const Scope& scope : {Scope{OrderRule::free, 2}, Scope{OrderRule::input, 0}, Scope{OrderRule::input, 2}}) {
    options.scope = scope;
    solution = find_solver("auto").solve(graph, options);
    CHECK(solution.schedule.steps == std::vector<core::NodeId>{0, 1, 2, 3, 0, 4});
    CHECK(solution.scope == scope);
  }
}

TEST_CASE("a solver's own options are checked against its table and reach it", "[contracts]") {
  for (const SolverInfo& solver : registry()) {
    for (const SolverOption& option : solver.options) {
      INFO(std::string(solver.name) << " " << std::string(option.name));
      CHECK(option.least <= option.initial);
      CHECK(option.initial <= option.most);
      CHECK_FALSE(option.help.empty());
    }
  }
  const SolverInfo& tw = find_solver("tw");
  tests::Random random(23);
  for (int i = 0; i < 20; ++i) {
    const Graph graph = tests::random_graph(random, {.min_nodes = 20, .max_nodes = 30});
    TwRematOptions direct;
    direct.limit.work = 100'000;
    direct.k = 1 + i % 5;
    direct.retain = false;
    SolveOptions options{.limit = {.work = 100'000}};
    tw.set_option(options, fmt::format("k={}", direct.k));
    tw.set_option(options, "retain=0");
    CHECK(tw.solve(graph, options).schedule == tw_remat(graph, direct).schedule);
  }
  SolveOptions options;
  tests::check_says(error_of([&] { tw.set_option(options, "retian=0"); }), {"'tw'", "did you mean 'retain'?"});
  for (const char* wrong : {"k=", "k", "k=-1", "k=1.5", "k=9999999999999999999", "retain=2"}) {
    CHECK(contains(error_of([&] { tw.set_option(options, wrong); }), "must be a whole number"));
  }
  CHECK(contains(error_of([&] { find_solver("auto").set_option(options, "k=1"); }), "it has none"));
  CHECK(options.own.empty());
  options.own["k"] = -1;
  CHECK(contains(error_of([&] { tw.solve(figure_1(), options); }), "'-1'"));
  CHECK(contains(error_of([&] { find_solver("greedy").solve(figure_1(), options); }), "solver 'greedy' has no option"));
}

/// Stores the defaults of a solver's table of options in `changed`, a structure whose options have other values, and
/// returns it.
template <class Own>
Own with_defaults(std::string_view solver, Own changed) {
  store_own(find_solver(solver).options, changed);
  return changed;
}

TEST_CASE("the defaults of a solver's table are those of its structure of options", "[contracts]") {
  const TwRematOptions tw = with_defaults("tw", TwRematOptions{{}, 5, false, 6});
  CHECK((tw.k == TwRematOptions{}.k && tw.retain && tw.most_steps == TwRematOptions{}.most_steps));
  const PwRematOptions pw = with_defaults("pw", PwRematOptions{{}, 5, 1, false});
  CHECK((pw.k == PwRematOptions{}.k && pw.order == PwRematOptions{}.order && pw.retain));
  const RotorOptions rotor = with_defaults("rotor", RotorOptions{{}, 5, 6, false});
  CHECK((rotor.slots == RotorOptions{}.slots && rotor.blocks == RotorOptions{}.blocks && rotor.retain));
  const MoccasinOptions moccasin = with_defaults("moccasin", MoccasinOptions{{}, 5, false, 6});
  CHECK((moccasin.c == MoccasinOptions{}.c && moccasin.staged && moccasin.threads == 0));
  const CheckmateOptions checkmate = with_defaults("checkmate", CheckmateOptions{{}, 2, 6});
  CHECK((checkmate.engine == CheckmateOptions{}.engine && checkmate.threads == 0));
  OrderOptions order_options;
  order_options.threads = 5;
  CHECK(with_defaults("order", order_options).threads == OrderOptions{}.threads);
  for (const SolverInfo& solver : registry()) {
    for (const SolverOption& option : solver.options) CHECK(option.store != nullptr);
  }
  HirematOptions changed;
  changed.most_top = changed.most_lower = changed.alpha_pct = changed.most_options = changed.budgets = 3;
  changed.partition = changed.threads = 1;
  changed.others = changed.retain = false;
  changed.highs = true;
  const HirematOptions own = with_defaults("hiremate", changed), fresh;
  CHECK(std::tie(own.most_top, own.most_lower, own.alpha_pct, own.most_options, own.budgets) ==
        std::tie(fresh.most_top, fresh.most_lower, fresh.alpha_pct, fresh.most_options, fresh.budgets));
  CHECK(std::tie(own.partition, own.others, own.highs, own.threads, own.retain) ==
        std::tie(fresh.partition, fresh.others, fresh.highs, fresh.threads, fresh.retain));
  TwRematOptions given;
  given.own["k"] = 7;
  CHECK(with_defaults("tw", given).k == 7);
}

TEST_CASE("a solver whose engine is missing says how to get it", "[contracts]") {
  SolverInfo solver = find_solver("none");
  CHECK(solver.why_missing().empty());
  solver.missing = [] { return std::string("HiGHS is not installed; 'pip install highsbox' installs it"); };
  CHECK(contains(error_of([&] { solver.solve(figure_1(), {}); }), "'pip install highsbox'"));
  for (const SolverInfo& known : registry()) {
    const std::string why = known.why_missing();
    CHECK((why.empty() || contains(why, "scripts/install_engines.sh")));
    if (!why.empty()) CHECK(contains(error_of([&] { known.solve(figure_1(), {}); }), why));
  }
}

}  // namespace
}  // namespace cairn::solvers::contracts_test
