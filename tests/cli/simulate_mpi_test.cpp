#include <csignal>
#include <cstdio>
#include <iostream>

#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"
#include "cairn/tests/cli/mpirun.h"
#include "cairn/tests/cli/simulate_case.h"
#include "cairn/tests/support/parts.h"

namespace cairn::tests::simulate_mpi_test {
namespace {

/// Starts `cairn simulate` under mpirun in `processes` processes on this machine.
Child mpirun(int processes, const Words& words) { return tests::mpirun(processes, Words{"simulate"} + words); }

struct Case {
  Folder folder;
  core::Graph graph = sweep_graph();
  std::string path = folder.write("g.json", core::graph_to_json(graph));
};

Json json_of(const Outcome& outcome) {
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.json();
}

/// Returns the process id of the child of `parent` that has this MPI rank, or -1 if there is no such child.
pid_t process_of_rank(pid_t parent, int rank) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string stat = read_text(entry.path() / "stat");
    const std::size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos) continue;
    char state = 0;
    int ppid = 0;
    if (std::sscanf(stat.c_str() + name_end + 1, " %c %d", &state, &ppid) != 2 || ppid != parent) continue;
    const std::string environment = '\0' + read_text(entry.path() / "environ");
    const std::string variable = std::string(1, '\0') + "OMPI_COMM_WORLD_RANK=" + std::to_string(rank) + '\0';
    if (environment.find(variable) != std::string::npos) return std::stoi(entry.path().filename());
  }
  return -1;
}

}  // namespace

TEST_CASE("simulate under mpirun gives the answer of one process") {
  const Case test;
  if (no_mpi()) return;
  const Words words = {test.path, "--random", "30000", "--recompute", "6", "--budget", "90%", "--json"};
  const auto expected = without_circumstances(json_of(run_command(Words{"simulate"} + words)));
  for (const int processes : {2, 4}) {
    const auto json = json_of(mpirun(processes, words).wait());
    CHECK(json["ranks"] == processes);
    CHECK(without_circumstances(json) == expected);
  }
}

TEST_CASE("what is noticed in a file is told once, however many processes read it") {
  const Case test;
  if (no_mpi()) return;
  std::string text = read_text(test.path);
  text.insert(text.find("\"nodes\""), "\"colour\":\"red\",");
  const Outcome outcome = mpirun(3, {test.folder.write("warned.json", text), "--random", "100"}).wait();
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(times(outcome.err, "cairn: warning: ") == 1);
  CHECK(contains(outcome.err.substr(outcome.err.find("cairn: warning: ")), "colour"));
}

TEST_CASE("a file of schedules gives the same rows and figures under mpirun") {
  const Case test;
  if (no_mpi()) return;
  Random random(1);
  std::string text;
  for (int line = 0; line < 500; ++line) {
    const auto schedule =
        random.chance(10) ? random_invalid_schedule(random, test.graph) : random_schedule(random, test.graph);
    for (const core::NodeId v : schedule.steps) text += std::to_string(v) + " ";
    text += random.chance(5) ? "oops\n" : "\n";
  }
  const std::string lines = test.folder.write("l.txt", text), one = test.folder / "one.csv",
                    four = test.folder / "four.csv";
  const std::string best_one = test.folder / "one.json", best_four = test.folder / "four.json";
  const Words words = {test.path, "--schedules", lines, "--on-bad-line", "skip", "--at-once", "7", "--json"};
  const auto expected = json_of(run_command(Words{"simulate"} + words + Words{"-o", one, "--best", best_one}));
  const auto parted = json_of(mpirun(4, words + Words{"-o", four, "--best", best_four}).wait());
  CHECK(without_circumstances(parted) == without_circumstances(expected));
  CHECK(expected["bad_lines"] > 0);
  CHECK(expected["invalid"] > 0);
  CHECK(read_text(four) == read_text(one));
  CHECK(read_text(best_four) == read_text(best_one));

  // The error message names the first bad line of the file, regardless of which process has read that line.
  const Outcome stopped = mpirun(3, {test.path, "--schedules", lines, "--at-once", "5"}).wait();
  CHECK(stopped.code == 2);
  CHECK(contains(stopped.err, "line " + std::to_string(expected["bad"][0]["line"].get<int>()) + ":"));
  CHECK(stopped.out.empty());
}

TEST_CASE("bad input under mpirun is said once") {
  const Case test;
  if (no_mpi()) return;
  for (const Words& words : {Words{"/nonexistent/g.json", "--random", "5"},
                             {test.path, "--random", "none"},
                             {test.path, "--schedules", "-"}}) {
    const Outcome outcome = mpirun(3, words).wait();
    INFO(outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(times(outcome.err, "cairn: error: ") == 1);
  }
}

TEST_CASE("a sweep whose process died under mpirun ends and goes on with another number of them") {
  const Case test;
  if (no_mpi()) return;
  const std::string checkpoint = test.folder / "c.json";
  const auto words = [&](const std::string& total) {
    return Words{test.path, "--random", total, "--recompute", "5", "--seed", "2", "--json"};
  };
  const auto with_checkpoint = [&](const std::string& total) {
    return words(total) + Words{"--checkpoint", checkpoint, "--checkpoint-every", "10ms"};
  };
  Child child = mpirun(4, with_checkpoint("1e15"));
  REQUIRE(wait_for_checkpoint(child, checkpoint));
  const pid_t victim = process_of_rank(child.pid(), 2);
  REQUIRE(victim > 0);
  kill(victim, SIGKILL);
  CHECK(child.wait().code != 0);

  const auto done = read_json(checkpoint)["done"].get<std::int64_t>();
  const std::string total = std::to_string(done + 2000);
  const auto resumed = json_of(mpirun(2, with_checkpoint(total)).wait());
  CHECK(resumed["resumed_from"] == done);
  const auto alone = json_of(run_command(Words{"simulate"} + words(total)));
  CHECK(without_circumstances(resumed) == without_circumstances(alone));
}

TEST_CASE("a process that fails under mpirun ends the others with its error") {
  const Case test;
  if (no_mpi()) return;
  // The folder of the checkpoint is renamed while the sweep runs, so that rank 0 can no longer write the checkpoint.
  // All processes must then end, and the error of rank 0 must be printed.
  const Folder outer;
  const std::string inner = outer / "inner";
  std::filesystem::create_directory(inner);
  Child child =
      mpirun(3, {test.path, "--random", "1e15", "--checkpoint", inner + "/c.json", "--checkpoint-every", "10ms"});
  REQUIRE(wait_for_checkpoint(child, inner + "/c.json"));
  std::filesystem::rename(inner, outer / "elsewhere");
  const Outcome outcome = child.wait();
  INFO(outcome.err);
  CHECK(outcome.code == 2);
  check_says(outcome.err, {"process 0: ", "cannot be written"});
}

}  // namespace cairn::tests::simulate_mpi_test
