# Adds the folder cuda/ if CAIRN_CUDA permits it. Sets architectures before the compiler is checked, because a toolkit
# may support none of CMake's defaults.
if(NOT CAIRN_CUDA)
  return()
endif()
set(own_architectures OFF)
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(own_architectures ON)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)  # machine code for sm_80 and sm_90, and PTX for later ones
endif()
include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)  # must be done here, because the generator needs the settings in the root folder
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25.1 (Debian 12) does not know the option
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
  endif()
  # If the build has no machine code for a device, the driver compiles the PTX at first use, which takes 16 s on a
  # Blackwell GPU.
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
