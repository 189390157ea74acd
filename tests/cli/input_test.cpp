// Tests how the command reads its input (standard input, compressed files, numbers), how it writes to standard output,
// and how it answers requests for help.

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "cairn/core/formats/files.h"
#include "cairn/core/support/random.h"
#include "cairn/core/support/text.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/cli/command.h"
#include "cairn/tests/support/parts.h"

namespace cairn::tests::input_test {
namespace {

/// Runs a line of shell code, in which $CAIRN is the path of the command.
Outcome run_shell(const std::string& line) {
  setenv("CAIRN", CAIRN_BINARY_DIR "/bin/cairn", 1);
  return Child({"-c", line}, "", "/bin/sh").wait();
}

}  // namespace

TEST_CASE("a dash is standard input for every file that is read") {
  const Folder folder;
  const std::string graph = folder.write("g.json", diamond_graph()), schedule = folder / "s.json";
  REQUIRE(run_command({"solve", graph, "-q", "-o", schedule, "--plan", folder / "p.json"}).code == 0);
  const std::string csv = folder.write("b.csv", "id,lower,upper,size\na,0,2,10\n");
  const std::string td = folder / "g.td", lines = folder.write("lines", "0 1 2 3\n");
  REQUIRE(run_command({"info", graph, "-q", "--td", td, "-t", "1"}).code == 0);
  const std::string hints = folder / "placed.csv";
  REQUIRE(run_command({"plan", "--buffers", csv, "-q", "-o", hints}).code == 0);

  for (const std::string& line :
       {"info - -t 1 <" + graph, "solve - <" + graph, "pareto - --points 2 -t 1 <" + graph,
        "measure - --backend host <" + graph, "run - -b 100% --alignment 1 --backend host <" + graph,
        "simulate - --random 100 --backend host <" + graph, "plan - " + schedule + " <" + graph,
        "plan " + graph + " - <" + schedule, "run " + graph + " --backend host --schedule - <" + schedule,
        "solve " + graph + " --start - <" + schedule, "solve " + graph + " --solver tw --td - <" + td,
        "plan --buffers - <" + csv, "plan --buffers " + csv + " --hints - <" + hints,
        "simulate " + graph + " --backend host --schedules - <" + lines}) {
    INFO(line);
    const Outcome outcome = run_shell("$CAIRN " + line);
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    CHECK_FALSE(outcome.out.empty());
  }
  // A graph from standard input that has no name of its own is called stdin, in messages and in results.
  CHECK(run_shell("$CAIRN info - -t 1 --json </dev/null").json()["error"] == "stdin: is empty");
  const std::string nameless = replaced(diamond_graph(), R"("name":"tiny",)", "");
  CHECK(run_shell("$CAIRN info - -t 1 --json <" + folder.write("n.json", nameless)).json()["graph"] == "stdin");
  // A file whose name is a single dash can be given by a path, as in `./-`.
  CHECK(run_shell("cd " + (folder / "") + " && cp g.json ./- && $CAIRN info ./- -t 1").code == 0);

  check_error(run_shell("$CAIRN plan - - <" + graph), 2, {"GRAPH and SCHEDULE both are -", "standard input"});
  check_error(run_shell("$CAIRN solve - --start - <" + graph), 2, {"GRAPH and --start both are -"});
  check_error(run_shell("$CAIRN info - <&-"), 2, {"stdin: cannot be read: Bad file descriptor"});
  check_error(run_shell("$CAIRN info - <" + (folder / "")), 2, {"stdin: is a folder"});
  check_error({"simulate", graph, "--random", "10", "--checkpoint", "-"}, 2, {"--checkpoint"});
}

TEST_CASE("a dash is standard output for every file that is written, and the table then goes to stderr") {
  const Folder folder;
  const std::string graph = folder.write("g.json", diamond_graph()), schedule = folder / "s.json";
  REQUIRE(run_command({"solve", graph, "-q", "-o", schedule}).code == 0);
  const std::string csv = folder.write("b.csv", "id,lower,upper,size\na,0,2,10\n");
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"solve", graph, "-o", "-"}, "{\"format\":\"cairn.schedule\""},
      {{"solve", graph, "--plan", "-"}, "{\"format\":\"cairn.plan\""},
      {{"solve", graph, "--solver", "tw", "--sweep", "-"}, "k,"},
      {{"solve", graph, "--solver", "tw", "--option", "k=2", "--stream", "-o", "-"}, "{\"format\":\"cairn.schedule\""},
      {{"info", graph, "-t", "1", "-o", "-"}, "{\"format\":\"cairn.graph\""},
      {{"info", graph, "-t", "1", "--dot", "-"}, "//"},
      {{"info", graph, "-t", "1", "--gr", "-"}, "p tw 4 4"},
      {{"info", graph, "-t", "1", "--td", "-"}, "s td "},
      {{"model", "ffn", "-o", "-"}, "{\"format\":\"cairn.graph\""},
      {{"generate", "random", "-o", "-"}, "{\"format\":\"cairn.graph\""},
      {{"measure", graph, "--backend", "host", "-o", "-"}, "{\"format\":\"cairn.graph\""},
      {{"plan", graph, schedule, "-o", "-"}, "{\"format\":\"cairn.plan\""},
      {{"plan", graph, schedule, "--csv", "-"}, "id,lower,upper,size,offset"},
      {{"plan", "--buffers", csv, "-o", "-"}, "id,lower,upper,size,offset"},
      {{"pareto", graph, "--points", "2", "-t", "1", "--csv", "-"}, "budget_bytes,"},
      {{"run", graph, "-b", "100%", "--alignment", "1", "--backend", "host", "-o", "-"},
       "{\"format\":\"cairn.schedule\""},
      {{"run", graph, "-b", "100%", "--alignment", "1", "--backend", "host", "--trace", "-"}, "{"},
      {{"simulate", graph, "--backend", "host", "--random", "10", "-o", "-"}, "index,valid,"},
      {{"simulate", graph, "--backend", "host", "--random", "10", "--best", "-"}, "{\"format\":\"cairn.schedule\""}};
  for (const auto& [words, begin] : cases) {
    const Outcome outcome = run_command(words);
    INFO(fmt::format("{}", fmt::join(words, " ")));
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    CHECK(outcome.out.starts_with(begin));
    CHECK_FALSE(outcome.err.empty());
    const Outcome quiet = run_command(words + Words{"-q"});
    CHECK(quiet.err.empty());
    const Outcome json = run_command(words + Words{"--json"});
    CHECK(json.code == 2);
    CHECK(contains(json.err, "--json both write to standard output"));
  }
  check_error({"solve", graph, "-o", "-", "--plan", "-"}, 2,
              {"-o and --plan both write to standard output", "standard output"});
  check_error(run_shell("$CAIRN solve " + graph + " -q -o - >/dev/full"), 2, {"stdout: cannot be written"});

  // One command pipes its schedule into another command.
  const std::string random = folder / "r.json";
  REQUIRE(run_command({"generate", "random", "--nodes", "30", "--edges", "50", "-q", "-o", random}).code == 0);
  const Outcome piped = run_shell("$CAIRN solve - -q -o - <" + random + " | $CAIRN plan " + random + " - --json");
  CHECK(piped.code == 0);
  CHECK(piped.json()["steps"] >= 30);
  const Outcome failed = run_command({"solve", graph, "-b", "49", "-o", "-"});
  check_error(failed, 3, {"no schedule"});
}

