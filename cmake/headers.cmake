# cairn_public_headers(target folders...) makes the headers of these folders part of the target's installed interface,
# except for those in the private folders named below. If tests are built, each header also gets a source file that
# includes only this header, twice, without the include paths of dependencies. If all of these files compile, public
# headers have include guards, and need no other header before them and no dependency of the library.
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
