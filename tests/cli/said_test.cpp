// How the command says what it says: verdicts of one line, sizes that people read, one name for one graph.
#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cairn/core/formats/files.h"
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

std::string replaced(std::string text, const std::string& part, const std::string& by) {
  text.replace(text.find(part), part.size(), by);
  return text;
}

}  // namespace

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
