#include "cairn/runtime/measure.h"

#include <map>
#include <set>

#include "cairn/runtime/executor.h"
#include "cairn/runtime/internal/execution.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/models/tiny_models.h"
#include "cairn/tests/runtime/graphs.h"

namespace cairn::tests {
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
      const auto executor = runtime::host_executor(compiled(sample, core::baseline_schedule(sample)));
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

TEST_CASE("the median") {
  CHECK(runtime::median({3, 1, 2}) == 2);
  CHECK(runtime::median({4, 1, 2, 3}) == 2.5);
  CHECK_THROWS(runtime::median({}));
}

TEST_CASE("rounding noise disturbs every kept output a little, the same way every time") {
  const Perceptron p = perceptron();
  const auto run = [&](double noise) {
    const auto executor =
        runtime::host_executor(compiled(p.graph, core::baseline_schedule(p.graph)), {.rounding_noise = noise});
    executor->run();
    std::vector<Bytes> outputs;
    for (const auto& output : executor->outputs()) outputs.emplace_back(output.bytes.begin(), output.bytes.end());
    return outputs;
  };
  const auto plain = run(0), disturbed = run(0x1p-10);
  CHECK(run(0x1p-10) == disturbed);
  for (std::size_t k = 0; k < plain.size(); ++k) {
    CHECK(plain[k] != disturbed[k]);
    for (std::size_t i = 0; i < plain[k].size(); i += 4) {
      float a = 0, b = 0;
      std::memcpy(&a, plain[k].data() + i, 4);
      std::memcpy(&b, disturbed[k].data() + i, 4);
      CHECK(std::abs(a - b) <= 0.1F * (1 + std::abs(a)));
    }
  }
}

TEST_CASE("samples of ops with several outputs, and of those that read them, run") {
  const Graph graph = pooled_norms(true);
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    const Graph sample = runtime::sample_graph(graph, v, 2);
    const auto outputs = execute(compiled(sample, core::baseline_schedule(sample)));
    CHECK(static_cast<std::int32_t>(outputs.size()) == 2 * core::output_count(graph.op(v)->kind));
  }
}

}  // namespace cairn::tests
