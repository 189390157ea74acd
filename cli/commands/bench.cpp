#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <random>

#include "cairn/cli/arguments.h"
#include "cairn/cli/output.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/limit.h"
#include "cairn/core/support/text.h"
#include "cairn/solvers/fit/solve.h"
#include "cairn/solvers/plan/planner.h"

namespace cairn::cli {
namespace {

constexpr core::NodeId kNodes = 20000;
constexpr core::NodeId kLayer = 100;

/// Builds a graph of layers of 100 nodes. Each node reads two nodes of the previous layer, so the graph has about
/// 40,000 edges.
core::Graph layered_graph() {
  std::mt19937_64 random(1);
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
  };
  core::GraphBuilder builder("layered-20000");
  for (core::NodeId v = 0; v < kNodes; ++v) {
    core::Node node;
    node.name = fmt::format("n{}", v);
    node.size = 1 + below(1000);
    node.cost = 1 + below(100);
    if (v >= kLayer) {
      const core::NodeId layer = v / kLayer * kLayer - kLayer;
      const auto first = below(kLayer);
      const auto second = (first + 1 + below(kLayer - 1)) % kLayer;
      node.inputs = {static_cast<core::NodeId>(layer + first), static_cast<core::NodeId>(layer + second)};
    }
    builder.add(std::move(node));
  }
  return builder.build();
}

struct Measurement {
  double value;
  std::string unit;
  std::string description;
};

/// Repeats call() for about `budget` seconds, and returns the time of the shortest call in seconds.
template <class F>
double seconds_of(F&& call, double budget = 0.3) {
  const core::Stopwatch all{core::Limit{}};
  double least = HUGE_VAL;
  do {
    const core::Stopwatch one{core::Limit{}};
    call();
    least = std::min(least, one.seconds());
  } while (all.seconds() < budget);
  return least;
}

Measurement bench_evaluate(const core::Graph& graph) {
  const auto schedule = core::baseline_schedule(graph);
  core::Evaluator evaluator(graph);
  std::int64_t peak = 0;
  const double seconds = seconds_of([&] { peak = evaluator.evaluate(schedule).peak; });
  return {seconds * 1e3, "ms", fmt::format("evaluate one schedule of {} steps (peak {})", schedule.length(), peak)};
}

Measurement bench_plan(const core::Graph& graph) {
  const auto schedule = core::baseline_schedule(graph);
  solvers::PlanOptions options;
  options.limit.work = 0;
  core::Plan plan;
  const double seconds = seconds_of([&] { plan = solvers::plan_memory(graph, schedule, options); });
  return {seconds * 1e3, "ms",
          fmt::format("plan {} buffers, no improvement rounds ({:+.2f}% above the bound)", plan.buffers.size(),
                      increase_pct(plan.bytes, plan.lower_bound))};
}

Measurement bench_load(const core::Graph& graph) {
  const std::string text = core::graph_to_json(graph);
  core::NodeId nodes = 0;
  const double seconds = seconds_of([&] { nodes = core::parse_graph(text, "bench").node_count(); });
  return {seconds * 1e3, "ms",
          fmt::format("parse {} of graph JSON with {} nodes",
                      core::format_bytes(static_cast<std::int64_t>(text.size())), nodes)};
}

Measurement bench_lifetimes(const core::Graph& graph) {
  const auto schedule = core::baseline_schedule(graph);
  std::size_t count = 0;
  const double seconds = seconds_of([&] { count = core::lifetimes(graph, schedule).size(); });
  return {seconds * 1e3, "ms", fmt::format("lifetimes of {} steps", count)};
}

Measurement bench_tw(const core::Graph& graph) {
  solvers::SolveOptions options;
  options.limit.stop = &catch_interrupt();
  options.budget = core::parse_budget("80%", core::evaluate(graph, core::baseline_schedule(graph)).peak);
  fit::Solved found;
  const double seconds = seconds_of([&] { found = fit::solve(graph, solvers::find_solver("tw"), options); }, 0);
  return {seconds, "s",
          fmt::format("tw at 80% of the baseline peak, which it {}",
                      found.within(options.budget) ? "meets" : "does not meet")};
}

struct Benchmark {
  std::string_view name;
  Measurement (*measure)(const core::Graph&);
};
constexpr std::array<Benchmark, 5> kBenchmarks = {{{"load", bench_load},
                                                   {"evaluate", bench_evaluate},
                                                   {"lifetimes", bench_lifetimes},
                                                   {"plan", bench_plan},
                                                   {"tw", bench_tw}}};

struct BenchArguments {
  Console console;
  std::vector<std::string> names;
};

void require_known(const std::vector<std::string>& names) {
  std::vector<std::string_view> known;
  for (const auto& benchmark : kBenchmarks) known.push_back(benchmark.name);
  for (const auto& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw core::InputError(fmt::format("no benchmark is named '{}'{}; there are {}", name,
                                         core::did_you_mean(name, known), fmt::join(known, ", ")));
  }
}

int bench(const BenchArguments& arguments) {
  require_known(arguments.names);
  const core::Graph graph = layered_graph();
  Json list = Json::array();
  Rows rows = {{"benchmark", "value", "unit", "what"}};
  for (const auto& benchmark : kBenchmarks) {
    const auto& names = arguments.names;
    if (!names.empty() && std::find(names.begin(), names.end(), benchmark.name) == names.end()) continue;
    const Measurement measured = benchmark.measure(graph);
    if (catch_interrupt()) throw Failure(kInterrupted, "interrupted");
    rows.push_back(
        {std::string(benchmark.name), fmt::format("{:.3f}", measured.value), measured.unit, measured.description});
    list.push_back({{"name", benchmark.name},
                    {"value", measured.value},
                    {"unit", measured.unit},
                    {"description", measured.description}});
  }
  const Json json = {
      {"graph", graph.name()}, {"nodes", graph.node_count()}, {"edges", graph.edge_count()}, {"benchmarks", list}};
  arguments.console.print(json, format_table(rows, true));
  return kDone;
}

}  // namespace

Subcommand add_bench(CLI::App& root) {
  CLI::App* app = root.add_subcommand("bench", "how fast Cairn is here, on a generated graph of 20,000 nodes");
  auto arguments = std::make_shared<BenchArguments>();
  arguments->console.add_to(*app);
  add_threads(*app, "of the search for a plan");
  app->add_option("NAME", arguments->names, "load, evaluate, lifetimes, plan, tw; absent: all");
  app->footer("Example:\n  cairn bench evaluate load");
  return {app, [arguments] { return bench(*arguments); }};
}

}  // namespace cairn::cli
