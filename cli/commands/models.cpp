#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cairn/cli/output.h"
#include "cairn/models/registry.h"

namespace cairn::cli {
namespace {

int list_models(const Console& console) {
  Json list = Json::array();
  Rows rows = {{"model", "option", "default", "what it is"}};
  for (const auto& model : models::registry()) {
    Json options = Json::array();
    rows.push_back({std::string(model.name), "", "", std::string(model.summary)});
    for (const auto& option : model.options) {
      options.push_back({{"name", option.name},
                         {"default", option.default_value},
                         {"minimum", option.minimum},
                         {"help", option.help}});
      rows.push_back(
          {"", fmt::format("--{}", option.name), std::to_string(option.default_value), std::string(option.help)});
    }
    list.push_back({{"name", model.name}, {"summary", model.summary}, {"options", options}});
  }
  console.print({{"models", list}}, format_table(rows, true));
  return kDone;
}

}  // namespace

Subcommand add_models(CLI::App& root) {
  CLI::App* app = root.add_subcommand("models", "list the models and their options");
  auto console = std::make_shared<Console>();
  console->add_to(*app);
  app->footer("Example:\n  cairn models --json");
  return {app, [console] { return list_models(*console); }};
}

}  // namespace cairn::cli
