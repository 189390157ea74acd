#pragma once

#include <string>

#include "cairn/core/error.h"
#include "cairn/core/formats/files.h"

namespace cairn::tests {

/// The one-line error of parsing `text` as a graph; empty if there is none.
inline std::string parse_error(const std::string& text, const std::string& origin) {
  try {
    core::parse_graph(text, origin);
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace cairn::tests
