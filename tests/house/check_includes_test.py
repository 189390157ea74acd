"""Plants violations of the include rule and expects each to be found."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
import check_includes  # noqa: E402

FOLDERS = ["core", "models", "sim", "solvers", "runtime", "cuda", "cli", "tests", "bench", "fuzz"]
ARROWS = {
    "core": [],
    "models": ["core"],
    "sim": ["core"],
    "runtime": ["core"],
    "solvers": ["sim", "core"],
    "cuda": ["runtime", "sim", "core"],
    "cli": ["cuda", "runtime", "sim", "core", "solvers", "models"],
    "tests": FOLDERS,
    "bench": FOLDERS,
    "fuzz": FOLDERS,
}


class CheckIncludes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        for folder in FOLDERS:
            self.write(f"{folder}/x.h", "#pragma once\n#include <vector>\n")

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def faults(self):
        return check_includes.check(self.root)

    def run_script(self, root):
        return subprocess.run([sys.executable, SCRIPTS / "check_includes.py", root], capture_output=True, text=True)

    def test_every_arrow_is_allowed_or_found(self):
        for source in FOLDERS:
            for target in FOLDERS:
                with self.subTest(source=source, target=target):
                    self.write(f"{source}/y.cpp", f'#include "{target}/x.h"\n')
                    allowed = source == target or target in ARROWS[source]
                    expected = [] if allowed else [f'{source}/y.cpp:1: "{target}/x.h": {source}/ may not include {target}/']
                    self.assertEqual(self.faults(), expected)
                    (self.root / source / "y.cpp").unlink()

    def test_arrows_are_found_in_headers_and_kernels_and_below(self):
        for path in ["core/z.h", "core/formats/z.cpp", "core/z.cu", "core/z.cuh"]:
            with self.subTest(path=path):
                self.write(path, '\n  #  include "cli/x.h"\n')
                self.assertEqual(self.faults(), [f'{path}:2: "cli/x.h": core/ may not include cli/'])
                (self.root / path).unlink()

    def test_an_include_beside_the_file_is_found(self):
        self.write("core/y.cpp", '#include "x.h"\n')
        self.assertEqual(len(self.faults()), 1)
        self.assertIn("no file seen from the root", self.faults()[0])

    def test_a_public_header_brings_only_the_standard_library(self):
        for header in ["nlohmann/json.hpp", "fmt/format.h", "cuda_runtime.h", "cblas.h", "omp.h"]:
            with self.subTest(header=header):
                self.write("core/y.h", f"#include <{header}>\n")
                self.assertEqual(len(self.faults()), 1)
                self.assertIn(f"public header includes <{header}>", self.faults()[0])
        (self.root / "core/y.h").unlink()
        for private in ["core/y.cpp", "core/internal/y.h", "cli/y.h", "tests/y.h"]:
            self.write(private, "#include <fmt/format.h>\n")
        self.assertEqual(self.faults(), [])

    def test_the_exit_status_says_whether_the_rule_is_kept(self):
        run = self.run_script(self.root)
        self.assertEqual((run.returncode, run.stdout), (0, "every include keeps the rule\n"))
        self.write("core/y.cpp", '#include "cli/x.h"\n')
        run = self.run_script(self.root)
        self.assertEqual((run.returncode, run.stdout), (1, 'core/y.cpp:1: "cli/x.h": core/ may not include cli/\n'))

    def test_a_wrong_root_is_refused(self):
        run = self.run_script(self.root / "core")
        self.assertEqual(run.returncode, 1)
        self.assertIn("no folder core/ here", run.stderr)


if __name__ == "__main__":
    unittest.main()
