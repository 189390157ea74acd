# Designated initialisers omit members on purpose, so the last warning is off.
set(cairn_warnings -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND cairn_warnings -Wno-restrict)  # wrongly warns of overlaps inside std::string (GCC bug 105651)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  # GCC 13 and 14 wrongly warn of copies inside std::vector.
  list(APPEND cairn_warnings -Wno-array-bounds -Wno-stringop-overflow)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND cairn_warnings -Wno-missing-braces)  # asks for braces that C++ lets one leave out
endif()
list(APPEND cairn_warnings -Wno-psabi)  # vectors are arguments only within a file (sim/host/lockstep/vectors.h)
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND cairn_warnings -Wno-subobject-linkage)  # wrong for unity builds, which have another main file
endif()
if(CAIRN_WERROR)
  list(APPEND cairn_warnings -Werror)
endif()

# With these flags, a*b+c is rounded twice on host and GPU (no fused multiply-add), so that their results can be
# compared bit by bit.
set(cairn_host_flags ${cairn_warnings} -ffp-contract=off)
list(JOIN cairn_host_flags "," cairn_host_flags_for_nvcc)
set(cairn_nvcc_flags -fmad=false -Xcompiler=${cairn_host_flags_for_nvcc})
if(CAIRN_WERROR)
  list(APPEND cairn_nvcc_flags -Werror=all-warnings)
endif()

add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${cairn_host_flags}>" "$<$<COMPILE_LANGUAGE:CUDA>:${cairn_nvcc_flags}>")
