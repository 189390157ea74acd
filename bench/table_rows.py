"""Functions that the scripts of this folder share: they run `cairn`, and print tables in Markdown."""
import json
import os
import subprocess
import sys

# Switches off the cache, because schedules that an earlier run stored would help a later one.
os.environ["CAIRN_CACHE"] = "/dev/null"


def run(command):
    """Runs a command that has the option --json. Returns its exit code and the object that it prints. Ends the script
    if the command was used in a wrong way."""
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        answer = json.loads(done.stdout)
    except json.JSONDecodeError:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    if done.returncode == 2:
        sys.exit(f"{' '.join(command)}: {answer['error']}")
    return done.returncode, answer


def need(command):
    """Runs a command that has the option --json, and returns the object that it prints. Ends the script if the command
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
