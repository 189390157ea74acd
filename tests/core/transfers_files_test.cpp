#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cairn/core/formats/files.h"
#include "cairn/core/link.h"
#include "cairn/core/profile.h"
#include "cairn/core/schedule.h"
#include "cairn/core/support/timeline.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/reference/transfers.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/random_graph.h"
#include "cairn/tests/support/random_transfers.h"
#include "cairn/tests/support/schedules.h"
#include "cairn/tests/support/seeds.h"

namespace cairn::core::transfers_files_test {
namespace {

using nlohmann::json;
using tests::check_line;
using tests::error_of;
using tests::Random;

TEST_CASE("transfers survive their file", "[formats]") {
  int with_transfers = 0;
  tests::for_each_schedule(1500, [&](Random& random, const Graph& graph, const Schedule& steps) {
    const Schedule schedule = tests::with_random_transfers(random, graph, steps);
    const std::string text = schedule_to_json(graph, schedule, "test");
    const ScheduleFile file = parse_schedule(text, "s.json", graph);
    REQUIRE(file.schedule == schedule);
    REQUIRE(file.peak_bytes == reference::peak_with_transfers(graph, schedule));
    REQUIRE(schedule_to_json(graph, file.schedule, "test") == text);
    const json object = json::parse(text);
    if (schedule.transfers.empty()) {
      REQUIRE_FALSE(object.contains("transfers"));
      REQUIRE_FALSE(object.contains("host_peak_bytes"));
      return;
    }
    ++with_transfers;
    REQUIRE(object["host_peak_bytes"] == reference::host_peak(graph, schedule));
    REQUIRE(object["transfers"]["evicts"].size() == schedule.transfers.evicts.size());
    REQUIRE(object["transfers"]["fetches"].size() == schedule.transfers.fetches.size());
  });
  CHECK(with_transfers > 300);
}

/// Returns a graph of three nodes. Node x has two outputs. Node y reads the second output, and node z reads both.
Graph pair() {
  Node x = tests::make_node("x");
  x.outputs = {{.size = 8, .keep = false, .inplace = {}, .name = ""},
               {.size = 4, .keep = true, .inplace = {}, .name = ""}};
  Node y = tests::make_node("y", 2), z = tests::make_node("z", 1);
  y.inputs = {{0, 1}};
  z.inputs = {{0, 0}, {0, 1}, {1, 0}};
  z.keep = true;
  return tests::build_graph({x, y, z});
}

/// Returns a schedule file in which the first output of x is evicted to the host while y runs.
json valid_file() {
  return {{"format", "cairn.schedule"},
          {"version", 1},
          {"graph", pair().fingerprint()},
          {"steps", {0, 1, 2}},
          {"transfers",
           {{"evicts", {{{"value", 0}, {"made", 0}, {"start", 0}, {"finish", 1}}}},
            {"fetches", {{{"evict", 0}, {"start", 1}, {"finish", 2}}}}}}};
}

std::string error_with(const std::string& pointer, const json& value) {
  json file = valid_file();
  file[json::json_pointer(pointer)] = value;
  return error_of([&] { parse_schedule(file.dump(), "s.json", pair()); });
}
std::string error_without(const std::string& object, const std::string& key) {
  json file = valid_file();
  file[json::json_pointer(object)].erase(key);
  return error_of([&] { parse_schedule(file.dump(), "s.json", pair()); });
}

TEST_CASE("a file names the value of an evict as inputs are named", "[formats]") {
  const Graph graph = pair();
  const ScheduleFile first = parse_schedule(valid_file().dump(), "s.json", graph);
  CHECK(first.schedule.transfers == Transfers{{{0, 0, 0, 1}}, {{0, 1, 2}}});
  CHECK(json::parse(schedule_to_json(graph, first.schedule, "x"))["transfers"] == valid_file()["transfers"]);
  json file = valid_file();
  file["transfers"]["evicts"][0] = {{"value", {0, 1}}, {"made", 0}, {"start", 1}, {"finish", 2}};
  const ScheduleFile second = parse_schedule(file.dump(), "s.json", graph);
  CHECK(second.schedule.transfers.evicts[0].value == 1);
  CHECK(json::parse(schedule_to_json(graph, second.schedule, "x"))["transfers"] == file["transfers"]);
}

TEST_CASE("wrong transfers in a file are one line that says where", "[formats]") {
  check_line(error_with("/transfers", 3), {"s.json", "\"transfers\" must be an object"});
  check_line(error_with("/transfers", json::array()), {"s.json", "\"transfers\" must be an object"});
  check_line(error_with("/transfers", json::object()), {"s.json", "\"evicts\" is missing"});
  check_line(error_without("/transfers", "fetches"), {"\"fetches\" is missing"});
  check_line(error_with("/transfers/evicts", 1), {"\"evicts\""});
  check_line(error_with("/transfers/fetches", "x"), {"\"fetches\""});
  check_line(error_with("/transfers/evicts/0", 7), {"evict 0", "must be an object"});
  check_line(error_with("/transfers/fetches/0", json::array()), {"fetch 0", "must be an object"});
  for (const std::string key : {"value", "made", "start", "finish"}) {
    check_line(error_without("/transfers/evicts/0", key), {"evict 0", "\"" + key + "\" is missing"});
    check_line(error_with("/transfers/evicts/0/" + key, "1"), {"evict 0", key});
    check_line(error_with("/transfers/evicts/0/" + key, 0.5), {"evict 0", key});
  }
  for (const std::string key : {"evict", "start", "finish"}) {
    check_line(error_without("/transfers/fetches/0", key), {"fetch 0", "\"" + key + "\" is missing"});
    check_line(error_with("/transfers/fetches/0/" + key, json()), {"fetch 0", key});
    check_line(error_with("/transfers/fetches/0/" + key, 1.5), {"fetch 0", key});
  }
  check_line(error_with("/transfers/evicts/0/value", 3), {"evict 0", "value", "3"});
  check_line(error_with("/transfers/evicts/0/value", -1), {"evict 0", "value", "-1"});
  check_line(error_with("/transfers/evicts/0/value", {0, 2}), {"evict 0", "output 2 of node 0", "only 2"});
  check_line(error_with("/transfers/evicts/0/value", {0, -1}), {"evict 0", "value"});
  check_line(error_with("/transfers/evicts/0/value", {0, 0, 0}), {"evict 0", "value"});
  check_line(error_with("/transfers/fetches/0/evict", 1), {"fetch 0", "1"});
  check_line(error_with("/transfers/fetches/0/evict", -1), {"fetch 0", "-1"});
  check_line(error_with("/transfers/evicts/0/made", 1e30), {"evict 0", "made"});
}

TEST_CASE("transfers in a file that are not valid are one line that says why", "[formats]") {
  check_line(error_with("/transfers/evicts/0/made", 1), {"s.json", "evict 0 of 'x'", "made"});
  check_line(error_with("/transfers/evicts/0/made", -1), {"evict 0 of 'x'", "made"});
  check_line(error_with("/transfers/evicts/0/start", -1), {"evict 0 of 'x'", "starts before"});
  check_line(error_with("/transfers/evicts/0/finish", 0), {"evict 0 of 'x'", "`finish` is not after `start`"});
  check_line(error_with("/transfers/evicts/0/finish", 4), {"evict 0 of 'x'", "after the end"});
  check_line(error_with("/transfers/evicts/0/finish", INT64_MAX), {"evict 0 of 'x'", "after the end"});
  check_line(error_with("/transfers/fetches/0/start", INT64_MIN), {"fetch 0 of 'x'", "before its evict is over"});
  check_line(error_with("/transfers/fetches/0/finish", 1), {"fetch 0 of 'x'", "`finish` is not after `start`"});
  check_line(error_with("/transfers/fetches/0/finish", 3), {"fetch 0 of 'x'", "after the last step"});
  check_line(error_with("/transfers/fetches", json::array()), {"step 2", "'z'", "'x'", "on the host"});
  check_line(error_with("/transfers/evicts/1", valid_file()["transfers"]["evicts"][0]), {"evict 1", "twice"});
  check_line(error_with("/transfers/fetches/1", valid_file()["transfers"]["fetches"][0]), {"fetch", "nothing reads"});
  const json second = {{"value", {0, 1}}, {"made", 0}, {"start", 1}, {"finish", 3}};
  check_line(error_with("/transfers/evicts/1", second), {"'x' is kept", "on the host at the end"});
}

TEST_CASE("unknown keys of transfers are warnings", "[formats]") {
  json file = valid_file();
  file["transfers"]["evicts"][0]["finsh"] = 1;
  file["transfers"]["fetchs"] = 1;
  std::vector<std::string> warnings;
  ReadOptions options;
  options.warn = [&](const ReadWarning& warning) { warnings.push_back(warning.text); };
  parse_schedule(file.dump(), "s.json", pair(), "", options);
  REQUIRE(warnings.size() == 2);
  CHECK(tests::contains(warnings[0] + warnings[1], "fetchs"));
  CHECK(tests::contains(warnings[0] + warnings[1], "finsh"));
}

TEST_CASE("links are parsed") {
  CHECK(parse_link("25GB/s") == Link{25'000'000'000, 0, true});
  CHECK(parse_link("1GiB/s,3us") == Link{1'073'741'824, 3'000, true});
  CHECK(parse_link("12B/s,half") == Link{12, 0, false});
  CHECK(parse_link("1.5KB/s, half, 2ms") == Link{1'500, 2'000'000, false});
  CHECK(parse_link(" 1e9B/s , 7ns , duplex ") == Link{1'000'000'000, 7, true});
  CHECK(parse_link("9223372036854775807B/s,0ns") == Link{INT64_MAX, 0, true});
  CHECK(parse_link("pcie4,half").duplex == false);
  CHECK(parse_link("pcie4,half").bytes_per_second == parse_link("pcie4").bytes_per_second);
  CHECK(parse_link("c2c,1us").latency_ns == 1'000);
  std::int64_t before = 0;
  for (const std::string name : {"pcie3", "pcie4", "pcie5", "c2c"}) {
    const Link link = parse_link(name);
    CHECK(link.bytes_per_second > before);
    CHECK(link.latency_ns > 0);
    CHECK(link.duplex);
    CHECK(parse_link(to_string(link)) == link);
    before = link.bytes_per_second;
  }
}

TEST_CASE("the text of a link is read as the same link") {
  tests::for_each_seed(3000, [](Random& random) {
    const Link link{.bytes_per_second = random.between(1, random.chance(50) ? 1'000'000 : INT64_MAX - 1),
                    .latency_ns = random.chance(30) ? random.below(10) : random.between(0, 3'600'000'000'000),
                    .duplex = random.chance(50)};
    REQUIRE(parse_link(to_string(link)) == link);
    check_line(describe(link), {link.duplex ? "both directions at once" : "one direction at a time"});
  });
  CHECK(to_string(Link{25'000'000'000, 10'000, true}) == "25000000000B/s,10000ns,duplex");
  CHECK(describe(Link{25'000'000'000, 10'000, true}) == "25 GB/s with a latency of 10.00 us, both directions at once");
}

TEST_CASE("texts that are no link are one line that says what is accepted") {
  for (const std::string text : {"",
                                 ",",
                                 " ",
                                 "25",
                                 "25GB",
                                 "GB/s",
                                 "/s",
                                 "0B/s",
                                 "0GB/s",
                                 "-1GB/s",
                                 "0.0GB/s",
                                 "nanB/s",
                                 "infGB/s",
                                 "1e400B/s",
                                 "99999999999999999999B/s",
                                 "1e19B/s",
                                 "9EB/s,1us,1us",
                                 "25 parsecs/s",
                                 "25GB/h",
                                 "25Gbit/s",
                                 "pcie",
                                 "pcie9",
                                 "PCIE 4",
                                 "pcie4 half",
                                 "nvlink",
                                 "25GB/s,",
                                 "25GB/s,,half",
                                 "25GB/s,-1us",
                                 "25GB/s,-0.5ns",
                                 "25GB/s,us",
                                 "25GB/s,10",
                                 "25GB/s,10parsecs",
                                 "25GB/s,1e400us",
                                 "25GB/s,nanus",
                                 "25GB/s,infns",
                                 "25GB/s,2h",
                                 "25GB/s,61m",
                                 "25GB/s,both",
                                 "25GB/s,half,half",
                                 "25GB/s,half,duplex",
                                 "25GB/s,1us,half,x",
                                 "half",
                                 "10us",
                                 "half,25GB/s",
                                 "25GB/s\n,half",
                                 "25GB/s;half",
                                 "pcie4,25GB/s"}) {
    CAPTURE(text);
    check_line(error_of([&] { parse_link(text); }), {"pcie3, pcie4, pcie5, c2c", "25GB/s,10us,half"});
  }
  check_line(error_of([] { parse_link("0B/s"); }), {"bandwidth"});
  check_line(error_of([] { parse_link("25GB/s,-1us"); }), {"latency is negative"});
  check_line(error_of([] { parse_link("25GB/s,half,half"); }), {"twice"});
}

}  // namespace
}  // namespace cairn::core::transfers_files_test
