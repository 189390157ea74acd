#pragma once

#include <string>

#include "cairn/core/formats/files.h"
#include "cairn/tests/support/errors.h"

namespace cairn::tests {

/// The one-line error of parsing `text` as a graph; empty if there is none.
inline std::string parse_error(const std::string& text, const std::string& origin) {
  return error_of([&] { core::parse_graph(text, origin); });
}

}  // namespace cairn::tests
