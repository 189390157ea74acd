// Tests what reports say about transfers between device and host: explanations, table rows, JSON and pages.
#include "cairn/report/explain/support/transfers.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "cairn/core/profile.h"
#include "cairn/report/explain/support/explain.h"
#include "cairn/report/html/report.h"
#include "cairn/report/pages.h"
#include "cairn/report/support/explanation.h"
#include "cairn/report/support/json.h"
#include "cairn/report/support/words.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/transfers.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/json.h"
#include "cairn/tests/support/parts.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/random_transfers.h"
#include "cairn/tests/support/report_data.h"

namespace cairn::tests::transfers_test {
namespace {

using namespace cairn::core;
using namespace cairn::report;
using Json = nlohmann::json;

template <class Check>
void for_each_schedule(std::uint64_t count, const Check& check) {
  std::int64_t with_transfers = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    Random random(seed);
    const Link link = random_link(random);
    const Graph graph = random_graph(random, any_graph(seed)).with_host_memory(HostMemory{link});
    const Schedule schedule = with_random_transfers(random, graph, random_schedule(random, graph));
    with_transfers += schedule.transfers.empty() ? 0 : 1;
    INFO("seed " << seed << show(schedule.transfers));
    if (schedule.length() > 0) check(graph, schedule, link);
  }
  CHECK(with_transfers > static_cast<std::int64_t>(count / 4));
}

/// Returns a graph of a forward and a backward pass of three layers. Each forward node `fK` has 1000 bytes, takes 1000
/// ns, and is read by `f(K+1)` and by the backward node `bK`. The gradients have 10 bytes.
Graph passes() {
  GraphBuilder builder("passes");
  for (int k = 0; k < 3; ++k) {
    Node node{.name = "f" + std::to_string(k), .size = 1000, .cost = 1000};
    if (k > 0) node.inputs = {k - 1};
    builder.add(std::move(node));
  }
  for (int k = 2; k >= 0; --k) {
    Node node{.name = "b" + std::to_string(k), .size = 10, .cost = 1000, .backward = true, .inputs = {k}};
    node.forward = k;
    if (k < 2) node.inputs.push_back(builder.node_count() - 1);
    node.keep = k == 0;
    builder.add(std::move(node));
  }
  builder.set_cost_unit({.name = "ns"});
  return builder.build().with_host_memory(HostMemory{{.bytes_per_second = 500'000'000}, 5000});
}

/// Returns a schedule in which f0 is evicted to the host after f1 has read it, and fetched again before b0. Each copy
/// takes 2000 ns. The evict runs from 1000 to 3000 ns, so step 2 waits for it from 2000 ns on. The fetch runs from 5000
/// ns, the end of step 3, to 7000 ns, so step 5 waits for it from 6000 ns on.
Schedule moved() {
  return {{0, 1, 2, 3, 4, 5},
          {.evicts = {{.value = 0, .made = 0, .start = 0, .finish = 2}},
           .fetches = {{.evict = 0, .start = 3, .finish = 5}}}};
}

}  // namespace

TEST_CASE("what is in memory with transfers sums to the profile, during steps and between them", "[transfers]") {
  for_each_schedule(1500, [](const Graph& graph, const Schedule& schedule, const Link&) {
    const TensorLabels labels = label_tensors(graph);
    const std::vector<std::int64_t> profile = Evaluator(graph).profile(schedule);
    for (std::int64_t i = 0; i < schedule.length(); ++i) {
      const MemoryAt during = memory_at(graph, labels, schedule, i),
                     after = memory_at(graph, labels, schedule, i, true);
      CHECK(during.bytes == profile[static_cast<std::size_t>(2 * i + 1)]);
      CHECK(after.bytes == profile[static_cast<std::size_t>(2 * i + 2)]);
      for (const LiveTensor& tensor : during.tensors) CHECK((tensor.next_read < 0 || tensor.next_read >= i));
      for (const LiveTensor& tensor : after.tensors) CHECK((tensor.next_read < 0 || tensor.next_read > i));
    }
    CHECK(memory_at_peak(graph, labels, schedule).bytes == evaluate(graph, schedule).peak);
    const AtBaselinePeak at = explain_recomputation(graph, labels, schedule).at_baseline_peak;
    CHECK(at.baseline_bytes - at.recomputed_later - at.on_host - at.other_order + at.held_more == at.schedule_bytes);
  });
}

