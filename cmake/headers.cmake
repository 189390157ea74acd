# cairn_public_headers(target folders...) makes the headers of these folders part of the target's installed interface,
# except for those in the private folders named below. With tests, it compiles each header twice in one file, alone.
# This proves that a public header has an include guard, and needs no other header before it and no dependency of the
# library.
function(cairn_public_headers target)
  list(TRANSFORM ARGN REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/\\1/*.h" OUTPUT_VARIABLE patterns)
  file(GLOB headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${patterns})
  list(FILTER headers EXCLUDE REGEX "/(internal|support|host|device|engines|decomposition)/")
  list(TRANSFORM headers PREPEND ${PROJECT_BINARY_DIR}/include/cairn/ OUTPUT_VARIABLE paths)
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_BINARY_DIR}/include FILES ${paths})
  set_property(TARGET ${target} PROPERTY CAIRN_PUBLIC_HEADERS ${headers})

  if(NOT CAIRN_TESTS)
    return()
  endif()
  set(sources)
  foreach(header IN LISTS headers)
    set(source ${PROJECT_BINARY_DIR}/headers/${header}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"cairn/${header}\"\n#include \"cairn/${header}\"\n")
    list(APPEND sources ${source})
  endforeach()
  add_library(${target}_headers OBJECT ${sources})
  target_include_directories(${target}_headers PRIVATE ${PROJECT_BINARY_DIR}/include)
endfunction()
