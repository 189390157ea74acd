#!/usr/bin/env python3
"""Checks who includes whom, against the rule in docs/architecture.md.

usage: check_includes.py [ROOT]

Fails on an #include that draws an arrow between folders which the rule does not allow, that names no file of the
tree, or that brings anything beyond Cairn and the standard library into a public header.
"""

import pathlib
import re
import sys

# The folders that a folder may include, besides itself. Everything reachable is listed: the rule is read here alone.
ALLOWED = {
    "core": set(),
    "models": {"core"},
    "sim": {"core"},
    "runtime": {"core"},
    "solvers": {"sim", "core"},
    "cuda": {"runtime", "sim", "core"},
    "cli": {"cuda", "runtime", "sim", "core", "solvers", "models"},
}
# These stand outside the library and may include any folder of it, and each other.
OUTSIDE = {"tests", "bench", "fuzz"}
SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]*)"|<([^>]*)>)')


def is_public_header(path):
    library = path.parts[0] in ALLOWED and path.parts[0] != "cli"
    return library and path.suffix == ".h" and "internal" not in path.parts


def fault(root, path, quoted, angled):
    """What is wrong with one include in `path` (relative to `root`), or None."""
    if angled is not None:
        # The standard library's headers have neither a folder nor a suffix.
        if is_public_header(path) and ("/" in angled or "." in angled):
            return f"public header includes <{angled}>: keep it to .cpp and .cu files and internal/"
        return None
    if not (root / quoted).is_file():
        return f'"{quoted}" is no file seen from the root: write project includes as "folder/file.h"'
    source, target = path.parts[0], quoted.split("/")[0]
    if source in OUTSIDE or source == target:
        return None
    if target not in ALLOWED.get(source, set()):
        return f'"{quoted}": {source}/ may not include {target}/'
    return None


def check(root):
    """All faults under `root`, as lines."""
    faults = []
    for folder in sorted(ALLOWED.keys() | OUTSIDE):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            path = file.relative_to(root)
            if path.parts[:2] == ("tests", "consumer"):
                continue  # a project of its own
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                problem = match and fault(root, path, *match.groups())
                if problem:
                    faults.append(f"{path}:{number}: {problem}")
    return faults


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    if not (root / "core").is_dir():
        sys.exit(f"{root}: no folder core/ here; give the root of the tree")
    faults = check(root)
    print("\n".join(faults) if faults else "every include keeps the rule")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
