// Tests the command under tight limits on memory, stack, address space and file size, in folders where other users have
// placed files, and under signals.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "cairn/core/formats/files.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"

namespace cairn::tests::machine_test {
namespace {

const std::string kCommand = CAIRN_BINARY_DIR "/bin/cairn";

/// Runs a bash script, in which $cairn is the path of the command.
Outcome in_shell(const std::string& script) {
  return Child({"-c", fmt::format("cairn='{}'; {}", kCommand, script)}, "", "/bin/bash").wait();
}

/// Returns arguments of a search that takes minutes, because no bound proves its best schedule optimal.
Words long_solve(const std::string& output) { return {"solve", "resnet50", "-b", "30%", "-t", "10m", "-o", output}; }

/// Makes a control group (version 1 or 2) with a limit on memory. If this process may not make a group, folder() is
/// empty.
class MemoryGroup {
 public:
  explicit MemoryGroup(std::int64_t bytes) {
    const std::string name = fmt::format("cairn-test-{}", getpid());
    for (const auto& [root, limit] :
         {std::pair{"/sys/fs/cgroup/memory/", "memory.limit_in_bytes"}, std::pair{"/sys/fs/cgroup/", "memory.max"}}) {
      const std::string folder = root + name;
      if (mkdir(folder.c_str(), 0700) != 0) continue;
      std::ofstream file(folder + "/" + limit);
      if (file << bytes << std::flush) {
        folder_ = folder;
        return;
      }
      rmdir(folder.c_str());
    }
  }
  ~MemoryGroup() {
    for (int tries = 0; !folder_.empty() && rmdir(folder_.c_str()) != 0 && tries < 100; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

}  // namespace

TEST_CASE(
    "a group of 1 GiB: what does not fit is refused with a budget that does, and nothing is ended by the kernel") {
  const MemoryGroup group(std::int64_t{1} << 30);
  if (group.folder().empty()) {
    WARN("skipped: this process may make no control group");
    return;
  }
  const auto run = [&](const std::string& words) {
    return in_shell(fmt::format("echo $$ > {}/cgroup.procs; exec $cairn run {} -t 4s", group.folder(), words));
  };
  // This model has 200 MiB of resident tensors, and needs an arena of 632 MiB without recomputation. This is too much
  // for the group, so a budget of 100% must be refused, with a budget that fits.
  const std::string model = "resnet50 --batch 24 --image 128";
  const Outcome whole = run(model + " -b 100%");
  CHECK(whole.code == 5);
  check_says(whole.err, {"needs ", "(arena ", "are free here", "a budget of ", " would fit"});
  const std::int64_t budget = number_behind(whole.err, "a budget of ");
  CHECK(run(fmt::format("{} -b {}MiB", model, budget)).code == 0);
  // Memory suffices for the arena of the baseline and then for that of the schedule, but not for both arenas at once.
  // So the command must free the first arena before it allocates the second.
  const Outcome both = run("resnet50 --batch 16 --image 128 -b 90% --json");
  INFO(both.err);
  REQUIRE(both.code == 0);
  CHECK(both.json()["identical"] == true);
}

TEST_CASE("no command opens BLAS that multiplies nothing, however little may be addressed") {
  CHECK(in_shell("ulimit -v 400000; timeout 20 $cairn help").code == 0);
  CHECK(in_shell("ulimit -v 400000; timeout 20 $cairn solve unet -b 80% -t 1s").code == 0);
  CHECK(in_shell("$cairn help >/dev/null; ! ldd $cairn | grep -qi blas").code == 0);
}

TEST_CASE("a limit on addresses that leaves BLAS no buffers is an error, and no search without an end") {
  const Folder folder;
  for (const std::string& words : {std::string("run resnet18 --batch 1 --image 32 -b 80% -t 3s"),
                                   fmt::format("measure resnet18 --batch 1 --image 32 -o {}", folder / "m")}) {
    // In the last case, OPENBLAS_NUM_THREADS=2 asks OpenBLAS for a second thread, which would wait for its buffer for
    // ever. In every case, the command must end, and where the memory cannot suffice, it must end with an error.
    for (const auto& [kibibytes, variable] :
         {std::pair{200'000, ""}, std::pair{230'000, ""}, std::pair{180'000, "OPENBLAS_NUM_THREADS=2"}}) {
      const Outcome outcome =
          in_shell(fmt::format("ulimit -v {}; {} timeout -k 1 60 $cairn {} --threads 1", kibibytes, variable, words));
      INFO(words << ", " << kibibytes << " KiB: " << outcome.err);
      // Newer versions of OpenBLAS can work with 230,000 KiB.
      const bool may_suffice = kibibytes == 230'000;
      CHECK((outcome.code == 5 || (may_suffice && outcome.code == 0)));
      CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') <= 3);
    }
  }
}

TEST_CASE("a stack of 128 KiB is no segmentation fault") {
  for (const char* words : {"info resnet50 -t 1s", "solve unet --solver tw -b 90% -t 1s", "pareto unet -t 1s",
                            "solve unet --solver none", "simulate unet --random 1000"}) {
    const Outcome outcome = in_shell(fmt::format("ulimit -s 128; $cairn {}", words));
    INFO(words << ": " << outcome.err);
    CHECK(outcome.code == 0);
  }
}

TEST_CASE("SIGTERM and SIGHUP do what Ctrl-C does") {
  for (const int signal : {SIGTERM, SIGHUP}) {
    const Folder folder;
    const Outcome outcome = interrupted(long_solve(folder / "s.json"), signal);
    CHECK(contains(outcome.err, "interrupted"));
    CHECK(std::filesystem::exists(folder / "s.json"));
  }
  // A signal that was ignored when the command started, as under nohup, must stay ignored.
  const Folder folder;
  const Outcome outcome = in_shell(
      fmt::format("trap '' HUP; $cairn solve resnet50 -b 30% -t 2s -o {}/s.json & p=$!; sleep 1; kill -HUP $p; wait $p",
                  folder.path()));
  INFO(outcome.err);
  CHECK(outcome.code == 0);
}

TEST_CASE("signals that come at once are one request, and a later one ends the command") {
  const Folder folder;
  Child twice(long_solve(folder / "s.json"));
  twice.wait_for_search();
  for (const int signal : {SIGTERM, SIGTERM, SIGINT}) {
    kill(twice.pid(), signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const Outcome outcome = twice.wait();
  INFO(outcome.err);
  CHECK(outcome.code == 130);
  CHECK(std::filesystem::exists(folder / "s.json"));

  // Nobody reads the pipe. After the first signal, the command waits for a reader. The second signal must end it at
  // once.
  const std::string pipe = folder / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  Child waiting(long_solve(pipe));
  waiting.wait_for_search();
  while (waiting.alive()) {
    kill(waiting.pid(), SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  CHECK(waiting.wait().code == -SIGTERM);
}

TEST_CASE("what others put beside an output is neither followed nor kept, and a file that may not grow leaves none") {
  const auto [folder, graph] = Diamond{};
  const std::string precious = folder.write("precious", "mine");
  // Earlier versions of Cairn wrote the output first to a temporary file, whose name ended in .part and the process id
  // ($$). Here, a link of this name leads to the file `precious`. The command must not write to this file.
  const Outcome linked = in_shell(
      fmt::format("ln -s {0}/precious {0}/s.json.part$$; exec $cairn solve {1} -o {0}/s.json", folder.path(), graph));
  CHECK(linked.code == 0);
  CHECK(read_text(precious) == "mine");
  CHECK(contains(read_text(folder / "s.json"), "cairn.schedule"));

  const Folder small;
  const Outcome outcome =
      in_shell(fmt::format("ulimit -f 1; $cairn solve unet -b 90% -t 1s --report {}/r.html", small.path()));
  INFO(outcome.err);
  CHECK(outcome.code == 2);
  CHECK(contains(outcome.err, "r.html"));
  CHECK(small.entries() == 0);
}

TEST_CASE("engines are opened from absolute paths alone") {
  const Folder folder;
  // Puts a file with the name of an engine's library into each folder to which a relative path could lead. Cairn must
  // not try to load any of these files.
  for (const char* path : {".local/share/cairn/engines", "cairn/engines", "engines"}) {
    std::filesystem::create_directories(folder / path);
    std::ofstream(std::filesystem::path(folder / path) / "libhighs.so.1") << "no library";
  }
  const std::string in = "cd " + folder.path() + "; ";
  const Outcome usual = in_shell(in + "env -u CAIRN_ENGINES -u XDG_DATA_HOME HOME=/nowhere $cairn solvers");
  for (const char* variables : {"-u XDG_DATA_HOME HOME=", "-u XDG_DATA_HOME HOME=.", "XDG_DATA_HOME= HOME=/nowhere",
                                "XDG_DATA_HOME=. HOME=/nowhere"}) {
    INFO(variables);
    CHECK(in_shell(in + fmt::format("env -u CAIRN_ENGINES {} $cairn solvers", variables)).out == usual.out);
  }
  const Outcome relative = in_shell(in + "CAIRN_ENGINES=engines $cairn solvers");
  CHECK(relative.code == 0);
  CHECK(contains(relative.out, "CAIRN_ENGINES 'engines' is not an absolute path"));
}

TEST_CASE("an output that cannot be written takes no other one") {
  const auto [folder, graph] = Diamond{};
  const Outcome outcome = run_command(
      {"solve", graph, "-o", "/dev/full", "--report", folder / "x.html", "--plan", folder / "p.json", "--json"});
  INFO(outcome.err);
  CHECK(outcome.code == 2);
  CHECK(contains(outcome.err, "/dev/full: cannot be written"));
  CHECK(std::filesystem::exists(folder / "x.html"));
  CHECK(std::filesystem::exists(folder / "p.json"));
  CHECK(outcome.json()["valid"] == true);
  CHECK(contains(outcome.json()["error"], "/dev/full"));
  CHECK(outcome.json()["exit_code"] == 2);
}

TEST_CASE("an output that cannot be written is told before the search") {
  for (const char* path : {"/proc/s.json", "/proc/self/nothing/s.json", "/sys/s.json"}) {
    const Outcome outcome = run_command({"solve", "gpt2", "-b", "50%", "-t", "10m", "-o", path});
    INFO(outcome.err);
    CHECK(outcome.code == 2);
    CHECK(contains(outcome.err, path));
  }
}

}  // namespace cairn::tests::machine_test
