#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>
#include <thread>

#include "cairn/cli/command.h"
#include "cairn/cli/output.h"
#include "cairn/core/support/text.h"
#include "cairn/core/version.h"

namespace cairn::cli {
namespace {

int fail(int code, const std::string& message, bool json) { return print_failure({code, one_line(message)}, json); }

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

/// Returns an error message about arguments that are neither options nor values of options, or an empty text if there
/// are no such arguments.
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
  std::vector<std::string> names = {"help"};
  for (const auto& subcommand : subcommands) names.push_back(subcommand.app->get_name());
  return fmt::format("cairn has no subcommand '{}'{}; see 'cairn --help'", word, suggestion(word, names));
}

/// Returns the help of `cairn` itself, which fits on one screen. The first commands are those that a new user needs.
std::string help(const CLI::App& root) {
  constexpr std::size_t kFirst = 3;
  std::string text = fmt::format("{}\n\nUsage: cairn COMMAND [OPTIONS]     'cairn help COMMAND' says what it takes\n\n",
                                 root.get_description());
  const auto subcommands = root.get_subcommands([](const CLI::App*) { return true; });
  for (std::size_t i = 0; i < subcommands.size(); ++i) {
    if (i == 0) text += "Start with:\n";
    if (i == kFirst) text += "Other commands:\n";
    text += fmt::format("  {:<9} {}\n", subcommands[i]->get_name(), subcommands[i]->get_description());
  }
  return text +
         "Examples:\n"
         "  cairn info resnet50 --batch 8\n"
         "  cairn solve resnet50 --batch 8 --budget 60% -o s.json\n"
         "  cairn run gpt2 --layers 4 --seq 128 --batch 8 --budget 50% --report gpt2.html\n"
         "A file - is standard input or output; compressed files (gzip) are read as they are.\n"
         "Exit codes: 0 done, 2 bad usage or input, 3 proved infeasible, 4 nothing found within the limits,\n"
         "5 device missing or out of memory, 130 interrupted.\n";
}

int run_guarded(const Subcommand& subcommand, bool json) {
  try {
    const int code = subcommand.run();
    return code == kDone && !unwritten().empty() ? kBadInput : code;
  } catch (...) {
    return print_failure(current_failure(), json);
  }
}

/// Returns an error message if an argument is empty, or an option has an empty value, as in `--budget=`; else an empty
/// text. Empty arguments and values usually come from an unset shell variable. CLI11 does not report an empty value,
/// and takes the argument after `--budget=` as the value.
std::string describe_empty_values(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.empty()) return fmt::format("the word after '{}' is empty; give it a value or drop both", argv[i - 1]);
    if (word.size() > 3 && word.substr(0, 2) == "--" && word.find('=') == word.size() - 1)
      return fmt::format("{} is empty; give it a value or drop it", word.substr(0, word.size() - 1));
  }
  return {};
}

/// Returns what is wrong with the number in `word`, or an empty text. Rewrites a whole number in plain digits, because
/// CLI11 would read 010 as an octal number, and -1 for an unsigned option as the largest number.
std::string read_number(std::string_view type, std::string& word) {
  if (type.starts_with("FLOAT")) {
    double value = 0;
    const char* const end = word.data() + word.size();
    const bool good = std::from_chars(word.data(), end, value) == std::from_chars_result{end, {}};
    return good && std::isfinite(value) ? "" : "is not a number";
  }
  const bool is_unsigned = type.starts_with("UINT");
  std::int64_t value = 0;
  const core::NumberFault fault = core::parse_whole(word, value);
  if (fault == core::NumberFault::no_number || fault == core::NumberFault::fraction)
    return fmt::format("is not a whole number{}", is_unsigned ? " from 0 on" : "");
  if (is_unsigned && word.front() == '-' && value != 0) return "is negative; give a whole number from 0 on";
  if (fault == core::NumberFault::none) {
    word = std::to_string(value);
    return "";
  }
  std::uint64_t large = 0;
  const char* const end = word.data() + word.size();
  if (is_unsigned && std::from_chars(word.data(), end, large) == std::from_chars_result{end, {}}) return "";
  if (word.front() == '-')
    return fmt::format("is too small; the least is {}", std::numeric_limits<std::int64_t>::min());
  return fmt::format("is too large; the most is {}", is_unsigned ? std::numeric_limits<std::uint64_t>::max()
                                                                 : std::numeric_limits<std::int64_t>::max());
}

/// Checks the texts of numbers before CLI11 converts them.
void check_numbers(const std::vector<Subcommand>& subcommands) {
  for (const auto& subcommand : subcommands) {
    for (CLI::Option* option : subcommand.app->get_options()) {
      const std::string type = option->get_type_name();
      if (!type.starts_with("INT") && !type.starts_with("UINT") && !type.starts_with("FLOAT")) continue;
      if (type.starts_with("INT|")) continue;  // this option also takes words, such as auto
      option->transform(CLI::Validator(
          [option, type](std::string& word) -> std::string {
            const std::string typed = word, fault = read_number(type, word);
            if (!fault.empty()) throw core::InputError(fmt::format("{} {} {}", option->get_name(), typed, fault));
            return {};
          },
          ""));
    }
  }
}

