// Tests the wording of messages and tables. For example, an error is one line, sizes are readable, and a graph has the
// same name everywhere.
#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cairn/core/formats/files.h"
#include "cairn/core/support/text.h"
#include "cairn/report/support/words.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"
#include "cairn/tests/support/parts.h"

namespace cairn::tests::said_test {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Returns a graph in which `a` must run three times to keep the peak within 50 bytes. Such a schedule costs more than
/// twice as much as running every node once.
std::string costly_graph() {
  return R"({"format":"cairn.graph","version":1,"name":"costly","nodes":[
    {"name":"a","size":20,"cost":1000,"inputs":[]},
    {"name":"b","size":20,"cost":1,"inputs":[0]},
    {"name":"c","size":20,"cost":1,"inputs":[1]},
    {"name":"d","size":10,"cost":1,"inputs":[2,0]},
    {"name":"f","size":20,"cost":1,"inputs":[3]},
    {"name":"g","size":20,"cost":1,"inputs":[4]},
    {"name":"h","size":10,"cost":1,"inputs":[5,0],"keep":true}]})";
}

}  // namespace

TEST_CASE("the verdict of an error is one line of at most 160 characters, whatever the graph is called") {
  const Folder folder;
  const std::string name = std::string(200, 'x') + "\\n" + std::string(200, 'y');
  const std::string graph = folder.write("g.json", replaced(diamond_graph(), "tiny", name));
  const std::string gaps = folder.write("gaps.json", replaced(fragmenting_graph(), "gaps", name));
  for (const Words& words : {Words{"solve", graph, "--budget", "49"}, Words{"run", graph, "--budget", "49"},
                             Words{"info", graph, "--budget", "49"}, Words{"pareto", graph, "--budgets", "49"},
                             Words{"solve", graph, "--budget", "55", "--order", "input", "--max-occurrences", "1"},
                             Words{"solve", graph, "--max-cost", "9"}, Words{"solve", graph, "--device-memory", "1MiB"},
                             Words{"info", graph, "--device-memory", "1MiB"}}) {
    CAPTURE(words);
    check_error(words + Words{"-q"}, 3, {"xxx...yyy"});
  }
  for (const Words& words : {Words{"solve", graph, "--budget", "55", "--solver", "none"},
                             Words{"info", graph, "--budget", "55", "--solver", "none"},
                             Words{"pareto", graph, "--budgets", "55", "--solver", "none"},
                             Words{"solve", gaps, "--order", "fixed", "--solver", "none", "--budget", "400"}}) {
    CAPTURE(words);
    check_error(words + Words{"-q"}, 4, {"xxx...yyy"});
  }
}

TEST_CASE("what helps stands in lines of its own") {
  const auto [folder, graph] = Diamond{};
  const auto lines = lines_of(run_command({"solve", graph, "--budget", "55", "--solver", "none"}).err);
  CHECK(lines ==
        std::vector<std::string>{
            "cairn: error: found no schedule of 'tiny' within 55 bytes (91.7% of the baseline peak); not "
            "proved impossible",
            "  the lower bound is 50 bytes (83.3%), set by 'd'", "  the search ended because the solver finished",
            "  the least budget known to suffice is that bound (--budget 50), with --solver auto",
            "  raise --budget, or try another --solver", "  the best so far is planned with 60 bytes (100.0%)"});
  // The error in the JSON object is the same text as on stderr, except that its further lines are not indented.
  const auto json = run_command({"solve", graph, "--budget", "49", "--json"});
  CHECK(json.json()["error"].get<std::string>() ==
        replaced(replaced(json.err.substr(std::string("cairn: error: ").size()), "\n  ", "\n"), "\n  ", "\n")
            .substr(0, json.json()["error"].get<std::string>().size()));
  CHECK(std::count(json.err.begin(), json.err.end(), '\n') == 3);
}

TEST_CASE("errors say sizes without eleven digits, and no percentage twice") {
  const std::string error = run_command(Words{"solve"} + kFfn + Words{"--budget", "10KiB"}).err;
  INFO(error);
  CHECK_FALSE(std::regex_search(error, std::regex("[0-9]{4,}")));
  std::multiset<std::string> shares;
  const std::regex share("[0-9.]+%");
  for (std::sregex_iterator at(error.begin(), error.end(), share), end; at != end; ++at) shares.insert(at->str());
  // The message has two percentages: that of the budget, and that of the lower bound, which here is also the least
  // budget.
  CHECK(shares.size() == 2);
  CHECK(std::set<std::string>(shares.begin(), shares.end()).size() == shares.size());
  // If two sizes look the same in KiB, the message also states them in bytes.
  const std::string close = run_command(Words{"solve"} + kFfn + Words{"--budget", "12287"}).err;
  check_says(close, {"fits into 12.00 KiB (12287 bytes, ", "the lower bound is 12.00 KiB (12288 bytes, "});
}

