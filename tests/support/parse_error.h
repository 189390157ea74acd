#pragma once

#include <string>

#include "cairn/core/formats/files.h"
#include "cairn/tests/support/errors.h"

namespace cairn::tests {

/// Returns the error message of parsing `text` as a graph, or an empty text if the parser accepts it.
inline std::string parse_error(const std::string& text, const std::string& origin) {
  return error_of([&] { core::parse_graph(text, origin); });
}

}  // namespace cairn::tests
