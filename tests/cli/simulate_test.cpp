#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <sstream>

#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"
#include "cairn/tests/cli/simulate_case.h"

namespace cairn::tests::simulate_test {
namespace {

struct Case {
  Folder folder;
  core::Graph graph = sweep_graph();
  std::string path = folder.write("g.json", core::graph_to_json(graph));

  Outcome run(const Words& words) const { return run_command(Words{"simulate", path} + words); }
  Json json(const Words& words) const { return run_json(Words{"simulate", path} + words); }
};

/// Returns the cells of a CSV file: an outer vector of rows, each a vector of cells.
std::vector<std::vector<std::string>> read_csv(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream cells(line + ",");
    rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(cell);
  }
  return rows;
}

std::string numbers(const core::Schedule& schedule, const std::string& separator) {
  std::string text;
  for (const core::NodeId v : schedule.steps) text += (text.empty() ? "" : separator) + std::to_string(v);
  return text;
}

void check_entries(const Json& shown, const std::vector<sim::Entry>& entries) {
  REQUIRE(shown.size() == entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    CHECK(shown[i] == Json{{"index", entries[i].index}, {"peak_bytes", entries[i].peak}, {"cost", entries[i].cost}});
  }
}

}  // namespace

TEST_CASE("simulate reports what its candidates are by the definitions") {
  const Case test;
  constexpr std::int64_t kTotal = 3000;
  const sim::Tally expected = plain_tally(test.graph, {.seed = 5, .moves = 6}, kTotal);
  const std::int64_t budget = expected.quantile(25);
  const auto json =
      test.json({"--random", "3k", "--seed", "5", "--recompute", "6", "--budget", std::to_string(budget)});

  check_fields(json, {{"graph", test.graph.name()},
                      {"nodes", 24},
                      {"edges", test.graph.edge_count()},
                      {"backend", "host"},
                      {"ranks", 1},
                      {"source", "random"},
                      {"seed", 5},
                      {"moves", 6},
                      {"candidates", kTotal},
                      {"valid", kTotal},
                      {"invalid", 0}});
  CHECK(json["seconds"] > 0);
  check_fields(json, {{"baseline_peak_bytes", core::evaluate(test.graph, core::baseline_schedule(test.graph)).peak},
                      {"lower_bound_peak_bytes", core::peak_lower_bound(test.graph)}});
  check_entries(json["top"], expected.top());
  check_entries(json["pareto"], expected.front());
  CHECK(json["pareto"].size() > 1);
  check_fields(json, {{"best", json["top"][0]}, {"mean_peak_bytes", expected.mean_peak()}});
  for (const int percent : {0, 1, 5, 25, 50, 75, 95, 99, 100})
    CHECK(json["quantiles"]["p" + std::to_string(percent)] == expected.quantile(percent));
  const auto within =
      std::accumulate(expected.histogram().begin(), expected.histogram().begin() + budget + 1 - expected.options().from,
                      std::int64_t{0});
  REQUIRE(expected.options().width() == 1);
  CHECK(json["within_budget"] == within);
  CHECK(json["within_budget_share"] == Approx(static_cast<double>(within) / kTotal));
  const auto counts = json["histogram"]["counts"].get<std::vector<std::int64_t>>();
  CHECK(counts.size() <= 64);
  CHECK(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) == kTotal);
  CHECK(json["histogram"]["from"] == expected.counts().least_peak);
  CHECK(json["interrupted"] == false);
  CHECK(json["resumed_from"].is_null());
}

TEST_CASE("simulate takes nodes of several outputs, and pinned ones, which run once") {
  const Folder folder;
  Random random(19);
  const core::Graph graph =
      random_graph(random, {.min_nodes = 24, .max_nodes = 24, .several_outputs = true, .pinned = true});
  const std::string path = folder.write("g.json", core::graph_to_json(graph));
  const auto json_of = [&](const Words& words) { return run_json(Words{"simulate", path} + words); };
  const sim::Tally expected = plain_tally(graph, {.seed = 5, .moves = 9}, 2000);
  const auto swept = json_of({"--random", "2k", "--seed", "5", "--recompute", "9"});
  CHECK(swept["valid"] == 2000);
  check_entries(swept["top"], expected.top());
  check_entries(swept["pareto"], expected.front());

  // Each line is the baseline with one more step at the end, which runs a node again. The schedule is invalid only if
  // this node is pinned, because a pinned node must run exactly once.
  std::string lines;
  std::int64_t pinned = 0;
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    core::Schedule again = core::baseline_schedule(graph);
    again.steps.push_back(v);
    lines += numbers(again, " ") + "\n";
    pinned += graph.pinned(v) ? 1 : 0;
  }
  REQUIRE(pinned > 0);
  CHECK(json_of({"--schedules", folder.write("l.txt", lines)})["invalid"] == pinned);
}

