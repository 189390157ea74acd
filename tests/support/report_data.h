#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace cairn::tests {

/// Returns the JSON object in the page of a report. The object ends at the next end tag of a script, as it does in a
/// browser.
inline nlohmann::json data_of_page(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">", end = "</script>";
  const std::size_t from = page.find(begin), to = page.find(end, from);
  if (from == std::string::npos || to == std::string::npos) throw std::runtime_error("no page of a report");
  return nlohmann::json::parse(page.substr(from + begin.size(), to - from - begin.size()));
}

}  // namespace cairn::tests
