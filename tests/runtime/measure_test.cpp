#include "cairn/runtime/measure.h"

#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "cairn/core/precision.h"
#include "cairn/core/profile.h"
#include "cairn/runtime/executor.h"
#include "cairn/runtime/support/execution.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/models/tiny_models.h"
#include "cairn/tests/runtime/graphs.h"
#include "cairn/tests/runtime/updated_models.h"
#include "cairn/tests/support/errors.h"

namespace cairn::tests::measure_test {
namespace {

using core::Graph;

}  // namespace

TEST_CASE("a sample runs the op of its node alone, several times") {
  for (const TinyModel& tiny : tiny_models()) {
    INFO(tiny.name);
    const Graph graph = tiny.build();
    std::set<std::string> seen;
    for (core::NodeId v = 0; v < graph.node_count(); ++v) {
      if (!seen.insert(runtime::op_signature(graph, v)).second) continue;
      const Graph sample = runtime::sample_graph(graph, v, 3);
      REQUIRE(sample.node_count() == 3);
      CHECK(sample.op(2)->kind == graph.op(v)->kind);
      const auto executor = runtime::host_executor(compiled(sample));
      CHECK(executor->run(true).op_seconds.size() == 3);
      CHECK(executor->outputs().size() == 3);
    }
  }
}

TEST_CASE("costs are measured once for every signature") {
  const Graph graph = tiny_models().back().build();
  std::map<std::string, int> calls;
  const auto result = runtime::measure_costs(graph, [&](core::NodeId v) {
    ++calls[runtime::op_signature(graph, v)];
    return 1e-6 * static_cast<double>(calls.size());
  });
  for (const auto& [signature, count] : calls) CHECK(count == 1);
  CHECK(result.distinct_ops == static_cast<std::int64_t>(calls.size()));
  CHECK(result.measured_nodes == graph.node_count());
  CHECK(result.graph.fingerprint() == graph.fingerprint());
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    for (core::NodeId u = 0; u < v; ++u) {
      if (runtime::op_signature(graph, u) == runtime::op_signature(graph, v)) {
        CHECK(result.graph.cost(u) == result.graph.cost(v));
      }
    }
    CHECK(result.graph.cost(v) % 1000 == 0);
  }
}

TEST_CASE("a cost is at least 1 ns") {
  const Perceptron p = perceptron();
  const auto result = runtime::measure_costs(p.graph, [](core::NodeId) { return 0.0; });
  for (core::NodeId v = 0; v < p.graph.node_count(); ++v) CHECK(result.graph.cost(v) == 1);
}

TEST_CASE("samples are as many as exceed the cache twice") {
  const Perceptron p = perceptron();
  CHECK(runtime::sample_copies(p.graph, p.hidden, 0) == 1);
  const std::int64_t bytes = 4 * (5 * 7 + 7 * 9 + 5 * 9);
  CHECK(runtime::sample_copies(p.graph, p.hidden, 2 * bytes) == 4);
  CHECK(runtime::sample_copies(p.graph, p.hidden, 1 << 30) == 32);
}

