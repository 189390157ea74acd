# The libraries that the wheel needs, for scripts/build_wheels.sh, which compiles with libc++ for an old glibc. It must
# not see the headers of this machine's glibc in /usr/include, and cannot link libraries that need this machine's
# libstdc++. So only headers of libraries are linked into a folder, and {fmt} is used as headers. zlib is written in C;
# every Linux that the tag manylinux names has it.
set(cairn_headers ${CMAKE_BINARY_DIR}/manylinux/include)
set(cairn_architecture ${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu)
file(MAKE_DIRECTORY ${cairn_headers})
foreach(header IN ITEMS fmt nlohmann boost zlib.h zconf.h)
  find_path(cairn_folder_of_${header} ${header} PATHS /usr/include /usr/include/${cairn_architecture} REQUIRED
    NO_DEFAULT_PATH)
  file(CREATE_LINK ${cairn_folder_of_${header}}/${header} ${cairn_headers}/${header} SYMBOLIC)
endforeach()
find_path(cairn_folder_of_cblas NAMES cblas.h PATH_SUFFIXES openblas-pthread openblas-serial . REQUIRED NO_DEFAULT_PATH
  PATHS /usr/include /usr/include/${cairn_architecture})
foreach(header IN ITEMS cblas.h openblas_config.h)
  file(CREATE_LINK ${cairn_folder_of_cblas}/${header} ${cairn_headers}/${header} SYMBOLIC)
endforeach()
find_library(cairn_zlib libz.so REQUIRED NO_DEFAULT_PATH
  PATHS /usr/lib /usr/lib64 /usr/lib/${cairn_architecture})

# Debian's Python includes its configuration from a folder of the machine's architecture.
file(GLOB cairn_pythons /usr/include/${cairn_architecture}/python3.*)
foreach(folder IN LISTS cairn_pythons)
  get_filename_component(name ${folder} NAME)
  file(MAKE_DIRECTORY ${cairn_headers}/${cairn_architecture})
  file(CREATE_LINK ${folder} ${cairn_headers}/${cairn_architecture}/${name} SYMBOLIC)
endforeach()
include_directories(SYSTEM ${cairn_headers})

function(cairn_add_headers target)
  if(NOT TARGET ${target})
    add_library(${target} INTERFACE IMPORTED GLOBAL)
    target_include_directories(${target} SYSTEM INTERFACE ${cairn_headers})
  endif()
endfunction()

macro(cairn_provide method name)
  if("${name}" STREQUAL "fmt")
    cairn_add_headers(fmt::fmt)
    target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
    set(fmt_FOUND TRUE)
  elseif("${name}" STREQUAL "nlohmann_json")
    cairn_add_headers(nlohmann_json::nlohmann_json)
    set(nlohmann_json_FOUND TRUE)
  elseif("${name}" STREQUAL "Boost")
    cairn_add_headers(Boost::headers)
    set(Boost_FOUND TRUE)
  elseif("${name}" STREQUAL "ZLIB")
    cairn_add_headers(ZLIB::ZLIB)
    set_property(TARGET ZLIB::ZLIB PROPERTY INTERFACE_LINK_LIBRARIES ${cairn_zlib})
    set(ZLIB_FOUND TRUE)
  elseif("${name}" STREQUAL "BLAS")
    set(BLAS_LIBRARIES libopenblas.so.0)  # opened at run time
    set(CBLAS_INCLUDE_DIR ${cairn_headers})
    set(BLAS_FOUND TRUE)
  endif()
endmacro()
cmake_language(SET_DEPENDENCY_PROVIDER cairn_provide SUPPORTED_METHODS FIND_PACKAGE)