TEST_CASE("the least budget that is said is met as it is said") {
  const Folder folder;
  // Node b needs its input (12,345 bytes) and its output (10 bytes) in memory. Rounded up, that is 12.07 KiB. The
  // message must round up, because 12.06 KiB would not suffice.
  const std::string graph = folder.write("g.json", R"({"format":"cairn.graph","version":1,"name":"odd","nodes":[
      {"name":"a","size":12345,"inputs":[]},{"name":"b","size":10,"inputs":[0]}]})");
  const std::string error = run_command({"solve", graph, "--budget", "50"}).err;
  const std::string before = "known to suffice is that bound (--budget ";
  REQUIRE(contains(error, before));
  const std::string said = error.substr(error.find(before) + before.size(), std::string("12.07KiB").size());
  CHECK(said == "12.07KiB");
  CHECK(run_json({"solve", graph, "--budget", said})["plan_fits"] == true);
  CHECK(contains(run_command({"info", graph}).out, "\nleast budget known  12.07 KiB, 100.0% of the baseline, with "));
}

TEST_CASE("what is more than twice what is proved is not said in percent of that") {
  const Folder folder;
  const std::string graph = folder.write("g.json", costly_graph());
  const Words words = {graph, "--budget", "50", "--solver", "greedy"};
  const std::string table = run_command(Words{"solve"} + words).out;
  INFO(table);
  CHECK(contains(table,
                 "\ngap          cost more than twice what is proved: no schedule within the budget costs less than "));
  CHECK_FALSE(contains(table, "above the optimum"));
  CHECK(run_json(Words{"solve"} + words)["gap_pct"] > 100);
  CHECK(contains(run_command({"pareto", graph, "--budgets", "50", "--solver", "greedy"}).out, "> 100%"));
  CHECK(report::above_optimum_text(835) == "more than twice what is proved");
  CHECK(report::above_optimum_text(100) == "at most 100.00% above the optimum");
}

TEST_CASE("solvers are listed within 100 columns") {
  const auto outcome = run_command({"solvers"});
  REQUIRE(outcome.code == 0);
  for (const std::string& line : lines_of(outcome.out)) {
    INFO(line);
    CHECK(core::display_width(line) <= 100);
    CHECK_FALSE(line.ends_with(' '));
  }
}

TEST_CASE("bench says in words what it found") {
  const std::string table = run_command({"bench", "tw"}).out;
  CHECK(contains(table, "tw at 80% of the baseline peak, which it "));
  CHECK_FALSE(contains(table, "not_found"));
}

TEST_CASE("pareto says budgets and times in units, and every answer once") {
  const Folder folder;
  const Words words = Words{"pareto"} + kFfn + Words{"--work-limit", "400000"};
  const std::string table = run_command(words).out;
  INFO(table);
  const auto lines = lines_of(table);
  const auto header = std::ranges::find_if(lines, [](const std::string& line) { return line.starts_with("budget  "); });
  REQUIRE(header != lines.end());
  // The table must merge rows with the same answer. So rows must differ in some column from `planned` on, i.e. not only
  // in the budget and its percentage.
  const std::size_t planned = header->find("planned");
  std::set<std::string> answers;
  std::size_t rows = 0;
  for (auto row = header + 2; row != lines.end() && !row->empty(); ++row, ++rows) {
    answers.insert(row->substr(planned));
    CHECK(contains(row->substr(0, header->find("of baseline")), "KiB"));
    CHECK(contains(*row, " us "));
  }
  CHECK(rows > 1);
  CHECK(answers.size() == rows);
  CHECK(run_json(words)["points"].size() > rows);  // unlike the table, the JSON object lists every budget
}

TEST_CASE("the picture of a curve goes down to the least budget that was asked for") {
  const Folder folder;
  const std::string svg = folder / "c.svg";
  const Words words = Words{"pareto"} + kFfn + Words{"--budgets", "100%,90%,5%", "--work-limit", "400000"};
  REQUIRE(run_command(words + Words{"--svg", svg, "-q"}).code == 0);
  const std::string text = read_text(svg);
  const std::size_t begin = text.find("class='bound' d='");
  REQUIRE(begin != std::string::npos);
  const std::string path = text.substr(begin, text.find("'/>", begin) - begin);
  const std::regex across("[MH]([-0-9.]+)");
  double least = 1000;
  for (std::sregex_iterator at(path.begin(), path.end(), across), end; at != end; ++at)
    least = std::min(least, std::stod((*at)[1].str()));
  INFO(path);
  CHECK(least >= 66);  // the x coordinate at which the axis begins
}

