#include <algorithm>
#include <atomic>

#include "cairn/solvers/fit/curve.h"
#include "cairn/solvers/fit/decision.h"
#include "cairn/solvers/fit/solve.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::fit_test {
namespace {

/// The budgets with which the fake solvers of this file were called, in order.
std::vector<std::int64_t> asked;

/// Returns a graph of three kept nodes of 100 bytes each, without edges. Every schedule of it has a peak of 300 bytes.
core::Graph kept_nodes() {
  core::GraphBuilder builder("kept");
  for (const char* name : {"a", "b", "c"}) {
    core::Node node{.name = name, .size = 100, .keep = true};
    builder.add(std::move(node));
  }
  return builder.build();
}

/// Acts as a solver that claims too much. If the budget is at least 290 bytes, it returns the baseline and claims a
/// peak of 290 bytes, although the peak is 300. For smaller budgets it finds nothing.
solvers::Solution optimist(const core::Graph& graph, const solvers::SolveOptions& options) {
  asked.push_back(*options.budget);
  solvers::Solution solution;
  if (*options.budget < 290) return solution;
  solution.status = solvers::Status::feasible;
  solution.schedule = core::baseline_schedule(graph);
  solution.peak = 290;
  return solution;
}
const solvers::SolverInfo kOptimist = {"optimist", "", "", optimist};

/// Runs fit_to_budget() on kept_nodes() with this solver. The alignment is 1, so sizes are not rounded up.
fit::Fit fitted(std::int64_t budget, const solvers::SolverInfo& solver, solvers::SolveOptions options = {}) {
  asked.clear();
  const fit::Problem problem(kept_nodes(), std::to_string(budget));
  return fit::fit_to_budget(problem, problem, solver, {std::move(options), {.alignment = 1}});
}

/// Acts as a solver for diamond() that claims too much. If the budget is at least 50 bytes, it returns the input order
/// and claims a peak of 50 bytes, although the peak is 60. But `others` contains a schedule whose peak really is 50
/// bytes.
solvers::Solution optimist_with_another(const core::Graph& graph, const solvers::SolveOptions& options) {
  asked.push_back(*options.budget);
  solvers::Solution solution;
  if (*options.budget < 50) return solution;
  solution.status = solvers::Status::feasible;
  solution.schedule = core::baseline_schedule(graph);
  solution.peak = 50;
  solution.cost = 10;
  solution.others = {{{0, 1, 2, 0, 3}}};
  return solution;
}
const solvers::SolverInfo kOptimistWithAnother = {"optimist", "", "", optimist_with_another};

core::Graph diamond() {
  core::GraphBuilder builder("diamond");
  const auto a = builder.add({.name = "a", .size = 20, .cost = 1});
  const auto b = builder.add({.name = "b", .size = 20, .cost = 2, .inputs = {a}});
  const auto c = builder.add({.name = "c", .size = 20, .cost = 3, .inputs = {b}});
  builder.add({.name = "d", .size = 10, .cost = 4, .keep = true, .inputs = {c, a}});
  return builder.build();
}

}  // namespace

TEST_CASE("where the best schedule's plan does not fit another one of the solver's may") {
  asked.clear();
  const fit::Problem problem(diamond(), "55");
  const fit::Fit found = fit::fit_to_budget(problem, problem, kOptimistWithAnother, {{}, {.alignment = 1}});
  REQUIRE(found.fits());
  CHECK(found.plan->bytes == 50);
  CHECK(found.solution.cost == 11);
  CHECK(found.solution.status == solvers::Status::feasible);
  CHECK(core::evaluate(problem.graph, found.solution.schedule).cost == 11);
  // The search must go on with lower budgets, because with such a budget the solver may find a cheaper schedule whose
  // plan fits.
  CHECK(asked.size() > 1);
  CHECK(asked[1] < 55);
}