/// Returns the arguments for CLI11. `help`, `help COMMAND`, `COMMAND help` and an empty command line become requests
/// for --help.
std::vector<std::string> read_words(int argc, char** argv, const std::vector<Subcommand>& subcommands) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const std::string help = "--help";
  const auto is_command = [&](const std::string& word) {
    return std::any_of(subcommands.begin(), subcommands.end(),
                       [&](const Subcommand& subcommand) { return subcommand.app->get_name() == word; });
  };
  if (words.empty()) return {help};
  if (words[0] == "help") {
    words.erase(words.begin());
    if (words.empty() || words[0] == "help") return {help};
    if (is_command(words[0])) return {words[0], help};
  } else if (words.size() == 2 && words[1] == "help" && !std::filesystem::exists("help") && is_command(words[0])) {
    words[1] = help;
  }
  return words;
}

int main_guarded(int argc, char** argv) {
  const auto given = [&](std::string_view option) {
    return std::any_of(argv + 1, argv + argc, [&](const char* word) { return word == option; });
  };
  const bool json = given("--json");
  streams().json = json;
  streams().quiet = given("--quiet") || given("-q");
  CLI::App app{
      "Cairn decides in which order a computation graph runs, what it throws away and computes again, and\n"
      "where every tensor lives, so that it fits into a memory budget; and it runs that decision.",
      "cairn"};
  app.set_version_flag("--version", fmt::format("cairn {}", core::kVersion));
  app.allow_extras();
  const std::vector<Subcommand> subcommands = {add_info(app),   add_solve(app),   add_run(app),      add_train(app),
                                               add_pareto(app), add_models(app),  add_solvers(app),  add_model(app),
                                               add_plan(app),   add_measure(app), add_simulate(app), add_generate(app),
                                               add_bench(app)};
  // The formatter is set after the subcommands were added, so that the subcommands keep CLI11's form of help.
  app.formatter_fn([](const CLI::App* root, const std::string&, CLI::AppFormatMode) { return help(*root); });
  const std::string empty_values = describe_empty_values(argc, argv);
  if (!empty_values.empty()) return fail(kBadInput, empty_values, json);
  check_numbers(subcommands);
  try {
    std::vector<std::string> words = read_words(argc, argv, subcommands);
    std::reverse(words.begin(), words.end());  // CLI11 reads the words from the last to the first
    app.parse(words);
  } catch (const CLI::Success& success) {  // thrown for --help and --version
    const int code = app.exit(success);
    // Without arguments, the exit code is that of an error, because a script may have passed an unset variable by
    // mistake.
    return argc > 1 ? code : kBadInput;
  } catch (const core::InputError& error) {
    return fail(kBadInput, error.what(), json);
  } catch (const CLI::ConversionError& error) {
    // read_number() has already checked that the text is a number. So if CLI11 cannot convert the number, the number
    // does not fit into the option's variable.
    constexpr std::string_view kBefore = "Could not convert: ";
    const std::string what = error.what();
    const std::size_t equals = what.find(" = ");
    const bool known = what.starts_with(kBefore) && equals != std::string::npos;
    return fail(kBadInput,
                known ? fmt::format("{} {} is out of its range; see --help",
                                    what.substr(kBefore.size(), equals - kBefore.size()), what.substr(equals + 3))
                      : what + "; see --help",
                json);
  } catch (const CLI::ParseError& error) {
    const std::string extras = describe_extras(app, subcommands);
    return fail(kBadInput, extras.empty() ? fmt::format("{}; see --help", error.what()) : extras, json);
  }
  const std::string extras = describe_extras(app, subcommands);
  if (!extras.empty()) return fail(kBadInput, extras, json);
  for (const auto& subcommand : subcommands) {
    if (!subcommand.app->parsed()) continue;
    // given() does not see -q among several letters, as in -qt 1s, and --json=true.
    const auto counted = [&](const char* name) {
      const CLI::Option* option = subcommand.app->get_option_no_throw(name);
      return option != nullptr && option->count() > 0;
    };
    streams().quiet |= counted("--quiet");
    streams().json |= counted("--json");
    return run_guarded(subcommand, streams().json);
  }
  return fail(kBadInput, "no subcommand was given; 'cairn --help' lists them", json);
}

/// Flushes stdout and returns `code`. If stdout is full or closed, prints an error, and returns kBadInput in place of
/// kDone.
int flushed(int code) {
  std::cout.flush();
  if (std::cout) return code;
  print_error("cannot write to stdout: it is full or closed; redirect it to where there is room");
  return code == kDone ? kBadInput : code;
}

/// Calls `work` on a thread with a stack of at least 8 MiB, even if `ulimit -s` is less, because the code that some
/// compilers generate needs a larger stack than a small `ulimit -s` gives. Threads that are started later get such
/// stacks, too.
int with_room_on_stacks(const std::function<int()>& work) {
  constexpr std::size_t kUsual = std::size_t{8} << 20;  // bytes
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= kUsual)
    return work();
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return work();
  pthread_attr_setstacksize(&attributes, kUsual);
  const int failed = pthread_setattr_default_np(&attributes);  // for threads that are started later
  pthread_attr_destroy(&attributes);
  if (failed != 0) return work();
  int code = kDefect;
  std::thread([&] { code = work(); }).join();
  return code;
}

}  // namespace
}  // namespace cairn::cli

int main(int argc, char** argv) {
  using namespace cairn::cli;
  std::signal(SIGXFSZ,
              // With SIGXFSZ ignored, a write beyond the limit on file sizes fails, and the incomplete file is removed.
              SIG_IGN);
  return with_room_on_stacks([&] { return flushed(main_guarded(argc, argv)); });
}
