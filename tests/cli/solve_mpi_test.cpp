// Tests `mpirun cairn solve`: the processes agree on one answer, which is the best that any of them has found. This
// answer is printed and written only once.

#include "cairn/core/formats/files.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"
#include "cairn/tests/cli/mpirun.h"
#include "cairn/tests/support/parts.h"
#include "cairn/tests/support/random_graph.h"

namespace cairn::tests::solve_mpi_test {
namespace {

struct Case {
  Folder folder;
  core::Graph graph = [] {
    Random random(7);
    return random_graph(random, {.min_nodes = 60, .max_nodes = 60});
  }();
  std::string path = folder.write("g.json", core::graph_to_json(graph));
};

Child mpirun(int processes, const Words& words) { return tests::mpirun(processes, Words{"solve"} + words); }

TEST_CASE("solve under mpirun gives one answer, which is as good as that of one process") {
  const Case test;
  if (no_mpi()) return;
  const std::string file = test.folder.path() + "/s.json";
  const Words words = {test.path, "--budget", "95%", "--work-limit", "200000", "--json"};
  const Json alone = mpirun(1, words).wait().json();
  CHECK(!alone.contains("processes"));
  const Outcome outcome = mpirun(3, words + Words{"-o", file}).wait();
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json together = outcome.json();
  CHECK(together["processes"] == 3);
  CHECK(together["valid"] == true);
  CHECK(together["plan_fits"] == true);
  CHECK(together["cost"] <= alone["cost"]);
  CHECK(core::load_schedule(file, test.graph).schedule.length() == together["steps"]);
}

TEST_CASE("a budget that no schedule meets, and bad input, are said once under mpirun") {
  const Case test;
  if (no_mpi()) return;
  struct Bad {
    Words words;
    int code;
  };
  const Bad cases[] = {{{test.path, "--budget", "1"}, 3},
                       {{test.path, "--budget", "none"}, 2},
                       {{"-", "--budget", "70%"}, 2},
                       {{"/nonexistent/g.json", "--budget", "70%"}, 2},
                       {{test.path}, 2},
                       {{"ffn", "--batch", "auto", "--budget", "1GiB"}, 2},
                       {{test.path, "--solver", "tw", "--sweep", test.folder.path() + "/c.csv"}, 2}};
  for (const auto& [words, code] : cases) {
    const Outcome outcome = mpirun(3, words + Words{"--time-limit", "1s"}).wait();
    INFO(outcome.err);
    CHECK(outcome.code == code);
    CHECK(outcome.out.empty());
    CHECK(times(outcome.err, "cairn: error: ") == 1);
  }
}

}  // namespace
}  // namespace cairn::tests::solve_mpi_test
