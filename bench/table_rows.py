"""This module has functions that the scripts of this folder share: they run `cairn`, and print tables in Markdown."""
import json
import os
import subprocess
import sys

# Switches off the cache of `cairn`, because schedules that an earlier run has stored would change the results of a
# later run.
os.environ["CAIRN_CACHE"] = "/dev/null"


def run(command):
    """Runs a command that prints a JSON object (option --json). Returns its exit code and the object. Ends the script
    if the command reports bad usage (exit code 2)."""
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        answer = json.loads(done.stdout)
    except json.JSONDecodeError:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    if done.returncode == 2:
        sys.exit(f"{' '.join(command)}: {answer['error']}")
    return done.returncode, answer


def need(command):
    """Runs a command that prints a JSON object (option --json), and returns the object. Ends the script if the command
    fails."""
    code, answer = run(command)
    if code != 0:
        sys.exit(f"{' '.join(command)}: {answer['error']}")
    return answer


def graph_name(path):
    return os.path.basename(path).removesuffix(".json").removesuffix(".log")


def print_row(cells):
    print("| " + " | ".join("-" if cell is None else str(cell) for cell in cells) + " |", flush=True)


def print_head(columns):
    print_row(columns)
    print_row(["---"] * len(columns))
