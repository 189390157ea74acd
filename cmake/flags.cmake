# Warnings for everything built here. Designated initialisers leave members out on purpose.
set(cairn_warnings -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND cairn_warnings -Wno-restrict)  # warns of overlaps inside std::string that are not there (GCC bug 105651)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND cairn_warnings -Wno-psabi)  # vectors as arguments: only within a file (sim/host/vectors.h)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND cairn_warnings -Wno-subobject-linkage)  # looks at the main file's name, which is not the source's then
endif()
if(CAIRN_WERROR)
  list(APPEND cairn_warnings -Werror)
endif()

# Without contraction a*b+c is rounded twice on both machines, so that their results can be compared bit by bit.
set(cairn_host_flags ${cairn_warnings} -ffp-contract=off)
list(JOIN cairn_host_flags "," cairn_host_flags_for_nvcc)
set(cairn_nvcc_flags -fmad=false -Xcompiler=${cairn_host_flags_for_nvcc})
if(CAIRN_WERROR)
  list(APPEND cairn_nvcc_flags -Werror=all-warnings)
endif()

add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${cairn_host_flags}>" "$<$<COMPILE_LANGUAGE:CUDA>:${cairn_nvcc_flags}>")