TEST_CASE("after Ctrl-C another schedule of the solver's whose plan fits is still taken") {
  static std::atomic<bool> stop;
  stop = false;
  const solvers::SolverInfo stopped = {"optimist", "", "",
                                       [](const core::Graph& graph, const solvers::SolveOptions& options) {
                                         stop = true;
                                         return optimist_with_another(graph, options);
                                       }};
  solvers::SolveOptions search{.limit = {.stop = &stop}};
  const fit::Problem problem(diamond(), "55");
  const fit::Fit found = fit::fit_to_budget(problem, problem, stopped, {std::move(search), {.alignment = 1}});
  REQUIRE(found.fits());
  CHECK(found.plan->bytes == 50);
  CHECK(found.rounds == 1);
  CHECK(found.solution.stop == solvers::Stop::interrupted);
}

TEST_CASE("fit takes the first plan that fits") {
  const auto found = fitted(300, kOptimist);
  CHECK(found.fits());
  CHECK(found.rounds == 1);
  CHECK(found.plan->bytes == 300);
  CHECK(asked == std::vector<std::int64_t>{300});
}

TEST_CASE("fit lowers the solver's budget by the excess of the plan, then gives up with the lowest plan") {
  const auto found = fitted(299, kOptimist);
  CHECK_FALSE(found.fits());
  CHECK(found.plan);
  CHECK(found.plan->bytes == 300);
  CHECK(asked == std::vector<std::int64_t>{299, 298, 297, 296, 295, 294, 293, 292});
  CHECK(found.rounds == 8);
}

/// A budgeted call of the fake solver of fit_late().
struct LateCall {
  std::int64_t budget;
  core::Schedule start;
};
/// The state of the fake solver of fit_late(). Solvers are plain functions, so the state is static.
struct Late {
  inline static std::vector<LateCall> calls;  ///< the calls with a budget that do not ask for a low peak
  inline static core::Schedule low;           ///< a schedule that fits, but is dear
  /// Returns what the call with this number (from 1) pretends: 'b': the baseline is within the budget, 'n': nothing was
  /// found, 'l': the truth, i.e. `low`.
  inline static char (*answer)(std::size_t call);
};

