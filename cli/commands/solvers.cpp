#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <sstream>
#include <string>

#include "cairn/cli/output.h"
#include "cairn/solvers/registry.h"

namespace cairn::cli {
namespace {

Json to_json(const solvers::SolverInfo& solver) {
  Json options = Json::array();
  for (const auto& option : solver.options) {
    options.push_back({{"name", option.name},
                       {"unit", option.unit},
                       {"default", option.initial},
                       {"minimum", option.least},
                       {"maximum", option.most},
                       {"help", option.help}});
  }
  return {{"name", solver.name},
          {"paper", solver.paper},
          {"guarantee", solver.guarantee},
          {"graphs", solver.graphs},
          {"scope", solvers::describe(solver.scope)},
          {"recomputes", solver.can.recomputes},
          {"keeps_input_order", solver.can.input_order},
          {"limits_occurrences", !solver.can.recomputes || solver.can.max_occurrences},
          {"exact", solver.can.exact},
          {"uses_accelerator", solver.can.accelerator},
          {"missing", solver.why_missing()},
          {"options", options}};
}

std::string abilities(const solvers::SolverInfo& solver) {
  std::vector<std::string_view> words;
  if (solver.can.recomputes) words.push_back("recomputes");
  if (solver.can.exact) words.push_back("exact");
  if (solver.can.input_order) words.push_back("--order input");
  if (!solver.can.recomputes || solver.can.max_occurrences) words.push_back("--max-occurrences");
  if (solver.can.accelerator) words.push_back("--backend cuda");
  return fmt::format("{}", fmt::join(words, ", "));
}

/// Formats a paragraph: `head` at the left of the first line, and `text` from column `at` on, in lines of at most 100
/// columns.
std::string paragraph(const std::string& head, std::size_t at, const std::string& text) {
  constexpr std::size_t kColumns = 100;
  std::string lines = fmt::format("{:<{}}", head, at);
  std::size_t column = std::max(head.size(), at);
  bool begins = true;
  std::istringstream words(text);
  for (std::string word; words >> word; begins = false) {
    if (!begins && column + 1 + word.size() > kColumns) {
      lines += fmt::format("\n{:{}}", "", at);
      column = at;
    } else if (!begins) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines + "\n";
}

std::string solver_text(const solvers::SolverInfo& solver) {
  constexpr std::size_t kSolver = 14, kOption = 26;
  std::string text = paragraph(std::string(solver.name), kSolver, std::string(solver.guarantee));
  text += paragraph("", kSolver, fmt::format("graphs: {}; {}", solver.graphs, abilities(solver)));
  if (const std::string why = solver.why_missing(); !why.empty()) text += paragraph("", kSolver, "missing: " + why);
  for (const auto& option : solver.options)
    text += paragraph(fmt::format("  --option {}={}", option.name, option.initial), kOption,
                      fmt::format("{}: {}", option.unit, option.help));
  return text;
}

int list_solvers(const Console& console) {
  Json list = Json::array();
  std::string text;
  for (const auto& solver : solvers::registry()) {
    list.push_back(to_json(solver));
    text += (text.empty() ? "" : "\n") + solver_text(solver);
  }
  console.print({{"solvers", list}}, text);
  return kDone;
}

}  // namespace

Subcommand add_solvers(CLI::App& root) {
  CLI::App* app = root.add_subcommand("solvers", "list the solvers, what they can and their options");
  auto console = std::make_shared<Console>();
  console->add_to(*app);
  app->footer("Example:\n  cairn solvers --json");
  return {app, [console] { return list_solvers(*console); }};
}

}  // namespace cairn::cli
