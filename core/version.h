#pragma once

#include <string_view>

namespace cairn::core {

/// The one place that states the version: the build and the package read it from here.
inline constexpr std::string_view kVersion = "0.2.0";

}  // namespace cairn::core
