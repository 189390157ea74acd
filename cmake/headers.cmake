# cairn_public_headers(target folders...): every header of these folders belongs to the target's installed interface,
# and is compiled alone, and twice in one file, against nothing but the target's include root: a public header needs no
# other header before it and no dependency of the library.
# Headers in a folder named internal/ are their parent folder's own: neither installed nor compiled alone.
function(cairn_public_headers target)
  list(TRANSFORM ARGN REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/\\1/*.h" OUTPUT_VARIABLE patterns)
  file(GLOB headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${patterns})
  list(FILTER headers EXCLUDE REGEX "/internal/")
  list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE paths)
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${paths})

  if(NOT CAIRN_TESTS)
    return()
  endif()
  set(sources)
  foreach(header IN LISTS headers)
    set(source ${PROJECT_BINARY_DIR}/headers/${header}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
    list(APPEND sources ${source})
  endforeach()
  add_library(${target}_headers OBJECT ${sources})
  target_include_directories(${target}_headers PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()
