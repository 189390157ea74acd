#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cairn/tests/catch.h"

namespace cairn::tests {

/// Checks that the object has these fields with these values. A field that is missing counts as null.
inline void check_fields(const nlohmann::json& object,
                         const std::vector<std::pair<std::string, nlohmann::json>>& fields) {
  for (const auto& [name, value] : fields) {
    INFO(name);
    CHECK(object.value(name, nlohmann::json()) == value);
  }
}

}  // namespace cairn::tests
