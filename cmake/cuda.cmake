# Adds cuda/ where CAIRN_CUDA asks for it. Architectures are named before the compiler is tried: a toolkit may know
# none of CMake's defaults.
if(NOT CAIRN_CUDA)
  return()
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)  # code for sm_80 and sm_90, and PTX for what comes after
endif()
include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)  # in the root: the generator looks for its settings there
  find_package(CUDAToolkit REQUIRED)
  set(CAIRN_HAS_CUDA ON)
  add_subdirectory(cuda)
elseif(CAIRN_CUDA STREQUAL "AUTO")
  message(STATUS "No working nvcc: building without CUDA")
else()
  message(FATAL_ERROR "CAIRN_CUDA=${CAIRN_CUDA} needs a working nvcc: put it on PATH or set CMAKE_CUDA_COMPILER, or use the preset 'cpu'")
endif()
