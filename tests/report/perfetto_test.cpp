#include "cairn/report/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/timeline.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/reference.h"
#include "cairn/tests/support/json.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/random_transfers.h"
#include "cairn/tests/support/schedules.h"

namespace cairn::tests::perfetto_test {

using namespace cairn::core;
using namespace cairn::report;

namespace {

using Json = nlohmann::json;

/// Converts microseconds of a trace to ns, rounded down, as a reader of the trace may do.
std::int64_t ns(const Json& microseconds) { return static_cast<std::int64_t>(microseconds.get<double>() * 1000); }

struct Trace {
  explicit Trace(const std::string& text) : json(Json::parse(text)) {}

  std::vector<Json> of(const std::string& phase) const {
    std::vector<Json> events;
    for (const Json& event : json["traceEvents"]) {
      if (event["ph"] == phase) events.push_back(event);
    }
    return events;
  }
  std::map<std::pair<int, int>, std::vector<Json>> slices() const {
    std::map<std::pair<int, int>, std::vector<Json>> tracks;
    for (const Json& event : of("X")) tracks[{event["pid"], event["tid"]}].push_back(event);
    return tracks;
  }
  /// Returns the name of the thread `tid` of a process. Without `tid`, returns the name of the process.
  std::string name(int pid, std::optional<int> tid) const {
    for (const Json& event : of("M")) {
      if (event["name"] != (tid ? "thread_name" : "process_name") || event["pid"] != pid) continue;
      if (!tid || event["tid"] == *tid) return event["args"]["name"];
    }
    return "";
  }
  /// Returns all slices of a process, one thread after the other.
  std::vector<Json> slices(int pid) const {
    std::vector<Json> all;
    for (const auto& [track, events] : slices()) {
      if (track.first == pid) all.insert(all.end(), events.begin(), events.end());
    }
    return all;
  }
  std::vector<Json> steps(const std::string& thread) const {
    for (const auto& [track, events] : slices()) {
      if (name(track.first, track.second) == thread) return events;
    }
    return {};
  }

