#include <algorithm>
#include <cstddef>
#include <string>

#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"

namespace cairn::tw_test {
namespace {

using cairn::test::check_error;
using cairn::test::Folder;
using cairn::test::Outcome;
using cairn::test::read_text;
using cairn::test::run_command;
using cairn::test::operator+;
using cairn::test::Words;
using cairn::tests::check_fields;

std::string training_graph(const Folder& folder) {
  const std::string path = folder / "g.json";
  REQUIRE(run_command({"model", "ffn", "--layers", "20", "--batch", "8", "--width", "8", "-o", path}).code == 0);
  return path;
}

}  // namespace

TEST_CASE("solve --sweep writes the curve from NoRemat to TWRemat(1)") {
  const Folder folder;
  const std::string graph = training_graph(folder), csv = folder / "curve.csv";
  const Outcome outcome = run_command({"solve", graph, "--solver", "tw", "--sweep", csv, "--json"});
  REQUIRE(outcome.code == 0);
  const auto json = outcome.json();
  CHECK(json["complete"] == true);
  CHECK(json["points"].front()["steps"] == json["nodes"]);
  CHECK(json["points"].back()["k"] == 1);
  CHECK(json["points"].back()["peak_bytes"] < json["baseline_peak_bytes"]);
  CHECK(json["points"].back()["retained_cost"] <= json["points"].back()["cost"]);
  const std::string text = read_text(folder / "curve.csv");
  CHECK(text.starts_with("k,length,steps,peak_bytes,cost,retained_steps,retained_cost\n"));
  CHECK(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) == json["points"].size() + 1);

  check_error(run_command({"solve", graph, "--sweep", csv}), 2, {"--sweep", "--solver tw"});
  check_error(run_command({"solve", graph, "--solver", "greedy", "--sweep", csv}), 2, {"--sweep", "--solver tw"});
  check_error(run_command({"solve", graph, "--solver", "tw", "--sweep", graph}), 2, {"would overwrite"});
  const std::string other = folder / "other.json";
  for (const Words& ignored : {Words{"-o", other}, {"--plan", other}, {"--stream"}, {"--budget", "50%"}})
    check_error(run_command(Words{"solve", graph, "--solver", "tw", "--sweep", csv} + ignored), 2,
                {ignored.front(), "--sweep"});
}

TEST_CASE("solve --stream writes the same schedule as without") {
  const Folder folder;
  const std::string graph = training_graph(folder), whole = folder / "whole.json", piece = folder / "piece.json";
  const Words solve{"solve", graph, "--solver", "tw", "--option", "k=1"}, streamed = {"--stream", "-o", piece};
  const Outcome all = run_command(solve + Words{"--option", "retain=0", "-o", whole, "--json"});
  REQUIRE(all.code == 0);
  const Outcome pieces = run_command(solve + streamed + Words{"--json"});
  REQUIRE(pieces.code == 0);
  // Only a schedule that was planned has a plan in its file.
  auto with_plan = nlohmann::json::parse(read_text(folder / "whole.json"));
  for (const char* key : {"planned_bytes", "alignment", "offsets"}) CHECK(with_plan.erase(key) == 1);
  CHECK(with_plan == nlohmann::json::parse(read_text(folder / "piece.json")));
  check_fields(pieces.json(), {{"peak_bytes", all.json()["peak_bytes"]}, {"cost", all.json()["cost"]}});

  check_error(run_command({"solve", graph, "--solver", "tw", "--stream", "-o", piece}), 2, {"--option k=K"});
  check_error(run_command({"solve", graph, "--solver", "tw", "--stream", "--option", "k=1"}), 2, {"-o FILE"});
  check_error(run_command({"solve", graph, "--stream", "-o", piece}), 2, {"--stream", "--solver tw"});
  check_error(run_command(solve + streamed + Words{"--budget", "50%"}), 2, {"--budget does not go with --stream"});
  check_error(run_command(solve + streamed + Words{"--work-limit", "10"}), 4, {"raise --time-limit"});
}

TEST_CASE("a graph without nodes has a curve and a schedule, too") {
  const Folder folder;
  const std::string graph = folder.write("empty.gr", "p tw 0 0\n"), out = folder / "out";
  for (const Words& rest : {Words{"--option", "k=1"}, {"--sweep", out}, {"--option", "k=1", "--stream", "-o", out}})
    CHECK(run_command(Words{"solve", graph, "--solver", "tw"} + rest).code == 0);
}

TEST_CASE("a k whose schedule would be too long is refused with one that is not") {
  const Folder folder;
  const std::string graph = training_graph(folder);
  check_error(run_command({"solve", graph, "--solver", "tw", "--option", "k=1", "--option", "steps=150"}), 2,
              {"TWRemat(1)", "above the limit of 150", "from k = "});
}

}  // namespace cairn::tw_test