TEST_CASE("compressed files are read, of every format") {
  const Folder folder;
  const std::string graph = folder.write("g.json", diamond_graph()), schedule = folder / "s.json";
  REQUIRE(run_command({"solve", graph, "-q", "-o", schedule}).code == 0);
  folder.write("b.csv", "id,lower,upper,size\na,0,2,10\n");
  folder.write("lines", "0 1 2 3\n0 1 2 0 3\n");
  folder.write("g.gr", "p tw 3 2\n1 2\n2 3\n");
  REQUIRE(run_command({"info", graph, "-q", "--td", folder / "g.td", "-t", "1"}).code == 0);
  const std::string cd = "cd " + (folder / "") + " && ";
  REQUIRE(run_shell(cd + "gzip -k g.json s.json b.csv lines g.gr g.td && mv g.json.gz g").code == 0);
  for (const std::string line :
       {"info g -t 1", "info - -t 1 <g", "info g.gr.gz -t 1", "plan g s.json.gz", "plan --buffers b.csv.gz",
        "solve g --solver tw --td g.td.gz", "simulate g --backend host --schedules lines.gz"}) {
    INFO(line);
    const Outcome outcome = run_shell(cd + "$CAIRN " + line);
    INFO(outcome.err);
    CHECK(outcome.code == 0);
  }
  CHECK(run_shell(cd + "$CAIRN simulate g --backend host --schedules lines.gz --json").json()["valid"] == 2);
  check_error(run_shell(cd + "head -c 60 g | $CAIRN info -"), 2, {"stdin: the compressed data ends too early"});
}