TEST_CASE("simulate gives the same answer whatever the pieces and threads") {
  const Case test;
  const auto whole = without_circumstances(test.json({"--random", "20000", "--recompute", "3"}));
  for (const Words& words : {Words{"--at-once", "7"}, {"--threads", "1"}, {"--threads", "3", "--at-once", "999"}})
    CHECK(without_circumstances(test.json(Words{"--random", "2e4", "--recompute", "3"} + words)) == whole);
  CHECK(without_circumstances(test.json({"--random", "20k", "--recompute", "3", "--seed", "1"})) != whole);
}

TEST_CASE("simulate writes the best schedule and a line for each of the best and of the Pareto set") {
  const Case test;
  const std::string best = test.folder / "best.json", csv = test.folder / "r.csv";
  const auto json = test.json({"--random", "5000", "--recompute", "6", "--top", "3", "--best", best, "-o", csv});
  const auto file = core::load_schedule(best, test.graph);
  CHECK(file.peak_bytes == json["best"]["peak_bytes"]);
  CHECK(file.cost == json["best"]["cost"]);

  const auto rows = read_csv(csv);
  CHECK(rows[0] == Words{"index", "valid", "peak_bytes", "peak_step", "cost", "rank", "pareto"});
  std::size_t ranked = 0, pareto = 0;
  for (std::size_t r = 1; r < rows.size(); ++r) {
    const auto schedule = sim::generate(test.graph, {.seed = 0, .moves = 6}, std::stoll(rows[r][0]));
    const auto evaluation = core::evaluate(test.graph, schedule);
    CHECK(rows[r][1] == "1");
    CHECK(rows[r][2] == std::to_string(evaluation.peak));
    CHECK(rows[r][3] == std::to_string(evaluation.peak_step));
    CHECK(rows[r][4] == std::to_string(evaluation.cost));
    ranked += rows[r][5].empty() ? 0 : 1;
    pareto += rows[r][6] == "1" ? 1 : 0;
  }
  CHECK(ranked == 3);
  CHECK(pareto == json["pareto"].size());
}

TEST_CASE("simulate evaluates the schedules of a file in every form") {
  const Case test;
  Random random(3);
  std::string text = "\xEF\xBB\xBF# made by hand\n\n";
  std::vector<std::pair<std::int64_t, core::Schedule>> lines;
  for (std::int64_t line = 3; line < 103; ++line) {
    core::Schedule schedule = random_schedule(random, test.graph);
    if (line % 9 == 0) schedule = random_invalid_schedule(random, test.graph);
    const bool valid = core::evaluate(test.graph, schedule).valid();
    const std::string forms[] = {
        "[" + numbers(schedule, ", ") + "]\r\n", numbers(schedule, " ") + "\n", "  " + numbers(schedule, ",") + "  \n",
        valid ? core::schedule_to_json(test.graph, schedule, "x") : "{\"steps\":[" + numbers(schedule, ",") + "]}\n",
        "   \n"};
    text += forms[line % 5];
    if (line % 5 != 4) lines.emplace_back(line, schedule);
  }
  const std::string path = test.folder.write("lines.txt", text), csv = test.folder / "r.csv",
                    best = test.folder / "b.json";
  for (const std::string at_once : {"1000", "3", "1"}) {
    const auto json = test.json({"--schedules", path, "-o", csv, "--best", best, "--at-once", at_once});
    const auto rows = read_csv(csv);
    CHECK(rows[0] == Words{"line", "valid", "peak_bytes", "peak_step", "cost"});
    REQUIRE(rows.size() == lines.size() + 1);
    std::vector<sim::Entry> valid;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const auto& [line, schedule] = lines[i];
      const auto evaluation = core::evaluate(test.graph, schedule);
      const auto& row = rows[i + 1];
      CHECK(row[0] == std::to_string(line));
      CHECK(row[1] == (evaluation.valid() ? "1" : "0"));
      CHECK(row[2] == (evaluation.valid() ? std::to_string(evaluation.peak) : ""));
      CHECK(row[3] == (evaluation.valid() ? std::to_string(evaluation.peak_step) : ""));
      CHECK(row[4] == (evaluation.valid() ? std::to_string(evaluation.cost) : ""));
      if (evaluation.valid()) valid.push_back({evaluation.peak, evaluation.cost, line});
    }
    std::sort(valid.begin(), valid.end());
    check_fields(json, {{"source", path},
                        {"candidates", lines.size()},
                        {"valid", valid.size()},
                        {"invalid", lines.size() - valid.size()}});
    CHECK(json["best"]["index"] == valid.front().index);
    CHECK(core::load_schedule(best, test.graph).peak_bytes == valid.front().peak);
    REQUIRE(json["invalid_candidates"].size() == std::min<std::size_t>(8, lines.size() - valid.size()));
    for (const auto& invalid : json["invalid_candidates"]) {
      const auto found =
          std::find_if(lines.begin(), lines.end(), [&](const auto& line) { return line.first == invalid["line"]; });
      REQUIRE(found != lines.end());
      CHECK(invalid["what"] == core::describe(test.graph, core::evaluate(test.graph, found->second).defect));
    }
  }
}

