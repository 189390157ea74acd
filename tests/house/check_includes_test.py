"""Tests that scripts/check_includes.py finds includes that break the rule about which folder may include which."""

import sys
import unittest

from stand_ins import ROOT, ScriptTest

sys.path.insert(0, str(ROOT / "scripts"))
import check_includes  # noqa: E402


class CheckIncludes(ScriptTest):
    script = "scripts/check_includes.py"

    def setUp(self):
        super().setUp()
        for name in [*check_includes.RULE, "tests", "core/internal", "core/support"]:
            self.write(f"{name}/x.h", "#pragma once\n#include <vector>\n")

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def check_found(self, path, include, words):
        self.write(path, f"#include {include}\n")
        faults = check_includes.check(self.root)
        self.assertEqual(len(faults), 1 if words else 0, faults)
        self.assertIn(words, "".join(faults))
        (self.root / path).unlink()

    def test_every_arrow_points_down(self):
        folders = list(check_includes.RULE)
        for place, folder in enumerate(folders):
            self.assertLessEqual(check_includes.RULE[folder], set(folders[:place]), folder)

    def test_arrows_are_allowed_or_found(self):
        for path, target, words in [("pipeline/y.cpp", "solvers/fit/x.h", ""), ("tests/y.cpp", "cli/x.h", ""),
                                    ("core/internal/z.cu", "models/x.h", "core/ may not include models/"),
                                    ("solvers/fit/y.h", "pipeline/x.h", "solvers/fit/ may not include pipeline/"),
                                    ("cli/y.cpp", "tests/x.h", "cli/ may not include tests/"),
                                    ("sim/y.cpp", "core/support/x.h", ""),
                                    ("sim/y.cpp", "core/internal/x.h", "internal/ is for core/ alone")]:
            with self.subTest(path=path, target=target):
                self.check_found(path, f'"cairn/{target}"', words)

    def test_public_headers_bring_only_public_ones_and_the_standard_library(self):
        for header, include, words in [("core/y.h", "<fmt/format.h>", "public header includes <fmt/format.h>"),
                                       ("core/y.h", '"cairn/core/internal/x.h"', "which is not installed"),
                                       ("solvers/y.h", '"cairn/solvers/remat/repair/x.h"', "which is not installed"),
                                       ("core/internal/y.h", "<fmt/format.h>", ""),
                                       ("solvers/remat/rotor/y.h", "<fmt/format.h>", "")]:
            with self.subTest(header=header, include=include):
                self.check_found(header, include, words)

    def test_an_include_that_is_not_written_from_the_root_is_found(self):
        for written in ["x.h", "core/x.h", "cairn/core/none.h"]:
            self.check_found("core/y.cpp", f'"{written}"', "no file seen from the root")

    def test_the_house_is_drawn_and_the_exit_status_tells(self):
        self.write("sim/y.cpp", '#include "cairn/core/x.h"\n#include "cairn/sim/x.h"\n')
        self.assertIn("sim -> core (1)", check_includes.draw(self.root))
        for root, code in [(self.root, 0), (self.root / "core", 1)]:
            self.assertEqual(self.run_script(root).returncode, code)

    def test_help_is_given_and_an_unknown_option_is_no_folder(self):
        for word, code, words in [("--help", 0, "--draw"), ("--drow", 2, "unrecognized arguments: --drow")]:
            run = self.run_script(word)
            self.assertEqual(run.returncode, code)
            self.assertIn(words, run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main()
