#pragma once

#include <string>

namespace cairn::runtime {

/// The file with the BLAS library that is opened if the system has none; empty by default. Must be set before the first
/// matrix product. The names of the library's functions may begin with "scipy_", as in the Python package
/// scipy-openblas32.
std::string& blas_fallback();

}  // namespace cairn::runtime