TEST_CASE("a schedule file over many lines is one candidate and stdin is a file") {
  const Case test;
  const auto baseline = core::baseline_schedule(test.graph);
  const auto object = Json::parse(core::schedule_to_json(test.graph, baseline, "x"));
  const std::string pretty = test.folder.write("pretty.json", "# from elsewhere\n" + object.dump(2) + "\n");
  const std::string one_line = test.folder.write("s.json", object.dump() + "\n");
  for (const std::string& path : {pretty, one_line}) {
    const auto json = test.json({"--schedules", path});
    CHECK(json["candidates"] == 1);
    CHECK(json["best"]["peak_bytes"] == json["baseline_peak_bytes"]);
  }
  Child child({"-c", std::string(CAIRN_BINARY_DIR) + "/bin/cairn simulate " + test.path + " --schedules - --json < " +
                         one_line},
              "", "/bin/sh");
  const auto outcome = child.wait();
  REQUIRE(outcome.code == 0);
  CHECK(outcome.json()["candidates"] == 1);
}

TEST_CASE("node numbers of objects are numbers as in every file, and nothing is written without a valid schedule") {
  const Case test;
  std::string steps;
  for (const core::NodeId v : core::baseline_schedule(test.graph).steps)
    steps += fmt::format("{}{}", steps.empty() ? "" : ",", v == 3 ? "3.0" : v == 4 ? "4e0" : std::to_string(v));
  const std::string good = test.folder.write("good.txt", "{\"steps\":[" + steps + "]}\n");
  CHECK(test.json({"--schedules", good})["valid"] == 1);
  const std::string best = test.folder / "best.json", bad = test.folder.write("bad.txt", "0\n");
  const Outcome outcome = test.run({"--schedules", bad, "--best", best, "--json"});
  CHECK(outcome.code == 2);
  CHECK(contains(outcome.json()["error"], "no candidate is valid"));
  CHECK_FALSE(std::filesystem::exists(best));
}