TEST_CASE("a page does not call feasible what it calls exceeded") {
  const Folder folder;
  const std::string graph = folder.write("g.json", fragmenting_graph()), page = folder / "p.html";
  const Words fixed = {"solve", graph, "--order", "fixed", "--solver", "none", "--budget", "400", "--report", page};
  // No plan fits. The page shows the best schedule so far, but must not call this schedule feasible.
  CHECK(run_command(fixed).code == 4);
  CHECK(contains(read_text(page), "exceeded"));
  CHECK_FALSE(contains(read_text(page), "feasible"));
  // With --peak-only, only the peak must be within the budget, and the peak is within it.
  CHECK(run_command(fixed + Words{"--peak-only"}).code == 0);
  CHECK(contains(read_text(page), "on the peak, met; 500 B planned"));
  CHECK_FALSE(contains(read_text(page), "exceeded"));
}

TEST_CASE("a graph has one name in every table, error and page") {
  const Folder folder;
  const auto check = [&](const std::string& path, const std::string& name) {
    run_json({"solve", path, "-o", folder / "s.json"});
    for (const Words& words : {Words{"info", path}, Words{"solve", path}, Words{"pareto", path},
                               Words{"run", path, "--budget", "100%", "--backend", "host"},
                               Words{"simulate", path, "--random", "3", "--backend", "host"},
                               Words{"measure", path, "--backend", "host"}, Words{"plan", path, folder / "s.json"}}) {
      CAPTURE(words);
      CHECK(run_json(words)["graph"] == name);
      CHECK(contains(run_command(words).out, name));
    }
    for (const Words& words :
         {Words{"info", path, "--device-memory", "1MiB"}, Words{"solve", path, "--budget", "49"},
          Words{"info", path, "--budget", "49"}, Words{"solve", path, "--device-memory", "1MiB"}}) {
      CAPTURE(words);
      CHECK(run_json(words, 3)["graph"] == name);
      check_error(words + Words{"-q"}, 3, {"'" + name + "'"});
    }
    const std::string page = folder / "page.html";
    REQUIRE(run_command({"plan", path, folder / "s.json", "--report", page, "-q"}).code == 0);
    CHECK(contains(read_text(page), "\"title\":\"" + name + "\""));
  };
  check(folder.write("named.json", diamond_graph()), "tiny");
  const std::string anonymous = folder.write("g", replaced(diamond_graph(), R"("name":"tiny",)", ""));
  check(anonymous, anonymous);
}

TEST_CASE("the counters in docs/explain.md are those of the trace that is written") {
  const Folder folder;
  const std::string trace = folder / "t.json";
  REQUIRE(
      run_command(Words{"run", "--backend", "host"} + kFfn + Words{"--budget", "90%", "--trace", trace, "-q"}).code ==
      0);
  std::set<std::string> counters;
  const Json written = read_json(trace);
  for (const Json& event : written["traceEvents"]) {
    if (event["ph"] == "C") counters.insert(event["name"]);
  }
  CHECK(counters.size() == 4);
  const std::string docs = read_text(CAIRN_SOURCE_DIR "/docs/explain.md");
  for (const std::string& counter : counters) {
    INFO(counter);
    CHECK(contains(docs, "`" + counter + "`"));
  }
}

TEST_CASE("option --repeat means executions of run, and the depth of a model has a name of its own") {
  const Words tiny = {"resnet18", "--batch", "1", "--image", "32", "--classes", "10", "--width", "4"};
  for (const Words& command : {Words{"info"}, Words{"solve"}, Words{"pareto"}, Words{"model"}, Words{"measure"}}) {
    CAPTURE(command);
    check_error(command + tiny + Words{"--repeat", "2"}, 2,
                {"--repeat is for the executions of 'run'", "--depth-multiplier 2"});
  }
  const Json once = run_json(Words{"model"} + tiny);
  const Json twice = run_json(Words{"model"} + tiny + Words{"--depth-multiplier", "2"});
  CHECK(twice["nodes"].get<int>() > 3 * once["nodes"].get<int>() / 2);
  const Json run = run_json(Words{"run", "--backend", "host"} + tiny +
                            Words{"--depth-multiplier", "2", "--repeat", "2", "--budget", "100%"});
  CHECK(run["scheduled"]["executions"] == 2);
  CHECK(run["nodes"] == twice["nodes"]);
  CHECK_FALSE(contains(run_command({"info", "--help"}).out, "--repeat"));
}

