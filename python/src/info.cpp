#include "cairn/pipeline/info.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/text.h"
#include "cairn/pipeline/device_memory.h"
#include "cairn/python/src/answer.h"
#include "cairn/python/src/bindings.h"
#include "cairn/python/src/call.h"
#include "cairn/report/pages.h"
#include "cairn/report/support/explanation.h"
#include "cairn/report/support/json.h"
#include "cairn/report/support/words.h"

namespace cairn::python {
namespace {

/// The Python class Info: whether a graph fits into a budget, by which means, and what its least budget is.
struct Info {
  fit::Task task;
  pipeline::Info of;
  std::optional<pipeline::DeviceAdvice> device;
  bool interrupted = false;

  const fit::LeastBudget* within() const { return of.verdict && of.verdict->by ? &*of.verdict->by : nullptr; }
  const pipeline::DeviceAdvice* advice() const { return device ? &*device : nullptr; }
  LeastBudget met(const fit::LeastBudget& least) const { return {least, task.problem.baseline.cost}; }
};

/// Finds the largest batch size whose graph fits a device or a budget in bytes. The request must have a device or such
/// a budget. `build` is a Python function that returns the graph for a batch size.
fit::LargestBatch find_largest_batch(nb::handle build, const pipeline::Request& request, const SearchArguments& search,
                                     const core::Limit& limit, Call& call) {
  fit::LargestBatchOptions options;
  options.budget = [&](const core::Graph& graph) {
    return request.device ? pipeline::share_device(graph, *request.device).arena()
                          : core::parse_budget(request.budget, 0);
  };
  options.alignment = request.alignment;
  options.search = search.options();
  options.search.limit = limit;
  const std::optional<core::HostMemory> host = pipeline::host_memory_of(request);
  const auto graph_of = [&](std::int64_t batch) {
    core::Graph graph;
    call.ask_python([&] {
      const nb::object built = build(batch);
      if (!nb::isinstance<core::Graph>(built))
        throw core::InputError(
            fmt::format("the graph of batch {} must be a cairn.Graph, not {}", batch, nb::repr(built).c_str()));
      graph = *nb::inst_ptr<core::Graph>(built);
    });
    return host ? graph.with_host_memory(host) : graph;
  };
  fit::LargestBatch found;
  call.run([&] { found = fit::find_largest_batch(graph_of, solvers::find_solver(search.solver), options); });
  return found;
}

fit::LargestBatch largest_batch(nb::handle build, const pipeline::Request& request, const SearchArguments& search) {
  Call call;
  core::Limit limit = search.options().limit;
  limit.stop = call.stop();
  fit::LargestBatch found = find_largest_batch(build, request, search, limit, call);
  call.raise_pending();
  if (call.interrupted())
    raise_interrupted("interrupted; the largest batch known to fit is in .best", nb::cast(std::move(found)));
  if (found.batch == 0)
    raise(found.refusal_proved ? "InfeasibleError" : "NotFoundError", "no batch fits: " + report::batch_text(found));
  return found;
}

/// Raises InfeasibleError, because the resident tensors leave no memory of the device for the arena (the memory of all
/// other tensors). No schedule can help, but a smaller batch may. If `build` is given, the message names the largest
/// batch that fits.
[[noreturn]] void refuse_device(const core::Graph& graph, const pipeline::DeviceShare& share, nb::handle build,
                                const pipeline::Request& request, const SearchArguments& search,
                                const core::Limit& limit, Call& call) {
  std::string batch;
  if (!build.is_none()) {
    batch = "\nlargest batch: " + report::batch_text(find_largest_batch(build, request, search, limit, call));
    call.raise_pending();
    if (call.interrupted()) raise("Interrupted", "interrupted while the largest batch was sought");
  }
  const std::string& name = graph.name();
  raise("InfeasibleError", report::no_room_text(name.empty() ? "graph" : name, share) + ", without an arena" + batch);
}

Info info(const core::Graph& graph, const pipeline::Request& request, const SearchArguments& search, nb::handle build,
          nb::object progress) {
  if (request.budget == "min") throw core::InputError("info says the least budget without budget='min'; drop it");
  const solvers::SolverInfo& solver = solvers::find_solver(search.solver);
  solvers::SolveOptions options = search.options();
  Call call(std::move(progress));
  options.limit.stop = call.stop();
  options.progress = call.progress();
  std::optional<pipeline::DeviceAdvice> device;
  if (request.device) device.emplace(pipeline::DeviceAdvice{pipeline::share_device(graph, *request.device), {}, {}});
  if (device && device->share.arena() <= 0)
    refuse_device(graph, device->share, build, request, search, options.limit, call);
  Info found{pipeline::make_task(graph, "graph", request), {}, std::move(device)};
  const core::Stopwatch watch(options.limit);
  call.run([&] { found.of = pipeline::find_info(found.task, solver, options, fit::least_budget_work(options.limit)); });
  if (found.device && found.of.verdict->fits != true) {
    found.device->least_memory = found.device->share.beside_arena() + found.of.least.memory();
    if (!build.is_none() && !call.stopped())
      found.device->largest_batch = find_largest_batch(build, request, search, watch.rest(), call);
  }
  call.raise_pending();
  found.interrupted = call.stopped();
  if (call.interrupted())
    raise_interrupted("interrupted; what is known until then is in .best", nb::cast(std::move(found)));
  return found;
}

void bind_facts(nb::class_<Info>& info) {
  info.def_prop_ro("baseline",
                   [](const Info& i) { return evaluation_of(i.task.problem.graph, i.task.problem.baseline); })
      .def_prop_ro(
          "lower_bound", [](const Info& i) { return i.task.rounded.plan_bound(); },
          "No schedule has a plan below this number of bytes.")
      .def_prop_ro("reason", [](const Info& i) { return report::lower_bound_reason(i.task.problem); })
      .def_prop_ro(
          "least_budget", [](const Info& i) { return i.met(i.of.least); },
          "The least budget that some schedule is known to meet.")
      .def_prop_ro("budget", [](const Info& i) { return i.task.problem.budget; })
      .def_prop_ro(
          "fits", [](const Info& i) { return i.of.verdict ? i.of.verdict->fits : std::nullopt; },
          "Whether the budget can be met; None if this is not known, or if no budget was given.")
      .def_prop_ro(
          "proved", [](const Info& i) { return i.of.verdict && i.of.verdict->fits == false; },
          "Whether it is proved that no schedule fits, at least none of those that were asked for.")
      .def_prop_ro(
          "verdict",
          [](const Info& i) { return i.of.verdict ? report::fit_text(i.task, *i.of.verdict) : std::string(); },
          "A sentence that says whether and how the graph fits into the budget.")
      .def_prop_ro(
          "means",
          [](const Info& i) {
            return i.of.verdict && i.of.verdict->means
                       ? std::optional(std::string(pipeline::to_string(*i.of.verdict->means)))
                       : std::nullopt;
          },
          "What makes the graph fit: 'baseline', 'order' (another order) or 'recomputation'.")
      .def_prop_ro(
          "within", [](const Info& i) { return i.within() ? std::optional(i.met(*i.within())) : std::nullopt; },
          "The cheapest schedule known within the budget; None if none is known.")
      .def_prop_ro(
          "lower_bound_cost",
          [](const Info& i) {
            return i.of.verdict && i.of.verdict->fits != false ? std::optional(i.of.verdict->cost_bound.value)
                                                               : std::nullopt;
          },
          "No schedule within the budget costs less than this.")
      .def_prop_ro(
          "resident",
          [](const Info& i) {
            nb::dict resident;
            for (const auto& [name, bytes] : pipeline::resident_bytes(i.task.problem.graph).parts())
              resident[name.c_str()] = bytes;
            return resident;
          },
          nb::sig("def resident(self) -> dict[str, int]"),
          "Bytes that are in memory all the time and not part of the budget, by kind.")
      .def_prop_ro(
          "device", [](const Info& i) { return i.device ? std::optional(i.device->share) : std::nullopt; },
          "How the given device's memory is divided; None if no device was given.")
      .def_prop_ro(
          "least_device_memory", [](const Info& i) { return i.device ? i.device->least_memory : std::nullopt; },
          "The least memory, in bytes, of a device on which the least budget known is available; None if the given\n"
          "device has enough.")
      .def_prop_ro(
          "largest_batch", [](const Info& i) { return i.device ? i.device->largest_batch : std::nullopt; },
          "The largest batch that fits into the device, if the graph does not fit and build= was given.")
      .def_prop_ro("interrupted", [](const Info& i) { return i.interrupted; });
}

void bind_texts(nb::class_<Info>& info) {
  info.def(
          "to_json",
          [](const Info& i) {
            report::Json json = report::info_json(i.task, i.of, i.advice(), i.interrupted);
            const core::Graph& graph = i.task.problem.graph;
            report::Explanation(graph, i.within() ? &i.within()->schedule : nullptr).add_to(json);
            return report::json_text(json);
          },
          "The object that `cairn info --json` prints, as text.")
      .def("report", file_of<Info>([](const Info& i) {
             std::vector<report::ReportFact> facts;
             if (i.of.verdict)
               facts.push_back(
                   {"Budget", core::format_bytes(*i.task.problem.budget), report::fit_text(i.task, *i.of.verdict)});
             return report::info_page(i.task.problem, i.of.least, i.of.verdict ? i.of.verdict->by : std::nullopt,
                                      std::move(facts));
           }),
           "path"_a, kReport, "Writes the HTML page of `cairn info --report`.")
      .def("__str__", [](const Info& i) { return report::format_table(report::info_rows(i.task, i.of, i.advice())); })
      .def("__repr__", [](const Info& i) {
        return fmt::format("<cairn.Info of '{}': least budget known {} bytes{}>", i.task.problem.name,
                           i.of.least.memory(), i.of.verdict ? ", " + report::fit_text(i.task, *i.of.verdict) : "");
      });
}

void bind_device(nb::module_& module) {
  nb::class_<pipeline::DeviceShare>(module, "DeviceShare", "How the memory of a device is divided, in bytes.")
      .def_ro("memory", &pipeline::DeviceShare::device, "All memory of the device.")
      .def_prop_ro("resident", [](const pipeline::DeviceShare& d) { return d.resident.total(); })
      .def_ro("workspace", &pipeline::DeviceShare::workspace, "Memory for the workspaces of libraries.")
      .def_ro("context", &pipeline::DeviceShare::context)
      .def_prop_ro("arena", &pipeline::DeviceShare::arena, "What the other parts leave. It is the budget.")
      .def("__repr__", [](const pipeline::DeviceShare& d) {
        return fmt::format("<cairn.DeviceShare {}>", report::share_text(d, d.arena()));
      });
  nb::class_<fit::LargestBatch>(module, "LargestBatch", "The largest batch that is known to fit.")
      .def_ro("batch", &fit::LargestBatch::batch, "The batch; 0 if not even a batch of 1 is known to fit.")
      .def_ro("batch_of_baseline", &fit::LargestBatch::as_it_is,
              "The largest batch that fits in the graph's input order, without recomputation.")
      .def_prop_ro(
          "refused", [](const fit::LargestBatch& b) { return b.refused > 0 ? std::optional(b.refused) : std::nullopt; },
          "The least batch that was tried and did not fit.")
      .def_ro("refused_proved", &fit::LargestBatch::refusal_proved)
      .def_ro("timed_out", &fit::LargestBatch::timed_out)
      .def(
          "to_json", [](const fit::LargestBatch& b) { return report::json_text(report::to_json(b)); },
          "The object `device.largest_batch` of `cairn info --json`, as text.")
      .def("__str__", &report::batch_text)
      .def("__repr__",
           [](const fit::LargestBatch& b) { return fmt::format("<cairn.LargestBatch {}>", report::batch_text(b)); });
}

}  // namespace

void bind_info(nb::module_& module) {
  nb::class_<Info> of_graph(module, "Info",
                            "What a graph needs: will it fit, by which means, and what is the least budget?");
  bind_facts(of_graph);
  bind_texts(of_graph);
  bind_device(module);
  module.def("info", &info, "graph"_a, "request"_a, "search"_a, "build"_a.none(), "progress"_a.none());
  module.def("largest_batch", &largest_batch, "build"_a, "request"_a, "search"_a);
}

}  // namespace cairn::python