TEST_CASE("a bad line stops the sweep or is left out as asked") {
  const Case test;
  const std::string good = numbers(core::baseline_schedule(test.graph), " ") + "\n";
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"0 1 two", "'two' is not a node number"},
      {"0 1.5", "'1.5' is not a node number"},
      {"[0 1]", "comma"},
      {"[0, 1", "truncated"},
      {"[0, 1,]", "comma"},
      {"0,,1", "not a node number"},
      {"0 1,", "truncated"},
      {"{\"steps\":[0,1}", "it is not valid JSON"},
      {"{\"format\":\"cairn.plan\",\"steps\":[0]}", "cairn.plan"},
      {"{\"format\":\"cairn.schedule\",\"version\":7,\"steps\":[0]}", "version"},
      {"{\"graph\":\"0123456789abcdef\",\"steps\":[0]}", "another graph"},
      {"{\"steps\":[\"a\"]}", "not a node number"},
      {"{\"steps\":7}", "no list"},
      {"\x01\x02\xff", "is not a node number"},
  };
  std::string all;
  for (const auto& [line, message] : bad) {
    INFO(line);
    const std::string path = test.folder.write("l.txt", good + "# note\n" + good + line + "\n" + good);
    const std::string csv = test.folder / "never.csv";
    check_error(test.run({"--schedules", path, "-o", csv, "--at-once", "2"}), 2,
                {path, "line 4", message, "--on-bad-line skip"});
    CHECK(!std::filesystem::exists(csv));
    all += good + line + "\n";
  }
  const auto json =
      test.json({"--schedules", test.folder.write("all.txt", all), "--on-bad-line", "skip", "--at-once", "5"});
  check_fields(json, {{"candidates", bad.size()}, {"bad_lines", bad.size()}});
  REQUIRE(json["bad"].size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(json["bad"][i]["line"] == 2 * i + 2);
    CHECK(contains(json["bad"][i]["what"], bad[i].second));
  }
}

TEST_CASE("numbers that are no node make a candidate invalid and do not stop the sweep") {
  const Case test;
  const std::string path =
      test.folder.write("l.txt", "0 -1\n0 24\n99999999999999999999999\n[]\n{\"steps\":[18446744073709551615]}\n");
  const auto json = test.json({"--schedules", path});
  check_fields(json, {{"candidates", 5}, {"invalid", 5}});
  CHECK(json["best"].is_null());
  CHECK(json["quantiles"]["p50"].is_null());
  CHECK(json["histogram"].is_null());
  const Outcome people = test.run({"--schedules", path, "--report", test.folder / "r.html"});
  CHECK(people.code == 0);
  CHECK(contains(people.out, "no candidate is valid"));
}

TEST_CASE("a file without schedules and a graph without nodes are simulated") {
  const Case test;
  CHECK(test.json({"--schedules", test.folder.write("none.txt", "\n# nothing\n")})["candidates"] == 0);
  CHECK(test.json({"--schedules", test.folder.write("empty.txt", "")})["candidates"] == 0);
  const std::string empty = test.folder.write("e.json", R"({"format":"cairn.graph","version":1,"nodes":[]})");
  const auto json = run_json({"simulate", empty, "--random", "10"});
  CHECK(json["valid"] == 10);
  CHECK(json["best"]["peak_bytes"] == 0);
}

TEST_CASE("simulate refuses bad options in one line") {
  const Case test;
  const std::string lines = test.folder.write("l.txt", "0\n");
  const auto refused = [&](const Words& words, const Words& fragments, int code = 2) {
    check_error(test.run(words), code, fragments);
  };
  refused({}, {"--random", "--schedules"});
  refused({"--random", "5", "--schedules", lines}, {"either"});
  for (const char* count :
       {"0", "many", "10Q", "1.5", "-3", "1e", "1e99", "9999999999999999999", "0.0001k", ".", "1..5k", "5MB"})
    refused({std::string("--random=") + count}, {"--random", count});
  refused({"--random", "5", "--backend", "gpu"}, {"--backend", "gpu"});
  refused({"--random", "5", "--backend", "cuda"}, {"cuda"}, 5);
  refused({"--random", "5", "--top", "0"}, {"top"});
  refused({"--random", "5", "--threads", "0"}, {"threads"});
  refused({"--random", "5", "--recompute", "-1"}, {"recompute"});
  refused({"--random", "5", "--at-once", "0"}, {"at-once"});
  refused({"--random", "5", "--budget", "much"}, {"much"});
  refused({"--random", "5", "--time-limit", "soon"}, {"soon"});
  refused({"--random", "5", "--checkpoint-every", "often"}, {"often"});
  refused({"--random", "5", "--on-bad-line", "skip"}, {"--on-bad-line"});
  refused({"--schedules", lines, "--on-bad-line", "mend"}, {"mend"});
  refused({"--schedules", lines, "--seed", "3"}, {"--seed"});
  refused({"--schedules", lines, "--checkpoint", test.folder / "c"}, {"--checkpoint"});
  refused({"--schedules", lines, "-o", lines}, {"overwrite"});
  refused({"--schedules", "/nonexistent/l.txt"}, {"/nonexistent/l.txt"});
  refused({"--schedules", "/tmp"}, {"folder"});
  refused({"--random", "5", "-o", "/nonexistent/r.csv"}, {"/nonexistent"});
  refused({"--random", "5", "--best", test.folder / "x", "--report", test.folder / "x"}, {"both"});
  refused({"--random", "5", "--sed", "3"}, {"--seed"});
  check_error({"simulate", "/nonexistent/g.json", "--random", "5"}, 2, {"/nonexistent/g.json"});
}

