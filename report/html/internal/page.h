#pragma once

// The files of report/html/page/, which the build embeds in the library (cmake/embed.cmake).

#include <string_view>

namespace cairn::report::html {

extern const std::string_view kStyle;
extern const std::string_view kScript;
extern const std::string_view kPlotScript;
extern const std::string_view kPlotStyle;
extern const std::string_view kPlotLicense;

}  // namespace cairn::report::html
