#!/usr/bin/env python3
"""Checks that every #include is allowed by the rule that docs/architecture.md explains.

Fails in three cases:
- an #include names a file of a folder that the including folder may not include;
- an #include names a file that does not exist in the tree;
- a public header includes something other than Cairn's public headers and the standard library.
"""

import argparse
import collections
import pathlib
import re
import sys

# For each folder, the other folders whose headers it may include. These folders come earlier in the table than the
# folder itself, so no two folders can include each other. A file belongs to the deepest folder of the table that
# contains it. Headers in a folder's internal/ may be included by this folder only; headers in support/ by all folders
# that may include the folder.
RULE = {
    "core": "",
    "core/formats": "core",
    "core/machine": "core",
    "models": "core",
    "sim": "core core/formats",
    "sim/device": "core core/machine sim",
    "sim/host": "core core/machine sim sim/device",
    "solvers/common": "core sim",
    "solvers/plan": "core core/machine solvers/common",
    "solvers/decomposition": "core",
    "solvers/engines": "core",
    "solvers/order/device": "core core/machine sim sim/device",
    "solvers/order": "core core/machine sim solvers/common solvers/order/device",
    "solvers/remat/baselines": "core solvers/common",
    "solvers/remat/repair": "core solvers/common",
    "solvers/remat/kumar": "core solvers/common solvers/decomposition solvers/remat/repair",
    "solvers/remat/stages": "core solvers/common solvers/engines solvers/remat/repair",
    "solvers/remat/rotor": "core solvers/common solvers/remat/repair",
    "solvers/remat/hiremate": "core core/machine solvers/common solvers/engines solvers/remat/repair solvers/remat/rotor "
                              "solvers/remat/kumar",
    "solvers/remat/exact": "core solvers/common",
    "solvers/remat/anneal": "core core/machine sim solvers/common solvers/remat/repair solvers/remat/exact",
    "solvers/remat/bound": "core solvers/common solvers/engines solvers/remat/repair",
    "solvers": "core sim solvers/common solvers/plan solvers/decomposition solvers/engines solvers/order "
               "solvers/remat/baselines solvers/remat/kumar solvers/remat/stages solvers/remat/rotor "
               "solvers/remat/hiremate solvers/remat/repair solvers/remat/exact solvers/remat/anneal "
               "solvers/remat/bound",
    "solvers/offload": "core core/machine solvers/common solvers/remat/rotor solvers/remat/bound solvers",
    "solvers/fit": "core core/formats solvers/common solvers/plan solvers/remat/anneal solvers/remat/bound solvers "
                   "solvers/offload",
    "runtime": "core core/machine",
    "runtime/host": "core core/machine runtime",
    "runtime/device": "core core/machine runtime",
    "cuda": "core core/machine sim sim/device solvers/common solvers/order/device runtime runtime/device",
    "pipeline": "core core/formats core/machine models sim solvers/common solvers/plan solvers/order "
                "solvers/order/device solvers/remat/kumar solvers solvers/fit runtime cuda",
    "report/explain": "core",
    "report/html": "core report/explain",
    "report": "core core/formats sim solvers/common solvers solvers/fit runtime pipeline report/explain "
              "report/html",
    "cli": "core core/formats models sim solvers/common solvers/plan solvers/decomposition solvers solvers/fit runtime "
           "pipeline report",
    "python": "core core/formats models sim solvers/common solvers/plan solvers solvers/fit runtime pipeline report",
}
RULE = {folder: set(allowed.split()) for folder, allowed in RULE.items()}
FRONT_ENDS = {"cli", "python"}
LIBRARY = {folder.split("/")[0] for folder in RULE} - FRONT_ENDS
# These folders do not belong to the library, and may include all folders.
OUTSIDE = {"tests", "bench", "fuzz", "examples"}
NOT_PUBLIC = {"internal", "support", "host", "device", "engines", "decomposition"}
MOST_PARTS = 3  # largest number of parts of a public header's path
SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]*)"|<([^>]*)>)')
PREFIX = "cairn/"


