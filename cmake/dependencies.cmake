find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
set(BLA_VENDOR OpenBLAS)
find_package(BLAS REQUIRED)
find_path(CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas REQUIRED)
find_package(Boost CONFIG REQUIRED)  # headers only, for maximum flow

# MPI is needed only to run `cairn simulate` and `cairn solve` under mpirun, not by the library.
set(CAIRN_MPI AUTO CACHE STRING "Sweeps and searches over several machines by MPI: ON, OFF, or AUTO (where one is found)")
set_property(CACHE CAIRN_MPI PROPERTY STRINGS AUTO ON OFF)
if(CAIRN_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI COMPONENTS CXX QUIET)
  if(NOT MPI_CXX_FOUND AND NOT CAIRN_MPI STREQUAL "AUTO")
    message(FATAL_ERROR "CAIRN_MPI=${CAIRN_MPI} needs an MPI: install libopenmpi-dev and openmpi-bin, or put mpicxx on PATH")
  endif()
endif()