TEST_CASE("what has no end or cannot be read is one line") {
  const Folder folder;
  const std::string pipe = folder / "pipe", sparse = folder.write("sparse", "{");
  std::filesystem::resize_file(sparse, std::uintmax_t{100} << 30);
  check_error({"info", sparse}, 2, {"sparse: has more than the 2147483648 bytes (2.00 GiB)"});
  check_error({"info", folder / ""}, 2, {"is a folder, not a file"});
  const std::string graph = folder.write("g.json", diamond_graph());
  for (const Words& words : {Words{"info", "/dev/zero"},
                             {"plan", graph, "/dev/zero"},
                             {"plan", "--buffers", "/dev/zero"},
                             {"solve", graph, "--td", "/dev/zero", "--solver", "tw"},
                             {"simulate", graph, "--schedules", "/dev/zero", "--backend", "host"}})
    check_error(words, 2, {"/dev/zero: byte 0 is 0, which no text holds"});
  check_error(run_shell("yes | CAIRN_MAX_INPUT=8MiB $CAIRN info -"), 2, {"stdin: has more than the 8388608 bytes"});
  check_error(run_shell("CAIRN_MAX_INPUT=some $CAIRN info " + graph), 2, {"CAIRN_MAX_INPUT 'some'"});
  if (::geteuid() != 0) {
    REQUIRE(::chmod(graph.c_str(), 0) == 0);
    check_error({"info", graph}, 2, {"g.json: cannot be opened: Permission denied"});
  }
  // The command waits until another process opens the other end of a pipe. The time limit and Ctrl-C must end the wait.
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const Words& words : {Words{"solve", pipe},
                             {"info", pipe},
                             {"simulate", pipe, "--random", "5", "--backend", "host"},
                             {"plan", graph, pipe},
                             {"measure", pipe}}) {
    check_error(words + Words{"--time-limit", "0.2s"}, 4, {"pipe: not read within the time limit; raise it"});
  }
  Child waiting({"info", pipe});
  // The child process is a fork of the test. Until it executes `cairn`, it still has the signal handlers of the test.
  // So the test waits until the process is `cairn`, and then for the handlers of `cairn`.
  const std::string program = "/proc/" + std::to_string(waiting.pid()) + "/exe";
  while (std::filesystem::read_symlink(program).filename() != "cairn")
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  waiting.wait_for_interrupt_handler();
  waiting.interrupt();
  check_error(waiting.wait(), 130, {"pipe: reading it was interrupted"});
}