TEST_CASE("counts of candidates may be written short") {
  const Case test;
  for (const auto& [text, count] : std::vector<std::pair<std::string, int>>{
           {"1", 1}, {"0.5k", 500}, {"1.25K", 1250}, {"2e3", 2000}, {"1.5e3", 1500}, {".0012M", 1200}, {"1000", 1000}})
    CHECK(test.json({"--random", text})["candidates"] == count);
}

TEST_CASE("a sweep killed at any moment goes on from its checkpoint to the same end") {
  const Case test;
  const std::string checkpoint = test.folder / "c.json";
  const auto with = [](const Words& words) { return words + Words{"--recompute", "4", "--top", "20", "--seed", "9"}; };
  Child child(
      with({"simulate", test.path, "--random", "1e15", "--checkpoint", checkpoint, "--checkpoint-every", "10ms"}));
  REQUIRE(wait_for_checkpoint(child, checkpoint));
  child.end_at_once();
  CHECK(child.wait().code == -SIGKILL);
  const auto done = read_json(checkpoint)["done"].get<std::int64_t>();
  const std::string total = std::to_string(done + 3000);

  const auto resumed = test.json(with({"--random", total, "--checkpoint", checkpoint}));
  CHECK(resumed["resumed_from"] == done);
  CHECK(without_circumstances(resumed) == without_circumstances(test.json(with({"--random", total}))));
  CHECK(read_json(checkpoint)["done"] == done + 3000);

  SECTION("and a checkpoint of something else is refused") {
    const auto refused = [&](const Words& words, const std::string& fragment) {
      check_error(test.run(words), 2, {checkpoint, fragment});
    };
    refused({"--random", total, "--checkpoint", checkpoint, "--seed", "9", "--top", "20"}, "4 moves, not 0 moves");
    refused({"--random", total, "--checkpoint", checkpoint, "--recompute", "4", "--top", "20"}, "seed 9, not 0");
    refused({"--random", total, "--checkpoint", checkpoint, "--recompute", "4", "--seed", "9"}, "top");
    refused(with({"--random", total, "--checkpoint", checkpoint, "--budget", "90%"}), "budget");
    refused(with({"--random", "5", "--checkpoint", checkpoint}), "request at least as many");
    const std::string text = read_text(checkpoint);
    test.folder.write("c.json", text.substr(0, text.size() / 2));
    refused(with({"--random", total, "--checkpoint", checkpoint}), "truncated");
    test.folder.write("c.json", "");
    refused(with({"--random", total, "--checkpoint", checkpoint}), "empty");
    test.folder.write("c.json", core::graph_to_json(test.graph));
    refused(with({"--random", total, "--checkpoint", checkpoint}), "cairn.sweep");
    CHECK(read_text(checkpoint) == core::graph_to_json(test.graph));
    test.folder.write("c.json", text);
    core::GraphBuilder larger(test.graph);
    larger.node(0).size += 1;
    test.folder.write("g.json", core::graph_to_json(larger.build()));
    refused(with({"--random", total, "--checkpoint", checkpoint}), "another graph");
  }
}

TEST_CASE("Ctrl-C in a sweep writes what there is and exits with 130") {
  const Case test;
  const std::string checkpoint = test.folder / "c.json", best = test.folder / "b.json", report = test.folder / "r.html";
  Child child({"simulate", test.path, "--random", "1e15", "--checkpoint", checkpoint, "--checkpoint-every", "10ms",
               "--best", best, "--report", report, "--json"});
  REQUIRE(wait_for_checkpoint(child, checkpoint));
  child.interrupt();
  const Outcome outcome = child.wait();
  INFO(outcome.err);
  REQUIRE(outcome.code == 130);
  const auto json = outcome.json();
  CHECK(json["interrupted"] == true);
  CHECK(core::load_schedule(best, test.graph).peak_bytes == json["best"]["peak_bytes"]);
  CHECK(read_json(checkpoint)["done"] == json["candidates"]);
  CHECK(std::filesystem::exists(report));
}

