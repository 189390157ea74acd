# cairn_embed_data(TARGET NAME...) adds a source file to the target that defines cairn::models::embedded::NAME() for
# each NAME. The function returns the text of models/data/NAME.txt.
function(cairn_embed_data target)
  set(functions "")
  foreach(name IN LISTS ARGN)
    set(file ${PROJECT_SOURCE_DIR}/models/data/${name}.txt)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    string(APPEND functions "std::string_view ${name}() { return R\"_cairn_(${text})_cairn_\"; }\n")
  endforeach()
  set(source ${PROJECT_BINARY_DIR}/embedded_data.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT [[#include "cairn/models/internal/embedded.h"

namespace cairn::models::embedded {
@functions@
}  // namespace cairn::models::embedded
]] @ONLY)
  target_sources(${target} PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
