"""Builds every model of the tables, and prints its number of parameters and its loss."""

import sys

from .case import Absent, parameter_count
from .tables import MODELS, build


def main():
    for name in MODELS:
        try:
            case = build(name)
        except Absent as error:
            print(f"{name:22} skipped: {error}")
            continue
        print(f"{name:22} {parameter_count(case.model):11,} parameters, {len(case.blocks):3} blocks, "
              f"loss {case.model(*case.inputs).item():.4f}")


if __name__ == "__main__":
    sys.exit(main())
