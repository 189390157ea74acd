"""Stores measured operations and schedules in files, so that later processes need not measure and search. The files can
be deleted at any time. If there is no folder for files, everything is stored in the process only."""

import contextlib
import json
import os
import pathlib
import tempfile

_of_process = {}  # name -> JSON text of an object that was stored while there was no folder


def folder():
    """Returns the folder of the files: ``$CAIRN_CACHE/torch`` if the variable is set, else ``cairn/torch`` in
    ``$XDG_CACHE_HOME`` or ``~/.cache``. A relative path is ignored, because it would put the files into the working
    directory. Returns None if there is no folder, for example in a container without a home directory."""
    given = os.environ.get("CAIRN_CACHE")
    if given:
        return pathlib.Path(given) / "torch" if os.path.isabs(given) else None
    home = os.path.join(os.path.expanduser("~"), ".cache")
    base = next((path for path in (os.environ.get("XDG_CACHE_HOME") or "", home) if os.path.isabs(path)), None)
    return pathlib.Path(base) / "cairn" / "torch" if base is not None else None


def load(name):
    """Returns the stored object; None if it cannot be read."""
    if folder() is None:
        return json.loads(_of_process[name]) if name in _of_process else None
    try:
        return json.loads((folder() / name).read_text())
    except (OSError, ValueError, RecursionError):
        return None


def store(name, value):
    """Stores an object. A renamed temporary file ensures that no reader sees half a file. Does nothing if the folder
    cannot be written. If there is no folder, the object is stored in this process. It must be stored somewhere, because
    operations cannot be measured again while another profiler is active."""
    if folder() is None:
        _of_process[name] = json.dumps(value)
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
