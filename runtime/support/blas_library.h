#pragma once

#include <string>

namespace cairn::runtime {

/// The file with the BLAS library that is opened if the system has none; empty by default. Must be set before the first
/// matrix product. Its functions may have the prefix "scipy_", as those of the Python package scipy-openblas32 have.
std::string& blas_fallback();

}  // namespace cairn::runtime
