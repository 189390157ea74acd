#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "cairn/cli/command.h"
#include "cairn/core/text.h"
#include "cairn/core/version.h"

namespace cairn::cli {
namespace {

int fail(int code, const std::string& message, bool json) { return print_failure({code, message}, json); }

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string suggestion(const std::string& word, const std::vector<std::string>& names) {
  return core::did_you_mean(word, std::vector<std::string_view>(names.begin(), names.end()));
}

/// What is wrong with words that no option took, or empty when there are none.
std::string describe_extras(const CLI::App& root, const std::vector<Subcommand>& subcommands) {
  for (const auto& subcommand : subcommands) {
    if (!subcommand.app->parsed()) continue;
    const auto extras = subcommand.app->remaining();
    if (extras.empty()) continue;
    const std::string word = extras.front().substr(0, extras.front().find('='));
    const std::string& name = subcommand.app->get_name();
    if (word.size() > 1 && word[0] == '-')
      return fmt::format("'cairn {}' has no option {}{}; 'cairn {} --help' lists them", name, word,
                         suggestion(word, option_names(*subcommand.app)), name);
    return fmt::format("'cairn {}' does not know what to do with '{}'; see 'cairn {} --help'", name, word, name);
  }
  const auto extras = root.remaining();
  if (extras.empty()) return {};
  const std::string& word = extras.front();
  if (word[0] == '-')
    return fmt::format("cairn has no option {}{}; see 'cairn --help'", word, suggestion(word, option_names(root)));
  std::vector<std::string> names;
  for (const auto& subcommand : subcommands) names.push_back(subcommand.app->get_name());
  return fmt::format("cairn has no subcommand '{}'{}; see 'cairn --help'", word, suggestion(word, names));
}

/// One screen: where people start, then what else there is.
std::string help(const CLI::App& root) {
  constexpr std::size_t kFirst = 3;
  std::string text = fmt::format(
      "{}\n\nUsage: cairn COMMAND [OPTIONS]     'cairn COMMAND --help' says what it takes\n\n", root.get_description());
  const auto subcommands = root.get_subcommands([](const CLI::App*) { return true; });
  for (std::size_t i = 0; i < subcommands.size(); ++i) {
    if (i == 0) text += "Start with:\n";
    if (i == kFirst) text += "Beside these:\n";
    text += fmt::format("  {:<9} {}\n", subcommands[i]->get_name(), subcommands[i]->get_description());
  }
  return text +
         "Examples:\n"
         "  cairn info resnet50 --batch 8\n"
         "  cairn solve resnet50 --batch 8 --budget 60% -o s.json\n"
         "  cairn run gpt2 --layers 4 --seq 128 --batch 8 --budget 50% --report gpt2.html\n"
         "Exit codes: 0 done, 2 bad usage or input, 3 proved infeasible, 4 nothing found within the limits,\n"
         "5 device missing or out of memory, 130 interrupted.\n";
}

int run_guarded(const Subcommand& subcommand, bool json) {
  try {
    return subcommand.run();
  } catch (...) {
    return print_failure(current_failure(), json);
  }
}

/// Words like `--budget=`, which CLI11 would give the next word as their value, and empty words, as an unset variable
/// of a shell makes them; empty where there are none.
std::string describe_empty_values(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.empty()) return fmt::format("the word after '{}' is empty; give it a value or drop both", argv[i - 1]);
    if (word.size() > 3 && word.substr(0, 2) == "--" && word.find('=') == word.size() - 1)
      return fmt::format("{} is empty; give it a value or drop it", word.substr(0, word.size() - 1));
  }
  return {};
}

int main_guarded(int argc, char** argv) {
  const bool json =
      std::any_of(argv + 1, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
  CLI::App app{
      "Cairn decides in which order a computation graph runs, what it throws away and computes again, and\n"
      "where every tensor lives, so that it fits into a memory budget; and it runs that decision.",
      "cairn"};
  app.set_version_flag("--version", fmt::format("cairn {}", core::kVersion));
  app.allow_extras();
  const std::vector<Subcommand> subcommands = {add_info(app),    add_solve(app),    add_run(app),      add_pareto(app),
                                               add_models(app),  add_solvers(app),  add_model(app),    add_plan(app),
                                               add_measure(app), add_simulate(app), add_generate(app), add_bench(app)};
  // After the subcommands, which keep CLI11's form.
  app.formatter_fn([](const CLI::App* root, const std::string&, CLI::AppFormatMode) { return help(*root); });
  const std::string empty_values = describe_empty_values(argc, argv);
  if (!empty_values.empty()) return fail(kBadInput, empty_values, json);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help and --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    const std::string extras = describe_extras(app, subcommands);
    return fail(kBadInput, extras.empty() ? fmt::format("{}; see --help", error.what()) : extras, json);
  }
  const std::string extras = describe_extras(app, subcommands);
  if (!extras.empty()) return fail(kBadInput, extras, json);
  for (const auto& subcommand : subcommands) {
    if (subcommand.app->parsed()) return run_guarded(subcommand, json);
  }
  return fail(kBadInput, "no subcommand was given; 'cairn --help' lists them", json);
}

/// The exit code once everything is on stdout, which may be full or closed.
int flushed(int code) {
  std::cout.flush();
  if (std::cout) return code;
  print_error("cannot write to stdout: it is full or closed; redirect it to where there is room");
  return code == kDone ? kBadInput : code;
}

}  // namespace
}  // namespace cairn::cli

int main(int argc, char** argv) { return cairn::cli::flushed(cairn::cli::main_guarded(argc, argv)); }
