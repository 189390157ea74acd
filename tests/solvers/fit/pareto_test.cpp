#include "cairn/report/pages.h"
#include "cairn/solvers/fit/curve.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::pareto_test {
namespace {

/// Returns points of a curve, with these bytes as budget and as peak, and with these costs. A cost of 0 stands for an
/// infeasible point.
std::vector<fit::CurvePoint> points_of(const std::vector<std::pair<std::int64_t, std::int64_t>>& bytes_and_costs) {
  std::vector<fit::CurvePoint> points;
  for (const auto& [bytes, cost] : bytes_and_costs) {
    fit::CurvePoint point;
    point.budget = point.evaluation.peak = bytes;
    point.evaluation.cost = cost;
    point.status = cost > 0 ? solvers::Status::feasible : solvers::Status::infeasible;
    points.push_back(std::move(point));
  }
  return points;
}

fit::CurveOptions quick(int points) {
  fit::CurveOptions options;
  options.fit.search.limit.work = 200'000;
  options.fit.plan.alignment = 1;
  options.points = points;
  return options;
}

}  // namespace

TEST_CASE("the knee is farthest below the chord") {
  CHECK_FALSE(fit::find_knee({}));
  CHECK_FALSE(fit::find_knee(points_of({{10, 0}})));
  CHECK(fit::find_knee(points_of({{10, 5}})) == 0U);
  CHECK(fit::find_knee(points_of({{100, 10}, {90, 11}, {50, 12}, {40, 20}, {30, 40}})) == 2U);
  CHECK(fit::find_knee(points_of({{100, 10}, {90, 11}, {50, 30}, {40, 36}, {30, 40}})) == 1U);
  // All points lie on the chord, i.e. on the line from the first to the last point. Then the knee is the first point,
  // which is the cheapest one.
  CHECK(fit::find_knee(points_of({{100, 10}, {50, 15}, {0, 20}})) == 0U);
  CHECK(fit::find_knee(points_of({{100, 10}, {50, 20}})) == 0U);
  // If the last point costs no more than the first one, the knee is the last point. Infeasible points are ignored.
  CHECK(fit::find_knee(points_of({{100, 10}, {50, 10}})) == 1U);
  CHECK(fit::find_knee(points_of({{100, 0}, {90, 10}, {50, 10}, {40, 0}})) == 2U);
}

TEST_CASE("the curve lies between what is proved and what is found") {
  tests::Random random(5);
  int recomputed = 0;
  for (int round = 0; round < 12; ++round) {
    const core::Graph graph = tests::random_graph(random, {.min_nodes = 5, .max_nodes = 8});
    const fit::Problem problem(graph);
    const fit::Curve curve = fit::pareto_curve(problem, solvers::find_solver("auto"), quick(5));
    REQUIRE(curve.knee);
    const fit::CurvePoint* above = nullptr;
    for (const fit::CurvePoint& point : curve.points) {
      INFO(graph.name() << " within " << point.budget);
      const auto cheapest = core::reference::cheapest_within(graph, point.budget);
      if (point.status == solvers::Status::infeasible) CHECK_FALSE(cheapest);
      if (!point.known()) continue;
      REQUIRE(cheapest);
      const std::int64_t least = core::evaluate(graph, *cheapest).cost;
      CHECK(point.memory() <= point.budget);
      CHECK(point.evaluation.peak <= point.memory());
      const core::Evaluation evaluation = core::evaluate(graph, point.schedule);
      CHECK(evaluation.cost == point.evaluation.cost);
      CHECK(least <= evaluation.cost);
      CHECK(point.cost_bound.value <= least);
      if (point.status == solvers::Status::optimal) CHECK(least == evaluation.cost);
      if (above != nullptr) CHECK(above->evaluation.cost <= evaluation.cost);
      above = &point;
      recomputed += evaluation.recomputed > 0 ? 1 : 0;
    }
  }
  CHECK(recomputed > 0);
}

TEST_CASE("the same seed and work limit give the same curve") {
  tests::Random random(6);
  const fit::Problem problem(tests::random_graph(random, {.min_nodes = 40, .max_nodes = 40}));
  std::string first;
  for (int run = 0; run < 3; ++run) {
    const fit::Curve curve = fit::pareto_curve(problem, solvers::find_solver("auto"), quick(4));
    const std::string csv = report::curve_csv(problem, curve);
    if (run == 0) first = csv;
    CHECK(csv == first);
  }
}

TEST_CASE("a point that the solver never reaches is served by the start") {
  core::GraphBuilder builder("diamond");
  const auto a = builder.add({.name = "a", .size = 20, .cost = 1});
  const auto b = builder.add({.name = "b", .size = 20, .cost = 2, .inputs = {a}});
  const auto c = builder.add({.name = "c", .size = 20, .cost = 3, .inputs = {b}});
  builder.add({.name = "d", .size = 10, .cost = 4, .keep = true, .inputs = {c, a}});
  const fit::Problem problem(builder.build());
  const core::Schedule start{{0, 1, 2, 0, 3}};
  fit::CurveOptions options = quick(2);
  options.budgets = {49, 55, 60};
  const solvers::SolverInfo& none = solvers::find_solver("none");
  CHECK(fit::pareto_curve(problem, none, options).points[1].status == solvers::Status::not_found);
  options.fit.search.start = &start;
  const fit::Curve curve = fit::pareto_curve(problem, none, options);
  CHECK(curve.points[0].evaluation.cost == 10);
  CHECK(curve.points[1].evaluation.cost == 11);
  CHECK(curve.points[1].memory() == 50);
  CHECK(curve.points[2].status == solvers::Status::infeasible);
  CHECK(curve.least_memory == 50);
  const std::string csv = report::curve_csv(problem, curve);
  CHECK(csv.find("\n55,50,50,11,10.0000,10,10.0000,feasible,") != std::string::npos);
  CHECK(csv.find("\n49,,,,,,,infeasible,0\n") != std::string::npos);
}

}  // namespace cairn::pareto_test
