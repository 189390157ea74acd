#pragma once

// The files of report/html/page/, which the build puts into the library (cmake/embed.cmake).

#include <string_view>

namespace cairn::report::html {

extern const std::string_view kStyle;        ///< CSS
extern const std::string_view kScript;       ///< JavaScript, the page's own
extern const std::string_view kPlotScript;   ///< uPlot's
extern const std::string_view kPlotStyle;    ///< uPlot's
extern const std::string_view kPlotLicense;  ///< uPlot's

}  // namespace cairn::report::html