TEST_CASE("the most expensive ops are measured first, and what is not measured is scaled to them and named") {
  const Graph graph = tiny_models().back().build();
  const std::vector<runtime::DistinctOp> ops = runtime::distinct_ops(graph);
  REQUIRE(ops.size() > 4);
  std::int64_t nodes = 0, cost = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    nodes += ops[i].nodes;
    cost += ops[i].cost;
    if (i > 0) CHECK(ops[i].cost <= ops[i - 1].cost);
  }
  CHECK(nodes == graph.node_count());
  CHECK(cost == core::evaluate(graph, core::baseline_schedule(graph)).cost);

  // Only the first three ops get a timing, of 50 times their costs in the graph. After that, there is no time left.
  std::vector<core::NodeId> asked;
  const auto result = runtime::measure_costs(
      graph,
      [&](core::NodeId v) -> std::optional<double> {
        asked.push_back(v);
        if (asked.size() > 3) return std::nullopt;
        return 50e-9 * static_cast<double>(graph.cost(v));
      },
      "measured on a stopwatch");
  REQUIRE(asked.size() == 4);
  for (std::size_t i = 0; i < asked.size(); ++i) CHECK(asked[i] == ops[i].node);
  CHECK(result.measured_ops == 3);
  CHECK(result.distinct_ops == static_cast<std::int64_t>(ops.size()));
  CHECK(result.measured_nodes == ops[0].nodes + ops[1].nodes + ops[2].nodes);
  CHECK(static_cast<std::int64_t>(result.unmeasured.size()) == graph.node_count() - result.measured_nodes);
  CHECK(result.scale == Approx(50).epsilon(0.001));
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    CHECK(std::abs(result.graph.cost(v) - 50 * graph.cost(v)) <= graph.cost(v) / 10);
  }
  const core::CostUnit& unit = result.graph.cost_unit();
  CHECK(unit.name == "ns");
  CHECK(unit.source.rfind("measured on a stopwatch; ", 0) == 0);
  check_says(unit.source, {std::to_string(result.unmeasured.size()) + " nodes not measured", "roofline"});
}

TEST_CASE("a graph that is measured as a whole has nothing but measured costs") {
  const Perceptron p = perceptron();
  const auto result = runtime::measure_costs(
      p.graph, [](core::NodeId) { return 1e-6; }, "measured on a stopwatch");
  CHECK(result.graph.cost_unit() == core::CostUnit{"ns", "measured on a stopwatch"});
  CHECK(result.unmeasured.empty());
  const auto none = runtime::measure_costs(p.graph, [](core::NodeId) { return std::nullopt; });
  CHECK(none.measured_ops == 0);
  CHECK(static_cast<core::NodeId>(none.unmeasured.size()) == p.graph.node_count());
  CHECK(none.graph.cost_unit() == p.graph.cost_unit());
  for (core::NodeId v = 0; v < p.graph.node_count(); ++v) CHECK(none.graph.cost(v) == p.graph.cost(v));
}

TEST_CASE("timings are disturbed where they are far above the least, or above it with evidence") {
  using runtime::Timing;
  const auto check = [](const std::vector<Timing>& timings, const std::vector<bool>& expected) {
    CHECK(runtime::disturbed(timings) == expected);
  };
  check({}, {});
  check({{1e-3}}, {false});
  // On a quiet machine, timings also differ a little, which must not count as a disturbance.
  check({{1.0e-3}, {1.1e-3}, {1.05e-3}, {1.9e-3}}, {false, false, false, false});
  // Other work has taken a time slice during a timing. In the second of these checks, the system also reports waiting
  // or preemptions, which counts as evidence.
  check({{7e-6}, {4e-3}, {8e-6}}, {false, true, false});
  check({{1.0e-3}, {1.3e-3, 0.2e-3, 0}, {1.3e-3, 0, 1}, {1.3e-3}}, {false, true, true, false});
  // Preemptions that cost no time, as in every long timing, are no disturbance.
  check({{1.0, 0.01, 3}, {1.1, 0.01, 4}}, {false, false});
  // Timings are compared with the shortest one without evidence, even if a timing with evidence is shorter.
  check({{1.0e-3, 0.5e-3, 1}, {1.5e-3}, {2.9e-3}, {3.1e-3}}, {false, false, false, true});
  // All three timings are disturbed, because threads waited for more than half of each.
  check({{4e-3, 3e-3, 1}, {5e-3, 3e-3, 2}, {9e-3, 8e-3, 2}}, {true, true, true});
}

