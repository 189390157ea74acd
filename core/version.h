#pragma once

#include <string_view>

namespace cairn::core {

/// The version of Cairn. It is defined only here; the build and the Python package read it from this file.
inline constexpr std::string_view kVersion = "0.2.0";

}  // namespace cairn::core
