#pragma once

#include <string>

#include "cairn/tests/catch.h"

namespace cairn::tests {

/// Returns `text` with the first occurrence of `part` replaced by `by`. `text` must contain `part`.
inline std::string replaced(std::string text, const std::string& part, const std::string& by) {
  INFO(part);
  REQUIRE(text.find(part) != std::string::npos);
  return text.replace(text.find(part), part.size(), by);
}

/// Returns how often `part` occurs in `text`.
inline int times(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace cairn::tests
