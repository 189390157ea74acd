#pragma once

#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "cairn/core/error.h"

namespace CLI {
class App;
}

/// This header declares the subcommands of `cairn`, their exit codes, and functions that report errors.
namespace cairn::cli {

using Json = nlohmann::ordered_json;

inline constexpr int kDone = 0;
inline constexpr int kDefect = 1;  ///< Cairn failed one of its own checks
inline constexpr int kBadInput = 2;
inline constexpr int kInfeasible = 3;
inline constexpr int kNotFound = 4;
inline constexpr int kDevice = 5;
inline constexpr int kInterrupted = 130;

struct Subcommand {
  CLI::App* app;
  std::function<int()> run;
};

Subcommand add_models(CLI::App& root);
Subcommand add_model(CLI::App& root);
Subcommand add_generate(CLI::App& root);
Subcommand add_info(CLI::App& root);
Subcommand add_solve(CLI::App& root);
Subcommand add_pareto(CLI::App& root);
Subcommand add_solvers(CLI::App& root);
Subcommand add_plan(CLI::App& root);
Subcommand add_measure(CLI::App& root);
Subcommand add_run(CLI::App& root);
Subcommand add_train(CLI::App& root);
Subcommand add_simulate(CLI::App& root);
Subcommand add_bench(CLI::App& root);

/// An exception that ends the command with an exit code. Its message is printed on stderr; the first line, the verdict,
/// says what is wrong. With --json, `details` and the key "error" are also printed on stdout.
class Failure : public core::Error {
 public:
  Failure(int code, const std::string& message, Json object = Json::object())
      : core::Error(message), exit_code(code), details(std::move(object)) {}
  int exit_code;
  Json details;
};

/// Replaces line ends by spaces. A message can have line ends if it quotes user input.
std::string one_line(std::string message);
/// Converts the exception that is being handled, of any type, to a Failure.
Failure current_failure();
/// Prints the failure on stderr and, if `json` is set, its details on stdout. Returns its exit code.
int print_failure(const Failure& failure, bool json);
/// Prints "cairn: error: " and the verdict, which is the first line of the message, on stderr. The other lines follow,
/// indented. A verdict longer than report::kVerdictColumns continues on a second line. On a terminal, "error" is red.
void print_error(const std::string& message);

/// Installs a handler: the first Ctrl-C, SIGTERM or SIGHUP sets a flag. Returns the flag. Further signals within a
/// second of the first are ignored, because they count as the same request; a signal after that ends the process. If
/// SIGHUP is ignored, as under nohup, it stays ignored.
const std::atomic<bool>& catch_interrupt();

}  // namespace cairn::cli