TEST_CASE("what is unknown, doubled or scaled in a file is warned of on stderr and in the object") {
  const Folder folder;
  const std::string graph = folder.write("g.json", R"({"format":"cairn.graph","version":1,"name":"g","nodes":[
    {"name":"a","size":20.0,"cost":1.5,"sise":1},{"name":"b","size":2e1,"size":10,"cost":2,"sise":1,"inputs":[0]}]})");
  const std::vector<std::string> lines = {
      "g.json: nodes[1].size occurs twice in one object; the last value counts",
      "g.json: node 0 ('a'): the key \"sise\" is unknown and ignored; did you mean 'size'? (in 2 places)",
      "g.json: 1 of the costs is a fraction; all costs were multiplied by 10 to be whole numbers"};
  const Outcome table = run_command({"info", graph, "-t", "1"});
  CHECK(table.code == 0);
  for (const std::string& line : lines) {
    INFO(table.err);
    CHECK(contains(table.err, line + "\n"));
  }
  CHECK(std::count(table.err.begin(), table.err.end(), '\n') == 3);
  CHECK(table.err.starts_with("cairn: warning: "));
  CHECK(run_command({"info", graph, "-t", "1", "-q"}).err.empty());
  const Outcome outcome = run_command({"info", graph, "-t", "1", "--json"});
  CHECK(outcome.err == table.err);
  const auto json = outcome.json();
  CHECK(json["baseline_cost"] == 35);
  REQUIRE(json["warnings"].size() == 3);
  const std::vector<std::string> kinds = {"duplicate_key", "unknown_key", "scaled_costs"};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CHECK(contains(json["warnings"][i]["text"], lines[i]));
    CHECK(json["warnings"][i]["kind"] == kinds[i]);
  }
  CHECK(json["warnings"][1]["count"] == 2);
  CHECK(json["warnings"][2]["factor"] == 10);
  CHECK(run_json({"models"})["warnings"].empty());
  check_error({"info", folder.write("bad.json", R"({"format":"cairn.graph","version":1,"nodes":[
    {"name":"a","size":4.5}]})")},
              2, {"bad.json: node 0 ('a'): \"size\" must be a whole number, not 4.5"});
}

TEST_CASE("control characters of names reach no terminal") {
  const Folder folder;
  const std::string graph = folder.write(
      "g.json",
      R"({"format":"cairn.graph","version":1,"name":"\u001b[2Jg\u202e\n","nodes":[{"name":"\u001b]0;x\u0007\u009b","size":20,"cost":1}]})");
  for (const Words& words : {Words{"info", graph, "-t", "1"},
                             {"solve", graph},
                             {"solve", graph, "-b", "5"},
                             {"run", graph, "-b", "5", "--backend", "host"},
                             {"run", graph, "-b", "100%", "--alignment", "1", "--backend", "host"},
                             {"pareto", graph, "--points", "2", "-t", "1"},
                             {"info", graph, "-t", "1", "--dot", "-"}}) {
    const Outcome outcome = run_command(words);
    INFO(fmt::format("{}", fmt::join(words, " ")));
    for (const std::string& text : {outcome.out, outcome.err}) {
      CHECK_FALSE(contains(text, "\x1b"));
      CHECK_FALSE(contains(text, "\u202e"));
      CHECK_FALSE(contains(text, "\u009b"));
    }
    CHECK((contains(outcome.out + outcome.err, "x1b[2Jg") || contains(outcome.out + outcome.err, "x1b]0;x")));
  }
  CHECK(run_json({"info", graph, "-t", "1"})["graph"] == "\x1b[2Jg\u202e\n");
  REQUIRE(run_command({"info", graph, "-t", "1", "-q", "--report", folder / "r.html"}).code == 0);
  const std::string page = read_text(folder / "r.html");
  CHECK_FALSE(contains(page, "\x1b"));
  CHECK_FALSE(contains(page, "\u202e"));
  // The title of the page shows control characters as escapes. The page's script escapes the names in the page's data.
  CHECK(contains(page, R"(<title>\x1b[2Jg\u202e\n)"));
}

