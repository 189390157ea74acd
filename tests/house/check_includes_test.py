"""Plants violations of the include rule and expects each to be found."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
import check_includes  # noqa: E402

# Every arrow of docs/architecture.md, apart from the table that the script reads.
ARROWS = {
    "core": [],
    "core/formats": ["core"],
    "core/machine": ["core"],
    "models": ["core"],
    "sim": ["core", "core/formats"],
    "sim/device": ["core", "core/machine", "sim"],
    "sim/host": ["core", "core/machine", "sim", "sim/device"],
    "solvers/common": ["core", "sim"],
    "solvers/plan": ["core", "solvers/common"],
    "solvers/decomposition": ["core"],
    "solvers/engines": ["core"],
    "solvers/order/device": ["core", "core/machine", "sim", "sim/device"],
    "solvers/order": ["core", "core/machine", "sim", "solvers/common", "solvers/order/device"],
    "solvers/remat": ["core", "solvers/common"],
    "solvers/remat/baselines": ["core", "solvers/common", "solvers/remat"],
    "solvers/remat/repair": ["core", "solvers/common"],
    "solvers/remat/kumar": ["core", "solvers/common", "solvers/decomposition", "solvers/remat",
                            "solvers/remat/repair"],
    "solvers/remat/stages": ["core", "solvers/common", "solvers/engines", "solvers/remat", "solvers/remat/repair"],
    "solvers/remat/rotor": ["core", "solvers/common", "solvers/remat", "solvers/remat/repair"],
    "solvers/remat/hiremate": ["core", "solvers/common", "solvers/engines", "solvers/remat", "solvers/remat/repair",
                               "solvers/remat/rotor"],
    "solvers/remat/exact": ["core", "solvers/common", "solvers/remat"],
    "solvers/remat/anneal": ["core", "core/machine", "sim", "solvers/common", "solvers/remat", "solvers/remat/repair",
                             "solvers/remat/exact"],
    "solvers/remat/bound": ["core", "solvers/common", "solvers/engines", "solvers/remat", "solvers/remat/repair"],
    "solvers": ["core", "sim", "solvers/common", "solvers/plan", "solvers/decomposition", "solvers/engines",
                "solvers/order", "solvers/remat", "solvers/remat/repair", "solvers/remat/anneal"],
    "runtime": ["core", "core/machine"],
    "runtime/host": ["core", "core/machine", "runtime"],
    "runtime/device": ["core", "core/machine", "runtime"],
    "cuda": ["core", "core/machine", "sim", "sim/device", "solvers/common", "solvers/order/device", "runtime",
             "runtime/device"],
    "pipeline/report": ["core"],
    "pipeline": ["core", "core/formats", "core/machine", "models", "sim", "solvers/common", "solvers/plan",
                 "solvers/order", "solvers/order/device", "solvers/remat", "solvers", "runtime", "cuda",
                 "pipeline/report"],
    "cli": ["core", "core/formats", "models", "sim", "solvers/common", "solvers/plan", "solvers/decomposition", "solvers",
            "runtime", "pipeline", "pipeline/report"],
    "python": ["core", "core/formats", "models", "sim", "solvers/common", "solvers/plan", "solvers", "pipeline",
               "pipeline/report"],
}
FOLDERS = [*ARROWS, "tests", "bench", "fuzz"]


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
                    self.write(f"{source}/y.cpp", f'#include "cairn/{target}/x.h"\n')
                    allowed = source == target or target in ARROWS.get(source, FOLDERS)
                    fault = f'{source}/y.cpp:1: "cairn/{target}/x.h": {source}/ may not include {target}/'
                    self.assertEqual(self.faults(), [] if allowed else [fault])
                    (self.root / source / "y.cpp").unlink()

    def test_no_two_folders_may_include_each_other(self):
        for source, targets in ARROWS.items():
            for target in targets:
                self.assertNotIn(source, ARROWS[target])
                self.assertNotIn(source, check_includes.RULE[target])

    def test_arrows_are_found_in_headers_and_kernels_and_below(self):
        for path in ["core/z.h", "core/internal/z.cpp", "core/z.cu", "core/z.cuh"]:
            with self.subTest(path=path):
                self.write(path, '\n  #  include "cairn/models/x.h"\n')
                self.assertEqual(self.faults(), [f'{path}:2: "cairn/models/x.h": core/ may not include models/'])
                (self.root / path).unlink()

    def test_an_include_that_is_not_written_from_the_root_is_found(self):
        for written in ["x.h", "core/x.h", "cairn/core/none.h"]:
            with self.subTest(written=written):
                self.write("core/y.cpp", f'#include "{written}"\n')
                self.assertEqual(len(self.faults()), 1)
                self.assertIn("no file seen from the root", self.faults()[0])

    def test_a_public_header_brings_only_public_headers_and_the_standard_library(self):
        for header in ["nlohmann/json.hpp", "fmt/format.h", "cuda_runtime.h", "cblas.h", "omp.h"]:
            with self.subTest(header=header):
                self.write("core/y.h", f"#include <{header}>\n")
                self.assertEqual(len(self.faults()), 1)
                self.assertIn(f"public header includes <{header}>", self.faults()[0])
        self.write("core/internal/x.h", "#pragma once\n")
        self.write("core/y.h", '#include "cairn/core/internal/x.h"\n')
        self.assertIn("which is not installed", self.faults()[0])
        (self.root / "core/y.h").unlink()
        self.write("solvers/y.h", '#include "cairn/solvers/remat/repair/x.h"\n')
        self.assertIn("which is not installed", self.faults()[0])
        (self.root / "solvers/y.h").unlink()
        for private in ["core/y.cpp", "core/internal/y.h", "sim/host/y.h", "runtime/device/y.h", "solvers/engines/y.h",
                        "solvers/remat/rotor/y.h", "cli/y.h", "tests/y.h"]:
            self.write(private, '#include <fmt/format.h>\n#include "cairn/core/internal/x.h"\n')
        self.assertEqual(self.faults(), [])

    def test_the_house_is_drawn_arrow_by_arrow(self):
        self.write("sim/y.cpp", '#include "cairn/core/x.h"\n#include "cairn/core/internal/z.h"\n#include "cairn/sim/x.h"\n')
        self.write("core/internal/z.h", "#pragma once\n")
        lines = check_includes.draw(self.root)
        self.assertIn("sim -> core (2)", lines)
        self.assertIn("core -> nothing", lines)

    def test_the_exit_status_says_whether_the_rule_is_kept(self):
        run = self.run_script(self.root)
        self.assertEqual((run.returncode, run.stdout), (0, "every include keeps the rule\n"))
        self.write("core/y.cpp", '#include "cairn/cli/x.h"\n')
        run = self.run_script(self.root)
        self.assertEqual((run.returncode, run.stdout), (1, 'core/y.cpp:1: "cairn/cli/x.h": core/ may not include cli/\n'))

    def test_a_wrong_root_is_refused(self):
        run = self.run_script(self.root / "core")
        self.assertEqual(run.returncode, 1)
        self.assertIn("no folder core/ here", run.stderr)


if __name__ == "__main__":
    unittest.main()
