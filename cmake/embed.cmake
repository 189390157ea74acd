# Writes a C++ file with the files of the reports' HTML page as string literals (report/html/internal/page.h). Usage:
# cmake -D OUTPUT=<file.cpp> -D SOURCE=<folder> -P embed.cmake
set(script_files format tracks chart_setup memory_chart address_chart timeline details sections main)
list(TRANSFORM script_files PREPEND "${SOURCE}/")
list(TRANSFORM script_files APPEND ".js")

function(add_literal name)
  file(APPEND "${OUTPUT}.new" "const std::string_view ${name} =")
  foreach(path IN LISTS ARGN)
    file(READ "${path}" text)
    file(APPEND "${OUTPUT}.new" "\nR\"_cairn_(${text})_cairn_\"")
  endforeach()
  file(APPEND "${OUTPUT}.new" ";\n\n")
endfunction()

file(WRITE "${OUTPUT}.new" "#include \"cairn/report/html/internal/page.h\"\n\nnamespace cairn::report::html {\n\n")
add_literal(kStyle "${SOURCE}/page.css")
add_literal(kScript ${script_files})
add_literal(kPlotScript "${SOURCE}/uplot/uPlot.iife.min.js")
add_literal(kPlotStyle "${SOURCE}/uplot/uPlot.min.css")
add_literal(kPlotLicense "${SOURCE}/uplot/LICENSE")
file(APPEND "${OUTPUT}.new" "}  // namespace cairn::report::html\n")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
