#pragma once

// The files of report/html/page/, which the build embeds in the library (cmake/embed.cmake).

#include <string_view>

namespace cairn::report::html {

extern const std::string_view kStyle;        ///< CSS
extern const std::string_view kScript;       ///< the page's own JavaScript
extern const std::string_view kPlotScript;   ///< JavaScript of uPlot
extern const std::string_view kPlotStyle;    ///< CSS of uPlot
extern const std::string_view kPlotLicense;  ///< license of uPlot

}  // namespace cairn::report::html
