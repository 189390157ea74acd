# Adds cuda/ where CAIRN_CUDA asks for it. Architectures are named before the compiler is tried: a toolkit may know
# none of CMake's defaults.
if(NOT CAIRN_CUDA)
  return()
endif()
set(own_architectures OFF)
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(own_architectures ON)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)  # machine code for these, and PTX for what comes after
endif()
include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)  # in the root: the generator looks for its settings there
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25.1 (Debian 12) does not know that nvcc 12 and later have it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
  endif()
  # Without machine code for its architecture, a device compiles the PTX at first use, which takes 16 s on a Blackwell.
  if(own_architectures AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90 100-real 120)
  endif()
  find_package(CUDAToolkit REQUIRED)
  set(CAIRN_HAS_CUDA ON)
  add_subdirectory(cuda)
elseif(CAIRN_CUDA STREQUAL "AUTO")
  message(STATUS "No working nvcc: building without CUDA")
else()
  message(FATAL_ERROR "CAIRN_CUDA=${CAIRN_CUDA} needs a working nvcc: put it on PATH or set CMAKE_CUDA_COMPILER, or use the preset 'cpu'")
endif()
