#pragma once

#include <string>

namespace cairn::runtime {

/// Returns the name of the file with the BLAS library that is opened if the system has none. The name is empty by
/// default. Callers set it through the reference, before the first matrix product. The names of the library's functions
/// may begin with "scipy_", as in the Python package scipy-openblas32.
std::string& blas_fallback();

}  // namespace cairn::runtime
