#include "cairn/solvers/fit/curve.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cairn/core/support/text.h"
#include "cairn/python/src/answer.h"
#include "cairn/python/src/bindings.h"
#include "cairn/python/src/call.h"
#include "cairn/report/pages.h"
#include "cairn/report/support/json.h"
#include "cairn/report/support/words.h"
#include "cairn/solvers/fit/least_budget.h"

namespace cairn::python {
namespace {

/// The Python class Curve: cost over memory.
struct Curve {
  fit::Problem problem;
  std::string solver;
  std::int64_t alignment = 1;
  fit::Curve curve;
  bool interrupted = false;
};

/// The Python class CurvePoint: one budget of a Curve, with its schedule.
struct CurvePoint {
  fit::CurvePoint of;
  std::int64_t baseline_cost = 0;
  bool knee = false, peak_only = false;
};

CurvePoint point_of(const Curve& curve, std::size_t i) {
  return {curve.curve.points[i], curve.problem.baseline.cost, curve.curve.knee == i, curve.curve.peak_only};
}

Curve pareto(const core::Graph& graph, int points, const std::vector<std::string>& budgets, bool peak_only,
             std::int64_t given_alignment, const SearchArguments& search, nb::handle start, nb::object progress) {
  if (points < 2 || points > 1000) throw core::InputError("points= must be 2 to 1000");
  const solvers::SolverInfo& solver = solvers::find_solver(search.solver);
  fit::CurveOptions options;
  options.fit.search = search.options();
  const auto first = start_from(options.fit.search, solver, graph, start);
  const std::int64_t alignment = given_alignment > 0 ? given_alignment : fit::default_alignment(graph);
  options.fit.plan.alignment = peak_only ? 1 : alignment;
  options.points = points;
  options.peak_only = peak_only;
  Curve curve{
      fit::Problem(graph, {}, "graph", options.fit.plan.alignment), search.solver, options.fit.plan.alignment, {}};
  for (const std::string& text : budgets)
    options.budgets.push_back(core::parse_budget(text, curve.problem.hundred_percent));
  Call call(std::move(progress));
  options.fit.search.limit.stop = call.stop();
  if (call.tells()) {
    options.progress = [&](const fit::CurveProgress& p) {
      call.tell(static_cast<std::int64_t>(p.known), static_cast<std::int64_t>(p.points), p.seconds);
    };
  }
  call.run([&] { curve.curve = fit::pareto_curve(curve.problem, solver, options); });
  call.raise_pending();
  curve.interrupted = call.stopped();
  const auto& found = curve.curve.points;
  const bool any = std::any_of(found.begin(), found.end(), [](const auto& point) { return point.known(); });
  if (call.interrupted())
    raise_interrupted("interrupted; what is known of the curve is in .best",
                      any ? nb::cast(std::move(curve)) : nb::none());
  if (!any && !call.stopped()) {
    nb::dict attributes;
    attributes["lower_bound"] = curve.curve.peak_bound.value;
    attributes["least_budget"] = curve.curve.least_memory;
    attributes["scope"] = solvers::describe(curve.curve.peak_bound.scope);
    const bool proved = found.front().status == solvers::Status::infeasible;
    raise(proved ? "InfeasibleError" : "NotFoundError", report::no_points_text(curve.problem, curve.curve), attributes);
  }
  return curve;
}

LeastBudget least_budget(const core::Graph& graph, bool peak_only, std::int64_t given_alignment,
                         const SearchArguments& search, nb::handle start, nb::object progress) {
  fit::LeastBudgetOptions options{.search = search.options(), .peak_only = peak_only};
  options.search.limit.work = fit::least_budget_work(options.search.limit);
  options.search.limit.seconds *= fit::kLeastBudgetShare;
  options.plan.alignment = given_alignment > 0 ? given_alignment : fit::default_alignment(graph);
  const auto first = start_from(options.search, solvers::find_solver(search.solver), graph, start);
  Call call(std::move(progress));
  options.search.limit.stop = call.stop();
  options.search.progress = call.progress();
  const fit::Problem problem(graph, {}, "graph", options.plan.alignment);
  LeastBudget least{{}, problem.baseline.cost};
  call.run([&] {
    const fit::Problem rounded = problem.rounded_up(options.plan.alignment);
    least.of = fit::find_least_budget(problem, rounded, solvers::find_solver(search.solver), options);
  });
  call.raise_pending();
  if (call.interrupted())
    raise_interrupted("interrupted; the least budget known so far is in .best", nb::cast(least, nb::rv_policy::copy));
  return least;
}

void bind_point(nb::module_& module) {
  nb::class_<CurvePoint>(module, "CurvePoint", "A budget, and the cheapest schedule known within it.")
      .def_prop_ro("budget", [](const CurvePoint& p) { return p.of.budget; })
      .def_prop_ro("known", [](const CurvePoint& p) { return p.of.known(); })
      .def_prop_ro("status", [](const CurvePoint& p) { return std::string(solvers::to_string(p.of.status)); })
      .def_prop_ro(
          "schedule", [](const CurvePoint& p) -> const core::Schedule& { return p.of.schedule; },
          nb::rv_policy::reference_internal, "The schedule; it has no steps if none is known.")
      .def_prop_ro(
          "plan", [](const CurvePoint& p) { return p.of.known() && p.of.plan ? &*p.of.plan : nullptr; },
          nb::rv_policy::reference_internal, nb::sig("def plan(self) -> Plan | None"))
      .def_prop_ro(
          "memory", [](const CurvePoint& p) { return p.of.memory(); },
          "The bytes that the budget limits: the height of the plan or, with peak_only, the peak.")
      .def_prop_ro("peak", [](const CurvePoint& p) { return p.of.evaluation.peak; })
      .def_prop_ro("cost", [](const CurvePoint& p) { return p.of.evaluation.cost; })
      .def_prop_ro(
          "cost_increase",
          [](const CurvePoint& p) { return report::increase_pct(p.of.evaluation.cost, p.baseline_cost) / 100; },
          "The additional cost as a fraction of the baseline's cost.")
      .def_prop_ro(
          "lower_bound_cost", [](const CurvePoint& p) { return p.of.cost_bound.value; },
          "No schedule within the budget costs less than this.")
      .def_prop_ro(
          "gap",
          [](const CurvePoint& p) {
            return p.of.known() ? std::optional(fit::gap_pct(p.of.evaluation.cost, p.of.cost_bound) / 100)
                                : std::nullopt;
          },
          "The largest fraction by which the cost may exceed the least possible cost.")
      .def_prop_ro("knee", [](const CurvePoint& p) { return p.knee; })
      .def("__repr__", [](const CurvePoint& p) {
        return p.of.known()
                   ? fmt::format("<cairn.CurvePoint {} bytes at {:+.2f}%{}>", p.of.memory(),
                                 report::increase_pct(p.of.evaluation.cost, p.baseline_cost),
                                 p.knee ? ", the knee" : "")
                   : fmt::format("<cairn.CurvePoint of budget {}: {}>", p.of.budget, solvers::to_string(p.of.status));
      });
}

void bind_points(nb::module_& module) {
  nb::class_<Curve>(module, "Curve", "What each budget costs.")
      .def_prop_ro(
          "points",
          [](const Curve& c) {
            std::vector<CurvePoint> points;
            for (std::size_t i = 0; i < c.curve.points.size(); ++i) points.push_back(point_of(c, i));
            return points;
          },
          "The points in descending order of their budgets. Costs never fall along this order.")
      .def_prop_ro(
          "knee",
          [](const Curve& c) { return c.curve.knee ? std::optional(point_of(c, *c.curve.knee)) : std::nullopt; },
          "The point farthest below the straight line from the first point to the last; None if there is none.")
      .def_prop_ro(
          "met",
          [](const Curve& c) {
            nb::list met;
            for (const solvers::Tradeoff& t : c.curve.met) met.append(nb::make_tuple(t.peak, t.cost));
            return met;
          },
          nb::sig("def met(self) -> list[tuple[int, int]]"), "(peak, cost) of other schedules on the way.")
      .def_prop_ro("baseline", [](const Curve& c) { return evaluation_of(c.problem.graph, c.problem.baseline); })
      .def_prop_ro("lower_bound", [](const Curve& c) { return c.curve.peak_bound.value; })
      .def_prop_ro("least_memory", [](const Curve& c) { return c.curve.least_memory; })
      .def_prop_ro("stop", [](const Curve& c) { return std::string(solvers::to_string(c.curve.stop)); })
      .def_prop_ro("seconds", [](const Curve& c) { return c.curve.seconds; })
      .def_prop_ro("interrupted", [](const Curve& c) { return c.interrupted; })
      .def(
          "to_json",
          [](const Curve& c) {
            return report::json_text(report::curve_json(c.problem, c.solver, c.alignment, c.curve, c.interrupted));
          },
          "The object that `cairn pareto --json` prints, as text.")
      .def("to_csv", [](const Curve& c) { return report::curve_csv(c.problem, c.curve); })
      .def(
          "to_svg", [](const Curve& c) { return report::curve_svg(c.problem, c.curve); }, "A picture of the curve.")
      .def("report", file_of<Curve>([](const Curve& c) { return report::curve_page(c.problem, c.solver, c.curve); }),
           "path"_a, kReport, "Writes the HTML page of `cairn pareto --report`.")
      .def("_repr_html_", [](const Curve& c) { return report::curve_svg(c.problem, c.curve); })
      .def("__str__", [](const Curve& c) { return report::curve_table(c.problem, c.alignment, c.curve); })
      .def("__repr__",
           [](const Curve& c) {
             return fmt::format("<cairn.Curve of '{}', {} points>", c.problem.name, c.curve.points.size());
           })
      .def("__len__", [](const Curve& c) { return c.curve.points.size(); });
}

}  // namespace

void bind_curve(nb::module_& module) {
  bind_point(module);
  bind_points(module);
  module.def("pareto", &pareto, "graph"_a, "points"_a, "budgets"_a, "peak_only"_a, "alignment"_a, "search"_a,
             "start"_a.none(), "progress"_a.none());
  module.def("least_budget", &least_budget, "graph"_a, "peak_only"_a, "alignment"_a, "search"_a, "start"_a.none(),
             "progress"_a.none());
}

}  // namespace cairn::python