TEST_CASE("waits, absences and the use of the link are those of the timeline", "[transfers]") {
  for_each_schedule(3000, [](const Graph& graph, const Schedule& schedule, const Link& link) {
    const TransferSummary summary = explain_transfers(graph, schedule, link);
    const Timeline times = timeline(graph, schedule, link);
    const auto& [evicts, fetches] = schedule.transfers;
    std::int64_t waiting = 0, busy = 0;
    for (const CopyWait& wait : summary.waits) {
      waiting += wait.time;
      CHECK(wait.time > 0);
      const bool end = wait.step == schedule.length();
      const std::int64_t begin = end ? times.makespan : times.steps[static_cast<std::size_t>(wait.step)].begin;
      REQUIRE((wait.evict < 0) != (wait.fetch < 0));
      const Span copy = wait.evict >= 0 ? times.evicts[static_cast<std::size_t>(wait.evict)]
                                        : times.fetches[static_cast<std::size_t>(wait.fetch)];
      CHECK(copy.end == begin);
    }
    CHECK(waiting == times.waiting);
    for (const Span& span : times.evicts) busy += span.end - span.begin;
    CHECK(summary.to_host.busy == busy);
    CHECK(summary.to_host.copies == std::ssize(evicts));
    CHECK(summary.to_device.copies == std::ssize(fetches));
    CHECK(summary.to_host.bytes + summary.to_device.bytes == reference::moved_bytes(graph, schedule));
    CHECK(summary.host_peak == host_peak(graph, schedule));
    REQUIRE(summary.absences.size() == fetches.size());
    const std::vector<Lifetime> lives = lifetimes(graph, schedule);
    for (const Absence& one : summary.absences) {
      CHECK(one.bytes == graph.value_size(one.value));
      CHECK((0 <= one.away && one.away <= one.idle));
      for (const Lifetime& life : lives) {
        if (graph.value({life.node, life.output}) != one.value) continue;
        for (std::int64_t i = one.leaves; i < one.returns; ++i)
          CHECK((2 * i < life.first_moment() || life.last_moment() < 2 * i));
      }
    }
  });
}

TEST_CASE("two passes with one offloaded tensor, by hand", "[transfers]") {
  const Graph graph = passes();
  const Schedule schedule = moved();
  const TransferSummary summary = explain_transfers(graph, schedule, graph.host_memory()->link);
  REQUIRE(summary.absences.size() == 1);
  const Absence& one = summary.absences[0];
  CHECK(std::vector{one.used, one.leaves, one.returns, one.needed} == std::vector<std::int64_t>{1, 2, 4, 5});
  CHECK(one.idle == 5000);  // from 2000 ns to 7000 ns, between two uses
  CHECK(one.away == 2000);  // from 3000 ns to 5000 ns, between the two copies
  REQUIRE(summary.waits.size() == 2);
  CHECK(summary.waits[0].step == 2);
  CHECK(summary.waits[0].time == 1000);
  CHECK(copy_name(graph, schedule, summary.waits[0].evict, summary.waits[0].fetch) == "f0 to the host");
  CHECK(summary.waits[1].step == 5);
  CHECK(copy_name(graph, schedule, summary.waits[1].evict, summary.waits[1].fetch) == "f0 to the device");

  const fit::Problem problem(graph);
  CHECK(makespan_text(problem, evaluate(graph, schedule)) ==
        "8000 ns (+33.33%): +0.00% recomputed, +33.33% waiting for copies");
  const Plan plan{.host_bytes = 1024};
  const Rows rows = transfer_rows(graph, schedule, &plan);
  CHECK(rows == Rows{{"link", "0.5 GB/s, both directions at once"},
                     {"transfers", "1 to the host with 1000 B, 1 back with 1000 B"},
                     {"link busy", "25.0% of the time to the host, 25.0% to the device"},
                     {"host memory",
                      "peak 1000 bytes, planned 1.00 KiB (1024 bytes), within the budget of 4.88 KiB "
                      "(5000 bytes)"}});
  CHECK(transfer_rows(graph.with_host_memory({}), schedule, &plan).empty());

  report::Json json;
  report::add_transfers(json, graph, &schedule, &plan);
  CHECK(json.dump() ==
        R"({"link":{"bytes_per_second":500000000,"latency_ns":0,"duplex":true},"makespan":8000,"compute_cost":6000,)"
        R"("waiting":2000,"evicts":1,"fetches":1,"moved_bytes":2000,"host_peak_bytes":1000,)"
        R"("host_planned_bytes":1024,"host_budget_bytes":5000})");
  report::Json none;
  report::add_transfers(none, graph.with_host_memory({}), &schedule, &plan);
  CHECK(none.empty());
}

