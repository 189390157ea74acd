#include <algorithm>
#include <cstddef>
#include <string>

#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"

namespace cairn::tests::tw_test {
namespace {

std::string training_graph(const Folder& folder) {
  const std::string path = folder / "g.json";
  REQUIRE(run_command({"model", "ffn", "--layers", "20", "--batch", "8", "--width", "8", "-o", path}).code == 0);
  return path;
}

}  // namespace

TEST_CASE("solve --sweep writes the curve from NoRemat to TWRemat(1)") {
  const Folder folder;
  const std::string graph = training_graph(folder), csv = folder / "curve.csv";
  const Json json = run_json({"solve", graph, "--solver", "tw", "--sweep", csv});
  CHECK(json["complete"] == true);
  CHECK(json["points"].front()["steps"] == json["nodes"]);
  CHECK(json["points"].back()["k"] == 1);
  CHECK(json["points"].back()["peak_bytes"] < json["baseline_peak_bytes"]);
  CHECK(json["points"].back()["retained_cost"] <= json["points"].back()["cost"]);
  const std::string text = read_text(folder / "curve.csv");
  CHECK(text.starts_with("k,length,steps,peak_bytes,cost,retained_steps,retained_cost\n"));
  CHECK(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) == json["points"].size() + 1);

  check_error({"solve", graph, "--sweep", csv}, 2, {"--sweep", "--solver tw"});
  check_error({"solve", graph, "--solver", "greedy", "--sweep", csv}, 2, {"--sweep", "--solver tw"});
  check_error({"solve", graph, "--solver", "tw", "--sweep", graph}, 2, {"would overwrite"});
  const std::string other = folder / "other.json";
  for (const Words& ignored : {Words{"-o", other}, {"--plan", other}, {"--stream"}, {"--budget", "50%"}})
    check_error(Words{"solve", graph, "--solver", "tw", "--sweep", csv} + ignored, 2, {ignored.front(), "--sweep"});
}

TEST_CASE("solve --stream writes the same schedule as without") {
  const Folder folder;
  const std::string graph = training_graph(folder), whole = folder / "whole.json", piece = folder / "piece.json";
  const Words solve{"solve", graph, "--solver", "tw", "--option", "k=1"}, streamed = {"--stream", "-o", piece};
  const Json all = run_json(solve + Words{"--option", "retain=0", "-o", whole});
  const Json pieces = run_json(solve + streamed);
  // With --stream, solve computes no plan, so the schedule file lacks the keys that describe a plan.
  auto with_plan = read_json(folder / "whole.json");
  for (const char* key : {"planned_bytes", "alignment", "offsets"}) CHECK(with_plan.erase(key) == 1);
  CHECK(with_plan == read_json(folder / "piece.json"));
  check_fields(pieces, {{"peak_bytes", all["peak_bytes"]}, {"cost", all["cost"]}});

  check_error({"solve", graph, "--solver", "tw", "--stream", "-o", piece}, 2, {"--option k=K"});
  check_error({"solve", graph, "--solver", "tw", "--stream", "--option", "k=1"}, 2, {"-o FILE"});
  check_error({"solve", graph, "--stream", "-o", piece}, 2, {"--stream", "--solver tw"});
  check_error(solve + streamed + Words{"--budget", "50%"}, 2, {"--budget does not go with --stream"});
  check_error(solve + streamed + Words{"--work-limit", "10"}, 4, {"raise --time-limit"});
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
  check_error({"solve", graph, "--solver", "tw", "--option", "k=1", "--option", "steps=150"}, 2,
              {"TWRemat(1)", "above the limit of 150", "from k = "});
}

}  // namespace cairn::tests::tw_test
