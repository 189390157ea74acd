// How the command says what it says: verdicts of one line, sizes that people read, one name for one graph.
#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cairn/core/formats/files.h"
#include "cairn/core/text.h"
#include "cairn/pipeline/words.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"

namespace {

using namespace cairn;
using test::check_error;
using test::diamond_graph;
using test::Folder;
using test::operator+;
using test::run_command;
using test::run_json;
using test::Words;
using Json = nlohmann::json;

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string replaced(std::string text, const std::string& part, const std::string& by) {
  text.replace(text.find(part), part.size(), by);
  return text;
}

/// A training step whose least peak is 12,288 bytes, of 20,484.
const Words kFfn = {"ffn", "--layers", "4", "--batch", "64", "--width", "16", "--inputs", "16", "--outputs", "8"};

/// Within 50 bytes `a` must run three times, which costs more than twice what running every node once does.
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
  CHECK(pipeline::above_optimum_text(835) == "more than twice what is proved");
  CHECK(pipeline::above_optimum_text(100) == "at most 100.00% above the optimum");
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
  // Budget and share may differ where the rest does not.
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
  CHECK(run_json(words)["points"].size() > rows);  // the object has every budget
}

TEST_CASE("the picture of a curve goes down to the least budget that was asked for") {
  const Folder folder;
  const std::string svg = folder / "c.svg";
  const Words words = Words{"pareto"} + kFfn + Words{"--budgets", "100%,90%,5%", "--work-limit", "400000"};
  REQUIRE(run_command(words + Words{"--svg", svg, "-q"}).code == 0);
  const std::string text = test::read_text(svg);
  const std::size_t begin = text.find("class='bound' d='");
  REQUIRE(begin != std::string::npos);
  const std::string path = text.substr(begin, text.find("'/>", begin) - begin);
  const std::regex across("[MH]([-0-9.]+)");
  double least = 1000;
  for (std::sregex_iterator at(path.begin(), path.end(), across), end; at != end; ++at)
    least = std::min(least, std::stod((*at)[1].str()));
  INFO(path);
  CHECK(least >= 66);  // where the axis begins
}

TEST_CASE("a page does not call feasible what it calls exceeded") {
  const Folder folder;
  const std::string graph = folder.write("g.json", test::fragmenting_graph()), page = folder / "p.html";
  const Words fixed = {"solve", graph, "--order", "fixed", "--solver", "none", "--budget", "400", "--report", page};
  // Nothing fits: the best so far is shown, and is not called feasible.
  CHECK(run_command(fixed).code == 4);
  CHECK(contains(test::read_text(page), "exceeded"));
  CHECK_FALSE(contains(test::read_text(page), "feasible"));
  // The budget is on the peak, which is within it.
  CHECK(run_command(fixed + Words{"--peak-only"}).code == 0);
  CHECK(contains(test::read_text(page), "on the peak, met; 500 B planned"));
  CHECK_FALSE(contains(test::read_text(page), "exceeded"));
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
      check_error(run_command(words + Words{"-q"}), 3, {"'" + name + "'"});
    }
    const std::string page = folder / "page.html";
    REQUIRE(run_command({"plan", path, folder / "s.json", "--report", page, "-q"}).code == 0);
    CHECK(contains(test::read_text(page), "\"title\":\"" + name + "\""));
  };
  check(folder.write("named.json", diamond_graph()), "tiny");
  const std::string anonymous = folder.write("g", replaced(diamond_graph(), R"("name":"tiny",)", ""));
  check(anonymous, anonymous);
}
