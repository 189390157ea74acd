#pragma once

// These constants hold the contents of the files in report/html/page/. The build embeds these files in the library
// (cmake/embed.cmake).

#include <string_view>

namespace cairn::report::html {

extern const std::string_view kStyle;
extern const std::string_view kScript;
extern const std::string_view kPlotScript;
extern const std::string_view kPlotStyle;
extern const std::string_view kPlotLicense;

}  // namespace cairn::report::html