def is_public_header(path):
    """Returns whether a file is a public header. Public headers are in the library's folders, at most two levels deep,
    and not in folders whose names are in NOT_PUBLIC. Deeper headers, such as solvers/remat/rotor/rotor.h, are
    private."""
    return (path.parts[0] in LIBRARY and path.suffix == ".h" and len(path.parts) <= MOST_PARTS and
            not NOT_PUBLIC & set(path.parts[:-1]))


def folder_of(path):
    """Returns the folder of RULE that a file belongs to. If there is none, returns the top folder in the file's
    path."""
    for parent in path.parents:
        if str(parent) in RULE:
            return str(parent)
    return path.parts[0]


def fault(root, path, quoted, angled):
    """Returns what is wrong with an #include in the file `path` (relative to `root`), or None. `quoted` is the name in
    an #include "...", `angled` the name in an #include <...>; the other argument is None."""
    if angled is not None:
        # Among names in angle brackets, only those of the standard library have neither a folder nor a suffix.
        if is_public_header(path) and ("/" in angled or "." in angled):
            return f"public header includes <{angled}>: keep it to .cpp and .cu files and internal/"
        return None
    target = pathlib.PurePosixPath(quoted.removeprefix(PREFIX))
    if not quoted.startswith(PREFIX) or not (root / target).is_file():
        return f'"{quoted}" is no file seen from the root: write project includes as "cairn/folder/file.h"'
    if is_public_header(path) and not is_public_header(target):
        return f'public header includes "{quoted}", which is not installed'
    source, aim = folder_of(path), folder_of(target)
    if source in OUTSIDE or path.parts[0] in OUTSIDE or source == aim:
        return None
    if "internal" in target.parts:
        return f'"{quoted}": internal/ is for {aim}/ alone'
    if aim not in RULE.get(source, set()):
        return f'"{quoted}": {source}/ may not include {aim}/'
    return None


def includes(root):
    """Yields (path, line number, quoted name, angled name) for every #include of the tree. One of the two names is
    None: an #include has its name either in quotes or in angle brackets."""
    for top in sorted(LIBRARY | FRONT_ENDS | OUTSIDE):
        for file in sorted((root / top).rglob("*")):
            path = file.relative_to(root)
            if file.suffix not in SUFFIXES or path.parts[:2] == ("tests", "consumer"):
                continue  # tests/consumer is a separate project
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                if match:
                    yield path, number, *match.groups()


def check(root):
    """Returns all faults under `root`, one line each."""
    found = ((path, number, fault(root, path, *names)) for path, number, *names in includes(root))
    return [f"{path}:{number}: {problem}" for path, number, problem in found if problem]


def draw(root):
    """Returns a line for each folder of RULE, which lists the folders that it includes, each with the number of
    #includes."""
    arrows = collections.Counter()
    for path, _, quoted, _ in includes(root):
        if quoted and path.parts[0] not in OUTSIDE:
            arrows[folder_of(path), folder_of(pathlib.PurePosixPath(quoted.removeprefix(PREFIX)))] += 1
    lines = []
    for folder in RULE:
        below = [f"{aim} ({arrows[folder, aim]})" for aim in RULE if aim != folder and arrows[folder, aim]]
        lines.append(f"{folder} -> {', '.join(below) or 'nothing'}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent,
                        help="root of the tree; default: the tree of this script")
    parser.add_argument("--draw", action="store_true", help="print which folders include which, with the number of includes for each pair, and check nothing; "
                             "folders that include no others come first")
    arguments = parser.parse_args()
    root = arguments.root
    if not (root / "core").is_dir():
        sys.exit(f"{root}: no folder core/ here; give the root of the tree")
    if arguments.draw:
        print("\n".join(draw(root)))
        return 0
    faults = check(root)
    print("\n".join(faults) if faults else "every include keeps the rule")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
