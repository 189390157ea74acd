#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/tests/catch.h"

/// These functions check that input is rejected, and that the error message has the expected words.
namespace cairn::tests {

inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// Checks that the text contains all of these parts.
inline void check_says(const std::string& text, const std::vector<std::string>& parts) {
  INFO(text);
  for (const std::string& part : parts) {
    INFO("expected in it: " << part);
    CHECK(contains(text, part));
  }
}

/// Checks that the message is a single line that contains all of these parts.
inline void check_line(const std::string& message, const std::vector<std::string>& parts = {}) {
  INFO(message);
  CHECK_FALSE(message.empty());
  CHECK_FALSE(contains(message, "\n"));
  check_says(message, parts);
}

/// Returns the message of the Error that `call` throws, or an empty text if it throws none.
template <class Error = core::InputError, class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace cairn::tests