TEST_CASE("the explanation names what is offloaded, when, and which steps wait", "[transfers]") {
  const Graph graph = passes();
  const Schedule schedule = moved();
  const Explanation explanation(graph, &schedule);
  check_says(explanation.text(false), {"offloaded  1 tensor, 1000 B moved to the host, 1000 B back"});
  check_says(explanation.text(true),
             {"largest on the host", "f0", "before step 2", "before step 4", "5000 ns", "2000 ns", "40.0%",
              "longest waits", "step 2, f2", "f0 to the host", "step 5, b0", "f0 to the device", "50.0%"});
  report::Json json;
  explanation.add_to(json);
  const report::Json& offload = json["offload"];
  CHECK(offload["waiting"] == 2000);
  CHECK(offload["to_host"]["busy"] == 2000);
  REQUIRE(offload["by_value"].size() == 1);
  check_fields(offload["by_value"][0], {{"name", "f0"},
                                        {"last_use_step", 1},
                                        {"leaves_step", 2},
                                        {"returns_step", 4},
                                        {"next_use_step", 5},
                                        {"away", 2000}});
  REQUIRE(offload["waits"].size() == 2);
  check_fields(offload["waits"][0], {{"step", 2}, {"name", "f2"}, {"time", 1000}, {"direction", "host"}});

  const Schedule without{schedule.steps};
  CHECK(contains(Explanation(graph, &without).text(true), "offloaded  nothing"));
  const Graph no_link = graph.with_host_memory({});
  report::Json plain;
  Explanation(no_link, &without).add_to(plain);
  CHECK_FALSE(plain.contains("offload"));
  CHECK_FALSE(plain["peak"]["schedule"].contains("after_step"));
}

TEST_CASE("pages show the host's memory, the link and the waits, and only with transfers", "[transfers]") {
  const Graph graph = passes();
  const auto page_of = [&](const Graph& of, const Schedule& schedule) {
    report::Report page{.title = "passes",
                        .graph = of,
                        .cost_unit = "ns",
                        .schedules = {{"baseline", baseline_schedule(of), {}}, {"schedule", schedule, {}}},
                        .shown = 1};
    report::add_transfers(page, of, schedule, nullptr);
    return page;
  };
  const report::Report page = page_of(graph, moved());
  REQUIRE(page.facts.size() == 4);
  CHECK(page.facts[2].name == "Waiting for copies");
  CHECK(page.facts[2].note == "25% of the time; 2 steps wait");
  REQUIRE(page.tables.size() == 2);
  REQUIRE(page.pictures.size() == 1);
  const std::string& svg = page.pictures[0].svg;
  check_says(svg, {"f0, 1000 B", "f0 to the host", "host memory (KiB)", "to device"});
  CHECK_FALSE(contains(svg, "nan"));
  CHECK(times(svg, "<rect class='point'") == 2);
  CHECK(times(svg, "<rect class='impossible'") == 2);
  const auto data = Json::parse(report::report_data(page));
  CHECK(data["tracks"][1]["before"] == Json({0, 1000, 3000, 4000, 5000, 7000}));
  CHECK(data["tracks"][1]["cost"] == 8000);
  CHECK(data["tracks"][1]["lives"]["first"].size() == 7);

  const Schedule without{moved().steps};
  for (const Graph& of : {graph, graph.with_host_memory({})}) {
    const report::Report plain = page_of(of, without);
    CHECK(plain.facts.empty());
    CHECK(plain.pictures.empty());
    CHECK(report::report_data(plain) == report::report_data(page_of(graph.with_host_memory({}), without)));
  }
}

TEST_CASE("pages with random transfers have the evaluator's numbers", "[transfers]") {
  for_each_schedule(200, [](const Graph& graph, const Schedule& schedule, const Link&) {
    report::Report page{.graph = graph, .schedules = {{"schedule", schedule, {}}}};
    report::add_transfers(page, graph, schedule, nullptr);
    const auto data = Json::parse(report::report_data(page));
    const Evaluation evaluation = evaluate(graph, schedule);
    const Json& track = data["tracks"][0];
    CHECK(track["cost"] == evaluation.cost);
    CHECK(track["peak"]["bytes"] == evaluation.peak);
    const std::vector<std::int64_t> bytes = track["bytes"];
    CHECK(*std::max_element(bytes.begin(), bytes.end()) == evaluation.peak);
  });
}

}  // namespace cairn::tests::transfers_test
