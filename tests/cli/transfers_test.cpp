// Tests --link and --host-budget: what solve, info and pareto print about transfers, and the messages about bad input.
#include "cairn/tests/reference/transfers.h"

#include "cairn/core/formats/files.h"
#include "cairn/core/profile.h"
#include "cairn/core/support/timeline.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"
#include "cairn/tests/support/parts.h"

namespace cairn::tests::transfers_test {
namespace {

/// Writes a graph of a forward and a backward pass, and returns the file's path. Each forward node has 1000 bytes and
/// takes 1000 units of time. Its output is read by the next forward node and by its own backward node.
std::string write_passes(const Folder& folder, const std::string& unit = "ns", int layers = 12) {
  core::GraphBuilder builder("passes");
  for (int k = 0; k < layers; ++k) {
    core::Node node{.name = "f" + std::to_string(k), .size = 1000, .cost = 1000};
    if (k > 0) node.inputs = {k - 1};
    builder.add(std::move(node));
  }
  for (int k = layers - 1; k >= 0; --k) {
    core::Node node{.name = "b" + std::to_string(k), .size = 10, .cost = 1000, .backward = true, .inputs = {k}};
    node.forward = k;
    if (k + 1 < layers) node.inputs.push_back(builder.node_count() - 1);
    node.keep = k == 0;
    builder.add(std::move(node));
  }
  builder.set_cost_unit({.name = unit});
  return folder.write("passes.json", core::graph_to_json(builder.build()));
}

const Words kWork = {"--work-limit", "300000"};

}  // namespace

TEST_CASE("solve --link says the makespan, what moves, and what waits") {
  const Folder folder;
  const std::string path = write_passes(folder);
  const Words words = Words{"solve", path, "--budget", "60%", "--link", "700MB/s,10ns"} + kWork;
  const Json json =
      run_json(words + Words{"-o", folder / "s.json", "--trace", folder / "t.json", "--report", folder / "r.html"});
  const core::Link link{.bytes_per_second = 700'000'000, .latency_ns = 10};
  const core::Graph graph = core::load_graph(path).with_host_memory(core::HostMemory{link});
  const core::Schedule schedule = core::load_schedule(folder / "s.json", graph).schedule;
  REQUIRE_FALSE(schedule.transfers.empty());
  const core::Timeline times = core::timeline(graph, schedule, link);
  CHECK(json["link"] == Json({{"bytes_per_second", 700'000'000}, {"latency_ns", 10}, {"duplex", true}}));
  check_fields(json, {{"makespan", times.makespan},
                      {"cost", times.makespan},
                      {"compute_cost", times.compute},
                      {"waiting", times.waiting},
                      {"evicts", schedule.transfers.evicts.size()},
                      {"fetches", schedule.transfers.fetches.size()},
                      {"moved_bytes", core::reference::moved_bytes(graph, schedule)},
                      {"host_peak_bytes", core::host_peak(graph, schedule)},
                      {"host_budget_bytes", nullptr}});
  CHECK(json["host_planned_bytes"] >= json["host_peak_bytes"]);
  CHECK(json["offload"]["to_host"]["copies"] == json["evicts"]);
  check_says(run_command(words + Words{"--explain"}).out,
             {"recomputed, ", "% waiting for copies", "\nlink ", "0.7 GB/s", "\ntransfers ", " to the host with ",
              "\nlink busy ", "\nhost memory ", "\nlargest on the host "});
  CHECK(contains(read_text(folder / "t.json"), "copies to the host"));
  CHECK(contains(read_text(folder / "r.html"), "Host memory and copies over time"));

  const Json plain = run_json(Words{"solve", path, "--budget", "60%"} + kWork);
  for (const char* key : {"link", "makespan", "waiting", "evicts", "host_budget_bytes", "offload"})
    CHECK_FALSE(plain.contains(key));
  CHECK(json["cost"] <= plain["cost"]);
}

TEST_CASE("with a link, the least budget is lower, and a search within it finds it again") {
  const Folder folder;
  const std::string path = write_passes(folder);
  const Words link = {"--link", "c2c"};
  const Json alone = run_json(Words{"info", path} + kWork), moved = run_json(Words{"info", path} + link + kWork);
  CHECK(moved["least_feasible_bytes"] < alone["least_feasible_bytes"]);
  CHECK(moved["lower_bound_peak_bytes"] == core::peak_lower_bound(core::load_graph(path)));
  const Words budget = {"--budget", std::to_string(moved["least_feasible_bytes"].get<std::int64_t>())};
  const Json solved = run_json(Words{"solve", path} + budget + link + kWork);
  CHECK(solved["evicts"] > 0);
  const Json least = run_json(Words{"solve", path, "--budget", "min"} + link + kWork);
  CHECK(least["planned_bytes"] <= moved["least_feasible_bytes"]);
  const Json inside = run_json(Words{"info", path} + budget + link + kWork);
  check_fields(inside, {{"fits", true}, {"means", "transfers"}});
  CHECK(contains(inside["verdict"], "fits by moving "));
}

TEST_CASE("a host budget that is too small is answered with one that suffices") {
  const Folder folder;
  const std::string path = write_passes(folder);
  const Words words =
      Words{"solve", path, "--link", "c2c", "--budget", "3020", "--order", "input", "--max-occurrences", "1"} + kWork;
  const Outcome refused = run_command(words + Words{"--host-budget", "2000"});
  check_error(refused, 4,
              {"found no schedule of 'passes' within", "the host's memory is too small",
               "a schedule is known for --host-budget "});
  const std::string told = "--host-budget ";
  std::string size = refused.err.substr(refused.err.find(told) + told.size());
  size = size.substr(0, size.find('\n'));
  const Json json = run_json(words + Words{"--host-budget", size});
  CHECK(json["host_planned_bytes"] <= json["host_budget_bytes"]);
  CHECK(json["host_budget_bytes"] > 2000);
}

TEST_CASE("a given schedule keeps the host budget, and no CSV holds its plan") {
  const Folder folder;
  const std::string path = write_passes(folder), schedule = folder / "moved.json";
  const Words link = {"--link", "c2c", "--budget", "3020"};
  const Json json =
      run_json(Words{"solve", path, "--order", "input", "--max-occurrences", "1", "-o", schedule} + link + kWork);
  REQUIRE(json["host_planned_bytes"] > 2000);
  const Words run = Words{"run", path, "--schedule", schedule, "--backend", "host"} + link;
  CHECK(run_command(run).code == 0);
  check_error(run + Words{"--host-budget", "2000"}, 4, {"on the host as planned", "raise --host-budget"});
  check_error({"plan", path, schedule, "--csv", folder / "p.csv"}, 2, {"cannot hold a plan with transfers"});
}

TEST_CASE("info --link says whether the link pays") {
  const Folder folder;
  const std::string path = write_passes(folder);
  const Json json = run_json(Words{"info", path, "--link", "450GB/s"} + kWork);
  const Json& worth = json["link_worth"];
  CHECK(worth["free_saved_pct"] > 30);
  CHECK(worth["free_host_bytes"] > 0);
  CHECK(contains(worth["text"], "offloading over 450 GB/s saves "));
  CHECK(contains(worth["text"], "% of the memory at no cost"));
  check_says(run_command(Words{"info", path, "--link", "450GB/s"} + kWork).out, {"\nlink pays ", "at no cost"});
  const Json slow = run_json(Words{"info", path, "--link", "1KB/s"} + kWork);
  CHECK(contains(slow["link_worth"]["text"], "saves no memory at no cost; below "));
  CHECK(slow["link_worth"]["free_planned_bytes"] == slow["hundred_percent_bytes"]);
  CHECK_FALSE(run_json(Words{"info", path} + kWork).contains("link_worth"));
}

TEST_CASE("pareto --link gives both curves, and says what the link brings") {
  const Folder folder;
  const std::string path = write_passes(folder);
  const Words words = Words{"pareto", path, "--budgets", "100%,60%,50%", "--link", "1GB/s"} + kWork;
  const Json json =
      run_json(words + Words{"--csv", folder / "c.csv", "--svg", folder / "c.svg", "--report", folder / "c.html"});
  const Json &with = json["points"], &without = json["without_link"]["points"];
  REQUIRE(with.size() == 3);
  REQUIRE(without.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(with[i]["cost"] <= without[i]["cost"]);
  CHECK(with[1]["cost"] < without[1]["cost"]);
  CHECK(contains(json["link_worth"]["text"], "offloading over 1 GB/s saves "));
  const std::string csv = read_text(folder / "c.csv");
  CHECK(contains(csv, "status,knee,with_link\n"));
  CHECK(times(csv, ",1\n") + times(csv, ",0\n") == 6);
  check_says(read_text(folder / "c.svg"), {"dashed: without transfers", "stroke-dasharray='6 4'"});
  check_says(read_text(folder / "c.html"), {"The points without transfers", "offloading over 1 GB/s"});
  check_says(run_command(words).out, {"without the link: passes", "over 1 GB/s, both directions at once: passes",
                                      "\noffloading over 1 GB/s saves "});
  const Words plain = Words{"pareto", path, "--budgets", "100%,60%"} + kWork;
  CHECK_FALSE(run_json(plain + Words{"--csv", folder / "p.csv"}).contains("without_link"));
  CHECK(contains(read_text(folder / "p.csv"), "status,knee\n"));
}

TEST_CASE("over a link, the largest batch without recomputation is larger") {
  const Words words = Words{"info", "ffn",      "--layers", "6",  "--width",           "64", "--batch",
                            "auto", "--budget", "100000",   "-q", "--max-occurrences", "1"} +
                      kWork;
  const Json alone = run_json(words), moved = run_json(words + Words{"--link", "450GB/s"});
  CHECK(moved["batch"] > alone["batch"]);
  check_fields(moved, {{"fits", true}, {"means", "transfers"}, {"recomputed", 0}});
}

TEST_CASE("costs without a unit of time count as ns, and a warning says so") {
  const Folder folder;
  const std::string path = write_passes(folder, "steps");
  const Words words = Words{"solve", path, "--budget", "60%", "--link", "c2c"} + kWork;
  const Outcome outcome = run_command(words + Words{"--json"});
  CHECK(outcome.code == 0);
  CHECK(outcome.err == "cairn: warning: the costs of 'passes' have no unit of time; with --link they count as ns\n");
  CHECK(outcome.json()["warnings"][0]["kind"] == "costs_without_time");
}

TEST_CASE("what is wrong with a link is said in one line") {
  const Folder folder;
  const std::string path = write_passes(folder);
  const std::pair<Words, Words> wrong[] = {
      {{"--link", ""}, {"--link", "is empty"}},
      {{"--link", "0GB/s"}, {"link '0GB/s'", "bandwidth", "25GB/s"}},
      {{"--link", "-1"}, {"link '-1'", "is no bandwidth"}},
      {{"--link", "-1GB/s"}, {"link '-1GB/s'", "bandwidth"}},
      {{"--link", "25GB/s,-1us"}, {"link '25GB/s,-1us'", "the latency is negative"}},
      {{"--link", "25GB/s,1us,2us"}, {"'2us' is too much"}},
      {{"--link", "pcie9"}, {"link 'pcie9'", "pcie4"}},
      {{"--link", "25GB/s", "--host-budget", "-1"}, {"--host-budget '-1'"}},
      {{"--link", "25GB/s", "--host-budget", "much"}, {"--host-budget 'much'"}},
      {{"--host-budget", "1GiB"}, {"--host-budget is the memory behind a --link; give that too"}}};
  for (const auto& [words, fragments] : wrong) {
    for (const char* command : {"solve", "info", "pareto"}) {
      const Outcome outcome = run_command(Words{command, path} + words);
      CAPTURE(command, words);
      check_error(outcome, 2, fragments);
    }
  }
}

TEST_CASE("with a link, --max-cost finds a lower peak within the makespan, and says how low one could be") {
  const Folder folder;
  const std::string path = write_passes(folder), file = folder / "s.json";
  const Words words = Words{"solve", path, "--max-cost", "5%"} + kWork;
  const Json alone = run_json(words);
  const Json moved = run_json(words + Words{"--link", "200MB/s", "-o", file});
  CHECK(moved["peak_bytes"] < alone["peak_bytes"]);
  check_fields(moved, {{"objective", "least peak within a cost"}, {"gap_of", "peak"}, {"valid", true}});
  CHECK(moved["evicts"] > 0);
  CHECK(moved["makespan"] <= moved["max_cost"]);
  CHECK(moved["lower_bound_peak_bytes"] <= moved["peak_bytes"]);
  CHECK(moved["lower_bound_peak_bytes"] > core::peak_lower_bound(core::load_graph(path)));
  // A search that starts from the schedule in `file` returns nothing worse, even if it is stopped almost at once.
  const Json again = run_json(
      Words{"solve", path, "--max-cost", "5%", "--link", "200MB/s", "--start", file, "--work-limit", "1", "-q"});
  CHECK(again["peak_bytes"] <= moved["peak_bytes"]);
  // With a link and a budget on peaks, the lower bound on the cost is a bound on the makespan.
  const std::string peak = std::to_string(moved["peak_bytes"].get<std::int64_t>());
  const Json within =
      run_json(Words{"solve", path, "--budget", peak, "--peak-only", "--link", "200MB/s", "--start", file} + kWork);
  CHECK(within["cost"] <= moved["cost"]);
  const Json less = run_json(Words{"solve", path, "--budget", "40%", "--peak-only", "--link", "200MB/s"} + kWork);
  CHECK(less["lower_bound_cost"] > less["baseline_cost"]);
  CHECK(less["lower_bound_cost"] <= less["cost"]);
}

TEST_CASE("pareto --peak-only --link gives curves of peaks") {
  const Folder folder;
  const std::string path = write_passes(folder);
  const Json json =
      run_json(Words{"pareto", path, "--budgets", "100%,60%,50%", "--link", "1GB/s", "--peak-only"} + kWork);
  const Json &with = json["points"], &without = json["without_link"]["points"];
  REQUIRE(with.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(with[i]["peak_bytes"] <= with[i]["budget_bytes"]);
    CHECK(with[i]["cost"] <= without[i]["cost"]);
  }
  CHECK(with[1]["cost"] < without[1]["cost"]);
  CHECK(json["link_worth"]["free_planned_bytes"].is_null());
  CHECK(json["link_worth"]["free_host_bytes"] > 0);
}

TEST_CASE("a start with transfers needs the link, and is not made worse") {
  const Folder folder;
  const std::string path = write_passes(folder);
  const std::string start = folder / "s.json";
  const Words solve = {"solve", path, "--budget", "50%"};
  const Json first = run_json(solve + Words{"--link", "1GB/s", "-o", start} + kWork);
  REQUIRE(first["evicts"] > 0);
  check_error(solve + Words{"--start", start}, 2, {"--start", "moves values to the host", "--link"});
  check_error({"pareto", path, "--link", "1GB/s", "--start", start}, 2, {"--start of pareto", "without transfers"});
  const Json again = run_json(solve + Words{"--link", "1GB/s", "--start", start, "--work-limit", "1"});
  CHECK(again["cost"] <= first["cost"]);
}

}  // namespace cairn::tests::transfers_test