TEST_CASE("numbers of options are refused as they were typed") {
  const auto [folder, graph] = Diamond{};
  const std::string large = "99999999999999999999";
  check_error({"solve", graph, "--seed", "-1"}, 2, {"--seed -1 is negative"});
  check_error({"solve", graph, "--seed=" + large}, 2,
              {"--seed " + large + " is too large; the most is 18446744073709551615"});
  check_error({"solve", graph, "--work-limit", large}, 2,
              {"--work-limit " + large + " is too large; the most is 9223372036854775807"});
  check_error({"model", "ffn", "--batch", "-" + large}, 2, {"--batch -" + large});
  check_error({"solve", graph, "--max-occurrences", "3000000000"}, 2,
              {"--max-occurrences 3000000000 is out of its range"});
  check_error({"solve", graph, "--work-limit", "1.5"}, 2, {"--work-limit 1.5 is not a whole number"});
  check_error({"solve", graph, "--seed", "0x10"}, 2, {"--seed 0x10 is not a whole number"});
  check_error({"generate", "random", "--keep", "much"}, 2, {"--keep much is not a number"});
  check_error({"generate", "random", "--keep", "nan"}, 2, {"--keep nan is not a number"});
  check_error({"generate", "three-partition", "--numbers", "1,x"}, 2, {"--numbers x is not a whole number"});
  check_error({"plan", graph, "s.json", "--alignment", large}, 2, {"--alignment " + large});

  // Finds in the text of --help every option that takes a whole number, and checks that the option refuses the number
  // `large`.
  for (const std::string command :
       {"info", "solve", "run", "pareto", "model", "plan", "measure", "simulate", "generate"}) {
    const std::string help = run_command({command, "--help"}).out;
    int options = 0;
    for (std::size_t at = 0; (at = help.find("\n  ", at)) != std::string::npos; ++at) {
      const std::string line = help.substr(at + 1, help.find('\n', at + 1) - at - 1);
      const std::size_t name = line.find("--"), type = line.find(" INT"), unsigned_type = line.find(" UINT");
      const std::size_t found = std::min(type, unsigned_type);
      if (name == std::string::npos || found == std::string::npos || line.substr(found).starts_with(" INT|")) continue;
      const std::string option = line.substr(name, line.find_first_of(" ,", name) - name);
      INFO(command << ' ' << option);
      const Outcome outcome = run_command({command, option, large});
      CHECK(outcome.code == 2);
      CHECK(contains(outcome.err, option + " " + large + " is too large"));
      ++options;
    }
    CHECK(options > 0);
  }
  // A leading zero does not mean octal. A whole number may also be written as 1e1 or 10.0.
  CHECK(run_json({"model", "ffn", "--layers", "010"})["nodes"] ==
        run_json({"model", "ffn", "--layers", "10"})["nodes"]);
  CHECK(run_json({"model", "ffn", "--layers", "1e1"})["nodes"] ==
        run_json({"model", "ffn", "--layers", "10.0"})["nodes"]);
  CHECK(run_json({"solve", graph, "--seed", "18446744073709551615"})["status"] == "optimal");
}

TEST_CASE("help is asked for in several ways") {
  const Outcome help = run_command({"--help"});
  CHECK(help.code == 0);
  CHECK(contains(help.out, "Usage: cairn COMMAND"));
  const auto check_help = [](const Words& words, const std::string& text) {
    const Outcome outcome = run_command(words);
    CHECK(outcome.code == 0);
    CHECK(outcome.out == text);
  };
  for (const Words& words : {Words{"help"}, {"help", "help"}, {"help", "--help"}}) check_help(words, help.out);
  const Outcome solve = run_command({"solve", "--help"});
  for (const Words& words : {Words{"help", "solve"}, {"solve", "help"}}) check_help(words, solve.out);
  // Without arguments, the command prints the help. It exits with 2, so that a script with a mistake notices it.
  const Outcome bare = run_command({});
  CHECK(bare.code == 2);
  CHECK(bare.out == help.out);
  CHECK(bare.err.empty());
  check_error({"help", "slove"}, 2, {"no subcommand 'slove'", "'solve'"});
  check_error({"hlep"}, 2, {"'help'"});
}