  Json json;
};

/// Checks the properties of a trace that all readers of the format require.
void check_format(const Trace& trace) {
  for (const Json& event : trace.json["traceEvents"]) {
    CHECK(event["name"].is_string());
    CHECK(event["pid"].is_number_integer());
    if (event["ph"] == "M") continue;
    CHECK(event["ts"].is_number());
    CHECK(event["ts"] >= 0);
  }
  std::set<int> pids, tids;
  for (const auto& [track, events] : trace.slices()) {
    CHECK(tids.insert(track.second).second);  // all threads have different tids, even threads of different processes
    pids.insert(track.first);
    CHECK_FALSE(trace.name(track.first, track.second).empty());
    CHECK_FALSE(trace.name(track.first, {}).empty());
    std::int64_t end = 0;
    for (const Json& event : events) {
      CHECK(event["dur"] >= 0);
      CHECK(ns(event["ts"]) >= end);
      end = ns(event["ts"]) + ns(event["dur"]);
    }
  }
  for (const auto& [track, events] : trace.slices())
    CHECK((track.first == track.second || !pids.contains(track.second)));

  std::map<std::int64_t, Json> begun;
  for (const Json& event : trace.json["traceEvents"]) {
    if (event["ph"] == "s") CHECK(begun.emplace(event["id"], event).second);
    if (event["ph"] != "f") continue;
    const auto begin = begun.find(event["id"]);
    REQUIRE(begin != begun.end());
    check_fields(begin->second, {{"name", event["name"]}, {"cat", event["cat"]}});
    CHECK(begin->second["ts"] <= event["ts"]);
    CHECK(event["bp"] == "e");
    begun.erase(begin);
  }
  CHECK(begun.empty());
}

/// Checks how a trace shows the steps of a schedule: it has one slice for each step, one after the other, and its
/// counters have the values that the definitions give.
void check_steps(const Graph& graph, const Schedule& schedule, const Trace& trace, const std::string& thread,
                 const std::vector<double>& op_ns) {
  const std::vector<Json> steps = trace.steps(thread);
  REQUIRE(steps.size() == schedule.steps.size());
  double time = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const NodeId v = schedule.steps[i];
    const auto step = static_cast<std::int64_t>(i);
    const bool again = reference::stands(schedule, v, 0, step);
    CHECK(steps[i]["name"] == graph.name(v) + (again ? " (recomputed)" : ""));
    CHECK((steps[i]["cat"] == "recomputation") == again);
    CHECK(steps[i]["args"]["node"] == v);
    CHECK(std::abs(static_cast<double>(ns(steps[i]["ts"])) - time) <= 1);
    time += op_ns.empty() ? static_cast<double>(graph.cost(v)) : op_ns[i];
    CHECK(std::abs(static_cast<double>(ns(steps[i]["ts"]) + ns(steps[i]["dur"])) - time) <= 1);
  }
  // The events are read in the order of the file. The file has a slice first, and then the counter's value at the
  // beginning of the slice.
  std::int64_t live = -1;
  std::size_t next = 0;
  for (const Json& event : trace.json["traceEvents"]) {
    const bool slice = event["ph"] == "X" && event == steps[std::min(next, steps.size() - 1)];
    if (slice && next > 0) CHECK(live == reference::during(graph, schedule, static_cast<std::int64_t>(next) - 1));
    if (slice) ++next;
    if (event["name"] == thread + ": live") live = event["args"]["bytes"];
  }
  CHECK(next == steps.size());
  CHECK(live == reference::profile(graph, schedule).back());
}

void check_flows(const Schedule& schedule, const Trace& trace) {
  const std::vector<Json> steps = trace.steps("schedule");
  std::vector<std::int64_t> expected, linked;
  for (std::int64_t i = 0; i < schedule.length(); ++i) {
    if (reference::stands(schedule, schedule.steps[i], 0, i)) expected.push_back(i);
  }
  for (const Json& event : trace.of("f")) {
    const std::int64_t step = event["id"];
    linked.push_back(step);
    check_fields(event, {{"ts", steps[step]["ts"]}, {"tid", steps[step]["tid"]}});
  }
  CHECK(linked == expected);
  for (const Json& event : trace.of("s")) {
    const std::int64_t step = event["id"], first = steps[step]["args"]["first_run"];
    CHECK(schedule.steps[first] == schedule.steps[step]);
    CHECK_FALSE(reference::stands(schedule, schedule.steps[step], 0, first));
    CHECK(event["ts"] == steps[first]["ts"]);
  }
}

/// If the trace shows all tensors, checks that the tensors at each step, plus the node's scratch, add up to the memory
/// during the step.
void check_tensors(const Graph& graph, const Schedule& schedule, const Trace& trace, int pid) {
  if (trace.name(pid, {}).find("the largest") != std::string::npos) return;
  std::vector<std::int64_t> bytes(schedule.steps.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = graph.scratch(schedule.steps[i]);
  const std::vector<Json> steps = trace.steps(pid == 2 ? "schedule" : "baseline");
  for (const Json& event : trace.slices(pid)) {
    const std::int64_t first = event["args"]["first_step"], last = event["args"]["last_step"];
    for (std::int64_t i = first; i <= std::min(last, schedule.length() - 1); ++i)
      bytes[i] += event["args"]["bytes"].get<std::int64_t>();
    const Json& end = steps[std::min<std::size_t>(last, steps.size() - 1)];
    CHECK(event["ts"] == steps[first]["ts"]);
    CHECK(ns(event["ts"]) + ns(event["dur"]) == ns(end["ts"]) + ns(end["dur"]));
  }
  for (std::int64_t i = 0; i < schedule.length(); ++i) CHECK(bytes[i] == reference::during(graph, schedule, i));
}

}  // namespace

TEST_CASE("a trace has slices, counters, flows and tensors of schedule and baseline", "[formats][perfetto]") {
  for_each_schedule(500, [](Random& random, const Graph& graph, const Schedule& schedule) {
    const Schedule baseline = baseline_schedule(graph);
    std::vector<double> scheduled_ns, baseline_ns;
    if (random.chance(50)) {
      const auto duration = [&] { return static_cast<double>(random.below(5'000'000)) / 997; };
      for (std::int64_t i = 0; i < schedule.length(); ++i) scheduled_ns.push_back(duration());
      for (std::int64_t i = 0; i < baseline.length(); ++i) baseline_ns.push_back(duration());
    }
    const Trace both(perfetto_trace(graph, {&schedule, nullptr, scheduled_ns}, {&baseline, nullptr, baseline_ns}));
    check_format(both);
    check_steps(graph, schedule, both, "schedule", scheduled_ns);
    check_steps(graph, baseline, both, "baseline", baseline_ns);
    check_flows(schedule, both);
    check_tensors(graph, schedule, both, 2);
    check_tensors(graph, baseline, both, 3);

    const Trace alone(perfetto_trace(graph, {&schedule, nullptr, scheduled_ns}));
    check_format(alone);
    check_steps(graph, schedule, alone, "schedule", scheduled_ns);
    CHECK(alone.steps("baseline").empty());
  });
}

TEST_CASE("a trace by hand: arena, offsets, names, microseconds", "[formats][perfetto]") {
  const Graph graph = build_graph(
      {make_node("a", 4, {}, 1000), make_node("b\n\x01\"\\<\xff", 8, {0}, 2000), make_node("c", 2, {1, 0}, 500)});
  const Schedule schedule{.steps = {0, 1, 0, 2}};
  const Plan plan{.bytes = 14,
                  .lower_bound = 14,
                  .alignment = 1,
                  .buffers = {{.node = 0, .first = 0, .last = 1, .size = 4, .offset = 8},
                              {.node = 1, .first = 1, .last = 3, .size = 8, .offset = 0},
                              {.node = 0, .first = 2, .last = 3, .size = 4, .offset = 8},
                              {.node = 2, .first = 3, .last = 3, .size = 2, .offset = 12}}};
  const Trace trace(perfetto_trace(graph, {&schedule, &plan, {}}));
  check_format(trace);
  const std::vector<Json> steps = trace.steps("schedule");
  REQUIRE(steps.size() == 4);
  // This is the node's name, in which only the bytes that are not UTF-8 were replaced.
  CHECK(steps[1]["name"] == "b\n\x01\"\\<\xEF\xBF\xBD");
  check_fields(steps[1], {{"ts", 1.0}, {"dur", 2.0}});
  CHECK(steps[3]["ts"] == 4.0);
  CHECK(steps[2]["args"]["first_run"] == 0);
  std::vector<std::int64_t> arena, offsets;
  for (const Json& event : trace.of("C")) {
    if (event["name"] == "schedule: arena") arena.push_back(event["args"]["bytes"]);
  }
  CHECK(arena == std::vector<std::int64_t>{12, 14});
  for (const Json& event : trace.slices(2)) offsets.push_back(event["args"]["offset"]);
  std::sort(offsets.begin(), offsets.end());
  CHECK(offsets == std::vector<std::int64_t>{0, 8, 8, 12});
  CHECK(trace.of("s").size() == 1);

  const std::vector<double> two{1, 2};
  CHECK_THROWS_AS(perfetto_trace(graph, {&schedule, &plan, two}), InputError);
}

TEST_CASE("of many tensors a trace shows the largest, and says so", "[formats][perfetto]") {
  GraphBuilder builder;
  std::vector<NodeId> all;
  for (NodeId v = 0; v < 100; ++v) {
    builder.add(make_node(fmt::format("n{}", v), v + 1));
    all.push_back(v);
  }
  builder.add(make_node("end", 0, all));
  const Graph graph = builder.build();
  const Schedule schedule = baseline_schedule(graph);
  const Trace trace(perfetto_trace(graph, {&schedule, nullptr, {}}));
  check_format(trace);
  std::int64_t shown = 0, least = 1000;
  for (const Json& event : trace.slices(2)) {
    ++shown;
    least = std::min(least, event["args"]["bytes"].get<std::int64_t>());
  }
  CHECK(shown == 24);  // all tensors are live at once, and each has a track of its own
  CHECK(least == 77);
  CHECK(trace.name(2, {}) == "tensors of the schedule (24 of 100, the largest)");
}

TEST_CASE("a trace of a schedule with transfers has its copies and waits at their times", "[perfetto]") {
  std::int64_t copies = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const Link link = random_link(random);
    const Graph graph = random_graph(random, any_graph(seed)).with_host_memory(HostMemory{link});
    const Schedule schedule = with_random_transfers(random, graph, random_schedule(random, graph));
    const Schedule baseline = baseline_schedule(graph);
    INFO("seed " << seed << show(schedule.transfers));
    const Trace trace(perfetto_trace(graph, {.schedule = &schedule}, {.schedule = &baseline}));
    check_format(trace);
    const Timeline times = timeline(graph, schedule, link);
    const std::vector<Json> steps = trace.steps("schedule");
    REQUIRE(steps.size() == schedule.steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      CHECK(ns(steps[i]["ts"]) == times.steps[i].begin);
      CHECK(ns(steps[i]["dur"]) == times.steps[i].end - times.steps[i].begin);
    }
    const auto& [evicts, fetches] = schedule.transfers;
    std::size_t arrows = 0;
    for (const Json& event : trace.of("f")) arrows += event["cat"] == "transfer" ? 1 : 0;
    CHECK(arrows == fetches.size());
    CHECK(trace.steps("copies to the host").size() == evicts.size());
    for (const Json& copy : trace.steps("copies to the host")) {
      const auto k = copy["args"]["evict"].get<std::size_t>();
      CHECK(ns(copy["ts"]) == times.evicts[k].begin);
      CHECK(copy["name"] == graph.value_name(evicts[k].value));
      CHECK(copy["args"]["bytes"] == graph.value_size(evicts[k].value));
    }
    CHECK(trace.steps("copies to the device").size() == fetches.size());
    for (const Json& copy : trace.steps("copies to the device")) {
      const auto k = copy["args"]["fetch"].get<std::size_t>();
      CHECK(ns(copy["ts"]) == times.fetches[k].begin);
      CHECK(copy["args"]["evict"] == fetches[k].evict);
      ++copies;
    }
    std::int64_t most = 0, live = 0, last = 0;
    for (const Json& event : trace.of("C")) {
      const std::int64_t bytes = event["args"]["bytes"];
      if (event["name"] == "schedule: host") most = std::max(most, last = bytes);
      if (event["name"] == "schedule: live") live = std::max(live, bytes);
    }
    CHECK(most == host_peak(graph, schedule));
    CHECK(last == 0);
    CHECK(live == evaluate(graph, schedule).peak);
  }
  CHECK(copies > 100);
}

}  // namespace cairn::tests::perfetto_test
