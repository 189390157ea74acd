#!/usr/bin/env python3
"""Prints the output of failed tests, the names of skipped ones, and as the last line the count.

usage: summary.py JUNIT_FILE

JUNIT_FILE is what ctest --output-junit writes. The exit code is 0 if at least one test passed and none failed, else 1.
"""

import sys
import xml.etree.ElementTree

MAX_LINES = 60  # printed lines of a failed test's output


def outcome(case):
    # ctest writes the status run, fail, disabled or notrun. Not only skipped tests have the status notrun, but also
    # tests whose program is missing, which count as failed. The message of a skipped test tells them apart.
    status = case.get("status")
    if status == "run":
        return "passed"
    skipped = case.find("skipped")
    if status == "disabled" or (skipped is not None and skipped.get("message", "").startswith("SKIP_")):
        return "skipped"
    return "failed"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        cases = list(xml.etree.ElementTree.parse(sys.argv[1]).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        print(f"{sys.argv[1]}: no test results ({error})")
        print("0 passed, 1 failed, 0 skipped")
        return 1

    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for case in cases:
        result = outcome(case)
        counts[result] += 1
        if result == "skipped":
            print(f"skipped: {case.get('name')}")
        elif result == "failed":
            output = (case.findtext("system-out") or "").strip().splitlines()
            print(f"FAILED: {case.get('name')} ({case.get('status')})")
            print("\n".join("  " + line for line in output[-MAX_LINES:]))
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 0 if counts["passed"] > 0 and counts["failed"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
