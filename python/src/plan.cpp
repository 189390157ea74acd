#include "cairn/core/plan.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <string>

#include "cairn/core/formats/files.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/text.h"
#include "cairn/python/src/bindings.h"
#include "cairn/python/src/call.h"
#include "cairn/report/support/json.h"
#include "cairn/solvers/fit/solve.h"

namespace cairn::python {
namespace {

/// A row of Plan.buffers in Python.
struct BufferRow {
  std::int64_t offset, size, first, last;
  std::int32_t node, output, alias_node, alias_output;
  std::int64_t scratch;
};

nb::object buffers_of(const core::Plan& plan) {
  std::vector<BufferRow> rows;
  for (const core::Buffer& b : plan.buffers)
    rows.push_back(
        {b.offset, b.size, b.first, b.last, b.node, b.output, b.alias_of.node, b.alias_of.output, b.scratch});
  nb::list dtype;
  for (const auto& [name, type] : {std::pair{"offset", "i8"},
                                   {"size", "i8"},
                                   {"first", "i8"},
                                   {"last", "i8"},
                                   {"node", "i4"},
                                   {"output", "i4"},
                                   {"alias_node", "i4"},
                                   {"alias_output", "i4"},
                                   {"scratch", "i8"}})
    dtype.append(nb::make_tuple(name, type));
  return records(rows.data(), rows.size() * sizeof(BufferRow), dtype);
}

/// The Python class FoundPlan: a Plan, with the result of the search for it.
struct FoundPlan : core::Plan {
  FoundPlan(const core::Graph& graph, const core::Schedule& schedule, const fit::FoundPlan& found)
      : core::Plan(found.solution.plan),
        status(found.status()),
        proved_bytes(found.solution.lower_bound),
        seconds(found.seconds),
        json(report::json_text(report::plan_json(graph, schedule, found))) {}

  solvers::Status status;
  std::int64_t proved_bytes;
  double seconds;
  std::string json;
};

FoundPlan plan(const core::Graph& graph, nb::handle schedule, std::int64_t alignment, std::optional<double> seconds,
               std::optional<std::int64_t> work, std::optional<std::int64_t> capacity) {
  const core::Schedule steps = schedule_of(schedule);
  Call call;
  solvers::PlanOptions options{.alignment = alignment > 0 ? alignment : fit::default_alignment(graph),
                               .capacity = capacity};
  if (seconds) options.limit = {.seconds = *seconds};
  if (work) options.limit.work = *work;
  options.limit.stop = call.stop();
  fit::FoundPlan found{.capacity = capacity};
  const core::Stopwatch watch(options.limit);
  call.run([&] { found.solution = fit::checked_plan(graph, steps, options); });
  found.seconds = watch.seconds();
  call.raise_pending();
  if (call.interrupted()) raise("Interrupted", "interrupted while planning");
  return {graph, steps, found};
}

}  // namespace

void bind_plan(nb::module_& module) {
  nb::class_<core::Plan>(module, "Plan", "An address for every tensor of one schedule.")
      .def_ro("bytes", &core::Plan::bytes, "Size of the arena.")
      .def_ro("lower_bound", &core::Plan::lower_bound,
              "The largest number of bytes that are live at the same step. No plan of the schedule is lower.")
      .def_ro("alignment", &core::Plan::alignment, "Sizes and offsets are multiples of this number of bytes.")
      .def_prop_ro(
          "buffers", &buffers_of, nb::sig("def buffers(self) -> NDArray"),
          "A numpy array of rows (offset, size, first, last, node, output, alias_node, alias_output, scratch):\n"
          "`last` is included in the lifetime, and is the number of steps if the value is kept. `alias_node` is -1, or "
          "the\n"
          "node whose output the buffer overwrites in place.")
      .def("__len__", [](const core::Plan& p) { return p.buffers.size(); })
      .def("__repr__", [](const core::Plan& p) {
        return fmt::format("<cairn.Plan of {} buffers in {}, alignment {}>", p.buffers.size(),
                           core::format_bytes(p.bytes), p.alignment);
      });
  nb::class_<FoundPlan, core::Plan>(module, "FoundPlan", "A plan that was searched, and how good it is.")
      .def_prop_ro(
          "status", [](const FoundPlan& p) { return std::string(solvers::to_string(p.status)); },
          "'optimal' (proved least), 'feasible' or, with a capacity, 'not_found' or 'infeasible'.")
      .def_ro("proved_bytes", &FoundPlan::proved_bytes, "No plan of the schedule is lower than this number of bytes.")
      .def_ro("seconds", &FoundPlan::seconds, "Duration of the search.")
      .def(
          "to_json", [](const FoundPlan& p) { return p.json; }, "The object that `cairn plan --json` prints, as text.");
  module.def(
      "plan", &plan, "graph"_a, "schedule"_a, "alignment"_a, "seconds"_a, "work"_a, "capacity"_a,
      nb::sig(
          "def plan(graph: Graph, schedule: Schedule | Sequence[int] | NDArray, alignment: int, seconds: float | None, "
          "work: int | None, capacity: int | None) -> FoundPlan"));
  module.def(
      "check_plan",
      [](const core::Graph& graph, nb::handle schedule, const core::Plan& plan) {
        return core::check_plan(graph, schedule_of(schedule), plan);
      },
      "graph"_a, "schedule"_a, "plan"_a,
      nb::sig("def check_plan(graph: Graph, schedule: Schedule | Sequence[int] | NDArray, plan: Plan) -> str"),
      "Returns what is wrong with a plan; an empty text if nothing is.");
  module.def(
      "read_plan", [](const std::string& path, const core::Graph& graph) { return core::load_plan(path, graph); },
      "path"_a, "graph"_a);
  module.def(
      "parse_plan",
      [](std::string_view text, const core::Graph& graph, const std::string& origin) {
        return core::parse_plan(text, origin, graph);
      },
      "text"_a, "graph"_a, "origin"_a = "text");
  module.def("plan_to_json", &core::plan_to_json, "graph"_a, "plan"_a);
}

}  // namespace cairn::python
