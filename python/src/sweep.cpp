#include "cairn/pipeline/sweep.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/text.h"
#include "cairn/pipeline/backend.h"
#include "cairn/python/src/bindings.h"
#include "cairn/python/src/call.h"
#include "cairn/report/pages.h"
#include "cairn/report/support/json.h"
#include "cairn/report/support/words.h"

namespace cairn::python {
namespace {

/// The Python class Sweep: the result of evaluating many schedules.
struct Sweep {
  fit::Problem problem;
  pipeline::SweepOrigin origin;
  pipeline::Swept swept;
  /// peaks and costs of the given schedules; empty if the schedules were random
  std::optional<sim::Outcomes> outcomes = {};

  const sim::Entry& best() const { return swept.tally.top().front(); }
  bool any() const { return swept.tally.counts().valid > 0; }
};

nb::object entries(const std::vector<sim::Entry>& list) {
  nb::list rows;
  for (const sim::Entry& entry : list) rows.append(nb::make_tuple(entry.index, entry.peak, entry.cost));
  return rows;
}

/// Evaluates a list of schedules, or an array with one schedule per row.
void sweep_given(Sweep& sweep, sim::Simulator& simulator, nb::handle schedules, bool undominated, Call& call) {
  sim::ScheduleBatch batch(sweep.problem.graph.node_count());
  for (const nb::handle schedule : schedules) batch.add(schedule_of(schedule));
  sim::Outcomes outcomes;
  const core::Stopwatch watch(core::Limit{});
  call.run([&] {
    simulator.evaluate(batch, outcomes);
    sweep.swept.tally.add(0, outcomes);
    if (sweep.any()) sweep.swept.best = batch.schedule(sweep.best().index);
    if (!undominated) return;
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(batch.count()));
    std::iota(numbers.begin(), numbers.end(), 0);
    sweep.swept.undominated.emplace(sweep.problem.graph).add(simulator, batch, numbers);
  });
  sweep.swept.result = {batch.count(), watch.seconds()};
  const core::Graph& graph = sweep.problem.graph;
  for (const std::int64_t i : sweep.swept.tally.invalid())
    sweep.swept.invalid.emplace_back(i, core::describe(graph, core::evaluate(graph, batch.schedule(i)).defect));
  sweep.outcomes = std::move(outcomes);
}

Sweep simulate(const core::Graph& graph, nb::handle schedules, std::optional<std::int64_t> random,
               std::int32_t recompute, std::uint64_t seed, std::int32_t top, const std::string& budget,
               const std::string& backend, bool undominated, std::optional<double> seconds, std::int32_t transfers,
               nb::object progress) {
  if (schedules.is_none() == !random)
    throw core::InputError("simulate needs either schedules= or random=, a number of candidates");
  if (random && *random < 1) throw core::InputError("random= must be at least 1");
  if (recompute < 0 || recompute > 1'000'000) throw core::InputError("recompute= must be 0 to 1000000");
  if (top < 1 || top > 100'000) throw core::InputError("top= must be 1 to 100000");
  Sweep sweep{fit::Problem(graph, budget, "graph"), {}, {}};
  const auto simulator = pipeline::open_simulator(backend, graph);
  sweep.origin.backend = simulator->backend();
  sweep.origin.device = simulator->device();
  const sim::TallyOptions options = pipeline::tally_options(sweep.problem, top);
  sweep.swept.tally = sim::Tally(options);
  Call call(std::move(progress));
  sim::SweepOptions limits;
  limits.stop = call.stop();
  if (seconds) limits.seconds = *seconds;
  if (call.tells()) limits.progress = [&](const sim::SweepProgress& p) { call.tell(p.done, p.total, p.seconds); };
  if (random) {
    sweep.origin.random = {seed, recompute, graph.host_memory() ? transfers : 0};
    pipeline::RandomSweep wanted =
        pipeline::random_sweep(sweep.problem, {*sweep.origin.random, *random, 0, sim::Tally(options)}, {}, false);
    wanted.undominated = undominated;
    sim::Ranks alone;
    call.run([&] { sweep.swept = pipeline::sweep_random(sweep.problem, *simulator, wanted, limits, alone); });
  } else {
    sweep_given(sweep, *simulator, schedules, undominated, call);
  }
  call.raise_pending();
  pipeline::check_best(sweep.problem, sweep.swept);
  sweep.swept.interrupted = call.stopped();
  if (call.interrupted())
    raise_interrupted("interrupted; what was evaluated until then is in .best", nb::cast(std::move(sweep)));
  return sweep;
}

/// Returns the getter of a Python property with the value get(sweep), or None if no candidate schedule is valid.
template <class Get>
auto if_any(const Get& get) {
  return [get](const Sweep& s) { return s.any() ? std::optional(get(s)) : std::nullopt; };
}

/// Returns the getter of a Python property: an array with one value for each given schedule, or None if the schedules
/// were random.
auto column(std::vector<std::int64_t> sim::Outcomes::*values) {
  return [values](nb::pointer_and_handle<Sweep> s) -> nb::object {
    if (!s.p->outcomes) return nb::none();
    return nb::cast(view(std::span<const std::int64_t>((*s.p->outcomes).*values), s.h));
  };
}

void bind_outcomes(nb::class_<Sweep>& sweep) {
  sweep
      .def_prop_ro(
          "best", [](const Sweep& s) { return s.any() ? &s.swept.best : nullptr; }, nb::rv_policy::reference_internal,
          nb::sig("def best(self) -> Schedule | None"), "The schedule of the least peak, then the least cost.")
      .def_prop_ro("peak", if_any([](const Sweep& s) { return s.best().peak; }), "Of the best.")
      .def_prop_ro("cost", if_any([](const Sweep& s) { return s.best().cost; }), "Of the best.")
      .def_prop_ro("candidates", [](const Sweep& s) { return s.swept.tally.candidates(); })
      .def_prop_ro("valid", [](const Sweep& s) { return s.swept.tally.counts().valid; })
      .def_prop_ro("invalid", [](const Sweep& s) { return s.swept.tally.counts().invalid; })
      .def_prop_ro("within_budget",
                   [](const Sweep& s) {
                     const bool limited = !report::budgets_text(s.problem).empty();
                     return limited ? std::optional(s.swept.tally.counts().within) : std::nullopt;
                   })
      .def_prop_ro(
          "top", [](const Sweep& s) { return entries(s.swept.tally.top()); },
          nb::sig("def top(self) -> list[tuple[int, int, int]]"), "(index, peak, cost) of the best candidates.")
      .def_prop_ro(
          "pareto", [](const Sweep& s) { return entries(s.swept.tally.front()); },
          nb::sig("def pareto(self) -> list[tuple[int, int, int]]"),
          "(index, peak, cost) of the Pareto set: no other candidate is at least as good in both peak and cost and "
          "better in\n"
          "one. In ascending order of the peaks.")
      .def_prop_ro(
          "undominated",
          [](const Sweep& s) -> nb::object {
            if (!s.swept.undominated) return nb::none();
            return nb::cast(array_of(s.swept.undominated->numbers()));
          },
          nb::sig("def undominated(self) -> NDArray | None"),
          "Indices of the candidates whose memory profile is not dominated by that of another candidate; None without\n"
          "undominated=True.")
      .def_prop_ro("mean_peak", if_any([](const Sweep& s) { return s.swept.tally.mean_peak(); }))
      .def_prop_ro("mean_cost", if_any([](const Sweep& s) { return s.swept.tally.mean_cost(); }))
      .def_prop_ro(
          "quantiles",
          [](const Sweep& s) {
            nb::dict quantiles;
            for (const std::int32_t percent : pipeline::kPercents) {
              if (s.any()) quantiles[nb::int_(percent)] = s.swept.tally.quantile(percent);
            }
            return quantiles;
          },
          nb::sig("def quantiles(self) -> dict[int, int]"),
          "A dict from p to the least peak that p percent of the candidates do not exceed.")
      .def_prop_ro(
          "histogram",
          [](const Sweep& s) {
            const pipeline::Histogram histogram = pipeline::shown_histogram(s.swept.tally);
            std::vector<std::int64_t> edges;
            for (std::size_t b = 0; b <= histogram.counts.size(); ++b)
              edges.push_back(histogram.from + static_cast<std::int64_t>(b) * histogram.width);
            return nb::make_tuple(array_of(histogram.counts), array_of(std::move(edges)));
          },
          nb::sig("def histogram(self) -> tuple[NDArray, NDArray]"),
          "(counts, edges) of the peaks, as numpy.histogram returns.")
      .def_prop_ro("peaks", column(&sim::Outcomes::peak), nb::sig("def peaks(self) -> NDArray | None"),
                   "The peak of each given schedule; 0 if the schedule is invalid.")
      .def_prop_ro("costs", column(&sim::Outcomes::cost), nb::sig("def costs(self) -> NDArray | None"));
}

void bind_circumstances(nb::class_<Sweep>& sweep) {
  sweep.def_prop_ro("seconds", [](const Sweep& s) { return s.swept.result.seconds; })
      .def_prop_ro("timed_out", [](const Sweep& s) { return s.swept.timed_out; })
      .def_prop_ro("interrupted", [](const Sweep& s) { return s.swept.interrupted; })
      .def_prop_ro("baseline", [](const Sweep& s) { return evaluation_of(s.problem.graph, s.problem.baseline); })
      .def_prop_ro("device", [](const Sweep& s) { return s.origin.device; })
      .def(
          "to_json", [](const Sweep& s) { return report::json_text(report::sweep_json(s.problem, s.swept, s.origin)); },
          "The object that `cairn simulate --json` prints, as text.")
      .def("report", file_of<Sweep>([](const Sweep& s) { return report::sweep_page(s.problem, s.swept, s.origin); }),
           "path"_a, kReport, "Writes the HTML page of `cairn simulate --report`.")
      .def("__str__", [](const Sweep& s) { return report::sweep_table(s.problem, s.swept, s.origin); })
      .def("__repr__", [](const Sweep& s) {
        return s.any() ? fmt::format("<cairn.Sweep of {} {}: least peak {} ({:.1f}% of the baseline's), cost {:+.2f}%>",
                                     s.swept.tally.candidates(), s.origin.text(), core::format_bytes(s.best().peak),
                                     100 + report::increase_pct(s.best().peak, s.problem.baseline.peak),
                                     report::increase_pct(s.best().cost, s.problem.baseline.cost))
                       : fmt::format("<cairn.Sweep of {} {}, none of them valid>", s.swept.tally.candidates(),
                                     s.origin.text());
      });
}

}  // namespace

void bind_sweep(nb::module_& module) {
  nb::class_<Sweep> sweep(module, "Sweep", "The result of evaluating many schedules.");
  bind_outcomes(sweep);
  bind_circumstances(sweep);
  module.def("simulate", &simulate, "graph"_a, "schedules"_a.none(), "random"_a.none(), "recompute"_a, "seed"_a,
             "top"_a, "budget"_a, "backend"_a, "undominated"_a, "seconds"_a.none(), "transfers"_a, "progress"_a.none());
}

}  // namespace cairn::python
