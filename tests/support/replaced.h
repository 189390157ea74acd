#pragma once

#include <string>

#include "cairn/tests/catch.h"

namespace cairn::tests {

/// The text with the first `part`, which must be there, replaced.
inline std::string replaced(std::string text, const std::string& part, const std::string& by) {
  INFO(part);
  REQUIRE(text.find(part) != std::string::npos);
  return text.replace(text.find(part), part.size(), by);
}

}  // namespace cairn::tests
