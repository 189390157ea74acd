"""Files that spare work the next time: measured operations and schedules. Losing them loses only time."""

import json
import os
import pathlib
import tempfile


def folder():
    """Where files are kept: ``CAIRN_CACHE``, else ``$XDG_CACHE_HOME/cairn``, else ``~/.cache/cairn``."""
    given = os.environ.get("CAIRN_CACHE")
    if given:
        return pathlib.Path(given) / "torch"
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "cairn" / "torch"


def load(name):
    """The object of that name; None where there is none that can be read."""
    try:
        return json.loads((folder() / name).read_text())
    except (OSError, ValueError, RecursionError):
        return None


def store(name, value):
    """Writes beside, then renames, so that no reader sees half a file. A folder that cannot be written is no error."""
    try:
        folder().mkdir(parents=True, exist_ok=True)
        handle, path = tempfile.mkstemp(dir=folder(), prefix=".writing")
        with os.fdopen(handle, "w") as file:
            json.dump(value, file)
        os.replace(path, folder() / name)
    except OSError:
        pass
