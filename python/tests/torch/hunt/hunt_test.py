"""No module of the hunt (hunt.py) is silently different under a budget, and none fails that AOTAutograd can train.

``CAIRN_TORCH_HUNT`` modules (6), from number ``CAIRN_TORCH_HUNT_FIRST``. hunt.py itself is the way to run thousands.
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