TEST_CASE("a graph on one line is a graph whatever its names are") {
  const Folder folder;
  for (const auto& [names, count] : {std::pair{"lower_triangle", "upper_triangle"}, {"INSTRUCTION", "b"}}) {
    const std::string text = fmt::format(
        R"({{"format":"cairn.graph","version":2,"nodes":[{{"name":"{}","size":1}},{{"name":"{}","size":1,"inputs":[0]}}]}})",
        names, count);
    CHECK(run_json({"info", folder.write("g.json", text)})["nodes"] == 2);
  }
}

TEST_CASE("flags are seen in every spelling") {
  const auto [folder, graph] = Diamond{};
  CHECK(contains(run_command({"solve", graph, "--json=true", "--budget", "1"}).json()["error"], "fits into 1 bytes"));
  CHECK(run_command({"solve", graph, "-qt", "1s"}).err.empty());
  const Outcome both = run_command({"solve", graph, "-o", "/dev/stdout", "--json"});
  CHECK(both.code == 2);
  CHECK(contains(both.json()["error"], "-o /dev/stdout and --json both write"));
}

TEST_CASE("a search may replace the schedule that it started from") {
  const auto [folder, graph] = Diamond{};
  const std::string file = folder / "s.json";
  run_json({"solve", graph, "-o", file});
  const Words again = {"solve", graph, "--start", file};
  const std::int64_t cost = run_json(again + Words{"-o", file})["cost"];
  CHECK(core::load_schedule(file, core::load_graph(graph)).schedule.length() > 0);
  CHECK(run_json(again)["cost"] <= cost);
  check_error(again + Words{"--report", file}, 2, {"would overwrite the file that --start reads"});
}

TEST_CASE("options have one spelling, and the old one is read but not listed") {
  for (const std::string command : {"info", "solve", "run", "pareto", "model", "plan", "measure", "simulate",
                                    "generate", "bench", "models", "solvers"}) {
    const std::string help = run_command({command, "--help"}).out;
    INFO(command);
    for (std::size_t at = 0; (at = help.find("--", at)) != std::string::npos; ++at)
      CHECK_FALSE(contains(help.substr(at, help.find_first_not_of("abcdefghijklmnopqrstuvwxyz-_", at) - at), "_"));
  }
  const Words small = {"model", "mlp-mixer", "--layers", "1", "--image", "16", "--patch", "4"};
  CHECK(run_json(small + Words{"--channel-mlp", "16"})["parameters"] ==
        run_json(small + Words{"--channel_mlp", "16"})["parameters"]);
  CHECK(run_json(small + Words{"--channel-mlp", "16"})["parameters"] !=
        run_json(small + Words{"--channel-mlp", "17"})["parameters"]);
  const auto models = run_json({"models"});
  for (const auto& model : models["models"]) {
    for (const auto& option : model["options"]) CHECK_FALSE(contains(option["name"], "_"));
  }
}

