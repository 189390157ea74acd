#include "cairn/core/schedule.h"

#include <fmt/format.h>
#include <nanobind/operators.h>

#include <limits>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/profile.h"
#include "cairn/python/src/bindings.h"

namespace cairn::python {
namespace {

using ScheduleHandle = nb::pointer_and_handle<core::Schedule>;

/// A row of lifetimes() in Python.
struct LifetimeRow {
  std::int32_t node, output;
  std::int64_t first, last;
};

nb::object lifetimes(const core::Graph& graph, nb::handle schedule) {
  std::vector<LifetimeRow> rows;
  for (const core::Lifetime& life : core::lifetimes(graph, schedule_of(schedule)))
    rows.push_back({life.node, life.output, life.first, life.last});
  nb::list dtype;
  for (const auto& [name, type] : {std::pair{"node", "i4"}, {"output", "i4"}, {"first", "i8"}, {"last", "i8"}})
    dtype.append(nb::make_tuple(name, type));
  return records(rows.data(), rows.size() * sizeof(LifetimeRow), dtype);
}

nb::object type(const char* name) { return nb::module_::import_("cairn._types").attr(name); }

nb::object transfers_of(const core::Schedule& schedule) {
  const nb::object evict = type("Evict"), fetch = type("Fetch");
  nb::list evicts, fetches;
  for (const core::Evict& e : schedule.transfers.evicts) evicts.append(evict(e.value, e.made, e.start, e.finish));
  for (const core::Fetch& f : schedule.transfers.fetches) fetches.append(fetch(f.evict, f.start, f.finish));
  return type("Transfers")(evicts, fetches);
}

/// Reads transfers from a pair of lists (evicts, fetches). Each row of a list is a tuple of whole numbers. Throws
/// InputError for anything else.
core::Transfers read_transfers(nb::handle value) {
  constexpr std::size_t kEvict = 4, kFetch = 3;
  const auto rows = [](nb::handle list, std::size_t width) {
    std::vector<std::vector<std::int64_t>> found;
    for (const nb::handle row : list) {
      found.push_back(integers(row, "a transfer"));
      if (found.back().size() != width)
        throw core::InputError(fmt::format("a transfer is {} numbers, not {}", width, nb::repr(row).c_str()));
    }
    return found;
  };
  const auto narrow = [](std::int64_t number) {
    if (number < 0 || number > std::numeric_limits<std::int32_t>::max())
      throw core::InputError(fmt::format("a transfer names {}, which is no value and no evict", number));
    return static_cast<std::int32_t>(number);
  };
  core::Transfers transfers;
  if (value.is_none()) return transfers;
  for (const auto& row : rows(nb::object(value[0]), kEvict))
    transfers.evicts.push_back({narrow(row[0]), row[1], row[2], row[3]});
  for (const auto& row : rows(nb::object(value[1]), kFetch))
    transfers.fetches.push_back({narrow(row[0]), row[1], row[2]});
  return transfers;
}

}  // namespace

Evaluation evaluation_of(const core::Graph& graph, const core::Evaluation& evaluation) {
  return {evaluation, evaluation.valid() ? std::string() : core::describe(graph, evaluation.defect)};
}

namespace {

void bind_classes(nb::module_& module) {
  nb::class_<core::Schedule>(
      module, "Schedule",
      "A sequence of nodes in the order in which they run. A node that occurs more than once is\n"
      "recomputed. Values may leave the device and come back (`transfers`).")
      .def(
          "__init__",
          [](core::Schedule* self, nb::handle steps, nb::handle transfers) {
            core::Schedule schedule = schedule_of(steps);
            if (!transfers.is_none()) schedule.transfers = read_transfers(transfers);
            new (self) core::Schedule(std::move(schedule));
          },
          "steps"_a, "transfers"_a = nb::none(),
          nb::sig("def __init__(self, steps: Schedule | Sequence[int] | NDArray, transfers: cairn._types.Transfers | "
                  "None = None) "
                  "-> None"))
      .def_prop_ro("transfers", &transfers_of, nb::sig("def transfers(self) -> cairn._types.Transfers"),
                   "The copies between device and host. docs/graph_format.md says what their numbers mean.")
      .def_prop_ro(
          "steps", [](ScheduleHandle s) { return view(std::span<const core::NodeId>(s.p->steps), s.h); },
          "Node ids as a numpy array, a view.")
      .def("__len__", &core::Schedule::length)
      .def(
          "__iter__",
          [](ScheduleHandle s) {
            return nb::iter(nb::cast(view(std::span<const core::NodeId>(s.p->steps), s.h)).attr("tolist")());
          },
          nb::sig("def __iter__(self) -> Iterator[int]"))
      .def(
          "__eq__", [](const core::Schedule& a, const core::Schedule& b) { return a == b; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object) -> bool"))
      .def("__repr__", [](const core::Schedule& s) { return fmt::format("<cairn.Schedule of {} steps>", s.length()); })
      .def("__getstate__",
           [](const core::Schedule& s) {
             return nb::make_tuple(nb::bytes(s.steps.data(), s.steps.size() * sizeof(core::NodeId)), transfers_of(s));
           })
      .def("__setstate__", [](core::Schedule& s, const nb::tuple& state) {
        const auto steps = nb::cast<nb::bytes>(state[0]);
        const auto* first = static_cast<const core::NodeId*>(steps.data());
        new (&s) core::Schedule{{first, first + steps.size() / sizeof(core::NodeId)}, read_transfers(state[1])};
      });

  nb::class_<Evaluation>(module, "Evaluation",
                         "Peak in bytes and cost in the graph's unit. For an invalid schedule, only `defect` is set.")
      .def_prop_ro("peak", [](const Evaluation& e) { return e.of.peak; })
      .def_prop_ro(
          "peak_step", [](const Evaluation& e) { return e.of.peak_step; }, "The first step that reaches the peak.")
      .def_prop_ro(
          "cost", [](const Evaluation& e) { return e.of.cost; },
          "The costs of all steps. With transfers, and if the graph has a link: the time with all waits (makespan).")
      .def_prop_ro(
          "waiting", [](const Evaluation& e) { return e.of.waiting; },
          "The part of `cost` in which steps wait for copies.")
      .def_prop_ro(
          "host_peak", [](const Evaluation& e) { return e.of.host_peak; },
          "The largest number of bytes that copies hold on the host.")
      .def_prop_ro(
          "recomputed", [](const Evaluation& e) { return e.of.recomputed; }, "Number of steps that run a node again.")
      .def_prop_ro("valid", [](const Evaluation& e) { return e.of.valid(); })
      .def_prop_ro(
          "defect", [](const Evaluation& e) { return e.defect; },
          "What is wrong with the schedule, in one line; empty if the schedule is valid.")
      .def("__bool__", [](const Evaluation& e) { return e.of.valid(); })
      .def("__repr__", [](const Evaluation& e) {
        return e.of.valid() ? fmt::format("<cairn.Evaluation peak={} cost={} recomputed={}>", e.of.peak, e.of.cost,
                                          e.of.recomputed)
                            : fmt::format("<cairn.Evaluation invalid: {}>", e.defect);
      });
}

}  // namespace

void bind_schedule(nb::module_& module) {
  bind_classes(module);
  module.def(
      "evaluate",
      [](const core::Graph& graph, nb::handle schedule) {
        return evaluation_of(graph, core::evaluate(graph, schedule_of(schedule)));
      },
      "graph"_a, "schedule"_a,
      nb::sig("def evaluate(graph: Graph, schedule: Schedule | Sequence[int] | NDArray) -> Evaluation"),
      "Computes the peak and the cost of a schedule, or says what is wrong with it. O(steps + inputs of these steps).");
  module.def(
      "profile",
      [](const core::Graph& graph, nb::handle schedule) {
        const std::vector<std::int64_t> all = core::Evaluator(graph).profile(schedule_of(schedule).steps);
        std::vector<std::int64_t> during;
        for (std::size_t i = 1; i < all.size(); i += 2) during.push_back(all[i]);
        return array_of(std::move(during));
      },
      "graph"_a, "schedule"_a,
      nb::sig("def profile(graph: Graph, schedule: Schedule | Sequence[int] | NDArray) -> NDArray"),
      "Returns the bytes in memory during each step. Raises InputError for an invalid schedule.");
  module.def(
      "lifetimes", &lifetimes, "graph"_a, "schedule"_a,
      nb::sig("def lifetimes(graph: Graph, schedule: Schedule | Sequence[int] | NDArray) -> NDArray"),
      "Returns one row (node, output, first, last) for each output of each step. The output is in memory from step\n"
      "`first` to step `last`, both included. If it is kept, `last` is the number of steps.");
  module.def("baseline_schedule", &core::baseline_schedule, "graph"_a,
             "Returns the schedule that runs every node once, in the graph's input order.");
  module.def(
      "read_schedule",
      [](const std::string& path, const core::Graph& graph) { return core::load_schedule(path, graph).schedule; },
      "path"_a, "graph"_a, "Checks the graph's fingerprint and that the schedule is valid.");
  module.def(
      "parse_schedule",
      [](std::string_view text, const core::Graph& graph, const std::string& origin) {
        return core::parse_schedule(text, origin, graph).schedule;
      },
      "text"_a, "graph"_a, "origin"_a = "text");
  module.def(
      "schedule_to_json",
      [](const core::Graph& graph, nb::handle schedule, std::string_view solver) {
        const nb::object plan = nb::getattr(schedule, "plan", nb::none());
        return core::schedule_to_json(
            graph, given_schedule(schedule).schedule, solver,
            nb::isinstance<core::Plan>(plan) ? std::optional(nb::cast<const core::Plan&>(plan)) : std::nullopt);
      },
      "graph"_a, "schedule"_a, "solver"_a = "");
}

}  // namespace cairn::python
