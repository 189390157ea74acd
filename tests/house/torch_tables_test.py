"""bench/torch's tables and pictures from figures that are made up, without PyTorch."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "torch"))
import plot  # noqa: E402
import rows  # noqa: E402

MIB = 2**20
SAME = {"identical": True, "error": 0.0, "of": ""}


def off(error, of="gradients: a.weight"):
    return {"identical": False, "error": error, "of": of}


def row(peak, found=SAME, ratio=1.0, promised=None):
    made = {"peak_bytes": peak * MIB, "peak_operation": "aten::mm", "against_aot": found, "against_eager": found,
            "step_s": ratio, "step_over_eager": ratio}
    if promised:
        made["cairn"] = {"promised_bytes": promised * MIB, "graphs": [{"operations": 99, "recomputed": 7}]}
    return made


def table():
    return {"machine": {"torch": "2.9", "threads": 1, "cpu": "a CPU", "python": "3.11"}, "models": {
        "gpt": {"eager": row(110), "checkpoint": row(50, ratio=1.4), "aot": row(100), "knob-0.5": row(60, off(0.57), 1.1),
                "knob-0": row(80, off(1e-6)), "cairn-50": row(50, promised=50, ratio=1.2),
                "cairn-40": {"failed": "timed out after 9 s"}, "cairn-checkpoint": row(49, promised=48, ratio=0.7)},
        "vit": {"skipped": "timm is not installed"}}}


class Words(unittest.TestCase):
    def test_what_is_equal_what_is_rounding_and_what_is_wrong(self):
        self.assertEqual(rows.right(row(1), "knob-1"), "bit for bit")
        self.assertEqual(rows.right(row(1, off(2e-6)), "knob-1"), "to 2e-06")
        self.assertEqual(rows.right(row(1, off(0.57)), "knob-1"), "**wrong**: 57% (gradients)")
        self.assertTrue(rows.is_wrong(off(float("nan"))))
        self.assertTrue(rows.is_wrong(off(None, "other names")))

    def test_a_line_a_model_and_a_line_a_row(self):
        text = rows.markdown(table())
        self.assertIn("| gpt | 100.0 | 50%, 1.40 x | 80%, 1.00 x | 60%, 1.10 x | **wrong**: 57% (gradients) | 50%, 1.20 x |  "
                      "| 0.50 |", text)
        self.assertIn("| Cairn 50% | 50.0 | 50.0 | 50% | 1.20 | bit for bit | 7 |", text)
        self.assertIn("| Cairn 40% | | | | | timed out after 9 s | |", text)
        self.assertIn("**vit**: skipped, timm is not installed", text)

    def test_broken_promises_are_counted_and_named(self):
        text = rows.summary(table())
        self.assertIn("2 of 3 rows ran: 2 of 2 bit for bit, 1 of 2 within the promise, 2 of 2 within 3% of it", text)
        self.assertIn(f"gpt Cairn at checkpoint's peak by {MIB} bytes at aten::mm", text)


class Pictures(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name) / "a.svg"

    def marks(self, kind):
        tree = xml.etree.ElementTree.parse(self.path)
        return [e for e in tree.iter() if kind in e.get("class", "").split()]

    def test_bars_and_promises(self):
        plot.peaks("gpt", table()["models"]["gpt"], self.path)
        self.assertEqual(len(self.marks("bar")), 7)
        self.assertEqual(len(self.marks("promise")), 1 + 2)
        words = [e.text for e in xml.etree.ElementTree.parse(self.path).iter() if e.text]
        self.assertIn("wrong by 57%", words)

    def test_a_panel_a_model_that_was_measured(self):
        plot.tradeoff(table(), self.path)
        self.assertEqual([e.text for e in self.marks("strong")][1:], ["gpt"])

    def test_a_curve(self):
        points = [{"known": True, "peak_bytes": b * 2**30, "budget_bytes": b * 2**30, "cost_increase": c, "knee": b == 20}
                  for b, c in ((65, 0.0), (20, 0.1), (12, 0.4))] + [{"known": False}]
        plot.large({"parameters": 8e9, "model": {"tokens": 8192}, "peak_bytes": 65 * 2**30,
                    "curve": {"lower_bound_bytes": 11 * 2**30, "points": points}}, self.path)
        self.assertEqual(len([e for e in self.marks("cairn") if e.tag.endswith("circle")]), 3)

    def test_a_folder_that_is_not_there(self):
        done = subprocess.run([sys.executable, str(ROOT / "bench/torch/plot.py"), "--to", str(self.path)], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no such folder", done.stderr)


if __name__ == "__main__":
    unittest.main()
