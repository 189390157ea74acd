"""Tests that no module or training loop of the hunt (hunt.py) has silently different results under a budget, and that
everything that AOTAutograd can train can also be trained under Cairn.

``CAIRN_TORCH_HUNT`` is the number of modules (6 by default; a third as many loops), ``CAIRN_TORCH_HUNT_FIRST`` the first
seed.
To test thousands, run hunt.py itself.
"""

import os
import unittest

import hunt

COUNT = int(os.environ.get("CAIRN_TORCH_HUNT", "6"))
FIRST = int(os.environ.get("CAIRN_TORCH_HUNT_FIRST", "0"))
WRONG = ("silent", "loud", "mixed", "layout", "untold")


class Hunt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        hunt.prepare()

    def check(self, count, loops):
        judged = 0
        for seed in range(FIRST, FIRST + count):
            with self.subTest(seed=seed):
                row = hunt.judge_seed(seed, hunt.drawer(loops))
                judged += "budgets" in row
                self.assertEqual([], [line for line in hunt.findings(row) if line.startswith(WRONG)])
        self.assertGreater(judged, count // 2)

    def test_no_module_is_silently_different(self):
        self.check(COUNT, loops=False)

    def test_no_loop_is_silently_different(self):
        self.check(-(-COUNT // 3), loops=True)