TEST_CASE("disturbed timings do not count, whatever their share below one") {
  // Other work takes 4 ms during every second, third or tenth execution. Without it, an execution takes 7 us or 100 us.
  for (const int every : {2, 3, 10}) {
    for (const double seconds : {7e-6, 1e-4}) {
      int runs = 0;
      const runtime::TimedWork timed = runtime::time_work([&]() -> std::vector<runtime::Timing> {
        const bool hit = ++runs % every == 0;
        return {{seconds * (1 + 0.01 * (runs % 5)) + (hit ? 4e-3 : 0)}};
      });
      INFO(every << " " << seconds);
      CHECK(timed.seconds >= seconds);
      CHECK(timed.seconds <= 1.05 * seconds);
      CHECK_FALSE(timed.disturbed);
      CHECK(timed.repeated >= timed.timings / every - 1);
      CHECK(timed.timings == runs - 1);  // the first run is only the warm-up
      CHECK(timed.timings - timed.repeated >= 5);
    }
  }
}

TEST_CASE("where every timing is disturbed, what they take without their delays counts, and repeats end") {
  for (const int threads : {1, 2, 8}) {
    CAPTURE(threads);
    int runs = 0;
    const runtime::TimedWork waited = runtime::time_work(
        [&]() -> std::vector<runtime::Timing> {
          // The work takes 1 ms. In addition, each thread waits for 2 to 4 ms, differently in each run.
          const double waits = 1e-3 * (2 + ++runs % 3);
          return {{1e-3 + waits, {waits * threads, 1, threads}}};
        },
        {.seconds = 0.02, .most_effort = 2});
    CHECK(waited.disturbed);
    CHECK(waited.seconds == Approx(1e-3));
    CHECK(waited.timings <= 11);  // about 40 ms of timings
    CHECK(waited.repeated == waited.timings);
  }
}

TEST_CASE("where many timings are disturbed, the least of the others counts") {
  int runs = 0;
  const runtime::TimedWork timed = runtime::time_work([&]() -> std::vector<runtime::Timing> {
    // The work takes about 1.1 ms. Most timings are far longer. One in six is 1.9 ms, which is too short to count as
    // disturbed. The result must be the least timing, 1.1 ms.
    constexpr double kSeconds[] = {5e-3, 1.9e-3, 5e-3, 5e-3, 1.1e-3, 5e-3};
    return {{kSeconds[runs++ % 6]}};
  });
  CHECK(timed.repeated > timed.timings / 2);
  CHECK(timed.seconds == Approx(1.1e-3));
}

TEST_CASE("where a thread mostly waits for the core of another, what the two take without that counts") {
  // The work takes about 1 ms on two cores. In every second execution, only one thread runs, for 2 ms. In the remaining
  // executions, both threads share a core, and each waits for the other. Without the waiting, such an execution takes
  // 1.1 ms, which must be the result.
  int runs = 0;
  const runtime::TimedWork timed = runtime::time_work([&]() -> std::vector<runtime::Timing> {
    return ++runs % 2 == 0 ? std::vector<runtime::Timing>{{2e-3, {0, 0, 2}}}
                           : std::vector<runtime::Timing>{{2.2e-3, {2.2e-3, 1, 2}}};
  });
  CHECK(3 * timed.repeated > timed.timings);
  CHECK(timed.seconds == Approx(1.1e-3));
}

TEST_CASE("one of two threads that waits costs half of that") {
  // While one of two threads waits, the other thread continues with the work, so only half of the waiting time is lost.
  CHECK(runtime::Timing{3e-3, {2e-3, 1, 2}}.undelayed_seconds() == Approx(2e-3));
  CHECK(runtime::Timing{3e-3, {2e-3, 1, 1}}.undelayed_seconds() == Approx(1e-3));
  CHECK(runtime::Timing{3e-3}.undelayed_seconds() == Approx(3e-3));
}

