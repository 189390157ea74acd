#include "cairn/report/html/internal/page.h"

#include <fmt/format.h>

#include "cairn/core/version.h"
#include "cairn/report/html/report.h"
#include "cairn/report/html/support/words.h"

namespace cairn::report {
std::string report_page(const Report& report) {
  using namespace html;
  // All scripts are in one element and share one scope. They are not modules, because browsers load no modules from
  // local files.
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"generator\" content=\"Cairn {}\">\n<link rel=\"icon\" href=\"data:,\">\n<title>{} \u00b7 "
      "{}</title>\n"
      "<style>\n{}\n{}</style>\n</head>\n<body>\n"
      "<noscript>The pictures of this page are drawn by its scripts, which the browser does not run.</noscript>\n"
      "<script type=\"application/json\" id=\"data\">{}</script>\n"
      "<script type=\"text/plain\" id=\"uplot-license\">{}</script>\n<script>{}</script>\n"
      "<script>\n'use strict';\n(() => {{\n{}\n}})();\n</script>\n</body>\n</html>\n",
      core::kVersion, escaped(report.title), escaped(report.command), kPlotStyle, kStyle, report_data(report),
      kPlotLicense, kPlotScript, kScript);
}

}  // namespace cairn::report
