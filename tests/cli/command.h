#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cairn/core/formats/files.h"
#include "cairn/core/support/text.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/support/errors.h"
#include "cairn/tests/support/folder.h"
#include "cairn/tests/support/json.h"

/// These helpers run the command `cairn` as a child process and check what it prints.
namespace cairn::tests {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

inline Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}
inline Json read_json(const std::string& path) { return Json::parse(read_text(path)); }

struct Outcome {
  int code = -1;  ///< exit code, or minus the number of the signal that ended the process
  std::string out, err;

  Json json() const { return Json::parse(out); }
};

/// Runs a program, by default `cairn`, as a child process. The output of the process is captured in files of a
/// temporary folder.
class Child {
 public:
  /// Starts `program`. Its stdout goes to the file `stdout_path`. If `stdout_path` is empty, wait() returns the stdout.
  explicit Child(const Words& arguments, const std::string& stdout_path = "",
                 const std::string& program = CAIRN_BINARY_DIR "/bin/cairn") {
    Words words = Words{program} + arguments;
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string out = stdout_path.empty() ? folder_ / "out" : stdout_path, err = folder_ / "err";
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ == 0) {
      const int out_fd = open(out.c_str(), O_WRONLY | O_CREAT, 0600);
      const int err_fd = open(err.c_str(), O_WRONLY | O_CREAT, 0600);
      setenv("CUDA_VISIBLE_DEVICES", "-1", 1);  // makes machines with a GPU behave like machines without one
      dup2(out_fd, STDOUT_FILENO);
      dup2(err_fd, STDERR_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
  }

  /// Waits until the child process has installed a handler for SIGINT or has ended.
  void wait_for_interrupt_handler() const {
    while (!handles(SIGINT) && alive()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  void wait_for_search() const {
    wait_for_interrupt_handler();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  void interrupt() const { kill(pid_, SIGINT); }
  void end_at_once() const { kill(pid_, SIGKILL); }
  pid_t pid() const { return pid_; }

  bool alive() const {
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid == 0;
  }

  Outcome wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return {code, read_text(folder_ / "out"), read_text(folder_ / "err")};
  }

 private:
  bool handles(int signal) const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(file, line);) {
      if (line.rfind("SigCgt:", 0) == 0) return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
    }
    return false;
  }

  Folder folder_;
  pid_t pid_ = -1;
};

inline Outcome run_command(const Words& arguments) { return Child(arguments).wait(); }

/// Runs the command, sends it `signal` while it searches for a schedule, and checks that it then exits with code 130.
inline Outcome interrupted(const Words& words, int signal = SIGINT) {
  Child child(words);
  child.wait_for_search();
  kill(child.pid(), signal);
  Outcome outcome = child.wait();
  INFO(outcome.err);
  REQUIRE(outcome.code == 130);
  return outcome;
}

/// Sets an environment variable. The destructor restores the previous value, or removes the variable if it was not set
/// before.
class Environment {
 public:
  Environment(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Environment() { before_ ? setenv(name_.c_str(), before_->c_str(), 1) : unsetenv(name_.c_str()); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

/// Returns a graph with the edges a -> b -> c -> d and a -> d. Its peak is 60 bytes if every node runs once, and 50
/// bytes if a is computed again before d.
inline std::string diamond_graph() {
  return R"({"format":"cairn.graph","version":1,"name":"tiny","nodes":[
    {"name":"a","size":20,"cost":1,"inputs":[]},
    {"name":"b","size":20,"cost":2,"inputs":[0]},
    {"name":"c","size":20,"cost":3,"inputs":[1]},
    {"name":"d","size":10,"cost":4,"inputs":[2,0],"keep":true}]})";
}

/// A temporary folder that holds the graph of diamond_graph() as the file g.json. To use it, write `const auto [folder,
/// graph] = Diamond{};`.
struct Diamond {
  Folder folder;
  std::string graph = folder.write("g.json", diamond_graph());
};

/// Returns a graph whose input order has a peak of 400 bytes, but no memory plan below 500 bytes. A plan of 400 bytes
/// would consist of two halves, one for y (200 bytes) and one for z (200 bytes). Later, a and c (100 bytes each) share
/// the half of z, and b and d the half of y. Then e (200 bytes) takes the place of a and b, so a must lie beside b. In
/// the same way, w takes the place of c and d, so c must lie beside d. But only one pair can lie beside each other, at
/// the border between the halves. Another order of the steps has a plan of 400 bytes.
inline std::string fragmenting_graph() {
  core::GraphBuilder builder("gaps");
  const auto add = [&](const char* name, std::int64_t size, const std::vector<core::NodeId>& inputs = {}) {
    core::Node node{.name = name, .size = size, .cost = 1};
    for (const core::NodeId input : inputs) node.inputs.emplace_back(input);
    return builder.add(std::move(node));
  };
  const auto y = add("y", 200), z = add("z", 200);
  add("z read", 0, {z});
  const auto a = add("a", 100), c = add("c", 100);
  add("y read", 0, {y});
  const auto b = add("b", 100), d = add("d", 100);
  add("a, b read", 0, {a, b});
  const auto e = add("e", 200);
  add("c, d read", 0, {c, d});
  const auto w = add("w", 200);
  add("e, w read", 0, {e, w});
  return core::graph_to_json(builder.build());
}

/// Arguments that select a small model. A training step of the model has a peak of 20,484 bytes in the input order. The
/// least peak of all schedules is 12,288 bytes.
inline const Words kFfn = {"ffn", "--layers", "4",  "--batch",   "64", "--width",
                           "16",  "--inputs", "16", "--outputs", "8"};

/// Returns the whole number that follows `words` in `text`.
inline std::int64_t number_behind(const std::string& text, const std::string& words) {
  REQUIRE(contains(text, words));
  return std::strtoll(text.c_str() + text.find(words) + words.size(), nullptr, 10);
}

/// Runs the command with --json, checks the exit code, and returns the JSON object that the command prints.
inline Json run_json(const Words& words, int code = 0) {
  const auto outcome = run_command(words + Words{"--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == code);
  if (code == 0) CHECK(outcome.err.empty());
  return outcome.json();
}

/// Returns whether `text` is a well-formed error message: a first line of at most 160 columns, and after it only
/// indented lines of advice.
inline bool is_error(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  if (!text.ends_with('\n') || !std::getline(lines, line)) return false;
  if (!line.starts_with("cairn: error: ") || core::display_width(line) > 160) return false;
  while (std::getline(lines, line)) {
    if (!line.starts_with("  ")) return false;
  }
  return true;
}

/// Checks that a command has exited with `code`, has printed nothing on stdout, and has printed an error message that
/// contains all `fragments`.
inline void check_error(const Outcome& outcome, int code, const Words& fragments) {
  INFO(outcome.err);
  CHECK(outcome.code == code);
  CHECK(outcome.out.empty());
  CHECK(is_error(outcome.err));
  check_says(outcome.err, fragments);
}
inline void check_error(const Words& words, int code, const Words& fragments) {
  CAPTURE(words);
  check_error(run_command(words), code, fragments);
}

}  // namespace cairn::tests