namespace {

/// Runs the command on a new pseudoterminal of the given width, so that the command prints its progress line.
class Terminal {
 public:
  Terminal(const Words& words, unsigned short columns) {
    master_ = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    REQUIRE(master_ >= 0);
    REQUIRE(grantpt(master_) == 0);
    REQUIRE(unlockpt(master_) == 0);
    resize(columns);
    const std::string slave = ptsname(master_);
    pid_ = fork();
    if (pid_ != 0) return;
    Words all = words;
    all.insert(all.begin(), CAIRN_BINARY_DIR "/bin/cairn");
    std::vector<char*> argv;
    for (auto& word : all) argv.push_back(word.data());
    argv.push_back(nullptr);
    setsid();
    const int terminal = open(slave.c_str(), O_RDWR);
    for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(terminal, file);
    unsetenv("COLUMNS");
    execv(argv[0], argv.data());
    _exit(127);
  }
  ~Terminal() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void resize(unsigned short columns) const {
    const winsize size{24, columns, 0, 0};
    REQUIRE(ioctl(master_, TIOCSWINSZ, &size) == 0);
  }
  /// Reads until the command has written `count` more lines of progress, and returns these lines. Gives up after a
  /// minute.
  std::vector<std::string> progress(std::size_t count) {
    std::string text;
    std::vector<std::string> lines;
    for (int i = 0; i < 6000 && lines.size() < count; ++i) {
      char piece[4096];
      const ssize_t size = read(master_, piece, sizeof(piece));
      if (size > 0) text.append(piece, static_cast<std::size_t>(size));
      if (size <= 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      for (std::size_t end; (end = text.find("\033[K")) != std::string::npos; text.erase(0, end + 3)) {
        const std::size_t begin = text.rfind('\r', end);
        if (begin != std::string::npos && end > begin + 1) lines.push_back(text.substr(begin + 1, end - begin - 1));
      }
    }
    return lines;
  }

 private:
  int master_ = -1;
  pid_t pid_ = -1;
};

}  // namespace

TEST_CASE("the progress line fits the terminal, also one that changes its size") {
  const Folder folder;
  const std::string graph = folder / "g.json";
  REQUIRE(run_command({"generate", "random-layered", "--nodes", "2000", "-q", "-o", graph}).code == 0);
  Terminal terminal({"solve", graph, "-b", "70%", "-t", "10m"}, 60);
  const auto widest = [](const std::vector<std::string>& lines) {
    std::size_t most = 0;
    for (const std::string& line : lines) most = std::max(most, core::display_width(line));
    return most;
  };
  const auto wide = terminal.progress(5);
  REQUIRE(wide.size() >= 5);
  CHECK(widest(wide) <= 59);
  CHECK(widest(wide) > 20);
  terminal.resize(21);
  terminal.progress(2);  // discards lines of the old size
  const auto narrow = terminal.progress(3);
  REQUIRE(narrow.size() >= 3);
  CHECK(widest(narrow) <= 20);
}

TEST_CASE("a graph of sizes that add up to nearly half of 2^62 is solved by every command that takes it") {
  const Folder folder;
  core::GraphBuilder builder("huge");
  core::Random random(1);
  for (core::NodeId v = 0; v < 32; ++v) {
    core::Node node{.name = std::to_string(v),
                    .size = (std::int64_t{1} << 55) + static_cast<std::int64_t>(random.next() >> 9),
                    .cost = 1 + v % 7};
    for (core::NodeId u = std::max(0, v - 6); u < v; ++u) {
      if (random.next() % 2 == 0) node.inputs.push_back(u);
    }
    builder.add(std::move(node));
  }
  const std::string graph = folder.write("huge.json", core::graph_to_json(builder.build()));
  for (const Words& words : {Words{"info", graph},
                             {"solve", graph},
                             {"solve", graph, "-b", "min"},
                             {"solve", graph, "-b", "min", "--peak-only"},
                             {"solve", graph, "-b", "100%"},
                             {"solve", graph, "--max-cost", "20%"},
                             {"pareto", graph}}) {
    const Outcome outcome = run_command(words + Words{"-t", "1s"});
    INFO(words[0] << ": " << outcome.err);
    CHECK(outcome.code == 0);
  }
  // The sizes of this graph add up to 2^62 bytes, the largest permitted sum. The commands must accept this sum.
  const std::string most = folder.write("most.json", R"({"format":"cairn.graph","version":1,"nodes":[
      {"name":"a","size":2305843009213693952,"inputs":[]},{"name":"b","size":2305843009213693952,"inputs":[0]}]})");
  for (const char* command : {"info", "solve", "pareto"}) {
    const Outcome outcome = run_command({command, most, "-t", "1s"});
    INFO(command << ": " << outcome.err);
    CHECK(outcome.code == 0);
  }
}

}  // namespace cairn::tests::input_test
