"""Tests that no module of the hunt (hunt.py) has silently different results under a budget, and that every module that
AOTAutograd can train can also be trained under Cairn.

``CAIRN_TORCH_HUNT`` is the number of modules (6 by default), ``CAIRN_TORCH_HUNT_FIRST`` the number of the first module.
To test thousands, run hunt.py itself.
"""

import os
import unittest

import hunt

COUNT = int(os.environ.get("CAIRN_TORCH_HUNT", "6"))
FIRST = int(os.environ.get("CAIRN_TORCH_HUNT_FIRST", "0"))
WRONG = ("silent", "loud", "mixed", "layout")


class Hunt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        hunt.prepare()

    def test_no_module_is_silently_different(self):
        judged = 0
        for seed in range(FIRST, FIRST + COUNT):
            with self.subTest(seed=seed):
                row = hunt.judge_seed(seed)
                judged += "budgets" in row
                self.assertEqual([], [line for line in hunt.findings(row) if line.startswith(WRONG)])
        self.assertGreater(judged, COUNT // 2)
