"""Offers the BLAS library of the package scipy-openblas32 to Cairn, for machines that have no BLAS library."""

import importlib.util
import os

from . import _cairn


def offer() -> None:
    """Tells Cairn's C++ library where the package's OpenBLAS is. It is opened only if the system has no BLAS library.
    Takes 0.1 ms."""
    spec = importlib.util.find_spec("scipy_openblas32")
    for folder in (spec and spec.submodule_search_locations) or ():
        _cairn._set_blas_fallback(os.path.join(folder, "lib", "libscipy_openblas.so"))
