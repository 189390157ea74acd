"""Tests that the package tells Cairn's C++ library where to find the OpenBLAS of the package scipy-openblas32."""

import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

from cairn import _blas, _cairn


class Blas(unittest.TestCase):
    def offered(self, path):
        with unittest.mock.patch.object(_cairn, "_set_blas_fallback") as told, unittest.mock.patch.object(sys, "path", path):
            _blas.offer()
        return [call.args[0] for call in told.call_args_list]

    def test_the_package_is_found_without_importing_it(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "scipy_openblas32"
            package.mkdir()
            (package / "__init__.py").write_text("raise AssertionError('imported')")
            self.assertEqual(self.offered([folder]), [os.path.join(package, "lib", "libscipy_openblas.so")])

    def test_without_the_package(self):
        self.assertEqual(self.offered([]), [])


if __name__ == "__main__":
    unittest.main()
