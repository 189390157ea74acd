#include "cairn/pipeline/info.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/formats/files.h"
#include "cairn/core/text.h"
#include "cairn/pipeline/device_memory.h"
#include "cairn/pipeline/internal/explanation.h"
#include "cairn/pipeline/internal/json.h"
#include "cairn/pipeline/pages.h"
#include "cairn/pipeline/words.h"
#include "cairn/python/src/answer.h"
#include "cairn/python/src/bindings.h"
#include "cairn/python/src/call.h"

namespace cairn::python {
namespace {

/// What Python calls an Info.
struct Info {
  pipeline::Task task;
  pipeline::Info of;

  const pipeline::LeastBudget* within() const { return of.verdict && of.verdict->by ? &*of.verdict->by : nullptr; }
};

Info info(const core::Graph& graph, const pipeline::Request& request, const SearchArguments& search,
          nb::object progress) {
  if (request.budget == "min") throw core::InputError("info says the least budget without budget='min'; drop it");
  solvers::SolveOptions options = search.options();
  Info found{pipeline::make_task(graph, "graph", request), {}};
  Call call(std::move(progress));
  options.limit.stop = call.stop();
  options.progress = call.progress();
  call.run([&] {
    found.of = pipeline::find_info(found.task, solvers::find_solver(search.solver), options,
                                   pipeline::least_budget_work(options.limit));
  });
  call.raise_pending();
  if (call.interrupted()) {
    nb::dict attributes;
    attributes["best"] = nb::cast(std::move(found));
    raise("Interrupted", "interrupted; what is known until then is in .best", attributes);
  }
  return found;
}

std::string table(const Info& info) {
  const pipeline::Problem& problem = info.task.problem;
  pipeline::Rows rows = {
      {"graph", problem.name},
      {"nodes, edges", fmt::format("{}, {}", problem.graph.node_count(), problem.graph.edge_count())},
      {"resident", pipeline::bytes_text(problem.graph.resident_bytes()) + ", beside the budget"},
      {"baseline peak", pipeline::bytes_text(problem.baseline.peak)},
      {"baseline cost", pipeline::baseline_cost_text(problem)},
      {"lower bound", pipeline::bytes_text(info.task.rounded.plan_bound())},
      {"because", pipeline::lower_bound_reason(problem)},
      {"least budget known", pipeline::least_text(info.task, info.of.least)}};
  if (const auto& verdict = info.of.verdict) {
    rows.push_back({"budget", pipeline::bytes_text(*problem.budget) + ": " + verdict->text});
    if (verdict->fits != false) rows.push_back({"cost in it", pipeline::cost_text(info.task, *verdict)});
  }
  return in_python(pipeline::format_table(rows));
}

}  // namespace

void bind_info(nb::module_& module) {
  nb::class_<Info>(module, "Info", "What a graph needs: will it fit, by which means, and what is the least budget?")
      .def_prop_ro("baseline",
                   [](const Info& i) {
                     return Evaluation{i.task.problem.baseline, ""};
                   })
      .def_prop_ro(
          "lower_bound", [](const Info& i) { return i.task.rounded.plan_bound(); },
          "Bytes that the plan of no schedule is below.")
      .def_prop_ro("reason", [](const Info& i) { return pipeline::lower_bound_reason(i.task.problem); })
      .def_prop_ro(
          "least_budget", [](const Info& i) -> const pipeline::LeastBudget& { return i.of.least; },
          nb::rv_policy::reference_internal, "The least budget known to be met.")
      .def_prop_ro("budget", [](const Info& i) { return i.task.problem.budget; })
      .def_prop_ro(
          "fits", [](const Info& i) { return i.of.verdict ? i.of.verdict->fits : std::nullopt; },
          "Whether the budget can be met; None where that is not known, or none was given.")
      .def_prop_ro(
          "proved", [](const Info& i) { return i.of.verdict && i.of.verdict->fits == false; },
          "That nothing fits is proved, of the schedules that were asked for at least.")
      .def_prop_ro(
          "verdict", [](const Info& i) { return in_python(i.of.verdict ? i.of.verdict->text : std::string()); },
          "Whether and how it fits, in words.")
      .def_prop_ro(
          "means",
          [](const Info& i) {
            return i.of.verdict && i.of.verdict->means
                       ? std::optional(std::string(pipeline::to_string(*i.of.verdict->means)))
                       : std::nullopt;
          },
          "'baseline', 'order' or 'recomputation': what fitting takes.")
      .def_prop_ro("within", &Info::within, nb::rv_policy::reference_internal,
                   nb::sig("def within(self) -> LeastBudget | None"), "The cheapest known within the budget.")
      .def_prop_ro(
          "lower_bound_cost",
          [](const Info& i) {
            return i.of.verdict && i.of.verdict->fits != false ? std::optional(i.of.verdict->cost_bound.value)
                                                               : std::nullopt;
          },
          "No schedule within the budget costs less.")
      .def_prop_ro(
          "resident",
          [](const Info& i) {
            nb::dict resident;
            for (const auto& [name, bytes] : pipeline::resident_bytes(i.task.problem.graph).parts())
              resident[name.c_str()] = bytes;
            return resident;
          },
          nb::sig("def resident(self) -> dict[str, int]"), "Bytes beside the budget, by kind.")
      .def(
          "to_json",
          [](const Info& i) {
            pipeline::Json json = pipeline::info_json(i.task, i.of);
            const core::Graph& graph = i.task.problem.graph;
            pipeline::Explanation(graph, i.within() ? &i.within()->schedule : nullptr).add_to(json);
            return json.dump(2, ' ', false, pipeline::Json::error_handler_t::replace);
          },
          "The object that `cairn info --json` prints, as text.")
      .def(
          "report",
          [](const Info& i, nb::handle path) {
            std::vector<pipeline::ReportFact> facts;
            if (i.of.verdict)
              facts.push_back({"Budget", core::format_bytes(*i.task.problem.budget), i.of.verdict->text});
            core::write_file(path_of(path),
                             pipeline::info_page(i.task.problem, i.of.least,
                                                 i.of.verdict ? i.of.verdict->by : std::nullopt, std::move(facts)));
          },
          "path"_a, nb::sig("def report(self, path: str | os.PathLike[str]) -> None"),
          "Writes the HTML page of `cairn info --report`.")
      .def("__str__", &table)
      .def("__repr__", [](const Info& i) {
        return fmt::format("<cairn.Info of '{}': least budget known {} bytes{}>", i.task.problem.name, i.of.least.bytes,
                           i.of.verdict ? ", " + in_python(i.of.verdict->text) : "");
      });
  module.def("info", &info, "graph"_a, "request"_a, "search"_a, "progress"_a.none());
}

}  // namespace cairn::python
