"""The BLAS library of the package scipy-openblas32, for machines that have none."""

import importlib.util
import os

from . import _cairn


def offer() -> None:
    """Tells the library where the package's OpenBLAS is, which is opened only if the system has none. Takes 0.1 ms."""
    spec = importlib.util.find_spec("scipy_openblas32")
    for folder in (spec and spec.submodule_search_locations) or ():
        _cairn._set_blas_fallback(os.path.join(folder, "lib", "libscipy_openblas.so"))