/// Runs fit_to_budget() with a budget of 140 bytes and a fake solver that has the capability any_means, for which
/// fit_to_budget() makes additional calls. The graph's first 150 values of one byte are each read twice, and the second
/// reads begin only after all first reads. So every order without recomputation has all 150 values in memory at once.
fit::Fit fit_late(char (*answer)(std::size_t call)) {
  constexpr int kCount = 150;
  core::GraphBuilder builder("read late");
  core::Schedule again;  // has a low peak, because it computes the first values again before their second reads
  for (int i = 0; i < kCount; ++i) builder.add({.name = "n" + std::to_string(i), .size = 1, .cost = 1});
  for (int i = 0; i < kCount; ++i) {
    core::Node node{.name = "all" + std::to_string(i), .cost = 1, .inputs = {i}};
    if (i > 0) node.inputs.push_back(kCount + i - 1);
    builder.add(node);
    again.steps.insert(again.steps.end(), {i, kCount + i});
  }
  for (int i = 0; i < kCount; ++i) {
    builder.add({.name = "again" + std::to_string(i), .cost = 1, .inputs = {i, 2 * kCount - 1}});
    again.steps.insert(again.steps.end(), {i, 2 * kCount + i});
  }
  const fit::Problem problem(builder.build(), "140");
  Late::calls.clear();
  Late::low = again;
  Late::answer = answer;
  solvers::SolverInfo placing = {
      "placing", "", "", [](const core::Graph& graph, const solvers::SolveOptions& options) {
        const core::Evaluation low = core::evaluate(graph, Late::low);
        solvers::Solution solution{
            .status = solvers::Status::feasible, .schedule = Late::low, .peak = low.peak, .cost = low.cost};
        if (options.peak_alone || !options.budget) return solution;
        Late::calls.push_back({*options.budget, options.start ? *options.start : Late::low});
        const char pretended = Late::answer(Late::calls.size());
        if (pretended == 'n') solution.status = solvers::Status::not_found;
        if (pretended == 'b') {
          solution.schedule = core::baseline_schedule(graph);
          solution.peak = *options.budget;
          solution.cost = core::evaluate(graph, solution.schedule).cost;
        }
        return solution;
      }};
  placing.can.any_means = true;
  solvers::SolveOptions search{.limit = {.work = 10'000}};
  return fit::fit_to_budget(problem, problem, placing, {.search = search, .plan = {.alignment = 1}, .secure_share = 1});
}

TEST_CASE("where no lower budget is met, a schedule is searched that is cheaper than the least and about as low") {
  const fit::Fit found = fit_late([](std::size_t call) { return "bnnl"[std::min<std::size_t>(call - 1, 3)]; });
  CHECK(found.fits());
  const std::vector<LateCall>& calls = Late::calls;
  REQUIRE(calls.size() >= 4);
  CHECK(calls[0].budget == 140);
  // The plan of the baseline is as high as its peak. So the next budget is only slightly lower.
  CHECK(calls[1].budget == 139);
  CHECK(calls[1].start.steps.size() == 450);  // the baseline
  // As no schedule was found, the next budget is lower than 140 by slightly more than the 10 bytes by which the plan
  // exceeds 140.
  CHECK(calls[2].budget == 129);
  CHECK(calls[2].start.steps.size() == 450);
  CHECK(calls[3].budget == 129);
  CHECK(calls[3].start.steps == Late::low.steps);
}

TEST_CASE("budgets are lowered until a plan fits, then bisected") {
  const fit::Fit found = fit_late([](std::size_t call) { return call <= 3 ? 'b' : 'l'; });
  CHECK(found.fits());
  const std::vector<LateCall>& calls = Late::calls;
  REQUIRE(calls.size() >= 7);
  // Each of the first budgets is the one at which a plan would fit if it were higher than the peak by the same factor
  // as the last one. The solver pretends that the peak is the budget, and each plan has 150 bytes.
  CHECK(calls[1].budget == 139);
  CHECK(calls[2].budget == 139 * 140 / 150);
  CHECK(calls[3].budget == 129 * 140 / 150);  // fits
  CHECK(calls[4].budget == (120 + 129) / 2);
  CHECK(calls[5].budget == (124 + 129) / 2);
  CHECK(calls[6].budget == (126 + 129) / 2);
  for (std::size_t i = 1; i < 7; ++i) CHECK(calls[i].start.steps.size() == 450);
}

TEST_CASE("where nothing is found from above, the search goes on from what the least budget's search found") {
  static std::vector<core::Schedule> starts;  // the schedules with which all calls with a budget start
  starts.clear();
  static const core::Schedule low{{0, 1, 2, 0, 3}};
  const solvers::SolverInfo from_low = {
      "from low", "", "", [](const core::Graph& graph, const solvers::SolveOptions& options) {
        const core::Evaluation evaluation = core::evaluate(graph, low);
        const core::Schedule start = options.start ? *options.start : core::Schedule{};
        solvers::Solution solution;
        const bool under_budget = options.budget && !options.peak_alone;
        if (under_budget) starts.push_back(start);
        if (under_budget && start.steps != low.steps) return solution;
        solution.status = solvers::Status::feasible;
        solution.schedule = low;
        solution.peak = evaluation.peak;
        solution.cost = evaluation.cost;
        return solution;
      }};
  const fit::Problem problem(diamond(), "55");
  REQUIRE(core::evaluate(problem.graph, low).peak <= 55);
  solvers::SolveOptions search{.limit = {.seconds = 10}};
  const fit::Fit found = fit::fit_to_budget(
      problem, problem, from_low,
      {.search = search, .plan = {.alignment = 1}, .max_rounds = 3, .first_share = 0.05, .secure_share = 0.9});
  CHECK(found.fits());
  REQUIRE(starts.size() == 3);
  CHECK(starts[0].steps.empty());
  CHECK(starts[1].steps.empty());
  CHECK(starts[2].steps == low.steps);
}

TEST_CASE("fit stops where the solver finds nothing") {
  const auto found = fitted(280, kOptimist);
  CHECK_FALSE(found.plan);
  CHECK_FALSE(found.fits());
  CHECK(asked == std::vector<std::int64_t>{280});
}

TEST_CASE("the status decides whether a solver succeeded, as the empty graph's schedule has no steps") {
  solvers::Solution solution;
  CHECK_FALSE(fit::meets(solution, std::nullopt));
  solution.status = solvers::Status::optimal;
  CHECK(fit::meets(solution, std::nullopt));
  CHECK(fit::meets(solution, 1));
  solution.peak = 2;
  CHECK_FALSE(fit::meets(solution, 1));
}

TEST_CASE("fit gives every round at most half of the time that is left") {
  static double seconds = 0;
  const solvers::SolverInfo watcher = {"watcher", "", "", [](const core::Graph&, const solvers::SolveOptions& options) {
                                         seconds = options.limit.seconds;
                                         return solvers::Solution{};
                                       }};
  fitted(280, watcher, {.limit = {.seconds = 100}});
  CHECK(seconds > 49);
  CHECK(seconds <= 50);
}

TEST_CASE("the offsets of a plan give the plan again, and other offsets give none") {
  int with_takeover = 0, refused = 0;
  tests::for_each_seed(2000, [&](tests::Random& random) {
    const core::Graph graph = tests::random_graph(random, tests::any_graph(random, {.max_nodes = 9}));
    const core::Schedule schedule = tests::random_schedule(random, graph);
    const std::int64_t alignment = random.chance(50) ? 1 : 16;
    const core::Plan plan = solvers::plan_memory(graph, schedule, {.alignment = alignment});
    std::vector<std::int64_t> offsets = core::offsets_of(plan);
    const auto again = fit::plan_at(graph, schedule, offsets, alignment);
    REQUIRE(again);
    CHECK(again->buffers == plan.buffers);
    CHECK(again->bytes == plan.bytes);
    CHECK(again->lower_bound == plan.lower_bound);
    for (const core::Buffer& buffer : plan.buffers) with_takeover += buffer.alias_of != core::OutputRef() ? 1 : 0;

    if (offsets.empty()) return;
    std::int64_t& moved = random.pick(offsets);
    moved = random.chance(20) ? -alignment : alignment * random.below(20);
    if (const auto other = fit::plan_at(graph, schedule, offsets, alignment)) {
      CHECK(core::check_plan(graph, schedule, *other).empty());
      CHECK(core::offsets_of(*other) == offsets);
    } else {
      ++refused;
    }
    offsets.pop_back();
    CHECK(!fit::plan_at(graph, schedule, offsets, alignment));
  });
  CHECK(with_takeover > 100);
  CHECK(refused > 100);
}

TEST_CASE("a search that is given a plan of its start keeps to it") {
  int careful = 0;
  tests::for_each_seed(300, [&](tests::Random& random) {
    const core::Graph graph = tests::random_graph(random, tests::any_graph(random, {.max_nodes = 12}));
    const core::Schedule start = tests::random_schedule(random, graph);
    const core::Plan plan = solvers::plan_memory(graph, start, {.alignment = 16});
    if (plan.bytes == 0) return;
    const std::vector<std::int64_t> offsets = core::offsets_of(plan);
    // A work limit of 1 is too small for the search to find a better plan than a greedy method does.
    solvers::SolveOptions search{.start = &start, .start_offsets = &offsets, .limit = {.work = 1}};
    const fit::Problem problem(graph, std::to_string(plan.bytes));
    const fit::FitOptions options{.search = search, .plan = {.alignment = 16, .limit = {.work = 1}}};
    const fit::Fit found = fit::fit_to_budget(problem, problem.rounded_up(16), solvers::find_solver("greedy"), options);
    CHECK(found.fits());
    REQUIRE(found.plan);
    CHECK(core::check_plan(graph, found.solution.schedule, *found.plan).empty());
    careful += solvers::plan_memory(graph, start, options.plan).bytes > plan.bytes ? 1 : 0;

    const fit::LeastBudget least = fit::find_least_budget(problem, problem.rounded_up(16), solvers::find_solver("auto"),
                                                          {.search = search, .plan = options.plan});
    CHECK(least.memory() <= plan.bytes);
    fit::CurveOptions curve{.fit = options, .budgets = {plan.bytes}};
    CHECK(fit::pareto_curve(problem, solvers::find_solver("greedy"), curve).points.front().known());
  });
  CHECK(careful > 0);
}

}  // namespace cairn::fit_test
