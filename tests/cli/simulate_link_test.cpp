#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "cairn/core/formats/support/transfers.h"
#include "cairn/core/link.h"
#include "cairn/core/support/timeline.h"
#include "cairn/sim/generator.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"
#include "cairn/tests/cli/simulate_case.h"
#include "cairn/tests/sim/moved_candidates.h"

namespace cairn::tests::simulate_link_test {
namespace {

constexpr const char* kLink = "1GB/s,3ns,half";

struct Case {
  Folder folder;
  core::Graph graph = sweep_graph();
  core::Graph linked = graph.with_host_memory(core::HostMemory{.link = core::parse_link(kLink)});
  std::string path = folder.write("g.json", core::graph_to_json(graph));

  Outcome run(const Words& words) const { return run_command(Words{"simulate", path} + words); }
  Json json(const Words& words) const { return run_json(Words{"simulate", path} + words); }
};

/// Checks the mean and the quantiles that `simulate --json` prints for `numbers`. A printed quantile may be too low by
/// up to 1/1024 of its value.
void check_spread(const Json& shown, std::vector<std::int64_t> numbers) {
  std::ranges::sort(numbers);
  double sum = 0;
  for (const std::int64_t number : numbers) sum += static_cast<double>(number);
  CHECK(shown["mean"] == Approx(sum / static_cast<double>(numbers.size())));
  CHECK(shown["p0"] == numbers.front());
  CHECK(shown["p100"] == numbers.back());
  for (const std::size_t percent : {1, 5, 25, 50, 75, 95, 99}) {
    const std::int64_t exact = numbers[(numbers.size() * percent + 99) / 100 - 1];
    const auto found = shown["p" + std::to_string(percent)].get<std::int64_t>();
    CHECK((found <= exact && exact - found <= exact / 1024));
  }
}

std::string line_of(const core::Graph& graph, const core::Schedule& schedule) {
  Json line{{"steps", schedule.steps}};
  line["transfers"] = Json::parse(core::formats::to_json(graph, schedule.transfers).dump());
  return line.dump() + "\n";
}

}  // namespace

TEST_CASE("simulate --link draws transfers, and shows makespans and peaks on the host") {
  const Case test;
  constexpr std::int64_t kTotal = 2000;
  const sim::Generator generator{.seed = 5, .moves = 4, .transfers = 9};
  std::vector<std::int64_t> makespans, host_peaks;
  std::vector<sim::Entry> entries;
  for (std::int64_t i = 0; i < kTotal; ++i) {
    const core::Evaluation evaluation = core::evaluate(test.linked, sim::generate(test.linked, generator, i));
    REQUIRE(evaluation.valid());
    makespans.push_back(evaluation.cost);
    host_peaks.push_back(evaluation.host_peak);
    entries.push_back({evaluation.peak, evaluation.cost, i});
  }
  const std::string best = test.folder / "best.json", csv = test.folder / "r.csv";
  const Words words{"--random", "2k",          "--seed", "5",      "--recompute", "4",  "--link",
                    kLink,      "--transfers", "9",      "--best", best,          "-o", csv};
  const auto json = test.json(words);
  check_fields(json, {{"link", "1000000000B/s,3ns,half"}, {"transfers", 9}, {"valid", kTotal}});
  check_spread(json["makespan"], makespans);
  check_spread(json["host_peak_bytes"], host_peaks);
  const sim::Entry least = *std::ranges::min_element(entries);
  CHECK(json["best"] == Json{{"index", least.index}, {"peak_bytes", least.peak}, {"cost", least.cost}});
  CHECK(core::load_schedule(best, test.linked).schedule == sim::generate(test.linked, generator, least.index));
  CHECK(read_text(csv).starts_with("index,valid,peak_bytes,peak_step,cost,rank,pareto,host_peak_bytes\n"));

  // A sweep of 700 candidates that is continued from its checkpoint gives the same result as one uninterrupted sweep.
  const Words checkpoint{"--checkpoint", test.folder / "c.json"};
  Words first = words;
  first[1] = "700";
  CHECK(run_command(Words{"simulate", test.path} + first + checkpoint).code == 0);
  CHECK(without_circumstances(test.json(words + checkpoint)) == without_circumstances(json));
  for (const auto& [place, value] : std::vector<std::pair<std::size_t, std::string>>{{9, "8"}, {7, "2GB/s"}}) {
    Words other = words;
    other[place] = value;
    check_error(test.run(other + checkpoint), 2, {"c.json", "was made by a sweep"});
  }
  CHECK_FALSE(test.json({"--random", "10"}).contains("makespan"));

  // With a device budget and a host budget, a candidate is within the budget only if it is within both.
  std::ranges::sort(host_peaks);
  const std::int64_t budget = entries[7].peak, host_budget = host_peaks[kTotal / 2];
  std::int64_t within = 0, on_host = 0;
  for (std::int64_t i = 0; i < kTotal; ++i) {
    const core::Evaluation evaluation = core::evaluate(test.linked, sim::generate(test.linked, generator, i));
    on_host += evaluation.host_peak <= host_budget ? 1 : 0;
    within += evaluation.host_peak <= host_budget && evaluation.peak <= budget ? 1 : 0;
  }
  const Words limited = Words{words.begin(), words.end() - 4} + Words{"--host-budget", std::to_string(host_budget)};
  check_fields(test.json(limited), {{"within_budget", on_host}, {"host_budget_bytes", host_budget}});
  const Words both = limited + Words{"--budget", std::to_string(budget)};
  check_fields(test.json(both), {{"within_budget", within}});
  check_says(test.run(both).out, {"on the host: ", "candidates within it"});
  Words other = limited + checkpoint;
  check_error(test.run(other), 2, {"c.json", "host budget"});
}

TEST_CASE("simulate --schedules reads transfers") {
  const Case test;
  Random random(44);
  std::string lines, rows = "line,valid,peak_bytes,peak_step,cost,host_peak_bytes\n";
  std::vector<std::int64_t> makespans, host_peaks;
  std::int64_t invalid = 0;
  for (std::int64_t line = 1; line <= 300; ++line) {
    core::Schedule schedule = moved_candidate(random, test.linked);
    const auto exists = [&](const core::Evict& evict) {
      return evict.value >= 0 && evict.value < test.graph.value_count();
    };
    const auto has_evict = [&](const core::Fetch& fetch) {
      return fetch.evict >= 0 && fetch.evict < std::ssize(schedule.transfers.evicts);
    };
    // An evict of an unknown value or a fetch without an evict would make a bad line. This test wants only good lines,
    // so such a schedule loses all its transfers.
    if (!std::ranges::all_of(schedule.transfers.evicts, exists) ||
        !std::ranges::all_of(schedule.transfers.fetches, has_evict)) {
      schedule.transfers = {};
    }
    lines += line_of(test.graph, schedule);
    const core::Evaluation evaluation = core::evaluate(test.linked, schedule);
    if (evaluation.valid()) {
      rows += fmt::format("{},1,{},{},{},{}\n", line, evaluation.peak, evaluation.peak_step, evaluation.cost,
                          evaluation.host_peak);
      makespans.push_back(evaluation.cost);
      host_peaks.push_back(evaluation.host_peak);
    } else {
      rows += fmt::format("{},0,,,,\n", line);
      ++invalid;
    }
  }
  const std::string file = test.folder.write("l.txt", lines), csv = test.folder / "r.csv";
  const auto json = test.json({"--schedules", file, "--link", kLink, "-o", csv, "--at-once", "70"});
  check_fields(json, {{"candidates", 300}, {"invalid", invalid}, {"transfers", nullptr}});
  CHECK(invalid > 20);
  check_spread(json["makespan"], makespans);
  check_spread(json["host_peak_bytes"], host_peaks);
  CHECK(read_text(csv) == rows);
  // Without a link, the cost is the sum of the steps' costs. With a link, it is the makespan, which is at least that
  // sum. So the largest cost without a link must not exceed the largest cost with it.
  CHECK(test.json({"--schedules", file})["most_cost"] <= json["most_cost"]);
}

TEST_CASE("simulate refuses bad links and transfers in one line") {
  const Case test;
  const std::string steps = Json(core::baseline_schedule(test.graph).steps).dump();
  const auto refuses = [&](const std::string& transfers, const Words& fragments) {
    const std::string path =
        test.folder.write("l.txt", R"({"steps":)" + steps + R"(,"transfers":)" + transfers + "}\n");
    check_error(test.run({"--schedules", path, "--link", "pcie4"}), 2, Words{path, "line 1"} + fragments);
  };
  refuses("7", {"must be an object"});
  refuses(R"({"evicts":[]})", {"fetches"});
  refuses(R"({"evicts":[{"value":99,"made":0,"start":0,"finish":1}],"fetches":[]})", {"evict 0"});
  refuses(R"({"evicts":[],"fetches":[{"evict":0,"start":0,"finish":1}]})", {"fetch 0"});
  check_error(test.run({"--random", "10", "--link", "0B/s"}), 2, {"link"});
  check_error(test.run({"--random", "10", "--link", "1GB/s,-1ns"}), 2, {"negative"});
  check_error(test.run({"--random", "10", "--link", ""}), 2, {"--link", "is empty"});
  check_error(test.run({"--random", "10", "--host-budget", "1GiB"}), 2, {"--host-budget", "--link"});
  check_error(test.run({"--random", "10", "--transfers", "5"}), 2, {"--transfers", "--link"});
  check_error(test.run({"--random", "10", "--link", "pcie4", "--transfers", "-1"}), 2, {"--transfers"});
  check_error(test.run({"--schedules", test.path, "--link", "pcie4", "--transfers", "5"}), 2, {"--random"});
}

}  // namespace cairn::tests::simulate_link_test