TEST_CASE("equal parts of an execution are timed each, and judged each") {
  // Other work takes 4 ms during each execution, but only during one of the eight parts of the execution. The timings
  // of the other seven parts must count.
  int runs = 0;
  const runtime::TimedWork timed = runtime::time_work([&] {
    std::vector<runtime::Timing> parts(8, {1e-3});
    parts[static_cast<std::size_t>(++runs % 8)].seconds += 4e-3;
    return parts;
  });
  CHECK(timed.seconds == Approx(1e-3));
  CHECK_FALSE(timed.disturbed);
  CHECK(runs == 4);  // one run to warm up, and three with 21 undisturbed timings of 1 ms in all
  CHECK(timed.timings == 24);
  CHECK(timed.repeated == 3);
}

TEST_CASE("timing ends when its time is over, with what there is") {
  int runs = 0;
  const auto run = [&]() -> std::vector<runtime::Timing> {
    ++runs;
    return {{0.3}};
  };
  CHECK(runtime::time_work(run, {.expired = [] { return true; }}).seconds == Approx(0.3));
  CHECK(runs == 1);  // there is no time for more, so the first run counts, which is normally the warm-up
  runs = 0;
  const auto timed = runtime::time_work(run, {.expired = [&] { return runs >= 3; }});
  CHECK(runs == 3);
  CHECK(timed.timings == 2);
  runs = 0;
  CHECK(runtime::time_work(run).timings == 5);
}

TEST_CASE("the time that is left is in proportion to the work that is left, but so much for every op") {
  CHECK(runtime::remaining_seconds(1.0, 0.02, 10, 100, 10, 100) == Approx(1.0));
  CHECK(runtime::remaining_seconds(0.2, 0.02, 10, 100, 40, 7) == Approx(0.8));
  CHECK(runtime::remaining_seconds(0, 0.02, 0, 0, 5, 100) == Approx(0.1));
  CHECK(runtime::remaining_seconds(10.2, 0.02, 10, 100, 0, 0) == Approx(0));
}

TEST_CASE("the median") {
  CHECK(runtime::median({3, 1, 2}) == 2);
  CHECK(runtime::median({4, 1, 2, 3}) == 2.5);
  CHECK_THROWS(runtime::median({}));
}

TEST_CASE("rounding noise disturbs every kept output a little, the same way every time") {
  const Perceptron p = perceptron();
  const auto run = [&](double noise) { return execute(compiled(p.graph), {.rounding_noise = noise}); };
  const auto plain = run(0), disturbed = run(0x1p-10);
  CHECK(run(0x1p-10) == disturbed);
  for (std::size_t k = 0; k < plain.size(); ++k) {
    CHECK(plain[k].second != disturbed[k].second);
    const std::vector<float> a = as_floats(plain[k].second), b = as_floats(disturbed[k].second);
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) <= 0.1F * (1 + std::abs(a[i])));
  }
}

TEST_CASE("samples of ops with several outputs, and of those that read them, run") {
  const Graph graph = pooled_norms(true);
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    const Graph sample = runtime::sample_graph(graph, v, 2);
    const auto outputs = execute(compiled(sample));
    CHECK(static_cast<std::int32_t>(outputs.size()) == 2 * core::output_count(graph.op(v)->kind));
  }
}

TEST_CASE("an update of a weight can be measured alone, in fp32 and with an fp32 copy of a bf16 weight") {
  for (const core::Graph& given : updated_models()) {
    for (const core::Precision precision : {core::Precision::fp32, core::Precision::bf16}) {
      const core::Graph graph = core::with_precision(given, precision);
      for (core::NodeId v = 0; v < graph.node_count(); ++v) {
        if (!core::is_update(graph.op(v)->kind)) continue;
        const core::Graph sample = runtime::sample_graph(graph, v, 2);
        CHECK(runtime::op_signature(sample, 1) == runtime::op_signature(graph, v));
        if (precision == core::Precision::fp32) CHECK_NOTHROW(runtime::host_executor(compiled(sample))->run());
      }
    }
  }
}

}  // namespace cairn::tests::measure_test