TEST_CASE("info and solve take --precision as run does") {
  const Words half = {"--precision", "bf16"}, limit = {"--work-limit", "200000"};
  const Json model = run_json(Words{"model"} + kFfn + half);
  for (const std::string command : {"info", "solve"}) {
    INFO(command);
    const Json json = run_json(Words{command} + kFfn + half + limit);
    check_fields(json, {{"fingerprint", model["fingerprint"]}, {"baseline_peak_bytes", model["baseline_peak_bytes"]}});
    CHECK(json["baseline_peak_bytes"] < run_json(Words{command} + kFfn + limit)["baseline_peak_bytes"]);
    check_error(Words{command} + kFfn + Words{"--precision", "bf61"}, 2, {"'bf61'", "bf16"});
  }
  const auto [folder, graph] = Diamond{};
  for (const std::string command : {"info", "solve", "run", "measure"}) {
    INFO(command);
    const Words words = command == "run" ? Words{"-b", "100%"} : Words{};
    for (const std::string precision : {"fp32", "bf16"})
      check_error(Words{command, graph, "--precision", precision} + words, 2,
                  {"--precision " + precision + " changes nothing", "no node of the graph has an op; drop it"});
  }
}

TEST_CASE("info --batch auto says what a sample costs, and takes a limit of cost") {
  const Words words = {"info",      "ffn", "--layers", "4",    "--width", "16",    "--inputs",     "16",
                       "--outputs", "8",   "--batch",  "auto", "-b",      "40000", "--work-limit", "2000000"};
  const Json any = run_command(words + Words{"--json"}).json();
  const std::int64_t batch = any["batch"];
  REQUIRE(batch > 0);
  CHECK(any["cost_per_sample"].get<double>() * static_cast<double>(batch) ==
        Approx(any["cost_within_budget"].get<double>()));
  CHECK(any["baseline_cost_per_sample"].get<double>() * static_cast<double>(batch) ==
        Approx(any["baseline_cost"].get<double>()));
  CHECK(contains(run_command(words).out, "%), with a batch of " + std::to_string(batch) + "\n"));
  // If recomputation may cost nothing, only a smaller batch fits, and a sample then costs as much as in the baseline.
  const Json free = run_command(words + Words{"--max-cost", "0%", "--json"}).json();
  CHECK(free["batch"].get<std::int64_t>() < batch);
  CHECK(free["batch"].get<std::int64_t>() > 0);
  CHECK(free["cost_per_sample"] == free["baseline_cost_per_sample"]);
  CHECK(run_command(words + Words{"--max-cost", "1000%", "--json"}).json()["batch"] == batch);
  // In bf16, tensors take half of the memory, so a larger batch fits.
  CHECK(run_command(words + Words{"--precision", "bf16", "--json"}).json()["batch"].get<std::int64_t>() > batch);
  check_error({"info", "ffn", "--max-cost", "10%"}, 2, {"--max-cost of info is for --batch auto"});
  check_error(words + Words{"--max-cost", "cheap"}, 2, {"--max-cost 'cheap' is not a cost"});
}

TEST_CASE("a run without a warm execution shows no percentage of time") {
  const auto time_of = [](const Words& more) {
    const auto outcome = run_command(Words{"run", "--backend", "host"} + kFfn + Words{"--budget", "100%"} + more);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    const auto lines = lines_of(outcome.out);
    return *std::ranges::find_if(lines, [](const std::string& line) { return line.starts_with("time  "); });
  };
  CHECK_FALSE(contains(time_of({"--time-limit", "0"}), "%"));
  CHECK(contains(time_of({"--repeat", "2"}), "%"));
}

TEST_CASE("run says what memory lacks before it searches") {
  const Folder folder;
  const std::string graph = folder.write("g.json", R"({"format":"cairn.graph","version":1,"name":"vast","nodes":[
      {"name":"a","size":1125899906842624,"inputs":[]},{"name":"b","size":1125899906842624,"inputs":[0]}]})");
  for (const Words& words : {Words{"--budget", "100%"}, Words{"--budget", "min"}, Words{"--max-cost", "10%"}}) {
    CAPTURE(words);
    const std::string output = folder / "s.json";
    check_error(Words{"run", graph, "--backend", "host", "-o", output} + words, 5, {"arena 2.00 PiB", "are free here"});
    CHECK_FALSE(std::filesystem::exists(output));  // no schedule was searched and written
  }
}

TEST_CASE("two outputs by way of links to one file that is not there yet are told") {
  const auto [folder, graph] = Diamond{};
  std::filesystem::create_symlink("s.json", folder / "l.json");
  std::filesystem::create_symlink("l.json", folder / "again.json");
  for (const char* link : {"l.json", "again.json"}) {
    check_error({"solve", graph, "-o", folder / "s.json", "--plan", folder / link}, 2, {"-o and --plan both write"});
    CHECK_FALSE(std::filesystem::exists(folder / "s.json"));
  }
}

}  // namespace cairn::tests::said_test
