#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <memory>

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

/// What it can, in words.
std::string abilities(const solvers::SolverInfo& solver) {
  std::vector<std::string_view> words;
  if (solver.can.recomputes) words.push_back("recomputes");
  if (solver.can.exact) words.push_back("exact");
  if (solver.can.input_order) words.push_back("--order input");
  if (!solver.can.recomputes || solver.can.max_occurrences) words.push_back("--max-occurrences");
  if (solver.can.accelerator) words.push_back("--backend cuda");
  return fmt::format("{}", fmt::join(words, ", "));
}

int list_solvers(const Console& console) {
  Json list = Json::array();
  Rows rows = {{"solver", "graphs", "can", "guarantee"}};
  for (const auto& solver : solvers::registry()) {
    list.push_back(to_json(solver));
    rows.push_back(
        {std::string(solver.name), std::string(solver.graphs), abilities(solver), std::string(solver.guarantee)});
    if (const std::string why = solver.why_missing(); !why.empty()) rows.push_back({"", "", "", "missing: " + why});
    for (const auto& option : solver.options) {
      rows.push_back({"", "", fmt::format("--option {}={}", option.name, option.initial),
                      fmt::format("{}: {}", option.unit, option.help)});
    }
  }
  console.print({{"solvers", list}}, format_table(rows, true));
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
