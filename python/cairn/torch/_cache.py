"""Files save work the next time: measured operations and schedules. Losing them costs only time."""

import contextlib
import json
import os
import pathlib
import tempfile


def folder():
    """The folder of the files: ``CAIRN_CACHE``, else ``$XDG_CACHE_HOME/cairn``, else ``~/.cache/cairn``. None where
    none of these is an absolute path, as in containers without a home: files do not belong into the working
    directory."""
    given = os.environ.get("CAIRN_CACHE")
    if given:
        return pathlib.Path(given) / "torch"
    home = os.path.join(os.path.expanduser("~"), ".cache")
    base = next((path for path in (os.environ.get("XDG_CACHE_HOME") or "", home) if os.path.isabs(path)), None)
    return pathlib.Path(base) / "cairn" / "torch" if base is not None else None


def load(name):
    """The object of that name; None where none can be read."""
    if folder() is None:
        return None
    try:
        return json.loads((folder() / name).read_text())
    except (OSError, ValueError, RecursionError):
        return None


def store(name, value):
    """Writes a temporary file, then renames it, so that no reader sees half a file. A folder that cannot be written is
    no error."""
    if folder() is None:
        return
    path = None
    try:
        folder().mkdir(parents=True, exist_ok=True)
        handle, path = tempfile.mkstemp(dir=folder(), prefix=".writing")
        with os.fdopen(handle, "w") as file:
            json.dump(value, file)
        os.replace(path, folder() / name)
    except OSError:
        if path is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)