TEST_CASE("Ctrl-C while simulate waits for input ends it") {
  const Case test;
  const std::string pipe = test.folder / "pipe", csv = test.folder / "r.csv";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int writer = open(pipe.c_str(), O_RDWR);
  const std::string line = numbers(core::baseline_schedule(test.graph), " ") + "\n";
  REQUIRE(write(writer, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  Child child({"simulate", test.path, "--schedules", pipe, "-o", csv, "--json"});
  // Waits until the command has read the first line from the pipe. After that, the command waits for another line.
  for (int left = 1; left > 0 && child.alive(); ioctl(writer, FIONREAD, &left))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  child.interrupt();
  const Outcome outcome = child.wait();
  close(writer);
  CHECK(outcome.code == 130);
  CHECK(outcome.json()["interrupted"] == true);
  CHECK(read_csv(csv).size() == outcome.json()["candidates"].get<std::size_t>() + 1);
}

TEST_CASE("a time limit ends a sweep well") {
  const Case test;
  const auto json = test.json({"--random", "1e15", "--time-limit", "100ms"});
  check_fields(json, {{"timed_out", true}, {"interrupted", false}});
  CHECK(json["candidates"] > 0);
}

TEST_CASE("the report of a sweep is one page that needs no network") {
  Case test;
  core::GraphBuilder builder(test.graph);
  builder.set_name("<script>alert(1)</script>");
  test.path = test.folder.write("g.json", core::graph_to_json(builder.build()));
  const std::string path = test.folder / "r.html";
  REQUIRE(
      test.run({"--random", "2000", "--recompute", "6", "--budget", "90%", "--report", path, "--quiet"}).out.empty());
  const std::string page = read_text(path);
  CHECK(page.rfind("<!DOCTYPE html>", 0) == 0);
  check_says(page, {"Within the budget", "\"histogram\":{", "best candidate"});
  CHECK(page.ends_with("</html>\n"));
  for (const char* part : {"src=", "@import", "<script>alert", ":nan", ":inf"}) {
    INFO(part);
    CHECK_FALSE(contains(page, part));
  }
}

TEST_CASE("simulate finds the profiles that no other one dominates, and draws them") {
  Case test;
  const std::string page = test.folder.write("page.html", "");
  test.path = test.folder.write("tree.json", "");
  REQUIRE(run_command({"generate", "out-tree", "--nodes", "30", "--seed", "2", "-o", test.path, "-q"}).code == 0);
  test.graph = core::load_graph(test.path);
  const auto found = test.json({"--random", "500", "--undominated", "--report", page})["undominated"];
  check_fields(found, {{"candidates", 500}, {"complete", true}});
  for (const Json& one : found["profiles"]) {
    std::int64_t valley = one["start_bytes"], peak = valley;
    for (const Json& segment : one["segments"]) {
      peak = std::max(peak, valley + segment[0].get<std::int64_t>());
      valley += segment[0].get<std::int64_t>() - segment[1].get<std::int64_t>();
    }
    check_fields(one, {{"peak_bytes", peak}, {"end_bytes", valley}});
  }
  CHECK(found["profiles"].size() > 1);
  CHECK(contains(core::read_file(page), "Profiles that no other one dominates"));
  CHECK(test.json({"--random", "5"})["undominated"].is_null());

  // Writes the first 500 random candidates to a file. A sweep over the file must find the same profiles.
  std::string lines;
  for (std::int64_t i = 0; i < 500; ++i) lines += Json(sim::generate(test.graph, {}, i).steps).dump() + "\n";
  auto from_file = test.json({"--schedules", test.folder.write("lines.txt", lines), "--undominated"})["undominated"];
  for (Json& one : from_file["profiles"])
    // The indices of random candidates count from 0, the lines of a file from 1.
    one["index"] = one["index"].get<std::int64_t>() - 1;
  CHECK(from_file == found);
}

}  // namespace cairn::tests::simulate_test
